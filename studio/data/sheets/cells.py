"""Where the cells of a grid lie on a picture, and which of them hold anything: what is drawn is what is cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Rgba
from studio.data.images.canvas import as_numbers
from studio.data.options import Grid
from studio.data.sheets.grids import background_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class SummedArea:
    """What of a picture is not background, so that any box of it can be asked at once.

    sums: uint32 [H + 1, W + 1], how many such pixels lie above and to the left.
    """

    sums: NDArray[np.uint32]

    @classmethod
    def of(cls, rgba: Rgba) -> Self:
        """Look at uint8 [H, W, 4] with colour zeroed under alpha 0."""
        pixels = as_numbers(rgba)
        sums = np.zeros((pixels.shape[0] + 1, pixels.shape[1] + 1), np.uint32)
        np.cumsum(pixels != background_of(pixels), axis=0, dtype=np.uint32, out=sums[1:, 1:])
        np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
        return cls(sums)


@dataclass(frozen=True, eq=False, slots=True)
class GridCells:
    """The whole tiles of a grid over a picture.

    lefts, tops: int [columns] and int [rows], in pixels. filled: bool [rows, columns]: not all background, a sprite.
    right, below: width and height in pixels of the strips behind the last tiles; 0 for strips of background.
    """

    grid: Grid
    lefts: Ints
    tops: Ints
    filled: NDArray[np.bool_]
    right: int = 0
    below: int = 0

    @property
    def sprites(self) -> int:
        return int(np.count_nonzero(self.filled))

    @property
    def empty(self) -> int:
        return self.filled.size - self.sprites


def cells_of(grid: Grid, foreground: SummedArea) -> GridCells:
    """The cells of `grid` over the picture that `foreground` is of."""
    height, width = (side - 1 for side in foreground.sums.shape)
    tops = grid.top + np.arange(grid.rows(height)) * (grid.tile_height + grid.spacing)
    lefts = grid.left + np.arange(grid.columns(width)) * (grid.tile_width + grid.spacing)
    rows = foreground.sums[tops + grid.tile_height] - foreground.sums[tops]
    filled = rows[:, lefts + grid.tile_width] != rows[:, lefts]
    right = int(lefts[-1]) + grid.tile_width if len(lefts) else 0
    bottom = int(tops[-1]) + grid.tile_height if len(tops) else 0
    total = foreground.sums[-1, -1]
    return GridCells(
        grid, lefts, tops, filled,
        right=width - right if foreground.sums[-1, right] != total else 0,
        below=height - bottom if foreground.sums[bottom, -1] != total else 0,
    )  # fmt: skip
