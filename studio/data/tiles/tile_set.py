"""A tile set: tiles with terrains. Choose the tiles for a map of terrains and render the map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba

TileKind = Literal["corner", "blob", "dual-grid", "edge"]
CORNERS = (0, 2, 6, 8)  # indices in the places of a tile: upper left, upper right, lower left, lower right
CENTRE = 4
ANY = -1  # a place where every terrain fits
_COLUMNS = 8  # in a sheet of 48 blob tiles
NO_TILE = -1  # index for a cell without a fitting tile


@dataclass(frozen=True, eq=False)
class TileSet:
    """Tiles of equal size. places: terrains at a tile's corners, or in the neighbouring cells, by tile."""

    tiles: Rgba  # uint8 [N, S, S, 4], straight alpha
    terrains: tuple[str, ...]  # at most four; '' stands for transparency
    kind: TileKind  # decides which places count
    # [N, 9], terrains in the order upper left, upper, upper right, left, centre, right, lower left, lower, lower right:
    # at the four corners for 'corner' and 'dual-grid', of the cell and its eight neighbours for 'blob', and of the cell
    # and its four nearest neighbours for 'edge'. ANY elsewhere.
    places: NDArray[np.int8]
    weights: NDArray[np.float32]  # [N], probability of a variant among tiles with equal places

    def laid_out(self, terrain_map: NDArray[np.int8], seed: int = 0) -> NDArray[np.int64]:
        """Choose a tile for each cell of a terrain map: int64 [H', W'], NO_TILE where no tile fits.

        terrain_map: int8 [H, W], the terrains at the corners of the tiles for 'corner' and 'dual-grid' (H' = H - 1, W'
        = W - 1), of the cells for 'blob' and 'edge' (H' = H, W' = W; outside, the terrains of the border continue).
        seed: decides among variants.
        """
        wanted, groups = np.unique(self._wanted(terrain_map), axis=0, return_inverse=True)  # [G, 9], [H' * W']
        fits = ((self.places == wanted[:, None]) | (self.places == ANY)).all(-1)  # [G, N]
        chances = np.cumsum(np.where(fits, self.weights, 0), 1, dtype=np.float64)  # [G, N]
        total = chances[:, -1:]
        within = np.random.default_rng(seed).random((groups.size, 1)) * total[groups.ravel()]
        index = (chances[groups.ravel()] <= within).sum(1)
        shape = [length - self.by_corners for length in terrain_map.shape]
        return np.where(total[groups.ravel(), 0] > 0, index, NO_TILE).reshape(shape)

    def render(self, index: NDArray[np.int64]) -> Rgba:
        """Render chosen tiles, int64 [H', W'], as a picture: uint8 [H' * S, W' * S, 4]. NO_TILE is transparent."""
        size = self.tiles.shape[1]
        cells = np.where((index == NO_TILE)[..., None, None, None], np.uint8(0), self.tiles[index])
        return np.ascontiguousarray(cells.swapaxes(1, 2).reshape(len(index) * size, -1, 4))

    @property
    def columns(self) -> int:
        """The columns of a sheet: the tiles form a square if possible, with further variants below."""
        count = len(np.unique(self.places, axis=0))
        side = math.isqrt(count)
        return side if side**2 == count else _COLUMNS

    @property
    def by_corners(self) -> bool:
        """Whether the map's terrains are at the corners of the tiles, not in the cells."""
        return self.kind in ("corner", "dual-grid")

    def _wanted(self, terrain_map: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the terrains at the nine places of each cell: int8 [H' * W', 9]; ANY at open places."""
        if self.by_corners:
            corners = np.lib.stride_tricks.sliding_window_view(terrain_map, (2, 2)).reshape(-1, 4)
            wanted = np.full((len(corners), 9), ANY, np.int8)
            wanted[:, CORNERS] = corners
            return wanted
        around = np.pad(terrain_map, 1, mode="edge")
        return np.lib.stride_tricks.sliding_window_view(around, (3, 3)).reshape(-1, 9)
