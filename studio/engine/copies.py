"""Which new sprites are copies of training sprites."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.events import Event, Progress, Rgba
from studio.core.generators import returned
from studio.engine.batches import on_device, to_input

_COPY = 1 / 3  # of the second distance: nearer than that, a sprite is a copy and no chance neighbour
_AT_ONCE = 64 << 20  # bytes of numbers that are worked on at a time
_FARTHEST_PX = 1  # how far copies may be moved


@dataclass(frozen=True)
class Nearest:
    """For each sprite: the index of the nearest training sprite, int64 [N], and whether it is a copy, bool [N]."""

    index: NDArray[np.int64]
    is_copy: NDArray[np.bool_]


def nearest_training_sprites(sprites: Rgba, training: Rgba, device: torch.device) -> Nearest:
    """What `look_for_copies` returns, in one go."""
    return returned(look_for_copies(sprites, training, device))


def look_for_copies(sprites: Rgba, training: Rgba, device: torch.device) -> Generator[Event, None, Nearest]:
    """Compare uint8 [N, S, S, 4] with the training sprites uint8 [M, S, S, 4], M at least 2, on `device`.

    Distances are between premultiplied pixels. Each sprite is tried as it is, mirrored, and moved by up to a pixel
    each way; yields Progress after each of these. It is a copy when the nearest training sprite is at less than a third
    of the distance of the second.
    """
    known = _Known(training, device)
    best = torch.full((len(sprites), 2), torch.inf, device=device)
    index = torch.zeros(len(sprites), dtype=torch.int64, device=device)
    variants = _variants(sprites)
    for number, variant in enumerate(variants, 1):
        yield Progress(number, len(variants), "ways to look for copies")
        distances, places = known.two_nearest(variant)
        better = distances[:, 0] < best[:, 0]
        best = torch.where(better[:, None], distances, best)
        index = torch.where(better, places, index)
    is_copy = best[:, 0] < _COPY * best[:, 1]
    return Nearest(index.cpu().numpy(), is_copy.cpu().numpy())


def _variants(sprites: Rgba) -> list[Rgba]:
    steps = range(-_FARTHEST_PX, _FARTHEST_PX + 1)
    padded = np.pad(sprites, ((0, 0), (_FARTHEST_PX,) * 2, (_FARTHEST_PX,) * 2, (0, 0)))
    size, middle = sprites.shape[1], _FARTHEST_PX
    moved = [padded[:, middle + y : middle + y + size, middle + x : middle + x + size] for y in steps for x in steps]
    return [variant[:, :, ::direction] for variant in moved for direction in (1, -1)]


class _Known:
    """The training sprites as pixels on the device, which are all that takes much memory there."""

    def __init__(self, sprites: Rgba, device: torch.device) -> None:
        """sprites: uint8 [M, S, S, 4]."""
        self._flat = torch.empty(len(sprites), sprites[0].size, device=device)
        self._squares = torch.empty(len(sprites), device=device)
        for part in _parts(len(sprites), sprites[0].size):
            self._flat[part] = _flat(sprites[part], device)
            self._squares[part] = (self._flat[part] ** 2).sum(1)

    def two_nearest(self, sprites: Rgba) -> tuple[Tensor, Tensor]:
        """For uint8 [N, S, S, 4]: distances to the two nearest, float32 [N, 2]; index of the nearest, int64 [N]."""
        # A sprite takes a row of the matrix of distances, and twice its pixels when it is set beside its nearest two.
        parts = _parts(len(sprites), max(len(self._flat), 2 * self._flat.shape[1]))
        found = [self._two_nearest(_flat(sprites[part], self._flat.device)) for part in parts]
        return torch.cat([distances for distances, _ in found]), torch.cat([places for _, places in found])

    def _two_nearest(self, sprites: Tensor) -> tuple[Tensor, Tensor]:
        squares = (sprites**2).sum(1)[:, None] + self._squares[None, :] - 2 * sprites @ self._flat.T
        nearest = squares.clamp(min=0).topk(2, dim=1, largest=False)
        # The products lose the last digits, which is all that there is between equal sprites: look again.
        exact = (sprites[:, None] - self._flat[nearest.indices]).square().sum(2).sqrt()
        exact, order = exact.sort(dim=1)
        return exact, nearest.indices.gather(1, order)[:, 0]


def _flat(sprites: Rgba, device: torch.device) -> Tensor:
    """Premultiplied pixels as float32 [N, 4 S S]."""
    return to_input(on_device(sprites, device)).flatten(1)


def _parts(count: int, numbers_each: int) -> list[slice]:
    """Slices of so many sprites that their float32 numbers stay within _AT_ONCE bytes; one at least, be it empty."""
    step = max(1, _AT_ONCE // (4 * numbers_each))
    return [slice(start, start + step) for start in range(0, max(1, count), step)]
