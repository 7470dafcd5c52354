"""New names of views and frames become import options."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.generators import run_to_end
from studio.data.options import ImportOptions
from studio.data.sets.recognising import find_sets
from studio.data.sets.renaming import Axis, CellRenamer
from studio.data.sets.table import SetTables

NAMED = ImportOptions(rows="down,up")
SHEETS = [f"{who}.png#r{row} c{column}" for who in ("elf", "imp", "orc") for row in (1, 2, 3) for column in (1, 2)]
STRIPS = [f"{who}_{row}.png#r1 c{column}" for who in "abc" for row in ("down", "up") for column in (1, 2)]
FILES = [f"{who}_{view}_walk{frame}.png" for who in "abc" for view in ("front", "back") for frame in (1, 2)]
MIXED = [*FILES, *(name.replace("front", "down") for name in FILES)]  # 'a_down_walk1.png' ...


def renamer(names: Sequence[str], options: ImportOptions, latest: ImportOptions | None = None) -> CellRenamer:
    """Return a renamer of the sets in `names`, found with `options`."""
    found = run_to_end(find_sets(names, np.arange(len(names)), options, SetTables()))
    return CellRenamer(found.layout, names, options, latest or options)


@pytest.mark.parametrize(
    ("names", "axis", "name", "text", "becomes"),
    [
        (SHEETS, "rows", "row3", "left", "down,up,left"),
        (SHEETS, "rows", "down", " front , back", "front,back"),
        (SHEETS, "rows", "up", "row2", "down"),
        (SHEETS, "columns", "2", "step", "1,step"),
        (STRIPS, "rows", "up", "back", "down,up,up=back"),
        (STRIPS, "columns", "1", "stand,step", "stand,step"),
    ],
)
def test_a_name_becomes_an_option(names: Sequence[str], axis: Axis, name: str, text: str, becomes: str) -> None:
    made = renamer(names, NAMED)
    assert not made.why_fixed(axis, name)
    changed = made.rename(axis, name, text)
    assert changed == NAMED.replace(**{axis: becomes})
    again = renamer(names, NAMED, changed)
    assert again.shown_name(axis, name) == text.split(",", maxsplit=1)[0].strip()


def test_names_from_files_are_renamed_again_and_back() -> None:
    first = renamer(FILES, ImportOptions()).rename("rows", "front", "down,up")
    assert first.rows == "front=down,back=up" and renamer(FILES, first).layout.rows == ("down", "up")
    second = renamer(FILES, first).rename("rows", "up", "rear")
    assert second.rows == "front=down,back=rear"
    assert renamer(FILES, second).rename("rows", "down", "front").rows == "back=rear"
    running = renamer(FILES, ImportOptions(), first)  # while the import of `first` runs
    assert running.shown_name("rows", "back") == "up" and running.rename("rows", "back", "rear") == second
    frames = renamer(FILES, first).rename("columns", "walk2", "step")
    found = renamer(FILES, frames).layout
    assert found.cells == ("down/walk1", "down/step", "up/walk1", "up/step") and found.gaps == 0


def test_equal_names_join_views_that_no_character_has_both_of() -> None:
    names = [name for name in MIXED if ("front" in name) == name.startswith("a") or "back" in name]
    made = renamer(names, ImportOptions())
    assert made.layout.rows == ("down", "front", "back") and made.layout.gaps
    joined = made.rename("rows", "front", "down")
    assert joined.rows == "down=down,front=down"
    again = renamer(names, joined)
    assert again.layout.rows == ("down", "back") and not again.layout.gaps
    assert again.rename("rows", "down", "south").rows == "down=south,front=south"
    with pytest.raises(BadInputError, match="3 characters would have 'down' twice"):
        renamer(MIXED, ImportOptions()).rename("rows", "front", "down")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a name is missing"),
        ("up", "'up' is there twice"),
        ("a/b", "'a/b' holds a slash"),
        ("a=b", "'a=b' holds an equals sign"),
        ("left,right", "2 names for 1 view"),
    ],
)
def test_impossible_names_are_refused(text: str, reason: str) -> None:
    with pytest.raises(BadInputError, match=f"Names of views: {reason}"):
        renamer(SHEETS, NAMED).rename("rows", "row3", text)


def test_unusual_names_say_why_they_stay() -> None:
    folders = [f"{view}/{who}.png" for view in ("a,b", "c") for who in "xyz"]
    made = renamer(folders, ImportOptions(sets="folders"))
    assert "comma" in made.why_fixed("rows", "a,b") and not made.why_fixed("rows", "c")
