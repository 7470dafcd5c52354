"""Corner tiles: all 16 exist, and tiles with equal corners fit together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.data.pixels.corner_tiles import (
    BORDER,
    GRID_SIDE,
    TILE_COUNT,
    TileMap,
    corner_kinds,
    corners_match,
    join_tiles,
    split_tiles,
)


def _noise(size: int) -> Rgba:
    return np.random.default_rng(0).integers(0, 256, (1, GRID_SIDE * size, GRID_SIDE * size, 4), np.uint8)


def test_every_combination_of_corners_occurs_once() -> None:
    found = corner_kinds()
    assert {tuple(row) for row in found.tolist()} == set(itertools.product((False, True), repeat=4))
    square = found.reshape(GRID_SIDE, GRID_SIDE, 4)
    np.testing.assert_array_equal(square[:, :, [1, 3]], np.roll(square, -1, 1)[:, :, [0, 2]])
    np.testing.assert_array_equal(square[:, :, [2, 3]], np.roll(square, -1, 0)[:, :, [0, 1]])


@pytest.mark.parametrize("size", [5, 8, 16])
def test_borders_match_for_all_neighbours(size: int) -> None:
    picture = _noise(size)
    np.testing.assert_array_equal(join_tiles(split_tiles(picture)), picture)
    tiles, kinds = split_tiles(TileMap.of(size).apply_ties(picture)), corner_kinds()
    assert corners_match(tiles) and not corners_match(split_tiles(picture))
    for here, there in itertools.product(range(TILE_COUNT), repeat=2):
        for ends, others, strip in (
            ((1, 3), (0, 2), np.s_[:, :BORDER]),  # what may come to the right of a tile
            ((2, 3), (0, 1), np.s_[:BORDER]),  # and below it
        ):
            if (kinds[here, ends] == kinds[there, others]).all():
                first = next(k for k in range(TILE_COUNT) if (kinds[k, others] == kinds[there, others]).all())
                np.testing.assert_array_equal(tiles[there][strip], tiles[first][strip])
    tiles[3, size // 2, -1] ^= 1
    assert not corners_match(tiles)


def test_shares_follow_the_corners_and_the_ties() -> None:
    drawn = TileMap.of(16)
    square = split_tiles(np.repeat((drawn.share[None, ..., None] * 255).astype(np.uint8), 4, 3))[..., 0]
    at_corners = square[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    np.testing.assert_array_equal(at_corners, corner_kinds() * 255)
    assert all(np.ptp(drawn.share[drawn.ties == number]) == 0 for number in range(0, drawn.ties.max(), 97))
    assert set(np.unique(drawn.ties)) == set(range(drawn.ties.max() + 1))  # without a gap


def test_too_small_tiles_are_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        TileMap.of(4)
