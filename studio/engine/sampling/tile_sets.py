"""Draw tile sets as parts of a large picture: neighbouring tiles get equal borders."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Mask, Rgba
from studio.core.errors import UsageError
from studio.core.events import Events, Progress, SpritesGenerated
from studio.core.generators import run_to_end
from studio.data.colour.recolouring import ColourMode, recolour_sprites
from studio.data.tiles.given import fix_given
from studio.data.tiles.layout import TRANSPARENT as TRANSPARENT_NAME
from studio.data.tiles.layout import TileLayout, TileSetSpec
from studio.data.tiles.tile_set import ANY, CENTRE, CORNERS
from studio.engine.devices import detection
from studio.engine.models.model import TrainedModel
from studio.engine.sampling import generate
from studio.engine.sampling.class_choice import find_class
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_device, to_input, to_rgba
from studio.recipes.capabilities import TRANSPARENT, DrawsMaps

# Of the random outline of a transparent terrain: smoothing passes, and height of the waves.
_OUTLINE_BLURS, _OUTLINE_WAVES = 2, 0.25


def draw_tile_set(model: TrainedModel, settings: GenerateSettings, given: Rgba | None = None) -> Events:
    """Draw a tile set as one picture: yields Progress after each solver step, then SpritesGenerated.

    given: uint8 [N, S, S, 4], tiles to keep, in the order of the set; the model draws the places of fully transparent
    tiles. Raises UsageError, DeviceError.
    """
    plan = settings.tile_set_spec()
    assert plan is not None
    labels = _terrain_labels(model, settings, plan)
    layout = plan.layout(model.spec.size)
    count = len(layout.places)
    tiles, keep = None, None
    if given is not None:
        generate.require_model_size(model, "given tile", given.shape[1:3])
        tiles, keep = fix_given(plan, given)
    with detection.wrap_device_errors(model.device):
        states = _states(model, settings, layout, labels, tiles, keep)
        for step, state in enumerate(generate.run_in_precision(model, states), 1):
            yield Progress(min(step, settings.steps) * count // settings.steps, count, generate.PROGRESS_UNIT)
            x = state
        drawn = layout.split(to_rgba(x).numpy())
    if tiles is not None and keep is not None:
        drawn = np.where(keep[..., None], tiles, drawn)
    classes = np.array(labels)[_most_frequent(layout.places, len(labels))]
    choice = ColourMode(settings.true_pixels)
    made = run_to_end(recolour_sprites(drawn, classes, model.style, choice, keep, settings.constraints()))
    names = "-".join(name.rpartition("/")[2] for name in plan.terrains)
    count_once = count // layout.variants
    variants = ("" if tile < count_once else f"-{tile // count_once + 1}" for tile in range(count))
    titles = tuple(f"{names} {code}{v}" for code, v in zip(_codes(layout.places), variants, strict=True))
    yield SpritesGenerated(made, classes, generate.model_label(model), settings.seed, keep, titles=titles)


def _states(
    model: TrainedModel, settings: GenerateSettings, layout: TileLayout, labels: list[int], given: Rgba | None,
    keep: Mask | None,
) -> Iterator[Tensor]:  # fmt: skip
    """Return a generator of the unfinished picture, float32 [1, 4, H, W], after each solver step."""
    recipe = model.recipe
    assert isinstance(recipe, DrawsMaps)
    by_terrain = layout.shares
    if TRANSPARENT in labels:  # the shares alone form this outline, which would be straight without noise
        by_terrain = _rough_outline(layout, labels.index(TRANSPARENT), settings.seed)
    shares, ties = (torch.from_numpy(array).to(model.device) for array in (by_terrain, layout.ties))
    by_label = dict(zip(labels, shares, strict=True))
    how = settings.guidance, settings.steps, settings.seed
    if given is None or keep is None:
        return recipe.draw_map(model.network, by_label, ties, *how)
    picture = to_input(to_device(layout.join(given), model.device))
    mask = torch.from_numpy(layout.join(keep)[0]).to(model.device)
    return recipe.draw_map(model.network, by_label, ties, *how, picture, mask)


def _rough_outline(layout: TileLayout, terrain: int, seed: int) -> NDArray[np.float32]:
    """Roughen the outline of a terrain at random; return the shares, float32 [K, H, W], equal at tied pixels."""
    noise = np.random.default_rng(seed).normal(size=layout.ties.shape)
    for axis in (0, 1):
        for _ in range(_OUTLINE_BLURS):
            noise = (noise + np.roll(noise, 1, axis) + np.roll(noise, -1, axis)) / 3
    _, first = np.unique(layout.ties, return_index=True)
    tied = (noise / noise.std()).ravel()[first[layout.ties]]
    own = layout.shares[terrain]
    rough = np.clip(own + _OUTLINE_WAVES * tied * 4 * own * (1 - own), 0, 1)
    others = np.divide(1 - rough, 1 - own, out=np.ones_like(own), where=own < 1)
    shares = layout.shares * others
    shares[terrain] = rough
    return np.asarray(shares, np.float32)


def _terrain_labels(model: TrainedModel, settings: GenerateSettings, plan: TileSetSpec) -> list[int]:
    """Return the class of each terrain, or TRANSPARENT. Raises UsageError for unknown classes and options."""
    generate.require_capability(model, "map")
    usual = GenerateSettings()
    if (settings.mirror, settings.seamless, settings.outline) != (usual.mirror, usual.seamless, usual.outline):
        title = "A tile set can't be mirrored, seamless or outlined."
        raise UsageError(title, "Set mirror, seamless and outline to 'none'.")
    if settings.attributes:
        raise UsageError("A tile set can't have attributes.", "Remove the attributes.")
    if settings.quick:
        raise UsageError("Fast mode can't draw tile sets.", "Turn off fast mode.")
    classes = model.spec.class_names
    labels = [
        TRANSPARENT if name == TRANSPARENT_NAME and name not in classes else find_class(classes, name)
        for name in plan.terrains
    ]
    if len(set(labels)) < len(labels):
        raise UsageError("The terrains of a tile set must differ.", "Name each terrain once.")
    return labels


def _most_frequent(places: NDArray[np.int8], terrain_count: int) -> NDArray[np.int64]:
    """Return a terrain per tile, int64 [N]: at the centre or, without a centre, at most places. places: [N, 9]."""
    counts = np.stack([(places == terrain).sum(1) for terrain in range(terrain_count)], 1)
    return np.where(places[:, CENTRE] == ANY, counts.argmax(1), places[:, CENTRE])


def _codes(places: NDArray[np.int8]) -> list[str]:
    """Return a code per tile: the terrains at the corners, '0110', or at all nine places, with 'x' for any terrain."""
    of_corners = bool((places[:, CENTRE] == ANY).all())
    shown: list[list[int]] = (places[:, CORNERS] if of_corners else places).tolist()
    return ["".join("x" if place == ANY else str(place) for place in row) for row in shown]
