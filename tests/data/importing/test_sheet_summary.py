"""Classes of sliced sheets, and a prediction for the other images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.data.import_result import NO_SHEETS, SheetSummary
from studio.data.options import ImportOptions, SheetGrid
from tests.data.composing import animated, demo_sprites, laid, trimmed
from tests.data.making import imported, reasons, sprite, write, write_many

_GRID: dict[str, Any] = {"sheets": "grid", "tile": 8}


def strip(path: Path, seed: int) -> None:
    """Write a strip of four sprites of 8 x 8 pixels."""
    write(path, np.concatenate([sprite(4 * seed + number) for number in range(4)], axis=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(("elves/a.png", "elves/b.png", "orcs/c.png")):
        strip(tmp_path / "set" / name, number)
    return tmp_path / "set"


def test_auto_makes_classes_of_several_folders(folder: Path) -> None:
    found = imported(folder, **_GRID)
    assert found.sprites.class_names == ("elves", "orcs") and found.sprites.class_counts().tolist() == [8, 4]
    summary = found.sheet_summary
    assert (summary.classes, summary.folders, summary.sheets) == ("folder", 2, 3)
    assert found.sprites.origin["options"] == {**_GRID, "sheet_classes": "folder"}
    by_sheet = imported(folder, **_GRID, sheet_classes="sheet")
    assert by_sheet.sprites.class_names == ("elves/a", "elves/b", "orcs/c")
    assert by_sheet.sprites.origin["options"] == {**_GRID, "sheet_classes": "sheet"}
    assert imported(folder, **_GRID, sheet_classes="folder", sheet_grids="c.png=8x8").sprites.labels.sum() == 4


def test_auto_makes_classes_of_sheets_in_a_single_folder(folder: Path) -> None:
    found = imported(folder / "elves", **_GRID)
    assert found.sprites.class_names == ("a", "b") and found.sheet_summary.classes == "sheet"
    assert found.sprites.origin["options"]["sheet_classes"] == "sheet"
    (folder / "orcs/c.png").unlink()
    write(folder / "orcs/one.png", sprite(99))  # a folder without sheets does not count
    assert imported(folder, size=8, **_GRID).sprites.class_names == ("elves/a", "elves/b", "orcs")


def test_summary_predicts_the_slicing(tmp_path: Path) -> None:
    folder, drawings = tmp_path / "set", [trimmed(rgba) for rgba in demo_sprites()[::560]][:5]
    for number, one in enumerate(drawings):
        cells = animated(one, 6, 24, 24, np.random.default_rng(number))
        write(folder / "strips" / f"{number}.png", laid(cells, SheetGrid(24, 24), 6))
    large = [cell for one in drawings for cell in animated(one, 9, 24, 24, np.random.default_rng(5))]
    write(folder / "page" / "all.png", laid(large, SheetGrid(24, 24), 9))
    write_many(folder, 2, 24)
    for number in range(2):
        write(folder / "wide" / f"{number}.png", sprite(2 + number, 64, 24))
    for _ in range(2):  # the second time from the cache
        found = imported(folder, cache=tmp_path)
        assert found.sheet_summary == SheetSummary("folder", 2, 6, 24, 2, ((64, 24, 2),), ("page",))
    sliced = imported(folder, sheets="grid")
    assert sliced.sprites.size == 24 and len(reasons(sliced, "wrong size")) == 2
    assert sliced.sprites.class_names == ("page", "set", "strips")
    assert not sliced.sheet_summary.hidden and sliced.sheet_summary.skipped == ((64, 24, 2),)


def test_whole_images_need_no_decision(folder: Path) -> None:
    whole = imported(folder, sheets="grid", tile=32)
    assert whole.sheet_summary == NO_SHEETS and "sheet_classes" not in whole.sprites.origin["options"]
    older = ImportOptions().to_json()
    del older["sheet_classes"]
    assert ImportOptions.from_json(older).sheet_classes == "sheet"  # runs older than 'auto'
