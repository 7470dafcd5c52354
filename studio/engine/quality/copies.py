"""Find new sprites that copy training sprites, also mirrored or moved by a pixel."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Indices, Mask, Rgba
from studio.core.events import Event, Progress
from studio.data.sprites import Sprites
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.quality.scores import squared_distances
from studio.engine.steps.batches import to_device, to_input

_COPY = 1 / 3  # highest distance of a copy, as a share of the distance to the nearest sprite outside the group
_MAX_BYTES = 64 << 20  # limit of float32 numbers in memory at a time
_MAX_SHIFT_PX = 1  # largest shift of a copy


@dataclass(frozen=True)
class Nearest:
    """The nearest training sprite by new sprite, for N new sprites."""

    index: Indices  # [N]
    distance: NDArray[np.float32]  # [N]
    is_copy: Mask  # [N], True where the new sprite copies the nearest training sprite


def find_copies(
    sprites: Rgba, training: Sprites, indices: Indices | None, device: torch.device
) -> Generator[Event, None, Nearest]:
    """Find the nearest training sprite for each sprite, uint8 [N, S, S, 4], and detect copies; yields Progress.

    indices: the training sprites to search; None for all. Distances compare premultiplied pixels, also of mirrored
    sprites and of sprites moved by a pixel. A copy's nearest training sprite has less than a third of the distance to
    the nearest training sprite of another group, because near duplicates share a group. With a single group, no sprite
    counts as a copy.
    """
    indices = np.arange(len(training)) if indices is None else indices
    variants, groups = _variants(sprites), training.groups[indices]  # 18 variants, each uint8 [N, S, S, 4]
    passes, at_once = len(variants) + 1, _max_sprites(training.size)
    nearest, nearest_index = np.full(len(sprites), np.inf, np.float32), np.zeros(len(sprites), np.int64)
    variant_of = np.zeros(len(sprites), np.int64)  # index of the nearest variant, by sprite
    batch_size = AutoBatchSize(device, at_once)
    for part in batch_size.slices(len(indices)):
        with batch_size.halve_if_full():
            known = _flat(training.rgba[indices[part]], device)
            for which, variant in enumerate(variants):
                distances, found = _nearest(variant, known, batch_size.count)
                closer = distances < nearest  # bool [N]
                nearest[closer], nearest_index[closer] = distances[closer], found[closer] + part.start
                variant_of[closer] = which
                compared = part.start * len(variants) + (which + 1) * len(known)
                yield Progress(compared // passes, len(indices), "sprites compared")
    best_variants = np.empty_like(sprites)
    for which, variant in enumerate(variants):
        best_variants[variant_of == which] = variant[variant_of == which]
    others = np.full(len(sprites), np.inf, np.float32)  # distance to the nearest training sprite of another group
    batch_size = AutoBatchSize(device, at_once)
    for part in batch_size.slices(len(indices)):
        with batch_size.halve_if_full():
            known = _flat(training.rgba[indices[part]], device)
            same_group = groups[nearest_index][:, None] == groups[part]
            others = np.minimum(others, _nearest(best_variants, known, batch_size.count, same_group)[0])
        yield Progress((len(variants) * len(indices) + part.stop) // passes, len(indices), "sprites compared")
    return Nearest(indices[nearest_index], nearest, np.isfinite(others) & (nearest < _COPY * others))


def nearest_sprites(sprite: Rgba, training: Sprites, indices: Indices, count: int, device: torch.device) -> Indices:
    """Return the indices of the `count` training sprites most similar to a sprite, nearest first.

    Also compares the sprite mirrored or moved by a pixel. sprite: uint8 [S, S, 4]. indices: training sprites to search.
    """
    variants = _flat(np.concatenate(_variants(sprite[None])), device)
    distances = np.zeros(len(indices), np.float32)
    step = _max_sprites(training.size)
    for start in range(0, len(indices), step):
        known = _flat(training.rgba[indices[start : start + step]], device)
        distances[start : start + step] = torch.cdist(variants, known).amin(0).cpu().numpy()
    return np.asarray(indices[distances.argsort(kind="stable")[:count]])


def _variants(sprites: Rgba) -> list[Rgba]:
    """Move the sprites by -1 to 1 pixels in x and y, mirrored and unmirrored; return 18 arrays uint8 [N, S, S, 4]."""
    steps = range(-_MAX_SHIFT_PX, _MAX_SHIFT_PX + 1)
    padded = np.pad(sprites, ((0, 0), (_MAX_SHIFT_PX,) * 2, (_MAX_SHIFT_PX,) * 2, (0, 0)))
    size, middle = sprites.shape[1], _MAX_SHIFT_PX
    moved = [padded[:, middle + y : middle + y + size, middle + x : middle + x + size] for y in steps for x in steps]
    return [variant[:, :, ::direction] for variant in moved for direction in (1, -1)]  # -1 mirrors left-right


def _nearest(
    sprites: Rgba, known: Tensor, at_once: int, left_out: Mask | None = None
) -> tuple[NDArray[np.float32], Indices]:
    """Find the nearest row of `known` for each sprite; return the distances, float32 [N], and row indices, int64 [N].

    sprites: uint8 [N, S, S, 4]. known: premultiplied pixels [M, D]. left_out: bool [N, M], pairs to ignore; a sprite
    without remaining pairs gets an infinite distance. Needs about the memory of the pixels of `at_once` sprites.
    """
    pixels = known.shape[1]
    distances, indices = np.zeros(len(sprites), np.float32), np.zeros(len(sprites), np.int64)
    # Memory per sprite: a row of the distance matrix, and the pixels twice to compare the sprite with the nearest two.
    step = max(1, at_once * pixels // max(len(known), 2 * pixels))
    for start in range(0, len(sprites), step):
        part = slice(start, start + step)
        flat = _flat(sprites[part], known.device)
        apart = squared_distances(flat, known)  # [n, M]
        if left_out is not None:
            apart = apart.masked_fill(torch.from_numpy(left_out[part]).to(known.device), torch.inf)
        nearest = apart.topk(min(2, len(known)), dim=1, largest=False)  # [n, 2]
        # squared_distances loses the last digits, where nearly equal sprites differ: compare the nearest two exactly.
        exact = (flat[:, None] - known[nearest.indices]).square().sum(2).sqrt()
        exact, order = exact.masked_fill(nearest.values.isinf(), torch.inf).min(dim=1)
        distances[part] = exact.cpu().numpy()
        indices[part] = nearest.indices.gather(1, order[:, None])[:, 0].cpu().numpy()
    return distances, indices


def _flat(sprites: Rgba, device: torch.device) -> Tensor:
    """Flatten sprites to rows of premultiplied pixels: uint8 [N, S, S, 4] -> float32 [N, 4 S S]."""
    return to_input(to_device(sprites, device)).flatten(1)


def _max_sprites(size: int) -> int:
    """Return the number of float32 sprites that fit into _MAX_BYTES, at least 1. size: sprite width in pixels."""
    return max(1, _MAX_BYTES // (4 * 4 * size**2))
