"""Tile sets: the tiles chosen for a map of terrains, and the rendered map."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from studio.data.tiles.tile_set import ANY, CENTRE, CORNERS, NO_TILE, TileKind, TileSet


def _tile_set(places: NDArray[np.int8], kind: TileKind, weights: list[float] | None = None) -> TileSet:
    count = len(places)
    tiles = np.zeros((count, 2, 2, 4), np.uint8)
    tiles[..., 0], tiles[..., 3] = np.arange(1, count + 1)[:, None, None], 255
    return TileSet(tiles, ("", "grass"), kind, places, np.asarray(weights or [1.0] * count, np.float32))


def _corner_places() -> NDArray[np.int8]:
    places = np.full((16, 9), ANY, np.int8)
    places[:, CORNERS] = list(itertools.product((0, 1), repeat=4))
    return places


def test_corner_tiles_show_the_corners_of_the_map() -> None:
    terrain_map = np.random.default_rng(0).integers(0, 2, (5, 7), np.int8)
    for kind in ("corner", "dual-grid"):
        found = _tile_set(_corner_places(), kind)
        index = found.laid_out(terrain_map)
        assert index.shape == (4, 6)
        for row, column in np.ndindex(*index.shape):
            corners = terrain_map[row : row + 2, column : column + 2].ravel()
            np.testing.assert_array_equal(found.places[index[row, column], CORNERS], corners)
    picture = found.render(index)
    assert picture.shape == (8, 12, 4)
    np.testing.assert_array_equal(picture[::2, ::2, 0], index + 1)
    np.testing.assert_array_equal(picture[1::2, 1::2, 0], index + 1)


def test_blob_tiles_show_a_cell_and_its_neighbours() -> None:
    places = np.full((3, 9), ANY, np.int8)
    places[0, CENTRE] = 0
    places[1], places[2, [1, 3, CENTRE, 5, 7]] = 1, (0, 0, 1, 0, 0)
    found = _tile_set(places, "blob")
    terrain_map = np.zeros((4, 8), np.int8)
    terrain_map[1, 1], terrain_map[:, 5:] = 1, 1
    index = found.laid_out(terrain_map)
    assert index.shape == terrain_map.shape and index[1, 1] == 2
    np.testing.assert_array_equal(index[:, :5] == 0, terrain_map[:, :5] == 0)
    assert (index[:, 6:] == 1).all() and (index[:, 5] == NO_TILE).all()  # the map goes on outside
    assert not found.render(index)[:, 10:12].any()


def test_variants_are_chosen_by_weight_and_seed() -> None:
    places = _corner_places()[[15, 15, 15]]
    found, terrain_map = _tile_set(places, "corner", [3.0, 0.0, 1.0]), np.ones((41, 41), np.int8)
    index = found.laid_out(terrain_map, seed=1)
    np.testing.assert_array_equal(index, found.laid_out(terrain_map, seed=1))
    assert (index != found.laid_out(terrain_map, seed=2)).any()
    shares = np.bincount(index.ravel(), minlength=3) / index.size
    assert abs(shares[0] - 0.75) < 0.05 and shares[1] == 0
