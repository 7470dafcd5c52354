"""Find the cells of a grid over a picture, and the cells with a sprite. The preview and the slicing use this module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.images.canvas import as_uint32
from studio.data.options import SheetGrid
from studio.data.sheets.grids import background_pixel

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class SummedAreaTable:
    """A picture's summed-area table: counts the foreground pixels in a box at once."""

    sums: NDArray[np.uint32]  # [H + 1, W + 1], number of foreground pixels above and to the left

    @classmethod
    def of(cls, rgba: Rgba) -> Self:
        """Compute the table. rgba: uint8 [H, W, 4], with colour zeroed under alpha 0."""
        pixels = as_uint32(rgba)
        sums = np.zeros((pixels.shape[0] + 1, pixels.shape[1] + 1), np.uint32)
        np.cumsum(pixels != background_pixel(pixels), axis=0, dtype=np.uint32, out=sums[1:, 1:])
        np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
        return cls(sums)


@dataclass(frozen=True, eq=False, slots=True)
class GridCells:
    """The whole tiles of a grid over a picture.

    right, below: width and height in pixels of the strips behind the last tiles; 0 if a strip holds only background, or
    is as wide as the margin before the tiles or a gap between tiles.
    """

    grid: SheetGrid
    lefts: Ints  # [columns], in pixels
    tops: Ints  # [rows], in pixels
    filled: NDArray[np.bool_]  # [rows, columns], tiles with foreground: the sprites
    right: int = 0
    below: int = 0

    @property
    def sprites(self) -> int:
        """Number of tiles with a sprite."""
        return int(np.count_nonzero(self.filled))

    @property
    def empty(self) -> int:
        """Number of empty tiles."""
        return self.filled.size - self.sprites


def find_cells(grid: SheetGrid, foreground: SummedAreaTable) -> GridCells:
    """Return the cells (whole tiles) of a grid over a picture. foreground: the picture's summed-area table."""
    height, width = (side - 1 for side in foreground.sums.shape)
    tops = grid.top + np.arange(grid.rows(height)) * (grid.tile_height + grid.spacing)
    lefts = grid.left + np.arange(grid.columns(width)) * (grid.tile_width + grid.spacing)
    rows = foreground.sums[tops + grid.tile_height] - foreground.sums[tops]
    filled = rows[:, lefts + grid.tile_width] != rows[:, lefts]
    right = _strip(foreground.sums[-1], lefts, grid.tile_width, grid.left, grid.spacing)
    below = _strip(foreground.sums[:, -1], tops, grid.tile_height, grid.top, grid.spacing)
    return GridCells(grid, lefts, tops, filled, right, below)


def _strip(sums: NDArray[np.uint32], starts: Ints, tile: int, margin: int, spacing: int) -> int:
    """Return the width in pixels of the strip behind the last tile along a side; 0 for background, margin or gap.

    sums: uint32 [side + 1], number of foreground pixels before a line. starts: first line by tile. tile: tile size.
    """
    end = int(starts[-1]) + tile if len(starts) else 0
    size = len(sums) - 1 - end
    return 0 if size in range(spacing + 1) or size == margin or sums[end] == sums[-1] else size
