"""PNG files named after cells, in folders for sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from studio.exports.sprites.png_files import save_png_files
from tests.exports.sprites.making import BLUE, GREEN, RED, of_colours

SPRITES = of_colours(RED, GREEN, BLUE, RED)


def saved(folder: Path, cells: Cells) -> list[str]:
    paths = save_png_files(folder, SpriteSet(SPRITES, cells=cells, about={"model": "m"}))
    return [path.relative_to(folder).as_posix() for path in paths]


def test_a_file_for_each_cell(tmp_path: Path) -> None:
    cells = Cells(("front", "down/step", "back"), np.array([[2, 0, GAP]], np.int32))
    assert saved(tmp_path / "hero", cells) == ["front.png", "down-step.png"]
    with Image.open(tmp_path / "hero/front.png") as image:
        assert np.array_equal(np.asarray(image), SPRITES[2]) and image.text["model"] == "m"  # type: ignore[attr-defined]
    assert saved(tmp_path / "hero", cells) == ["2/front.png", "2/down-step.png"]
    assert saved(tmp_path / "hero", Cells.full(("back",), 1)) == ["back.png"]


@pytest.mark.parametrize(
    ("sets", "first", "again"),
    [
        ((), ["1/a.png", "1/b.png", "2/a.png", "2/b.png"], ["3/a.png", "3/b.png", "4/a.png", "4/b.png"]),
        (
            ("orc", "orc/2"),
            ["orc/a.png", "orc/b.png", "orc/2/a.png", "orc/2/b.png"],
            ["orc-2/a.png", "orc-2/b.png", "orc/2-2/a.png", "orc/2-2/b.png"],
        ),
        (
            ("../CON", "Orc:"),
            ["unnamed/_CON/a.png", "unnamed/_CON/b.png", "Orc_/a.png", "Orc_/b.png"],
            ["unnamed/_CON-2/a.png", "unnamed/_CON-2/b.png", "Orc_-2/a.png", "Orc_-2/b.png"],
        ),
    ],
)
def test_a_folder_for_each_set(sets: Sequence[str], first: list[str], again: list[str], tmp_path: Path) -> None:
    cells = Cells.full(("a", "b"), 4, sets)
    assert saved(tmp_path, cells) == first
    assert saved(tmp_path, cells) == again
    assert len(list(tmp_path.rglob("*.png"))) == 8


def test_files_without_cells_have_names_or_classes(tmp_path: Path) -> None:
    named = save_png_files(tmp_path / "a", SpriteSet(SPRITES[:2], ["big orc", "elf"]))
    by_class = save_png_files(tmp_path / "b", SpriteSet(SPRITES, classes=["x/cup", "", "cup", "cup"]))
    unnamed = save_png_files(tmp_path / "c", SpriteSet(SPRITES[:1]))
    assert [path.stem for path in named] == ["big-orc", "elf"]
    assert [path.stem for path in by_class] == ["cup-1", "sprite-2", "cup-3", "cup-4"]
    assert [path.stem for path in unnamed] == ["sprite-1"]
