"""New names of views and frames become import options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.options import ImportOptions
from studio.data.sets.layout import SetLayout
from studio.data.sets.renaming import name_position, with_name

NAMED = ImportOptions(rows="down,up")
SPRITES = [f"orc.png#r{row} c{column}" for row in (1, 2, 3) for column in (1, 2)]


def layout_of_sheets(*rows: str) -> SetLayout:
    """One set with two frames in each of three views."""
    cells = tuple(f"{row}/{column}" for row in rows for column in (1, 2))
    return SetLayout(cells, ("orc",), np.arange(6, dtype=np.int32).reshape(1, 6), "sheets")


def test_names_of_sheets_have_positions() -> None:
    layout = layout_of_sheets("down", "up", "row3")
    assert [name_position(layout, SPRITES, NAMED, "rows", name) for name in ("down", "up", "row3", "x")] == [
        0,
        1,
        2,
        -1,
    ]
    assert [name_position(layout, SPRITES, NAMED, "columns", name) for name in ("1", "walk1")] == [0, -1]


def test_names_from_files_are_fixed() -> None:
    layout = layout_of_sheets("down", "up", "left")
    assert name_position(replace(layout, kind="folders"), SPRITES, NAMED, "rows", "down") == -1
    strips = [f"orc_{row}.png#r1 c{column}" for row in ("down", "up", "left") for column in (1, 2)]
    assert name_position(layout, strips, NAMED, "rows", "down") == -1
    assert name_position(layout, strips, NAMED, "columns", "2") == 1


@pytest.mark.parametrize(
    ("axis", "position", "text", "named"),
    [
        ("rows", 2, "left", "down,up,left"),
        ("rows", 0, " front , back", "front,back"),
        ("rows", 1, "row2", "down"),
        ("columns", 1, "step", "1,step"),
    ],
)
def test_a_name_becomes_an_option(axis: str, position: int, text: str, named: str) -> None:
    changed = with_name(NAMED, axis, position, text, 3)  # type: ignore[arg-type]  # a parameter
    assert getattr(changed, axis) == named and changed == NAMED.replace(**{axis: named})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a name is missing"),
        ("up", "'up' is there twice"),
        ("a/b", "'a/b' holds a slash"),
        ("left,right", "2 names for 1 view"),
    ],
)
def test_impossible_names_are_refused(text: str, reason: str) -> None:
    with pytest.raises(BadInputError, match=f"Names of views: {reason}"):
        with_name(NAMED, "rows", 2, text, 3)
