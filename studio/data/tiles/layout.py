"""The layout of a tile set in one picture: a model draws the tiles together, with equal borders.

The repeating picture contains every tile beside fitting neighbours. Pixels near a border are tied to the pixels near
equal borders of other tiles: tied pixels get equal colours. Copies of a tile are also tied.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Mask, Rgba
from studio.core.errors import UsageError
from studio.data.tiles.terrain_maps import blob_torus, corner_torus
from studio.data.tiles.tile_set import ANY, CENTRE, CORNERS, TileKind, TileSet

T = TypeVar("T", bound=np.generic)
BORDER = 2  # depth of tied pixels on each side of a border
MOST_TERRAINS = 4
MOST_VARIANTS, MOST_TILES = 8, 1024
TRANSPARENT = "transparent"  # typed name of the empty terrain
_BLOB_COUNT, _BLOB_COLUMNS = 48, 8  # 47 blob tiles and the ground, in a sheet
_SIDES = {1: (0, 2), 3: (0, 6), 5: (2, 8), 7: (6, 8)}  # by place of a side, the places of its two corners
_STEEPNESS = 4  # the terrain changes over a quarter of a tile
_BLOB_EDGE = 0.25  # share of the blob's terrain at the outline, before _STEEPNESS applies


@dataclass(frozen=True)
class TileSetSpec:
    """The tile set to draw. terrains: class names; a blob of the first terrain lies on the second terrain.

    variants: number of tiles with equal places.
    """

    kind: TileKind
    terrains: tuple[str, ...]
    variants: int = 1

    def __post_init__(self) -> None:
        count = len(self.terrains)
        if len(set(self.terrains)) < count:
            raise UsageError("The terrains of a tile set must differ.", "Name each terrain once.")
        if self.kind == "blob" and count != 2:
            raise UsageError("Blob tiles need two terrains.", "For example: --terrains grass,water.")
        if not 2 <= count <= MOST_TERRAINS:
            title = f"A tile set needs two to {MOST_TERRAINS} terrains."
            raise UsageError(title, "For example: --terrains grass,water, or a mixture like 'grass:1,water:1'.")
        if self.tile_count > MOST_TILES:
            title = f"{self.tile_count:,} tiles are too many: a tile set has at most {MOST_TILES:,}."
            raise UsageError(title, "Choose fewer variants or fewer terrains.")

    @property
    def tile_count(self) -> int:
        """The number of tiles, variants included."""
        return self.variants * (_BLOB_COUNT if self.kind == "blob" else len(self.terrains) ** 4)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terrains without folders; '' for transparency."""
        return tuple("" if name == TRANSPARENT else name.rpartition("/")[2] for name in self.terrains)

    def layout(self, size: int) -> TileLayout:
        """Return the layout for tiles of `size` x `size` pixels. Raises UsageError for small tiles."""
        if size <= 2 * BORDER:
            raise UsageError(f"Tiles of {size} x {size} pixels are too small for tile sets.", "Use a larger canvas.")
        return _layout(self.kind == "blob", len(self.terrains), self.variants, size)

    def tile_set(self, tiles: Rgba) -> TileSet:
        """Return drawn tiles, uint8 [N, S, S, 4] in the order of the layout, as a tile set."""
        weights = np.full(len(tiles), 1 / self.variants, np.float32)
        return TileSet(tiles, self.names, self.kind, self.layout(tiles.shape[1]).places, weights)


