"""Find cells that mirror each other: the right and the left view, or the two steps of a walk in the front view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Mask, Rgba

NO_PARTNER = -1
_MOST_SETS = 64  # compared: enough to tell views apart
_LEAST_ALIKE = 0.5  # share of pixels equal to the own mirror image: 0.8 for front views, 0.4 for side views
_MARGIN = 0.01  # another cell must resemble the mirror image by this much more than the cell itself


def find_partners(cells: Rgba, there: Mask) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the partner of every cell: the cell that most resembles the mirror image in all sets.

    cells: uint8 [M, C, S, S, 4]. there: bool [M, C], whether a set has a cell. Returns the partners, int64 [C],
    NO_PARTNER for a cell without, and the share of sets with an exact mirror image in the partner cell, float32 [C].
    """
    every = slice(None, None, -(-len(cells) // _MOST_SETS) or 1)
    pixels, there = np.ascontiguousarray(cells[every]).view("<u4")[..., 0], there[every]  # [m, C, S, S], [m, C]
    count = pixels.shape[1]
    alike, exact = np.zeros((count, count)), np.zeros((count, count), np.float32)  # rows: cells to be mirrored
    for cell in range(count):
        mirrored = pixels[:, cell, None, :, ::-1]  # [m, 1, S, S]
        both = there[:, [cell]] & there  # [m, C]
        union = ((mirrored | pixels) >> 24 > 0) & both[:, :, None, None]
        equal = (mirrored == pixels) & union
        alike[cell] = equal.sum((0, 2, 3)) / np.maximum(1, union.sum((0, 2, 3)))
        exact[cell] = ((mirrored == pixels).all((2, 3)) & both).sum(0) / np.maximum(1, both.sum(0))
    best = (alike + _MARGIN * np.eye(count)).argmax(1)
    cell_numbers = np.arange(count)
    is_mutual = (best[best] == cell_numbers) & (alike[cell_numbers, best] >= _LEAST_ALIKE)
    return np.where(is_mutual, best, NO_PARTNER), np.where(is_mutual, exact[cell_numbers, best], 0).astype(np.float32)
