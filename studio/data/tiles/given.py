"""Tiles given by an artist: fill places of a set, check terrains, and copy borders to missing tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Mask, Rgba
from studio.core.errors import UsageError
from studio.core.pictures import are_filled
from studio.data.tiles.layout import TRANSPARENT, TileLayout, TileSetSpec
from studio.data.tiles.tile_set import ANY, CORNERS

FREE = -1  # target of `place_tiles`: fill free places
_NOISE = 32.0  # levels; corners of equal terrain may differ by this much
_FARTHER = 2.0  # a corner must be this many times nearer to another terrain before it counts as wrong
_FAR = 1e6  # levels; larger than every real distance
_CORNER_SHARE = 8  # a corner has an eighth of the tile's width
_WHERE = ("upper left", "upper right", "lower left", "lower right")


def fix_given(spec: TileSetSpec, tiles: Rgba) -> tuple[Rgba, Mask]:
    """Copy the borders of given tiles to missing tiles: uint8 [N, S, S, 4] and bool [N, S, S], the fixed pixels.

    tiles: uint8 [N, S, S, 4], fully transparent where missing. Given tiles stay unchanged. If borders of given
    tiles differ, missing tiles get the border of the tile with the fewest terrains. Raises UsageError for a wrong
    number of tiles and for a tile with a wrong terrain.
    """
    layout = spec.layout(tiles.shape[1])
    if len(tiles) != len(layout.places):
        raise UsageError(f"The given set has {len(tiles)} tiles, but the tile set has {len(layout.places)}.")
    is_given = are_filled(tiles)
    if is_given.all():
        raise UsageError("All tiles are given.", "Erase the tiles to draw.")
    if not is_given.any():
        raise UsageError("No tile is given.", "Give at least one tile, or draw without given tiles.")
    _check_terrains(spec, layout, tiles, is_given)
    return _spread_borders(layout, tiles, is_given)


def place_tiles(spec: TileSetSpec, given: Rgba, images: Sequence[tuple[str, Rgba]], target: int) -> Rgba:
    """Add images, single tiles or sheets of the set, to the given tiles; return uint8 [N, S, S, 4].

    given: uint8 [N, S, S, 4]. images: (file name, uint8 [H, W, 4]). target: place of the first single tile, before
    the further tiles; FREE fills free places. Raises UsageError for wrong sizes, and for more tiles than places.
    """
    layout, found = spec.layout(given.shape[1]), given.copy()
    for name, image in images:
        if image.shape != given.shape[1:]:
            tiles = layout.cut_sheet(image, name)
            is_drawn = are_filled(tiles)
            found[is_drawn] = tiles[is_drawn]
            continue
        free = np.flatnonzero(~are_filled(found)).tolist()
        place = target if target != FREE else free[0] if free else len(found)
        if place >= len(found):
            raise UsageError("There are more tiles than places.", "Select a place with fewer tiles, or clear some.")
        found[place] = image
        target = FREE if target == FREE else target + 1
    return found


def sketch_tiles(spec: TileSetSpec, size: int, colours: NDArray[np.uint8]) -> Rgba:
    """Draw a sketch of each tile, with a plain colour per terrain: uint8 [N, S, S, 4]. colours: uint8 [K, 4]."""
    layout = spec.layout(size)
    return np.asarray(colours[layout.split(layout.shares.transpose(1, 2, 0)[None]).argmax(-1)])


def name_places(spec: TileSetSpec, size: int) -> list[str]:
    """Return a name per place of the set, with the terrains row by row: 'Tile 3: grass grass / water grass'."""
    places, names = spec.layout(size).places, [*(name or TRANSPARENT for name in spec.names), "any"]
    shown = places if spec.kind == "blob" else places[:, CORNERS]
    width = 3 if spec.kind == "blob" else 2
    rows = ([names[place] for place in row] for row in shown.tolist())
    lines = (" / ".join(" ".join(row[at : at + width]) for at in range(0, len(row), width)) for row in rows)
    return [f"Tile {number}: {line}" for number, line in enumerate(lines, 1)]


def _spread_borders(layout: TileLayout, tiles: Rgba, is_given: NDArray[np.bool_]) -> tuple[Rgba, Mask]:
    """Copy pixels of the given tiles to tied pixels of missing tiles; return the tiles and the fixed pixels.

    is_given: bool [N].
    """
    each_pixel = (len(tiles), 1, 1), tiles.shape[:3]
    terrain_counts = np.array([len(set(row)) for row in layout.corners.tolist()])
    rank = np.where(is_given, terrain_counts, terrain_counts.max() + 1).reshape(each_pixel[0])
    order = layout.join(np.broadcast_to(rank, each_pixel[1])).ravel().argsort(kind="stable")
    numbers, pixels = layout.ties.ravel(), layout.join(tiles).reshape(-1, 4)
    _, first = np.unique(numbers[order], return_index=True)
    spread = layout.split(pixels[order[first][numbers]].reshape(1, *layout.ties.shape, 4))
    own = np.broadcast_to(is_given.reshape(each_pixel[0]), each_pixel[1])
    known = np.zeros(len(first), bool)
    known[numbers[layout.join(own).ravel()]] = True
    return np.where(own[..., None], tiles, spread), layout.split(known[layout.ties][None])


def _check_terrains(spec: TileSetSpec, layout: TileLayout, tiles: Rgba, is_given: NDArray[np.bool_]) -> None:
    """Raise UsageError for a tile with the colours of a wrong terrain at a corner.

    Compares the mean colours of corners. A wrong corner is much nearer to a corner of a different terrain than to
    corners of the expected terrain in other tiles.
    """
    numbers = np.flatnonzero(is_given)
    wide = max(1, tiles.shape[1] // _CORNER_SHARE)
    values = tiles[numbers].astype(np.float64)
    values[..., :3] *= values[..., 3:] / 255
    ends = slice(wide), slice(-wide, None)
    parts = [values[:, down][:, :, across] for down in ends for across in ends]
    colours = np.stack([part.mean((1, 2)) for part in parts], 1).reshape(-1, 4)  # [M * 4, 4]
    shown = _terrains_at_corners(spec, layout)[numbers].ravel()  # [M * 4]
    tile = np.repeat(numbers, len(parts))
    apart = np.abs(colours[:, None] - colours).max(-1)  # [M * 4, M * 4]
    is_known = shown != ANY
    is_own, is_other_tile = shown[:, None] == shown, tile[:, None] != tile
    is_comparable = is_own & is_other_tile & is_known
    own = np.where(is_comparable, apart, _FAR).min(1)
    others = np.where(~is_own & is_known, apart, _FAR)
    excess = np.where(is_known & is_comparable.any(1), own - _FARTHER * others.min(1) - _NOISE, -_FAR)
    worst = int(excess.argmax())
    if excess[worst] <= 0:
        return
    names = [name.rpartition("/")[2] if name != TRANSPARENT else "transparency" for name in spec.terrains]
    seen, wanted = names[shown[others[worst].argmin()]], names[shown[worst]]
    where = _WHERE[worst % len(_WHERE)]
    title = f"Tile {tile[worst] + 1} shows {seen} at its {where} corner, but its place in the set has {wanted} there."
    raise UsageError(title, "Move the tile to its place in the set, or remove it.")


def _terrains_at_corners(spec: TileSetSpec, layout: TileLayout) -> NDArray[np.int64]:
    """Return the terrain at each corner of the tiles, int64 [N, 4]; ANY at the outline of a blob."""
    if spec.kind != "blob":
        return layout.corners
    return np.array([1, 0, ANY, ANY])[layout.corners]
