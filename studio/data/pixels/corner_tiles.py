"""Tiles whose corners are each of one of two kinds: all 16 of them, laid out so that they meet (Wang tiles by corners).

The 16 lie in a square of 4 x 4 that goes on beyond its borders, each of them once (a de Bruijn torus). Pixels near the
border of a tile are tied to those of all tiles that may come there: so any tile fits any other with the same corners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import UsageError

GRID_SIDE = 4  # tiles
TILE_COUNT = GRID_SIDE * GRID_SIDE
BORDER = 2  # pixels on either side of a border that are the same for all tiles that may meet there
# Whether each upper left corner is of the second kind; the other three of a tile are those of its neighbours.
_CORNERS = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]], bool)


def corner_kinds() -> NDArray[np.bool_]:
    """Of each tile, row by row, whether its corners are of the second kind: bool [16, 4].

    Upper left, upper right, lower left, lower right.
    """
    right, below = np.roll(_CORNERS, -1, 1), np.roll(_CORNERS, -1, 0)
    return np.stack([_CORNERS, right, below, np.roll(below, -1, 1)], -1).reshape(TILE_COUNT, 4)


def join_tiles(tiles: Rgba) -> Rgba:
    """uint8 [16, S, S, 4] as one picture: [1, 4 * S, 4 * S, 4]."""
    size = tiles.shape[1]
    rows = tiles.reshape(GRID_SIDE, GRID_SIDE, size, size, 4).swapaxes(1, 2)
    return rows.reshape(1, GRID_SIDE * size, GRID_SIDE * size, 4)


def split_tiles(picture: Rgba) -> Rgba:
    """The tiles of one picture uint8 [1, 4 * S, 4 * S, 4]: [16, S, S, 4]."""
    size = picture.shape[1] // GRID_SIDE
    return picture.reshape(GRID_SIDE, size, GRID_SIDE, size, 4).swapaxes(1, 2).reshape(TILE_COUNT, size, size, 4)


@dataclass(frozen=True, eq=False)
class TileMap:
    """The picture of all tiles of `size` pixels a side.

    share: float32 [4 * size, 4 * size], how much of each pixel is of the second kind: it follows the corners.
    ties: int64 [4 * size, 4 * size]; pixels of one number are the same.
    """

    share: NDArray[np.float32]
    ties: NDArray[np.int64]

    @classmethod
    def of(cls, size: int) -> TileMap:
        """Raises UsageError for tiles that are too small to have anything between their borders."""
        if size <= 2 * BORDER:
            raise UsageError(f"Tiles of {size} x {size} pixels are too small to fit each other.", "Take larger ones.")
        ties = _ties(size)
        steepness = GRID_SIDE  # the change from one kind to the other takes a quarter of a tile
        share = np.clip((_smooth(size) - 0.5) * steepness + 0.5, 0, 1)
        counts = np.bincount(ties.ravel())
        share = (np.bincount(ties.ravel(), share.ravel()) / counts)[ties]
        return cls(share.astype(np.float32), ties)

    def apply_ties(self, picture: Rgba) -> Rgba:
        """uint8 [1, 4 * size, 4 * size, 4] in which tied pixels are as the first of them."""
        pixels = picture.reshape(-1, 4)
        _, first = np.unique(self.ties, return_index=True)
        return pixels[first[self.ties.ravel()]].reshape(picture.shape)


def _smooth(size: int) -> NDArray[np.float64]:
    """How near each pixel is to corners of the second kind, 0 to 1: bilinear."""
    places = (np.arange(GRID_SIDE * size) + 0.5) / size
    number, within = np.divmod(places, 1)
    here, there = number.astype(int), (number.astype(int) + 1) % GRID_SIDE
    rows = _CORNERS[here] * (1 - within[:, None]) + _CORNERS[there] * within[:, None]
    return np.asarray(rows[:, here] * (1 - within) + rows[:, there] * within)


def _ties(size: int) -> NDArray[np.int64]:
    """Numbers for pixels: near a corner by its kind, near a border by the kinds of its two ends, else each its own."""
    tile, within = np.divmod(np.arange(GRID_SIDE * size), size)
    is_far = within >= size - BORDER
    border = (tile + is_far) % GRID_SIDE  # the nearest one, and how far from it, -DEPTH to DEPTH - 1
    apart = np.where(is_far, within - size, within)
    is_near = apart < BORDER
    own = np.arange((GRID_SIDE * size) ** 2).reshape(GRID_SIDE * size, -1)
    down, across = np.meshgrid(np.arange(GRID_SIDE * size), np.arange(GRID_SIDE * size), indexing="ij")
    at_corner = _CORNERS[border[down], border[across]].astype(int)
    beside = _CORNERS[tile[down], border[across]] * 2 + _CORNERS[(tile[down] + 1) % GRID_SIDE, border[across]]
    above = _CORNERS[border[down], tile[across]] * 2 + _CORNERS[border[down], (tile[across] + 1) % GRID_SIDE]
    kinds = [
        (is_near[down] & is_near[across], (1, at_corner, apart[down], apart[across])),
        (is_near[across], (2, beside, within[down], apart[across])),
        (is_near[down], (3, above, apart[down], within[across])),
    ]
    numbers = np.select(
        [where for where, _ in kinds],
        [_number(kind, which, y + BORDER, x + BORDER, size) for _, (kind, which, y, x) in kinds],
        -1 - own,
    )
    return np.unique(numbers, return_inverse=True)[1].reshape(numbers.shape)


def _number(
    kind: int, which: NDArray[np.int64], y: NDArray[np.int64], x: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    side = size + 2 * BORDER
    return np.asarray(((kind * 4 + which) * side + y) * side + x)


def corners_match(tiles: Rgba) -> bool:
    """Whether in tiles uint8 [16, S, S, 4] the pixels near each border are those of all others that may come there."""
    return all(_is_one(tiles, side) for side in range(4))


def _is_one(tiles: Rgba, side: int) -> bool:
    """Of the left, right, upper or lower borders: whether those between the same corners are the same."""
    strips = (tiles[:, :, :BORDER], tiles[:, :, -BORDER:], tiles[:, :BORDER], tiles[:, -BORDER:])[side]
    ends = corner_kinds()[:, ((0, 2), (1, 3), (0, 1), (2, 3))[side]]
    for first in ((False, False), (False, True), (True, False), (True, True)):
        of_these = strips[(ends == first).all(1)]
        if (of_these != of_these[:1]).any():
            return False
    return True
