"""Which new sprites are copies of training sprites."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.events import Event, Progress, Rgba
from studio.core.generators import returned
from studio.data.sprites import Sprites
from studio.engine.batches import on_device, to_input
from studio.engine.split import Indices

_COPY = 1 / 3  # of the distance to the nearest sprite of another group: nearer than that, it is no chance neighbour
_AT_ONCE = 64 << 20  # bytes of numbers that are worked on at a time
_FARTHEST_PX = 1  # how far copies may be moved


@dataclass(frozen=True)
class Nearest:
    """For each sprite: the index of the nearest training sprite, int64 [N], and whether it is a copy, bool [N]."""

    index: Indices
    is_copy: NDArray[np.bool_]


def nearest_training_sprites(
    sprites: Rgba, training: Sprites, indices: Indices | None, device: torch.device
) -> Nearest:
    """What `look_for_copies` returns, in one go."""
    return returned(look_for_copies(sprites, training, indices, device))


def look_for_copies(
    sprites: Rgba, training: Sprites, indices: Indices | None, device: torch.device
) -> Generator[Event, None, Nearest]:
    """Compare uint8 [N, S, S, 4] with the sprites at `indices` of `training`, all of them for None, on `device`.

    Distances are between premultiplied pixels. Each sprite is tried as it is, mirrored, and moved by up to a pixel
    each way. It is a copy when the nearest training sprite is at less than a third of the distance of the nearest one
    that is not of the same group: what has a near twin can be copied as well. Where all are of one group there are no
    copies. The training sprites are gone through in parts, so that there may be any number of them; yields Progress
    after each.

    Returns indices into `training`.
    """
    known = _Known(training, np.arange(len(training)) if indices is None else indices, device)
    variants = _variants(sprites)
    best = torch.full((len(sprites),), torch.inf, device=device)
    place = torch.zeros(len(sprites), dtype=torch.int64, device=device)
    variant_of = torch.zeros(len(sprites), dtype=torch.int64, device=device)
    total = (len(variants) + 1) * len(known.parts)
    for number, part in enumerate(known.parts):
        pixels = known.pixels(part)
        for which, variant in enumerate(variants):
            distance, found = _nearest(variant, pixels, None)
            better = distance < best
            best = torch.where(better, distance, best)
            place = torch.where(better, found + part.start, place)
            variant_of = torch.where(better, which, variant_of)
            yield Progress(number * len(variants) + which + 1, total, "ways to look for copies")
    places = place.cpu().numpy()
    chosen = np.empty_like(sprites)
    for which, variant in enumerate(variants):
        own = variant_of.cpu().numpy() == which
        chosen[own] = variant[own]
    other = torch.full_like(best, torch.inf)
    for number, part in enumerate(known.parts):
        same_group = torch.from_numpy(known.groups[places][:, None] == known.groups[part]).to(device)
        other = torch.minimum(other, _nearest(chosen, known.pixels(part), same_group)[0])
        yield Progress(len(variants) * len(known.parts) + number + 1, total, "ways to look for copies")
    is_copy = (best < _COPY * other) & torch.isfinite(other)
    return Nearest(known.indices[places], is_copy.cpu().numpy())


def _variants(sprites: Rgba) -> list[Rgba]:
    steps = range(-_FARTHEST_PX, _FARTHEST_PX + 1)
    padded = np.pad(sprites, ((0, 0), (_FARTHEST_PX,) * 2, (_FARTHEST_PX,) * 2, (0, 0)))
    size, middle = sprites.shape[1], _FARTHEST_PX
    moved = [padded[:, middle + y : middle + y + size, middle + x : middle + x + size] for y in steps for x in steps]
    return [variant[:, :, ::direction] for variant in moved for direction in (1, -1)]


class _Known:
    """Training sprites wherever they are, in parts that fit into memory as numbers."""

    def __init__(self, sprites: Sprites, indices: Indices, device: torch.device) -> None:
        self.indices, self.groups = indices, sprites.groups[indices]
        self.parts = list(_parts(len(indices), 4 * sprites.size**2))
        self._rgba, self._device = sprites.rgba, device

    def pixels(self, part: slice) -> Tensor:
        """Those of a part on the device, as `_flat` has them."""
        return _flat(self._rgba[self.indices[part]], self._device)


def _nearest(sprites: Rgba, known: Tensor, left_out: Tensor | None) -> tuple[Tensor, Tensor]:
    """For uint8 [N, S, S, 4] the nearest of `known` [M, D]: distances float32 [N] and indices int64 [N].

    left_out: bool [N, M], of what is not to be looked at; where that is everything, the distance is infinite.
    """
    squares = (known**2).sum(1)
    distances, indices = [torch.zeros(0, device=known.device)], [torch.zeros(0, dtype=torch.int64, device=known.device)]
    # A sprite takes a row of the matrix of distances, and twice its pixels when it is set beside its nearest two.
    for part in _parts(len(sprites), max(len(known), 2 * known.shape[1])):
        flat = _flat(sprites[part], known.device)
        apart = (flat**2).sum(1)[:, None] + squares[None, :] - 2 * flat @ known.T
        if left_out is not None:
            apart = apart.masked_fill(left_out[part], torch.inf)
        nearest = apart.topk(min(2, len(known)), dim=1, largest=False)
        # The products lose the last digits, which is all that there is between equal sprites: look again.
        exact = (flat[:, None] - known[nearest.indices]).square().sum(2).sqrt()
        exact, order = exact.masked_fill(nearest.values.isinf(), torch.inf).min(dim=1)
        distances.append(exact)
        indices.append(nearest.indices.gather(1, order[:, None])[:, 0])
    return torch.cat(distances), torch.cat(indices)


def _flat(sprites: Rgba, device: torch.device) -> Tensor:
    """Premultiplied pixels as float32 [N, 4 S S]."""
    return to_input(on_device(sprites, device)).flatten(1)


def _parts(count: int, numbers_each: int) -> Iterator[slice]:
    """Slices of so many sprites that their float32 numbers stay within _AT_ONCE bytes."""
    step = max(1, _AT_ONCE // (4 * numbers_each))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
