"""`TileSheet`: a checked tile set with a sheet, terrains in other programs' numbering, and a sample map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core import pictures
from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.data.tiles.terrain_maps import random_map
from studio.data.tiles.tile_set import ANY, CENTRE, CORNERS, TileKind, TileSet
from studio.exports import sheets
from studio.exports.png import encode_png, sheet_layout
from studio.exports.sprites.base import SpriteSet

SIDES = (1, 3, 5, 7)  # indices in the places of a tile: upper, left, right, lower
COUNTED: dict[TileKind, Sequence[int]] = {  # places of a tile with a meaning, by kind
    "corner": CORNERS,
    "dual-grid": CORNERS,
    "blob": range(9),
    "edge": (*SIDES, CENTRE),
}
_NO_COLOUR = (128, 128, 128)  # RGB for a terrain without visible pixels
_WHERE = (
    "upper left corner", "upper side", "upper right corner", "left side", "centre", "right side", "lower left corner",
    "lower side", "lower right corner",
)  # fmt: skip
_MEETING = [  # by place of a tile: the neighbouring cells (as places) that touch this point
    [3 * row + column for row in {1, place // 3} for column in {1, place % 3}] for place in range(9)
]
_MAP_WIDTH, _MAP_HEIGHT = 24, 16  # size of the sample map in cells


@dataclass(frozen=True, eq=False)
class TileSheet:
    """A tile set to save, with a sheet and terrains in other programs' numbering.

    Tiled and Godot give terrains to the points where tiles touch, and no terrain to transparency. Two tiles that meet
    at a point have equal terrains at the point.
    """

    tile_set: TileSet
    grid: sheets.SheetLayout
    picture: bytes  # the sheet as PNG
    terrains: Sequence[str]  # without transparency
    points: NDArray[np.int8]  # [N, 9], index into `terrains`, or ANY without a terrain
    colours: Sequence[tuple[int, int, int]]  # RGB for other programs, by terrain

    @classmethod
    def of(cls, sprites: SpriteSet) -> TileSheet:
        """Check a tile set and arrange the tiles in a sheet. Raises ExportError for sprites without a tile set."""
        tiles = sprites.tile_set
        if tiles is None:
            raise ExportError("These sprites are no tile set.", "Draw a tile set, or save a PNG sheet.")
        _check(tiles)
        numbers = np.full(len(tiles.terrains) + 1, ANY, np.int8)  # the last entry maps ANY to ANY
        is_visible = np.array([bool(name) for name in tiles.terrains])
        numbers[:-1][is_visible] = range(int(is_visible.sum()))
        terrains = [name for name in tiles.terrains if name]
        grid = sheet_layout(sprites.sprites, sprites.sheet_columns())
        picture = encode_png(pictures.tile(sprites.sprites, grid.columns), sprites.about)
        points = numbers[_points(tiles)]
        colours = [_mean_colour(tiles.tiles, (points == number).sum(1)) for number in range(len(terrains))]
        return cls(tiles, grid, picture, terrains, points, colours)

    @property
    def size(self) -> int:
        """The width of a tile in pixels."""
        return self.grid.width

    def sample(self) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Return a random terrain map, int8 [H, W], and the map's tiles, int64 [H', W']."""
        tiles = self.tile_set
        extra = int(tiles.by_corners)
        terrain_map = random_map(len(tiles.terrains), _MAP_HEIGHT + extra, _MAP_WIDTH + extra, seed=0)
        return terrain_map, tiles.laid_out(terrain_map)


def _check(tiles: TileSet) -> None:
    """Raise ExportError for a terrain without a tile, and for a tile with unknown or missing terrains."""
    counted = list(COUNTED[tiles.kind])
    places = tiles.places[:, counted]
    used = set(np.unique(places).tolist()) - {ANY}
    if unknown := used - set(range(len(tiles.terrains))):
        title = f"A tile shows terrain {max(unknown) + 1}, but the tile set has {len(tiles.terrains)} terrains."
        raise ExportError(title, "Draw the tiles again.")
    for number, name in enumerate(tiles.terrains):
        if number not in used:
            raise ExportError(f"No tile shows {name or 'transparency'}.", "Draw its tiles, or leave the terrain out.")
    needed = counted if tiles.by_corners else [CENTRE]
    if missing := np.argwhere(tiles.places[:, needed] == ANY).tolist():
        tile, place = missing[0]
        title = f"Tile {tile + 1} has no terrain at its {_WHERE[needed[place]]}."
        raise ExportError(title, "Draw the tiles again.")


def _mean_colour(tiles: Rgba, points: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return the mean RGB over tiles with the most points of a terrain. points: int64 [N], number of points by tile."""
    pixels = tiles[points == points.max()].reshape(-1, 4)
    visible = pixels[pixels[:, 3] > 0, :3]
    if not len(visible):
        return _NO_COLOUR
    red, green, blue = visible.mean(0).round().astype(int).tolist()
    return red, green, blue


def _points(tiles: TileSet) -> NDArray[np.int64]:
    """Return the terrain by tile and place, int64 [N, 9]; ANY at places outside COUNTED.

    Where several terrains meet, the point gets a terrain whose tile fits any neighbours, otherwise the last terrain.
    In tiles with terrains at the corners, the centre gets the commonest corner terrain.
    """
    places = tiles.places.astype(np.int64)
    if tiles.by_corners:
        points = places.copy()
        counts = (places[:, CORNERS, None] == range(len(tiles.terrains))).sum(1)
        points[:, SIDES], points[:, CENTRE] = ANY, counts.argmax(1)
        return points
    meets_any = set(places[(places[:, SIDES] == ANY).all(1), CENTRE].tolist())
    order = sorted(range(len(tiles.terrains)), key=lambda terrain: (terrain in meets_any, terrain))
    ranks = np.array([*np.argsort(order), ANY])[places]  # ANY below all terrains
    points = np.array(order)[np.stack([ranks[:, cells].max(1) for cells in _MEETING], 1)]
    if tiles.kind == "edge":
        points[:, CORNERS] = ANY
    return np.asarray(points)