@dataclass(frozen=True, eq=False)
class TileLayout:
    """The layout of N tiles of S x S pixels in a repeating picture of R x C cells; H = R * S, W = C * S pixels."""

    cells: NDArray[np.int64]  # [R, C], the tile in each cell; contains every tile
    places: NDArray[np.int8]  # [N, 9], see TileSet
    shares: NDArray[np.float32]  # [K, H, W], shares of the terrains per pixel, with sum 1
    ties: NDArray[np.int64]  # [H, W], group number per pixel; pixels in a group must be equal
    corners: NDArray[np.int64]  # [N, 4], terrains at the corners; of a blob, see `_blob_corners`
    columns: int  # tiles in a row of the sheet
    variants: int  # number of tiles with equal places

    def join(self, tiles: NDArray[T]) -> NDArray[T]:
        """Join tiles, [N, S, S, ...], into the picture: [1, H, W, ...]."""
        return _join(self.cells, tiles)[None]

    def split(self, picture: NDArray[T]) -> NDArray[T]:
        """Split the picture, [1, H, W, ...], into its tiles: [N, S, S, ...]."""
        rows, columns = self.cells.shape
        size = picture.shape[1] // rows
        every = picture.reshape(rows, size, columns, size, *picture.shape[3:]).swapaxes(1, 2)
        _, first = np.unique(self.cells, return_index=True)
        return every.reshape(-1, size, size, *picture.shape[3:])[first]

    def apply_ties(self, tiles: Rgba, keep: Mask | None = None) -> Rgba:
        """Make tiles, uint8 [N, S, S, 4], fit together: each group of tied pixels gets the colour of its first pixel.

        keep: bool [N, S, S], unchanged pixels, with all tied pixels.
        """
        pixels = self.join(tiles).reshape(-1, 4)
        _, first = np.unique(self.ties, return_index=True)
        tied = self.split(pixels[first[self.ties]][None])
        return tied if keep is None else np.where(keep[..., None], tiles, tied)

    def cut_sheet(self, sheet: Rgba, name: str) -> Rgba:
        """Cut a sheet of the set, uint8 [H', W', 4], into its tiles: [N, S, S, 4]. Raises UsageError for other sizes.

        The sheet may end after a variant; missing tiles are transparent. name: file name of the sheet, for errors.
        """
        size, rows = self.ties.shape[0] // len(self.cells), len(self.places) // self.columns
        height, width, step = rows * size, self.columns * size, rows * size // self.variants
        if sheet.shape[1] != width or sheet.shape[0] not in range(step, height + 1, step):
            title = f"{name} has {sheet.shape[1]} x {sheet.shape[0]} pixels; this tile set has {width} x {height}."
            arranged = f"Arrange {len(self.places)} tiles in {self.columns} columns, without gaps."
            raise UsageError(title, f"A tile has {size} x {size} pixels. {arranged}")
        whole = np.pad(sheet, ((0, height - len(sheet)), (0, 0), (0, 0)))
        return whole.reshape(rows, size, self.columns, size, 4).swapaxes(1, 2).reshape(-1, size, size, 4)

    def fits(self, tiles: Rgba, keep: Mask | None = None) -> bool:
        """Check whether tiles, uint8 [N, S, S, 4], fit together: tied pixels are equal. keep: see `apply_ties`."""
        return bool((self.apply_ties(tiles, keep) == tiles).all())


@functools.lru_cache(maxsize=4)
def _layout(is_blob: bool, terrain_count: int, variants: int, size: int) -> TileLayout:
    """Compute the layout of blob tiles, or of corner tiles. size: width and height of a tile in pixels."""
    cells, places = _blob_tiles() if is_blob else _corner_tiles(terrain_count)
    cells = np.concatenate([cells + variant * len(places) for variant in range(variants)])
    places = np.tile(places, (variants, 1))
    corners = _blob_corners(places) if is_blob else places[:, CORNERS].astype(np.int64)
    ties = _ties(corners, places, cells, size)
    shares = _shares(_blob_control(places) if is_blob else _corner_control(places, terrain_count), size)
    joined, counts = [_join(cells, share) for share in shares.swapaxes(0, 1)], np.bincount(ties.ravel())
    even = np.stack([(np.bincount(ties.ravel(), share.ravel()) / counts)[ties] for share in joined])
    columns = _BLOB_COLUMNS if is_blob else terrain_count**2
    return TileLayout(cells, places, even.astype(np.float32), ties, corners, columns, variants)


def _join(cells: NDArray[np.int64], tiles: NDArray[T]) -> NDArray[T]:
    """Return the picture, [H, W, ...], of the tiles, [N, S, S, ...], in cells [R, C]."""
    (rows, columns), size = cells.shape, tiles.shape[1]
    return tiles[cells].swapaxes(1, 2).reshape(rows * size, columns * size, *tiles.shape[3:])


def _corner_tiles(terrain_count: int) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return the picture's tile numbers, [R, C], and the places of all corner tiles, [N, 9]."""
    torus = corner_torus(terrain_count)
    around = np.pad(torus, ((0, 1), (0, 1)), mode="wrap")
    corners = np.lib.stride_tricks.sliding_window_view(around, (2, 2)).reshape(-1, 4)
    kinds, first, which = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # tiles in the order of the picture
    places = np.full((len(kinds), 9), ANY, np.int8)
    places[:, CORNERS] = kinds[order]
    return np.argsort(order)[which.ravel()].reshape(torus.shape), places


