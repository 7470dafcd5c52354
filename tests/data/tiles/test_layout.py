"""Layouts of tile sets: all tiles exist, and every border in any map is a border that was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.data.tiles.layout import BORDER, TileSetSpec
from studio.data.tiles.terrain_maps import random_map
from studio.data.tiles.tile_set import CENTRE, NO_TILE

_SIZE = 6
_PLANS = (
    TileSetSpec("corner", ("grass", "water")),
    TileSetSpec("dual-grid", ("grass", "transparent")),
    TileSetSpec("corner", ("grass", "sand", "water")),
    TileSetSpec("corner", ("a", "b", "c", "d")),
    TileSetSpec("blob", ("grass", "water")),
)
_COUNTS = dict(zip(_PLANS, (16, 16, 81, 256, 48), strict=True))


def _noise(plan: TileSetSpec, seed: int = 0) -> Rgba:
    return np.random.default_rng(seed).integers(0, 256, (_COUNTS[plan], _SIZE, _SIZE, 4), np.uint8)


def _crossings(picture: Rgba) -> set[bytes]:
    """Return the pixels around each border between tiles, BORDER pixels on each side, and around each corner point."""
    found = set()
    height, width = picture.shape[:2]
    for y in range(0, height, _SIZE):
        for x in range(0, width, _SIZE):
            beside = picture[y : y + _SIZE, x - BORDER : x + BORDER]
            below = picture[y - BORDER : y + BORDER, x : x + _SIZE]
            around = picture[y - BORDER : y + BORDER, x - BORDER : x + BORDER]
            parts = (b"|", beside), (b"-", below), (b"+", around)
            found |= {mark + part.tobytes() for mark, part in parts if part.size}
    return found


@pytest.mark.parametrize("plan", _PLANS, ids=str)
def test_every_border_of_a_map_was_drawn(plan: TileSetSpec) -> None:
    layout = plan.layout(_SIZE)
    assert len(layout.places) == _COUNTS[plan] == len(np.unique(layout.places, axis=0))
    tiles = layout.apply_ties(_noise(plan))
    assert layout.fits(tiles) and not layout.fits(_noise(plan))
    np.testing.assert_array_equal(layout.split(layout.join(tiles)), tiles)
    drawn = np.pad(layout.join(tiles)[0], ((_SIZE, 0), (_SIZE, 0), (0, 0)), mode="wrap")
    found, count = plan.tile_set(tiles), len(plan.terrains)
    scattered = np.random.default_rng(0).integers(0, count, (30, 30), np.int8)
    for terrain_map in (scattered, random_map(count, 30, 30, 0)):
        index = found.laid_out(terrain_map)
        assert (index != NO_TILE).all()
        assert _crossings(found.render(index)) <= _crossings(drawn)
    broken = tiles.copy()
    broken[3, 0, _SIZE // 2] ^= 1
    assert not layout.fits(broken)
    assert not _crossings(plan.tile_set(broken).render(index)) <= _crossings(drawn) or 3 not in index


@pytest.mark.parametrize("plan", _PLANS, ids=str)
def test_shares_follow_the_terrains(plan: TileSetSpec) -> None:
    layout = plan.layout(16)
    np.testing.assert_allclose(layout.shares.sum(0), 1, atol=1e-6)
    by_tile = layout.split(layout.shares.transpose(1, 2, 0)[None])  # [N, S, S, K]
    if plan.kind == "blob":
        in_centre = by_tile[:, 8, 8].argmax(-1)
        np.testing.assert_array_equal(in_centre, layout.places[:, CENTRE])
        assert (by_tile[layout.places[:, 1] == 1][:, 0, 8, 1] == 1).all()  # ground above: ground at the border
        return
    at_corners = by_tile[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    np.testing.assert_array_equal(at_corners.argmax(-1), layout.places[:, [0, 2, 6, 8]])
    assert (at_corners.max(-1) == 1).all()


def test_variants_differ_inside_equal_borders() -> None:
    plan = TileSetSpec("blob", ("grass", "water"), variants=3)
    layout = plan.layout(_SIZE)
    noise = np.random.default_rng(0).integers(0, 256, (144, _SIZE, _SIZE, 4), np.uint8)
    tiles = layout.apply_ties(noise)
    found = plan.tile_set(tiles)
    assert len(np.unique(tiles, axis=0)) == 144 == plan.tile_count and found.columns == layout.columns == 8
    np.testing.assert_array_equal(tiles[:48, 0], tiles[48:96, 0])
    index = found.laid_out(random_map(2, 30, 30, 0))
    assert (np.bincount(index.ravel() // 48) > 200).all()
    drawn = np.pad(layout.join(tiles)[0], ((_SIZE, 0), (_SIZE, 0), (0, 0)), mode="wrap")
    assert _crossings(found.render(index)) <= _crossings(drawn)
    with pytest.raises(UsageError, match="1,280 tiles are too many"):
        TileSetSpec("corner", ("a", "b", "c", "d"), 5)


def test_sheets_are_cut_in_the_order_of_the_set() -> None:
    layout = _PLANS[4].layout(_SIZE)
    tiles = _noise(_PLANS[4])
    sheet = tiles.reshape(6, 8, _SIZE, _SIZE, 4).swapaxes(1, 2).reshape(36, 48, 4)
    np.testing.assert_array_equal(layout.cut_sheet(sheet, "set.png"), tiles)
    twice = replace(_PLANS[4], variants=2).layout(_SIZE)
    np.testing.assert_array_equal(twice.cut_sheet(sheet, "set.png"), np.pad(tiles, ((0, 48), (0, 0), (0, 0), (0, 0))))
    with pytest.raises(UsageError, match=r"set.png has 48 x 30 pixels; this tile set has 48 x 36"):
        layout.cut_sheet(sheet[:30], "set.png")


@pytest.mark.parametrize(
    ("kind", "terrains", "message"),
    [
        ("corner", ("a",), "two to 4"),
        ("corner", tuple("abcde"), "two to 4"),
        ("blob", tuple("abc"), "two terrains"),
        ("dual-grid", ("a", "a"), "differ"),
    ],
)
def test_unsuitable_terrains_are_refused(kind: str, terrains: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TileSetSpec(kind, terrains)  # type: ignore[arg-type]


def test_too_small_tiles_are_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        _PLANS[0].layout(4)
