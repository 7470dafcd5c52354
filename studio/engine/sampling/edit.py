"""Draw sprites from source sprites: variations, inpainting, tweens and similar sprites."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Events, Notice, Progress, SpritesGenerated
from studio.data.colour.constraints import NONE
from studio.data.colour.pixel_art import to_pixel_art
from studio.engine.devices import detection
from studio.engine.models.model import TrainedModel
from studio.engine.sampling import generate
from studio.engine.sampling.generate import Labels, edit_condition, model_label
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_device, to_input
from studio.recipes.capabilities import BlendsSprites, Capability, EditsSprites

MAX_TWEENS = 64
_MIN_CHANGE = 40  # of 255 levels; a smaller change of a pixel is ignored at low strength
_LIMITED_UP_TO, _UNLIMITED_FROM = 0.3, 0.6  # strengths, see `_visible_changes`
_BLENDED_SPRITES = 2  # source sprites per similar sprite


@dataclass(frozen=True, eq=False)
class EditInput:
    """The sprites that an edit starts from."""

    sprites: Rgba  # [M, S, S, 4]
    labels: Labels  # [M], class of each sprite, -1 if unknown


def redraw(
    model: TrainedModel, settings: GenerateSettings, source: EditInput, keep: NDArray[np.bool_] | None = None,
    silhouette: NDArray[np.uint8] | None = None,
) -> Events:  # fmt: skip
    """Draw variations of sprites, or inpaint them: yields Progress per solver step, then SpritesGenerated.

    source: the sprites to start from, repeated in turn for `count` results. keep: bool [S, S], pixels to keep when
    inpainting; None draws variations. silhouette: uint8 [S, S], the alpha of each pixel; pixels that the
    silhouette adds may change. Below a strength of 0.3, the share of changed visible pixels stays below the strength;
    from 0.6 on, all pixels may change. Raises UsageError, DeviceError.
    """
    _check(model, settings, "vary" if keep is None else "fill", source)
    recipe, seed = model.recipe, settings.seed
    assert isinstance(recipe, EditsSprites)  # `_check` has asked for the capability
    if keep is not None:
        generate.require_model_size(model, "mask", keep.shape)
        if keep.all():
            raise UsageError("The mask keeps all pixels.", "Select the pixels to draw again.")
        if not keep.any():
            raise UsageError("The mask keeps no pixel.", "Keep some pixels, or draw variations instead.")
        if not recipe.knows_inpainting(model.network):
            title = "The model was not trained on inpainting: new pixels may not match the kept ones."
            hint = "Models learn inpainting in the last fifth of training. Choose a later checkpoint."
            yield Notice("info", title, hint)
    constraints = settings.constraints(silhouette)
    generate.check_constraints(model, constraints)
    indices = np.arange(settings.count) % len(source.sprites)  # [N], the start sprite of each new sprite
    wanted = generate.chosen_classes(model, settings)
    labels, shares = (source.labels[indices], None) if wanted is None else (wanted.labels, wanted.shares)
    kept = np.zeros(source.sprites.shape[1:3], bool) if keep is None else keep
    keep_masks = np.repeat(kept[None], settings.count, 0)  # [N, S, S]
    kept_in_each = np.broadcast_to(kept, source.sprites.shape[:3])  # [M, S, S]
    start = constraints.apply(source.sprites, kept_in_each)  # uint8 [M, S, S, 4]
    without_silhouette = settings.constraints().apply(source.sprites, kept_in_each)
    is_new = (start[..., 3] > 0) & (without_silhouette[..., 3] == 0)  # [M, S, S], added by the silhouette
    if settings.strength == 0:
        yield SpritesGenerated(start[indices], labels, model_label(model), settings.seed, np.ones_like(keep_masks))
        return

    def states_of(part: slice) -> Iterator[Tensor]:
        condition = edit_condition(model, start[indices[part]], settings.strength, constraints, keep_masks[part])
        classes = generate.class_tensor(model, labels[part], shares)
        return recipe.redraw(model.network, condition, classes, settings.guidance, settings.steps, seed, part.start)

    def postprocess(drawn: Rgba, part: slice) -> Rgba:
        before = start[indices[part]]
        if settings.strength < 1:
            changes = _visible_changes(before, drawn, ~keep_masks[part], settings.strength)
            keep_masks[part] |= ~is_new[indices[part]] & ~changes
        drawn = np.where(keep_masks[part][..., None], before, drawn)  # the solver changes kept pixels a little
        made = to_pixel_art(drawn, labels[part], model.style, keep_masks[part]) if settings.true_pixels else drawn
        return constraints.apply(made, keep_masks[part])

    with detection.wrap_device_errors(model.device):
        made = yield from generate.draw_in_batches(model, settings.count, settings.steps, states_of, postprocess)
    yield SpritesGenerated(made, labels, model_label(model), settings.seed, keep_masks)


def tween(model: TrainedModel, settings: GenerateSettings, ends: EditInput) -> Events:
    """Draw in-between sprites of two sprites: yields Progress, then one SpritesGenerated.

    The result begins and ends with the two sprites. The seed has no effect. Raises UsageError, DeviceError.
    """
    if len(ends.sprites) != 2:
        raise UsageError(f"Tweening needs two sprites, not {len(ends.sprites)}.", "Choose two sprites.")
    if settings.count > MAX_TWEENS:
        raise UsageError(f"{settings.count:,} tweens are too many.", f"Choose {MAX_TWEENS} or fewer.")
    # Spherical interpolation: two noises are nearly orthogonal.
    angles = np.linspace(0, np.pi / 2, settings.count + 2)[1:-1]
    shares = np.stack([np.cos(angles), np.sin(angles)], 1)
    drawn, labels = yield from _blend(model, settings, ends, shares / shares.sum(1, keepdims=True))
    keep = np.zeros((settings.count + 2, *drawn.shape[1:3]), bool)  # [N + 2, S, S]
    keep[[0, -1]] = True
    sprites = np.concatenate([ends.sprites[:1], drawn, ends.sprites[1:]])
    labels = np.concatenate([ends.labels[:1], labels, ends.labels[1:]])
    yield SpritesGenerated(sprites, labels, model_label(model), settings.seed, keep)


def draw_similar(model: TrainedModel, settings: GenerateSettings, source: EditInput) -> Events:
    """Draw blends of two random source sprites; yields Progress, SpritesGenerated. Raises UsageError, DeviceError."""
    count = len(source.sprites)
    if count < _BLENDED_SPRITES:
        title = "Drawing similar sprites needs two or more source sprites."
        raise UsageError(title, "Choose more sprites, or draw variations.")
    shares = np.zeros((settings.count, count))  # [N, M], weight of each source sprite in each new sprite
    for index, row in enumerate(shares):
        rng = np.random.default_rng((settings.seed, index))
        share = rng.uniform(0.2, 0.8)
        row[rng.choice(count, _BLENDED_SPRITES, replace=False)] = share, 1 - share
    drawn, labels = yield from _blend(model, settings, source, shares)
    yield SpritesGenerated(drawn, labels, model_label(model), settings.seed)


def _blend(
    model: TrainedModel, settings: GenerateSettings, source: EditInput, shares: NDArray[np.float64]
) -> Generator[Progress, None, tuple[Rgba, Labels]]:
    """Draw blends of the source sprites: yields Progress, returns uint8 [N, S, S, 4] and the classes.

    shares: [N, M], the weight of each source sprite in each blend. A blend has the class of its largest share.
    """
    _check(model, settings, "blend", source)
    recipe = model.recipe
    assert isinstance(recipe, BlendsSprites)  # `_check` has asked for the capability
    if settings.mix:
        raise UsageError("Blended sprites take their classes from the source sprites.", "Remove the class mixture.")
    wanted = generate.chosen_classes(model, settings)
    of_source = source.labels if wanted is None else np.full(len(source.labels), wanted.labels[0])
    labels = of_source[shares.argmax(1)]
    chosen = None if wanted is None else wanted.shares
    known, sprites = generate.class_tensor(model, of_source, chosen), to_input(to_device(source.sprites, model.device))
    rows = torch.from_numpy(shares).float().to(model.device)  # float32 [N, M]

    def states_of(part: slice) -> Iterator[Tensor]:
        return recipe.blend(model.network, sprites, known, rows[part], settings.steps)

    def postprocess(drawn: Rgba, part: slice) -> Rgba:
        made = to_pixel_art(drawn, labels[part], model.style) if settings.true_pixels else drawn
        return settings.constraints().apply(made)

    with detection.wrap_device_errors(model.device):
        made = yield from generate.draw_in_batches(model, len(shares), settings.steps, states_of, postprocess)
    return made, labels


def _check(model: TrainedModel, settings: GenerateSettings, capability: Capability, source: EditInput) -> None:
    """Raise UsageError unless the model has the capability and the sprites and settings suit the model."""
    if settings.tiles != NONE:
        raise UsageError("A tile set can't start from a sprite.", "Remove the sprite, or draw without a tile set.")
    generate.require_capability(model, capability)
    generate.require_model_size(model, "sprite", source.sprites.shape[1:3])


def _visible_changes(before: Rgba, drawn: Rgba, may_change: NDArray[np.bool_], strength: float) -> NDArray[np.bool_]:
    """Return the pixels that change visibly, over black, from `before` to `drawn`, uint8 [N, S, S, 4]: bool [N, S, S].

    Below _UNLIMITED_FROM, only the regions with the largest changes, up to a share of the visible pixels: scattered
    changes would look like noise.
    """
    apart = np.abs(_premultiplied(before) - _premultiplied(drawn)).max(-1)  # [N, S, S]
    changes = (apart > _MIN_CHANGE * (1 - strength)) & may_change
    # Mean change in the 3 x 3 neighbourhood of each pixel.
    around = np.lib.stride_tricks.sliding_window_view(np.pad(apart, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
    by_region = np.where(changes, around.mean((-2, -1)), -1.0)  # [N, S, S]
    share = float(np.interp(strength, (0, _LIMITED_UP_TO, _UNLIMITED_FROM), (0, _LIMITED_UP_TO, 1)))
    seen = (before[..., 3] > 0) & may_change
    for sprite, count in enumerate(seen.sum((1, 2)).tolist()):
        most = max(0, math.ceil(share * (count or may_change[sprite].sum())) - 1)  # invisible: of all pixels
        if share < 1 and changes[sprite].sum() > most:
            least_first = by_region[sprite].argsort(axis=None, kind="stable")
            changes[sprite].flat[least_first[: len(least_first) - most]] = False  # keep the `most` largest
    return np.asarray(changes)


def _premultiplied(rgba: Rgba) -> NDArray[np.int16]:
    """Return the sprites with premultiplied alpha, as they look over black: int16 [N, S, S, 4]."""
    values = rgba.astype(np.int16)
    values[..., :3] = values[..., :3].astype(np.int32) * values[..., 3:] // 255  # int16 would overflow at 255 * 255
    return values