def _blob_tiles() -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return the picture's tile numbers, [R, C], and the places of 47 blob tiles and the ground, [48, 9]."""
    around = np.pad(blob_torus(), 1, mode="wrap")
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3))
    seen = windows.reshape(-1, 9).copy()
    for corner, side, other in ((0, 1, 3), (2, 1, 5), (6, 7, 3), (8, 7, 5)):
        seen[(seen[:, side] == 1) | (seen[:, other] == 1), corner] = ANY  # hidden by the ground at a side
    seen[seen[:, CENTRE] == 1] = [ANY] * CENTRE + [1] + [ANY] * CENTRE
    centre_first = np.roll(seen, -CENTRE, 1)  # the centre sorts first, and the ground comes last
    places, which = np.unique(centre_first, axis=0, return_inverse=True)
    return which.reshape(windows.shape[:2]), np.roll(places, CENTRE, 1)


def _blob_corners(places: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return a number per corner of each blob tile, int64 [N, 4]: 0 ground, 1 inside, 2 outline, 3 outer corner."""
    sides = (places[:, [1, 1, 7, 7]] == 0) | (places[:, [3, 5, 3, 5]] == 0)
    shown = np.where(places[:, CORNERS] == 0, 1, np.where(sides, 2, 3))
    return np.asarray(np.where(places[:, [CENTRE]] == 0, shown, 0), np.int64)


def _ties(
    corners: NDArray[np.int64], places: NDArray[np.int8], cells: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Return a group number per pixel of the picture, int64 [H, W]; a group has a single colour.

    Pixels near a corner form groups by the terrain of the corner; pixels near a side by the terrains of both ends and
    of the neighbour. Inner pixels are tied only to copies of the tile. corners: int64 [N, 4], terrains at the corners.
    """
    count = len(corners)
    shown = np.zeros((count, 9), np.int64)  # [N, 9], group number by tile and part
    shown[:, CORNERS], shown[:, CENTRE] = corners, np.arange(count)
    for side, ends in _SIDES.items():
        beside = places[:, side].astype(np.int64) + 1
        shown[:, side] = (beside * 4 + shown[:, ends[0]]) * 4 + shown[:, ends[1]]
    within = np.arange(size)
    part = np.where(within < BORDER, 0, np.where(within >= size - BORDER, 2, 1))
    pixel = np.arange(size * size).reshape(size, size)
    groups = shown[:, part[:, None] * 3 + part] * size**2 + pixel  # [N, S, S]
    joined = _join(cells, groups)
    return np.asarray(np.unique(joined, return_inverse=True)[1].reshape(joined.shape), np.int64)


def _corner_control(places: NDArray[np.int8], terrain_count: int) -> NDArray[np.float64]:
    """Return the terrains' shares at 3 x 3 points of a tile, corners, middles of sides and centre: [N, K, 9]."""
    at_corners = places[:, None, CORNERS] == np.arange(terrain_count)[:, None]
    half = np.array([[1, 0], [0.5, 0.5], [0, 1]])
    return np.asarray(at_corners.astype(np.float64) @ np.kron(half, half).T)


def _blob_control(places: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the shares of the blob's terrain and the ground at 3 x 3 points of a tile: [N, 2, 9]."""
    blob = np.where(places == 0, 1.0, _BLOB_EDGE)
    blob[places[:, CENTRE] != 0] = 0
    return np.stack([blob, 1 - blob], 1)


def _shares(control: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Interpolate shares from 3 x 3 points of a tile, [N, K, 9], and make the change steeper: [N, K, S, S]."""
    points = (np.arange(size) + 0.5) / size
    weights = np.clip(1 - 2 * np.abs(points[:, None] - np.array([0, 0.5, 1])), 0, 1)  # [S, 3]
    smooth = weights @ control.reshape(*control.shape[:2], 3, 3) @ weights.T
    count = control.shape[1]
    others = [smooth[:, [other for other in range(count) if other != own]].max(1) for own in range(count)]
    steep = np.clip((smooth - np.stack(others, 1)) / 2 * _STEEPNESS + 0.5, 0, 1)
    return np.asarray(steep / steep.sum(1, keepdims=True))
