"""Sheets of sets, as other programs read their JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from tests.exports.sprites.making import BLUE, GREEN, RED, of_colours, written

SPRITES = of_colours(RED, GREEN, BLUE)
WALK = ("down/stand", "down/step", "up/stand", "up/step")


@pytest.mark.parametrize("form", ["sheet", "indexed_sheet"])
def test_each_view_has_a_row_and_a_tag(form: str, tmp_path: Path) -> None:
    cells = Cells(WALK, np.array([[0, 1, 0, GAP], [GAP, 2, 1, 0]], np.int32), ("orc", "big/elf"))
    path = written(form, SpriteSet(SPRITES, cells=cells, own_durations_ms=[70, 80, 90]), tmp_path)
    with Image.open(path) as image:
        sheet = np.asarray(image.convert("RGBA")).reshape(4, 6, 2, 6, 4).swapaxes(1, 2)
    drawn = {(y, x): sheet[y, x].tobytes() for y in range(4) for x in range(2) if sheet[y, x].any()}
    expected = {(0, 0): 0, (0, 1): 1, (1, 0): 0, (2, 1): 2, (3, 0): 1, (3, 1): 0}
    assert drawn == {place: SPRITES[index].tobytes() for place, index in expected.items()}
    about = json.loads(path.with_suffix(".json").read_text())
    assert [(frame["filename"], frame["duration"]) for frame in about["frames"]] == [
        ("orc/down/stand", 70), ("orc/down/step", 80), ("orc/up/stand", 70),
        ("big/elf/down/step", 90), ("big/elf/up/stand", 80), ("big/elf/up/step", 70),
    ]  # fmt: skip
    boxes = [(frame["frame"]["y"] // 6, frame["frame"]["x"] // 6) for frame in about["frames"]]
    assert boxes == list(expected)
    assert about["meta"]["size"] == {"w": 12, "h": 24}
    assert [(tag["name"], tag["from"], tag["to"], tag["direction"]) for tag in about["meta"]["frameTags"]] == [
        ("orc_down", 0, 1, "forward"), ("orc_up", 2, 2, "forward"),
        ("big/elf_down", 3, 3, "forward"), ("big/elf_up", 4, 5, "forward"),
    ]  # fmt: skip


def test_a_single_set_needs_no_name(tmp_path: Path) -> None:
    given = SpriteSet(SPRITES, cells=Cells(("front", "left/1", "left/2"), np.array([[2, 1, 0]], np.int32), ("orc",)))
    about = json.loads(written("sheet", given, tmp_path).with_suffix(".json").read_text())
    assert [frame["filename"] for frame in about["frames"]] == ["front", "left/1", "left/2"]
    assert [tag["name"] for tag in about["meta"]["frameTags"]] == ["front", "left"]


def test_without_cells_there_are_no_tags(tmp_path: Path) -> None:
    about = json.loads(written("sheet", SpriteSet(SPRITES), tmp_path).with_suffix(".json").read_text())
    assert list(about["meta"]) == ["app", "image", "format", "size", "scale"]
