"""Which new sprites are copies of training sprites."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.data.sprites import Sprites
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.runs.split import Indices
from studio.engine.steps.batches import to_device, to_input

_COPY = 1 / 3  # of the distance to the nearest sprite of another group: nearer than that, it is no chance neighbour
_AT_ONCE = 64 << 20  # bytes of numbers that are worked on at a time
_FARTHEST_PX = 1  # how far copies may be moved


@dataclass(frozen=True)
class Nearest:
    """For each sprite: the index of the nearest training sprite, int64 [N], how far it is, float32 [N], and whether it
    is a copy, bool [N].
    """

    index: Indices
    distance: NDArray[np.float32]
    is_copy: NDArray[np.bool_]


def find_copies(
    sprites: Rgba, training: Sprites, indices: Indices | None, device: torch.device
) -> Generator[Event, None, Nearest]:
    """Compare uint8 [N, S, S, 4] with the sprites at `indices` of `training`, all of them for None, on `device`.

    Distances are between premultiplied pixels. Each sprite is tried as it is, mirrored, and moved by up to a pixel
    each way. It is a copy when the nearest training sprite is at less than a third of the distance of the nearest one
    that is not of the same group: what has a near twin can be copied as well. Where all are of one group there are no
    copies. As many training sprites are on the device at a time as there is room for, so that there may be any number
    of them; yields Progress.

    Returns indices into `training`.
    """
    indices = np.arange(len(training)) if indices is None else indices
    variants, groups = _variants(sprites), training.groups[indices]
    total, at_once = (len(variants) + 1) * len(indices), _at_once(4 * training.size**2)
    nearest, place = np.full(len(sprites), np.inf, np.float32), np.zeros(len(sprites), np.int64)
    variant_of = np.zeros(len(sprites), np.int64)
    batch_size = AutoBatchSize(device, at_once)
    for part in batch_size.slices(len(indices)):
        with batch_size.halve_if_full():
            known = _flat(training.rgba[indices[part]], device)
            for which, variant in enumerate(variants):
                distances, found = _nearest(variant, known, batch_size.count)
                closer = distances < nearest
                nearest[closer], place[closer] = distances[closer], found[closer] + part.start
                variant_of[closer] = which
                yield Progress(part.start * len(variants) + (which + 1) * len(known), total, "sprites compared")
    chosen = np.empty_like(sprites)
    for which, variant in enumerate(variants):
        chosen[variant_of == which] = variant[variant_of == which]
    others = np.full(len(sprites), np.inf, np.float32)
    batch_size = AutoBatchSize(device, at_once)
    for part in batch_size.slices(len(indices)):
        with batch_size.halve_if_full():
            known, same_group = _flat(training.rgba[indices[part]], device), groups[place][:, None] == groups[part]
            others = np.minimum(others, _nearest(chosen, known, batch_size.count, same_group)[0])
        yield Progress(len(variants) * len(indices) + part.stop, total, "sprites compared")
    return Nearest(indices[place], nearest, np.isfinite(others) & (nearest < _COPY * others))


def nearest_sprites(sprite: Rgba, training: Sprites, indices: Indices, count: int, device: torch.device) -> Indices:
    """The `count` sprites at `indices` of `training` that are nearest to uint8 [S, S, 4], the nearest first.

    Distances are as in `find_copies`: of the variant of the sprite that is nearest.
    """
    variants = _flat(np.concatenate(_variants(sprite[None])), device)
    distances = np.zeros(len(indices), np.float32)
    step = _at_once(4 * training.size**2)
    for start in range(0, len(indices), step):
        known = _flat(training.rgba[indices[start : start + step]], device)
        distances[start : start + step] = torch.cdist(variants, known).amin(0).cpu().numpy()
    return np.asarray(indices[distances.argsort(kind="stable")[:count]])


def _variants(sprites: Rgba) -> list[Rgba]:
    steps = range(-_FARTHEST_PX, _FARTHEST_PX + 1)
    padded = np.pad(sprites, ((0, 0), (_FARTHEST_PX,) * 2, (_FARTHEST_PX,) * 2, (0, 0)))
    size, middle = sprites.shape[1], _FARTHEST_PX
    moved = [padded[:, middle + y : middle + y + size, middle + x : middle + x + size] for y in steps for x in steps]
    return [variant[:, :, ::direction] for variant in moved for direction in (1, -1)]


def _nearest(
    sprites: Rgba, known: Tensor, at_once: int, left_out: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], Indices]:
    """For uint8 [N, S, S, 4] the nearest of pixels `known` [M, D] on a device: float32 [N] distances, int64 [N] places.

    left_out: bool [N, M], of what is not to be looked at; where that is everything, the distance is infinite. Takes as
    much room as the pixels of `at_once` sprites do.
    """
    squares, pixels = (known**2).sum(1), known.shape[1]
    distances, indices = np.zeros(len(sprites), np.float32), np.zeros(len(sprites), np.int64)
    # A sprite takes a row of the matrix of distances, and twice its pixels when it is set beside its nearest two.
    step = max(1, at_once * pixels // max(len(known), 2 * pixels))
    for start in range(0, len(sprites), step):
        part = slice(start, start + step)
        flat = _flat(sprites[part], known.device)
        apart = (flat**2).sum(1)[:, None] + squares[None, :] - 2 * flat @ known.T
        if left_out is not None:
            apart = apart.masked_fill(torch.from_numpy(left_out[part]).to(known.device), torch.inf)
        nearest = apart.topk(min(2, len(known)), dim=1, largest=False)
        # The products lose the last digits, which is all that there is between equal sprites: look again.
        exact = (flat[:, None] - known[nearest.indices]).square().sum(2).sqrt()
        exact, order = exact.masked_fill(nearest.values.isinf(), torch.inf).min(dim=1)
        distances[part] = exact.cpu().numpy()
        indices[part] = nearest.indices.gather(1, order[:, None])[:, 0].cpu().numpy()
    return distances, indices


def _flat(sprites: Rgba, device: torch.device) -> Tensor:
    """Premultiplied pixels as float32 [N, 4 S S]."""
    return to_input(to_device(sprites, device)).flatten(1)


def _at_once(numbers_each: int) -> int:
    """So many sprites that their float32 numbers stay within _AT_ONCE bytes; one at least."""
    return max(1, _AT_ONCE // (4 * numbers_each))
