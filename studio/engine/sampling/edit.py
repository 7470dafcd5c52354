"""New sprites that begin with others: variations, a part filled in, some between two, and more like several."""

from __future__ import annotations

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
from studio.data.colour.pixel_art import to_pixel_art
from studio.engine.devices import detection
from studio.engine.models.model import TrainedModel
from studio.engine.sampling.generate import (
    Labels,
    check_constraints,
    chosen_classes,
    class_tensor,
    draw_in_batches,
    edit_condition,
    model_label,
)
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_device, to_input
from studio.recipes.capabilities import BlendsSprites, Capability, EditsSprites

MAX_TWEENS = 64
_MIN_CHANGE = 40  # of 255 levels: a pixel that comes out this near to what it was was hardly meant to change
_LIMITED_UP_TO, _UNLIMITED_FROM = 0.3, 0.6  # strengths: see `_visible_changes`
_BLENDED_SPRITES = 2  # of a sprite that is to be like several
_ABILITY_TEXTS: dict[Capability, str] = {
    "vary": "start from a sprite",
    "fill": "fill in a part of a sprite",
    "blend": "draw between sprites",
    "mix": "mix classes",
}


@dataclass(frozen=True, eq=False)
class EditInput:
    """Sprites to begin with: uint8 [M, S, S, 4] and the class of each, int64 [M], -1 where it is not known."""

    sprites: Rgba
    labels: Labels


def redraw(
    model: TrainedModel,
    settings: GenerateSettings,
    source: EditInput,
    keep: NDArray[np.bool_] | None = None,
    silhouette: NDArray[np.uint8] | None = None,
) -> Events:
    """Variations of the sprites, in turn: yields Progress after each solver step, then one SpritesGenerated.

    Up to a strength of 0.3, a smaller share of the pixels that could be seen changes than that, from 0.6 on any may.
    keep: bool [S, S], pixels that all stay as they are, and to which the others are to fit. silhouette: uint8 [S, S],
    the alpha of each pixel; what is new within it changes at any strength. Raises UsageError, DeviceError.
    """
    _check(model, settings, "vary" if keep is None else "fill", source)
    recipe, seed = model.recipe, settings.seed
    assert isinstance(recipe, EditsSprites)  # `_check` has asked for the capability
    if keep is not None:
        _check_mask(model, keep)
        if not recipe.knows_inpainting(model.network):
            title = "The model has not learnt to fill in: new pixels may fit less well to those that stay."
            hint = (
                "A model learns it in the last fifth of its training: a later checkpoint, such as 'last', may know it."
            )
            yield Notice("info", title, hint)
    constraints = settings.constraints(silhouette)
    check_constraints(model, constraints)
    labels, shares = _classes(model, settings, source)
    places = np.arange(settings.count) % len(source.sprites)
    kept = np.zeros(source.sprites.shape[1:3], bool) if keep is None else keep
    stays = np.repeat(kept[None], settings.count, 0)
    kept_of_each = np.broadcast_to(kept, source.sprites.shape[:3])
    begun_with = constraints.apply(source.sprites, kept_of_each)
    without = settings.constraints().apply(source.sprites, kept_of_each)
    is_new = (begun_with[..., 3] > 0) & (without[..., 3] == 0)  # by the silhouette alone
    if settings.strength == 0:
        yield SpritesGenerated(begun_with[places], labels, model_label(model), settings.seed, np.ones_like(stays))
        return

    def steps_of(part: slice) -> Iterator[Tensor]:
        given = edit_condition(model, begun_with[places[part]], settings.strength, constraints, stays[part])
        classes = class_tensor(model, labels[part], shares)
        return recipe.redraw(model.network, given, classes, settings.guidance, settings.steps, seed, part.start)

    def finished(drawn: Rgba, part: slice) -> Rgba:
        before = begun_with[places[part]]
        if settings.strength < 1:
            stays[part] |= ~is_new[places[part]] & ~_visible_changes(before, drawn, ~stays[part], settings.strength)
        drawn = np.where(stays[part][..., None], before, drawn)
        made = to_pixel_art(drawn, labels[part], model.style, stays[part]) if settings.true_pixels else drawn
        return constraints.apply(made, stays[part])

    with detection.wrap_device_errors(model.device):
        made = yield from draw_in_batches(model, settings.count, settings.steps, steps_of, finished)
    yield SpritesGenerated(made, labels, model_label(model), settings.seed, stays)


def tween(model: TrainedModel, settings: GenerateSettings, ends: EditInput) -> Events:
    """The first sprite, so many that lead to the second, and that one: yields Progress, then one SpritesGenerated.

    The same ends give the same sprites whatever the seed is. Raises UsageError, DeviceError.
    """
    if len(ends.sprites) != 2:
        raise UsageError(f"These are {len(ends.sprites)} sprites to draw between.", "Give two.")
    if settings.count > MAX_TWEENS:
        raise UsageError(f"{settings.count:,} sprites between two are too many.", f"Take {MAX_TWEENS} or fewer.")
    angles = np.linspace(0, np.pi / 2, settings.count + 2)[1:-1]  # even steps between noises, which are at right angles
    shares = np.stack([np.cos(angles), np.sin(angles)], 1)
    drawn, labels = yield from _blend(model, settings, ends, shares / shares.sum(1, keepdims=True))
    keep = np.zeros((settings.count + 2, *drawn.shape[1:3]), bool)
    keep[[0, -1]] = True
    sprites = np.concatenate([ends.sprites[:1], drawn, ends.sprites[1:]])
    labels = np.concatenate([ends.labels[:1], labels, ends.labels[1:]])
    yield SpritesGenerated(sprites, labels, model_label(model), settings.seed, keep)


