"""Sets of 16 corner tiles (Wang tiles by corners): every corner has one of two terrains.

The tiles form a 4 x 4 picture that repeats seamlessly and contains every tile once (a de Bruijn torus). Pixels near a
tile border are tied across all tiles that may meet at this border, so tiles with equal corners fit together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import UsageError

GRID_SIDE = 4  # tiles
TILE_COUNT = GRID_SIDE * GRID_SIDE
BORDER = 2  # tied pixels on each side of a border
# Whether the upper left corner of each tile has the second terrain; neighbours give the other corners.
_CORNERS = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]], bool)


def corner_kinds() -> NDArray[np.bool_]:
    """Return the corners with the second terrain: bool [16, 4], upper left, upper right, lower left, lower right."""
    right, below = np.roll(_CORNERS, -1, 1), np.roll(_CORNERS, -1, 0)
    return np.stack([_CORNERS, right, below, np.roll(below, -1, 1)], -1).reshape(TILE_COUNT, 4)


def join_tiles(tiles: Rgba) -> Rgba:
    """Join tiles, uint8 [16, S, S, 4], into one picture: [1, 4 * S, 4 * S, 4]."""
    size = tiles.shape[1]
    rows = tiles.reshape(GRID_SIDE, GRID_SIDE, size, size, 4).swapaxes(1, 2)
    return rows.reshape(1, GRID_SIDE * size, GRID_SIDE * size, 4)


def split_tiles(picture: Rgba) -> Rgba:
    """Split a picture, uint8 [1, 4 * S, 4 * S, 4], into its tiles: [16, S, S, 4]."""
    size = picture.shape[1] // GRID_SIDE
    return picture.reshape(GRID_SIDE, size, GRID_SIDE, size, 4).swapaxes(1, 2).reshape(TILE_COUNT, size, size, 4)


@dataclass(frozen=True, eq=False)
class TileMap:
    """The layout of all 16 corner tiles in one picture of 4 x 4 tiles: each corner shows one of two terrains.

    Tiles fit together because their border pixels are tied: pixels of a group get the same colour.
    """

    share: NDArray[np.float32]  # [4 * S, 4 * S], share of the second terrain per pixel
    ties: NDArray[np.int64]  # [4 * S, 4 * S], group number per pixel; pixels in a group must be equal

    @classmethod
    def of(cls, size: int) -> TileMap:
        """Compute the layout for tiles of `size` pixels. Raises UsageError for tiles too small for two borders."""
        if size <= 2 * BORDER:
            raise UsageError(f"Tiles of {size} x {size} pixels are too small for corner tiles.", "Use a larger canvas.")
        ties = _ties(size)
        steepness = GRID_SIDE  # the terrain changes over a quarter of a tile
        share = np.clip((_smooth(size) - 0.5) * steepness + 0.5, 0, 1)
        counts = np.bincount(ties.ravel())
        share = (np.bincount(ties.ravel(), share.ravel()) / counts)[ties]
        return cls(share.astype(np.float32), ties)

    def apply_ties(self, picture: Rgba) -> Rgba:
        """Return a picture, uint8 [1, 4 * S, 4 * S, 4], with tied pixels equal to the first, so that the tiles join."""
        pixels = picture.reshape(-1, 4)
        _, first = np.unique(self.ties, return_index=True)
        return pixels[first[self.ties.ravel()]].reshape(picture.shape)


def _smooth(size: int) -> NDArray[np.float64]:
    """Return the share of the second terrain at each pixel, 0 to 1, by bilinear interpolation between the corners."""
    places = (np.arange(GRID_SIDE * size) + 0.5) / size
    number, within = np.divmod(places, 1)
    here, there = number.astype(int), (number.astype(int) + 1) % GRID_SIDE
    rows = _CORNERS[here] * (1 - within[:, None]) + _CORNERS[there] * within[:, None]
    return np.asarray(rows[:, here] * (1 - within) + rows[:, there] * within)


def _ties(size: int) -> NDArray[np.int64]:
    """Return a group number for each pixel; pixels of a group must be equal in all tiles.

    Groups pixels near corners by the corner's terrain, and near borders by the terrains at the border's ends. Other
    pixels have a group each.
    """
    tile, within = np.divmod(np.arange(GRID_SIDE * size), size)
    is_far = within >= size - BORDER
    border = (tile + is_far) % GRID_SIDE  # nearest border; distance from it, -BORDER to BORDER - 1
    distance = np.where(is_far, within - size, within)
    is_near = distance < BORDER
    own = np.arange((GRID_SIDE * size) ** 2).reshape(GRID_SIDE * size, -1)
    down, across = np.meshgrid(np.arange(GRID_SIDE * size), np.arange(GRID_SIDE * size), indexing="ij")
    at_corner = _CORNERS[border[down], border[across]].astype(int)
    beside = _CORNERS[tile[down], border[across]] * 2 + _CORNERS[(tile[down] + 1) % GRID_SIDE, border[across]]
    above = _CORNERS[border[down], tile[across]] * 2 + _CORNERS[border[down], (tile[across] + 1) % GRID_SIDE]
    kinds = [
        (is_near[down] & is_near[across], (1, at_corner, distance[down], distance[across])),
        (is_near[across], (2, beside, within[down], distance[across])),
        (is_near[down], (3, above, distance[down], within[across])),
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
    """Whether the tiles, uint8 [16, S, S, 4], fit together: borders between equal corners are equal."""
    sides = (tiles[:, :, :BORDER], tiles[:, :, -BORDER:], tiles[:, :BORDER], tiles[:, -BORDER:])
    for strips, corners in zip(sides, ((0, 2), (1, 3), (0, 1), (2, 3)), strict=True):
        ends = corner_kinds()[:, corners]
        for first in product((False, True), repeat=2):
            borders = strips[(ends == first).all(1)]
            if (borders != borders[:1]).any():
                return False
    return True
