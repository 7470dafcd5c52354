"""Sprites keep their place in a set through import, duplicates, fixes, split and cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice
from studio.core.generators import run_to_end
from studio.data.doctor.findings import list_findings
from studio.data.importing.importing import SpritesImported
from studio.data.options import ImportOptions
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sprites import Sprites
from tests.data.making import events_of, everything, imported, notes, sprite, write

WHO = ("elf", "imp", "orc", "pig")


@pytest.fixture
def sheets(tmp_path: Path) -> Path:
    """Sheets of four rows and three columns, whose last column repeats the first."""
    for number, who in enumerate(WHO):
        rows = [[sprite(20 * number + 3 * row + column, 16) for column in (0, 1, 0)] for row in range(4)]
        write(tmp_path / "all" / f"{who}.png", np.concatenate([np.concatenate(row, axis=1) for row in rows]))
    return tmp_path / "all"


@pytest.fixture
def views(tmp_path: Path) -> Path:
    """A file for each view; 'pig' has no right view."""
    for number, who in enumerate(WHO):
        for view in ("left", "up", "right")[: 2 + (who != "pig")]:
            write(tmp_path / "all" / f"{who}_{view}.png", sprite(10 * number + len(view)))
    return tmp_path / "all"


def cell_names(sprites: Sprites) -> dict[str, list[str]]:
    table = sprites.sets.table.tolist()
    return {
        name: [sprites.names[at] if at >= 0 else "" for at in own]
        for name, own in zip(sprites.sets.sets, table, strict=True)
    }


def test_auto_changes_nothing_but_the_places(views: Path) -> None:
    plain, found = imported(views, sets="off"), imported(views)
    assert everything(plain) == everything(found) and not plain.sprites.sets
    assert plain.sprites.groups.tolist() == found.sprites.groups.tolist()
    sets = found.sprites.sets
    assert sets.describe() == "4 characters with 3 views: up, left, right" and sets.gaps == 1
    assert not sets.chosen and imported(views, sets="names").sprites.sets.chosen
    assert cell_names(found.sprites)["pig"] == ["pig_up.png", "pig_left.png", ""]


def test_unsliced_sheets_are_proposed(sheets: Path, tmp_path: Path) -> None:
    found = imported(sheets, cache=tmp_path / "cache")
    assert not found.sprites.sets and found.proposed_sets is not None
    assert found.proposed_sets.describe() == "4 characters with 4 views x 3 frames: row1, row2, row3, row4"
    again = imported(sheets, cache=tmp_path / "cache")
    assert again.from_cache and again.proposed_sets == found.proposed_sets
    assert imported(sheets, sets="off").proposed_sets is None
    (sheets / "sets.csv").write_text("file,set,cell\n../x.png,a,b\n")
    broken = imported(sheets)
    assert broken.proposed_sets == found.proposed_sets and "line 2" in notes(broken, "sets")["sets.csv"]
    (sheets / "sets.csv").write_text("elf.png,a,left\nimp.png,a,right")
    assert imported(sheets).sprites.sets.kind == "csv"


def test_sheets_too_large_for_sprites_are_proposed(tmp_path: Path) -> None:
    for number, who in enumerate(WHO):
        rows = [[sprite(20 * number + row, 32)] * 9 for row in range(4)]
        write(tmp_path / f"{who}.png", np.concatenate([np.concatenate(row, axis=1) for row in rows]))
    with pytest.raises(BadInputError, match="look like 4 characters with 4 views x 9 frames") as error:
        imported(tmp_path)
    assert "--sets sheets" in error.value.hint


def test_sheets_are_sliced_and_repeated_frames_keep_their_cells(sheets: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"sets": "sheets", "rows": "down,up,left,right", "columns": "stand,step,stand2"}
    found = imported(sheets, cache=tmp_path / "cache", **options)
    assert len(found.sprites) == 32 and len(found.quarantine) == 16  # equal pixels are imported once
    assert found.sprites.sets.gaps == 0 and found.sprites.sets.chosen and found.proposed_sets is None
    stand, step, again = cell_names(found.sprites)["elf"][:3]
    assert stand == again == "elf.png#r1 c1" and step == "elf.png#r1 c2"
    assert found.sprites.origin["options"]["sheets"] == "grid"
    assert found.sprites.class_names == ("all",)  # with a class per sheet, no sheet could be held out
    (sliced,) = (each for each in list_findings(found, ImportOptions(**options)) if each.group == "cut sheet")
    assert imported(sheets, **{**options, **sliced.fixes[0].changes}).sprites.names == tuple(
        f"{who}.png" for who in WHO
    )
    second = imported(sheets, cache=tmp_path / "cache", **options)
    assert second.from_cache and second.sprites.sets.digest == found.sprites.sets.digest


def test_excluded_sprites_leave_gaps(sheets: Path) -> None:
    first = imported(sheets, sets="sheets", leave_out="elf.png#r1 c1;pig.png*")
    assert cell_names(first.sprites)["elf"][:3] == ["", "elf.png#r1 c2", "elf.png#r1 c3"]
    assert first.sprites.sets.sets == ("elf", "imp", "orc")
    copy = imported(sheets, sets="sheets", leave_out="elf.png#r1 c3")
    assert cell_names(copy.sprites)["elf"][:3] == ["elf.png#r1 c1", "elf.png#r1 c2", ""]


def test_sprites_made_equal_share_a_cell_and_similar_frames_stay(tmp_path: Path) -> None:
    for who in WHO:
        for view, change in (("left", 0), ("right", 40)):
            drawing = sprite(WHO.index(who), 16)
            drawing[8, 8, 3] -= change
            write(tmp_path / "all" / f"{who}_{view}.png", drawing)
    folder = tmp_path / "all"
    equal = imported(folder, alpha_threshold=128)
    assert len(equal.sprites) == 4 and equal.sprites.sets.gaps == 0
    assert len(imported(folder, similar="leave out").sprites) == 4
    assert len(imported(folder, similar="leave out", sets="names").sprites) == 8


def test_chosen_sets_are_held_out_whole_with_their_copies(views: Path) -> None:
    recoloured = sprite(4)
    recoloured[..., :3] = (recoloured[..., :3] + 5) * (recoloured[..., 3:] > 0)
    write(views / "red_left.png", recoloured)  # 'elf' in other colours
    write(views / "red_up.png", sprite(99))
    sprites = imported(views, sets="names").sprites
    groups = run_to_end(group_near_duplicates(sprites, None)).groups
    of = dict(zip(sprites.names, groups.tolist(), strict=True))
    assert of["elf_left.png"] == of["elf_right.png"] == of["red_left.png"] == of["red_up.png"]
    assert len({*of.values()}) == 4


def test_sets_csv(views: Path) -> None:
    (views / "sets.csv").write_text("file,set,cell\nelf_left.png,1,front\nimp_left.png,1,back\nelf_left.png,2,front\n")
    found = imported(views)
    assert cell_names(found.sprites) == {"1": ["elf_left.png", "imp_left.png"]} and found.sprites.sets.chosen
    assert notes(found, "sets") == {"sets.csv": "line 4: 'elf_left.png' already has a row: line 2"}
    assert len(found.sprites) == 11 and imported(views, sets="names").sprites.sets.kind == "names"
    assert not notes(imported(views, sets="off"), "sets")


def test_kinds_without_sets_are_said(views: Path) -> None:
    for kind in ("folders", "sheets", "csv"):
        events = events_of(views, sets=kind)
        assert [event.title for event in events if isinstance(event, Notice)] == [f"No sets were found by {kind}."]
        assert isinstance(events[-1], SpritesImported)
    with pytest.raises(BadInputError, match="twice"):
        events_of(views, rows="a,a")
