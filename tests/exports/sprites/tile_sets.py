"""Tile sets to save. Every tile has pixels of its own, so a wrong tile anywhere in a map shows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core.arrays import Rgba
from studio.data.tiles.tile_set import ANY, CORNERS, TileKind, TileSet
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.formats import sprite_exports
from studio.exports.sprites.tile_sheet import TileSheet

SIZE = 8
# TileSet.places: UL, U, UR, L, centre, R, LL, lower, LR


def corner_set(*terrains: str, kind: TileKind = "corner", variants: int = 1) -> TileSet:
    """A tile for each combination of terrains at the four corners, in `variants` of unequal probability."""
    corners = np.repeat(list(product(range(len(terrains)), repeat=4)), variants, axis=0)
    places = np.full((len(corners), 9), ANY, np.int8)
    places[:, CORNERS] = corners
    weights = np.arange(1, variants + 1) / (variants * (variants + 1) / 2)
    return _with_tiles(terrains, kind, places, np.tile(weights, len(corners) // variants))


def blob_set(inner: str = "grass", outer: str = "water") -> TileSet:
    """The 47 tiles of `inner`, and a tile of `outer` that meets anything."""
    rows = {(ANY, ANY, ANY, ANY, 1, ANY, ANY, ANY, ANY)}
    for up, left, right, down, *corners in product((0, 1), repeat=8):
        free = [up == left == 0, up == right == 0, down == left == 0, down == right == 0]
        upper_left, upper_right, lower_left, lower_right = (
            corner if counts else ANY for corner, counts in zip(corners, free, strict=True)
        )
        rows.add((upper_left, up, upper_right, left, 0, right, lower_left, down, lower_right))
    assert len(rows) == 48
    return _with_tiles((inner, outer), "blob", np.array(sorted(rows), np.int8))


def edge_set(*terrains: str) -> TileSet:
    """A tile for each combination of terrains in a cell and its four neighbours."""
    rows = [(ANY, up, ANY, left, own, right, ANY, down, ANY) for own, up, left, right, down in product(
        range(len(terrains)), repeat=5
    )]  # fmt: skip
    return _with_tiles(terrains, "edge", np.array(rows, np.int8))


def _with_tiles(
    terrains: tuple[str, ...],
    kind: TileKind,
    places: NDArray[np.int8],
    weights: NDArray[np.float64] | None = None,
) -> TileSet:
    tiles = np.random.default_rng(1).integers(0, 256, (len(places), SIZE, SIZE, 4), np.uint8)
    tiles[..., 3] = np.where(tiles[..., 3] < 200, 255, 0)
    tiles[tiles[..., 3] == 0] = 0
    if "" in terrains:
        counted = places[:, CORNERS] if kind in ("corner", "dual-grid") else places[:, [4]]
        tiles[(counted == terrains.index("")).all(1)] = 0
    return TileSet(
        tiles,
        terrains,
        kind,
        places,
        np.ones(len(places), np.float32) if weights is None else weights.astype(np.float32),
    )


def save(form: str, tiles: TileSet, folder: Path) -> Path:
    """Save a tile set in the format of that name; return the main file."""
    return sprite_exports()[form].write(as_sprites(tiles), folder / "art")[0]


def as_sprites(tiles: TileSet) -> SpriteSet:
    return SpriteSet(tiles.tiles, tile_set=tiles, about={"model": "trial"})


def sample(tiles: TileSet) -> Rgba:
    """The picture of the sample map, drawn by the tile set."""
    return tiles.render(TileSheet.of(as_sprites(tiles)).sample()[1])


def pixels(path: Path) -> Rgba:
    """The pixels of a picture, colour zeroed under alpha 0."""
    rgba = np.array(Image.open(path).convert("RGBA"))
    rgba[rgba[..., 3] == 0] = 0
    return rgba


def cut(path: Path, size: int, columns: int) -> Rgba:
    """The tiles of a sheet, row by row."""
    sheet = pixels(path)
    return np.array([
        sheet[row * size : (row + 1) * size, column * size : (column + 1) * size]
        for row in range(len(sheet) // size) for column in range(columns)
    ])  # fmt: skip


def joined(cells: Rgba) -> Rgba:
    """The picture of a map: uint8 [H, W, S, S, 4] -> [H * S, W * S, 4]."""
    rows, columns = cells.shape[:2]
    return np.ascontiguousarray(cells.swapaxes(1, 2)).reshape(rows * SIZE, columns * SIZE, 4)


SETS = {
    "corners of two": corner_set("grass", "water"),
    "corners of three": corner_set("grass", "water", "sand"),
    "corners on nothing": corner_set("grass", ""),
    "dual grid": corner_set("", "wall", kind="dual-grid"),
    "variants": corner_set("grass", "water", variants=3),
    "blob": blob_set(),
    "blob on nothing": blob_set(outer=""),
    "edges": edge_set("path", ""),
}
