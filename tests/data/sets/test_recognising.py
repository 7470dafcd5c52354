"""Which kind of naming tells the sets, and which names tell none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.generators import run_to_end
from studio.data.options import ReadOptions
from studio.data.sets import recognising
from studio.data.sets.cell_names import CellNames
from studio.data.sets.layout import SetLayout
from studio.data.sets.recognising import find_sets
from studio.data.sets.table import SetTables
from studio.data.sets.words import SpriteName

WHO, VIEWS = ("orc", "elf", "imp"), ("down", "up", "left", "right")


def layout(names: Sequence[str], **options: str) -> SetLayout:
    return run_to_end(find_sets(names, np.arange(len(names)), ReadOptions(**options), SetTables())).layout  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "kind", "cells"),
    [
        ("{view}/{who}.png", "folders", VIEWS),
        ("{who}/{view}.png", "names", VIEWS),
        ("{who}_{view}_1.png|{who}_{view}_2.png", "names", ("down/1", "down/2", "up/1", "up/2")),
        ("{view}/{number}.png", "folders", VIEWS),
        ("{who}/{view}/1.png|{who}/{view}/2.png", "folders", ("down/1", "down/2", "up/1", "up/2")),
        ("{who}.ase#walk-{view} 1", "names", ("down/walk1", "up/walk1", "left/walk1", "right/walk1")),
        ("all.png#{view}/{who}", "names", VIEWS),
    ],
)
def test_auto_finds_sets_in_names(pattern: str, kind: str, cells: Sequence[str]) -> None:
    names = [
        name.format(who=who, view=view, number=number + 1)
        for name in pattern.split("|")
        for number, who in enumerate(WHO)
        for view in VIEWS
    ]
    found = layout(names)
    assert (found.kind, len(found), found.gaps) == (kind, 3, 0)
    assert found.cells[: len(cells)] == tuple(cells)
    assert sorted(found.table.ravel().tolist()) == list(range(len(names)))
    assert not layout(names, sets="off") and layout(names, sets=kind)


def test_auto_leaves_other_names_alone() -> None:
    bricks = [f"wall/brick_{number}.png" for number in range(20)]
    sets = [f"{who}_{view}.png" for who in WHO for view in VIEWS]
    for names in (
        bricks,
        [*sets, *bricks],
        sets[:8],
        [f"{who}/{number}.png" for who in WHO for number in range(9)],
        [],
    ):
        assert not layout(names)
    assert len(layout([*sets, *bricks], sets="names")) == 3


def test_folders_with_names_of_the_users_own() -> None:
    names = [f"hero/{view}/{number}.png" for view in ("A", "b", "B10", "B9") for number in range(3)]
    assert not layout(names)
    found = layout(names[1:], sets="folders")
    assert found.cells == ("A", "B9", "B10", "b") and found.gaps == 1
    assert layout(names[:6], sets="folders", rows="b,A").cells == ("b", "A")


def test_rows_and_columns_name_order_and_choose_cells() -> None:
    names = [f"{who}.png#r{row} c{column}" for who in WHO for row in (1, 2) for column in (1, 2, 3)]
    assert layout(names).cells == ("row1/1", "row1/2", "row1/3", "row2/1", "row2/2", "row2/3")
    named = layout(names, rows="down, up", columns="stand,step")
    assert named.cells == ("down/stand", "down/step", "down/3", "up/stand", "up/step", "up/3")
    assert named.kind == layout(names, sets="sheets").kind == "sheets"
    views = [f"{who}_{view}.png" for who in WHO for view in VIEWS]
    assert layout(views, rows="left,Down").cells == ("left", "Down")


def test_the_first_sprite_of_a_cell_counts() -> None:
    names = [f"{who}{ending}" for who in WHO for ending in ("_left.png", "_right.png", "-left.gif", ".png")]
    found = layout(names, sets="names")
    assert found.table.tolist() == [[4, 5], [8, 9], [0, 1]] and found.sets == ("elf", "imp", "orc")


@pytest.mark.parametrize(
    ("text", "says"),
    [("a,,b", "missing"), ("a/b", "slash"), ("a,b,a", "'a' is there twice"), ("a=b,a=c", "renamed twice")],
)
def test_unusable_names_of_cells(text: str, says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        CellNames.parse(text, "Rows")


def test_rare_cells_are_left_out_of_a_huge_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognising, "_LARGEST_TABLE", 7)
    names = [f"{who}_{view}.png" for who in WHO for view in VIEWS]
    assert layout([*names[1:], "orc_side.png"]).cells == ("up", "left")


def test_a_large_import_without_words_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognising, "_SAMPLE", 10)
    monkeypatch.setattr(SpriteName, "of", None)
    assert not layout([f"undead/upper_{number}.png" for number in range(100)])
