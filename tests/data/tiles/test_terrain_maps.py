"""Maps of terrains: tori with every combination, and random maps."""

from __future__ import annotations

import numpy as np
import pytest

from studio.data.tiles.terrain_maps import blob_torus, corner_torus, random_map


@pytest.mark.parametrize(("terrains", "rows"), [(2, 4), (3, 9), (4, 17)])
def test_every_combination_of_corners_occurs(terrains: int, rows: int) -> None:
    torus = corner_torus(terrains)
    assert torus.shape == (rows, terrains**2)
    right, below = np.roll(torus, -1, 1), np.roll(torus, -1, 0)
    found = np.stack([torus, right, below, np.roll(below, -1, 1)], -1).reshape(-1, 4)
    assert len(np.unique(found, axis=0)) == terrains**4


def test_every_combination_of_neighbours_occurs() -> None:
    cells = blob_torus()
    found = set()
    for row, column in np.argwhere(cells == 0).tolist():
        near = np.roll(cells, (1 - row, 1 - column), (0, 1))[:3, :3] == 0
        up, left, right, down = near[0, 1], near[1, 0], near[1, 2], near[2, 1]
        corners = near[0, 0] & up & left, near[0, 2] & up & right, near[2, 0] & down & left, near[2, 2] & down & right
        found.add((bool(up), bool(left), bool(right), bool(down), *map(bool, corners)))
    assert len(found) == 47
    blocks = np.stack([np.roll(cells, (down, across), (0, 1)) for down in (0, 1) for across in (0, 1)], -1)
    assert len(np.unique(blocks.reshape(-1, 4), axis=0)) == 16


def test_random_maps_have_connected_areas_of_each_terrain() -> None:
    found = random_map(3, 16, 24, seed=1)
    assert found.shape == (16, 24) and set(np.unique(found)) == {0, 1, 2}
    np.testing.assert_array_equal(found, random_map(3, 16, 24, seed=1))
    assert (found != random_map(3, 16, 24, seed=2)).any()
    assert (found[:, 1:] == found[:, :-1]).mean() > 0.7