def draw_similar(model: TrainedModel, settings: GenerateSettings, source: EditInput) -> Events:
    """New sprites that have something of two of these each: yields Progress, then one SpritesGenerated.

    Raises UsageError, DeviceError.
    """
    count = len(source.sprites)
    if count < _BLENDED_SPRITES:
        raise UsageError("More like one sprite are its variations.", "Choose two sprites or more.")
    shares = np.zeros((settings.count, count))
    for place, row in enumerate(shares):
        rng = np.random.default_rng((settings.seed, place))
        share = rng.uniform(0.2, 0.8)
        row[rng.choice(count, _BLENDED_SPRITES, replace=False)] = share, 1 - share
    drawn, labels = yield from _blend(model, settings, source, shares)
    yield SpritesGenerated(drawn, labels, model_label(model), settings.seed)


def _blend(
    model: TrainedModel, settings: GenerateSettings, source: EditInput, shares: NDArray[np.float64]
) -> Generator[Progress, None, tuple[Rgba, Labels]]:
    """A sprite for each row of shares [N, M] of the sprites, with the class of which it has most."""
    _check(model, settings, "blend", source)
    recipe = model.recipe
    assert isinstance(recipe, BlendsSprites)  # `_check` has asked for the capability
    if settings.mix:
        raise UsageError("Sprites between others have the classes of those.", "Leave out the mixture.")
    wanted = chosen_classes(model, settings)
    of_source = source.labels if wanted is None else np.full(len(source.labels), wanted.labels[0])
    labels = of_source[shares.argmax(1)]
    known, sprites = class_tensor(model, of_source, None), _input_tensor(source.sprites, model)
    rows = torch.from_numpy(shares).float().to(model.device)

    def steps_of(part: slice) -> Iterator[Tensor]:
        return recipe.blend(model.network, sprites, known, rows[part], settings.steps)

    def finished(drawn: Rgba, part: slice) -> Rgba:
        made = to_pixel_art(drawn, labels[part], model.style) if settings.true_pixels else drawn
        return settings.constraints().apply(made)

    with detection.wrap_device_errors(model.device):
        made = yield from draw_in_batches(model, len(shares), settings.steps, steps_of, finished)
    return made, labels


def _check(model: TrainedModel, settings: GenerateSettings, ability: Capability, source: EditInput) -> None:
    """Raise UsageError where that is not how to begin, the model can't do it, or the sprites are not of its size."""
    if settings.corner_tiles:
        raise UsageError("A set of corner tiles begins with noise.", "Leave out the sprite, or --corner-tiles.")
    if ability not in model.recipe.capabilities:
        raise UsageError(f"{model.title} can't {_ABILITY_TEXTS[ability]}.", "Choose a model of another kind.")
    height, width = source.sprites.shape[1:3]
    if (height, width) != (model.spec.size, model.spec.size):
        side = model.spec.size
        raise UsageError(f"A sprite of {width} x {height} pixels doesn't fit the model's {side} x {side}.", "")


def _check_mask(model: TrainedModel, keep: NDArray[np.bool_]) -> None:
    """Raise UsageError for a mask that leaves nothing to do, or that is not of the model's size."""
    if keep.shape != (model.spec.size, model.spec.size):
        height, width = keep.shape
        side = model.spec.size
        raise UsageError(f"The mask has {width} x {height} pixels, the model's sprites {side} x {side}.", "")
    if keep.all():
        raise UsageError("All pixels are to stay: there is nothing to draw.", "Mark those that are to be drawn anew.")
    if not keep.any():
        raise UsageError("No pixel is to stay.", "Mark some that are, or ask for variations.")


def _classes(
    model: TrainedModel, settings: GenerateSettings, source: EditInput
) -> tuple[Labels, NDArray[np.float32] | None]:
    """The class of each new sprite, the one asked for or that of what it begins with, and shares where mixed."""
    wanted = chosen_classes(model, settings)
    if wanted is None:
        return source.labels[np.arange(settings.count) % len(source.labels)], None
    return wanted.labels, wanted.shares


def _input_tensor(sprites: Rgba, model: TrainedModel) -> Tensor:
    return to_input(to_device(sprites, model.device))


def _visible_changes(before: Rgba, drawn: Rgba, may_change: NDArray[np.bool_], strength: float) -> NDArray[np.bool_]:
    """Which pixels change from uint8 [N, S, S, 4] to what was drawn of them: bool [N, S, S].

    Those of which the eye sees it, over black: at a low strength a smaller share of the pixels that could be seen than
    the strength is, then more, at a high one any. They are those around which most changes: a sprite of which every
    second pixel is another is no variation, but speckled.
    """
    apart = np.abs(_premultiplied(before) - _premultiplied(drawn)).max(-1)
    changes = (apart > _MIN_CHANGE * (1 - strength)) & may_change
    around = np.lib.stride_tricks.sliding_window_view(np.pad(apart, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
    by_region = np.where(changes, around.mean((-2, -1)), -1.0)
    share = float(np.interp(strength, (0, _LIMITED_UP_TO, _UNLIMITED_FROM), (0, _LIMITED_UP_TO, 1)))
    seen = (before[..., 3] > 0) & may_change
    for sprite, count in enumerate(seen.sum((1, 2)).tolist()):
        most = max(0, math.ceil(share * (count or may_change[sprite].sum())) - 1)
        if share < 1 and changes[sprite].sum() > most:
            least_first = by_region[sprite].argsort(axis=None, kind="stable")
            changes[sprite].flat[least_first[: len(least_first) - most]] = False
    return np.asarray(changes)


def _premultiplied(rgba: Rgba) -> NDArray[np.int16]:
    values = rgba.astype(np.int16)
    values[..., :3] = values[..., :3].astype(np.int32) * values[..., 3:] // 255
    return values
