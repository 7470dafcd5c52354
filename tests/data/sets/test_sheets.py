"""Sheets whose rows are views and whose columns are frames."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from studio.data.options import SheetGrid
from studio.data.sets.sheets import SheetShape, places_by_sheets, propose_sets, with_common_grid
from studio.data.sets.words import SpriteName

TILES, TALL = SheetGrid(16, 16, confidence=0.9), SheetGrid(16, 32)


def tiles(sheet: str, rows: int, columns: int) -> list[SpriteName]:
    return [SpriteName.of(f"{sheet}.png#r{row + 1} c{column + 1}") for row in range(rows) for column in range(columns)]


def cells(names: Sequence[SpriteName], *, certain: bool = False) -> dict[str, list[str]]:
    places = places_by_sheets(names, ("down", "up"), ("stand",), certain=certain)
    return {sheet: [place.cell for place in places.values() if place.name == sheet] for sheet, *_ in places.values()}


def test_sheets_with_equal_rows_are_sets() -> None:
    names = [*tiles("a", 2, 2), *tiles("b/b", 2, 3), *tiles("c", 2, 2), *tiles("d", 3, 2)]
    found = cells(names)
    assert list(found) == ["a", "b/b", "c"] and found["a"] == ["down/stand", "down/2", "up/stand", "up/2"]
    assert (
        found["b/b"][2] == "down/3"
        and cells([*tiles("a", 3, 1), *tiles("b", 3, 1)], certain=True)["a"][2] == "row3/stand"
    )


def test_several_sheets_of_a_character_are_one_set() -> None:
    actions = [name for who in ("orc", "elf") for action in ("idle", "walk") for name in tiles(f"{who}_{action}", 2, 2)]
    assert cells(actions)["orc"] == [
        "down/idle1", "down/idle2", "up/idle1", "up/idle2", "down/walk1", "down/walk2", "up/walk1", "up/walk2",
    ]  # fmt: skip
    strips = [name for who in ("orc", "elf") for view in ("left", "up") for name in tiles(f"{who}/{view}", 1, 2)]
    assert cells(strips)["elf"] == ["left/stand", "left/2", "up/stand", "up/2"]
    both = [name for who in "ab" for view in ("left", "up") for name in tiles(f"{who}_run_{view}_2", 1, 2)]
    assert cells(both)["a"] == ["left/run2.1", "left/run2.2", "up/run2.1", "up/run2.2"]
    alone = [*tiles("walk_orc", 2, 2), *tiles("idle_elf", 2, 2), *tiles("imp", 2, 2)]
    assert list(cells(alone)) == ["walk_orc", "idle_elf", "imp"]
    own = [name for who in "ab" for view in ("down", "high") for name in tiles(f"{who}_{view}", 1, 2)]
    assert places_by_sheets(own, ("down", "High"), (), certain=True)[2] == ("a", "high", "1")
    assert list(cells([name for who in "abc" for name in tiles(f"{who}/sheet", 2, 2)])) == ["a", "b", "c"]


def test_few_sheets_strips_and_tile_sets_are_no_sets() -> None:
    many = ([name for sheet in "abcd" for name in tiles(sheet, *shape)] for shape in ((1, 8), (40, 2), (2, 20)))
    for names in (tiles("a", 2, 2), [*tiles("a", 2, 2), *tiles("b", 2, 2)], *many):
        assert not cells(names) and cells(names, certain=True)


def test_sheets_share_the_usual_grid() -> None:
    sizes = {0: (64, 64), 1: (80, 64), 2: (64, 64), 3: (64, 64), 4: (40, 64), 5: (64, 32)}
    grids = {0: TILES, 1: TILES, 2: TALL, 5: TILES}
    shapes = {number: SheetShape.of(grid, sizes[number]) for number, grid in grids.items()}
    shared = with_common_grid(shapes, sizes)
    assert {number: (one.grid.tile_height, one.rows, one.columns) for number, one in shared.items()} == {
        0: (16, 4, 4), 1: (16, 4, 5), 2: (16, 4, 4), 3: (16, 4, 4), 5: (16, 2, 4),
    }  # fmt: skip
    assert shared[0].grid is TILES
    named = {SpriteName.of(f"{number}.png"): one for number, one in shared.items()}
    proposed = propose_sets(named, len(sizes), ("down",))
    assert (
        proposed is not None
        and proposed.describe() == "4 characters with 4 views x 4 to 5 frames: down, row2, row3, row4"
    )
    assert propose_sets(named, 20, ()) is None and propose_sets({}, 0, ()) is None


@pytest.mark.parametrize(
    ("names", "size", "says"),
    [
        (("a_idle", "a_walk", "b_idle", "b_walk"), (32, 32), "2 characters with 2 views x 4 frames: row1, row2"),
        (("a_left", "a_up", "b_left", "b_up"), (48, 16), "2 characters with 2 views x 3 frames: up, left"),
        (("a", "b", "c"), (48, 16), ""),
    ],
)
def test_proposals_join_sheets_of_a_character(names: Sequence[str], size: tuple[int, int], says: str) -> None:
    shapes = {SpriteName.of(f"{name}.png"): SheetShape.of(TILES, size) for name in names}
    proposed = propose_sets(shapes, len(names), ())
    assert (proposed.describe() if proposed else "") == says


def test_single_sprites_get_no_grid_from_a_few_sheets() -> None:
    sizes = dict.fromkeys(range(10), (32, 32))
    few = {0: SheetShape.of(TILES, (32, 32))}
    assert with_common_grid(few, sizes) == few and with_common_grid({}, sizes) == {}
