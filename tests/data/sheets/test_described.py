"""Sheets whose descriptions are about another size, about a part of them, or repeat themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.making import Pixels, frame, imported, notes, sprite, write, write_sheet

TWO = [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)]
SHEET = np.concatenate([sprite(0), sprite(1)], axis=1)


def described(folder: Path, rgba: Pixels, *, width: int = 16, height: int = 8, frames: Any = TWO) -> None:
    """Write a sheet with a description of a picture of another size."""
    write(folder / "s.png", rgba)
    meta = {"image": "s.png", "size": {"w": width, "h": height}}
    (folder / "s.json").write_text(json.dumps({"frames": frames, "meta": meta}))


@pytest.mark.parametrize("factor", [2, 3])
def test_a_sheet_that_was_enlarged_after_its_export(tmp_path: Path, factor: int) -> None:
    described(tmp_path / "set", SHEET.repeat(factor, 0).repeat(factor, 1))
    event = imported(tmp_path / "set", shrink=factor)
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all()
    assert f"scaled by {factor}" in notes(event, "description")["s.png"]


def test_a_sheet_that_was_shrunk_after_its_export(tmp_path: Path) -> None:
    described(tmp_path / "set", SHEET[::2, ::2])
    event = imported(tmp_path / "set", size=4)
    assert (event.sprites.rgba == [sprite(0)[::2, ::2], sprite(1)[::2, ::2]]).all()
    assert "scaled by 1/2" in notes(event, "description")["s.png"]


def test_a_sheet_of_an_odd_size_stays_whole(tmp_path: Path) -> None:
    described(tmp_path / "set", SHEET[::2, ::2], frames=[frame("a", 0, 0, 7, 7)])
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("s.png",) and "whole pixels" in notes(event, "description")["s.png"]


@pytest.mark.parametrize("shape", [(16, 32), (20, 20)])
def test_a_sheet_whose_canvas_was_extended(tmp_path: Path, shape: tuple[int, int]) -> None:
    larger = np.zeros((*shape, 4), np.uint8)
    larger[:8, :16] = SHEET
    described(tmp_path / "set", larger)
    event = imported(tmp_path / "set")
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all()
    assert "taken as they are" in notes(event, "description")["s.png"]


def test_a_size_that_the_frames_contradict_is_not_believed(tmp_path: Path) -> None:
    described(tmp_path / "set", SHEET, width=8, height=4)
    event = imported(tmp_path / "set")
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all() and not notes(event, "description")


def test_frames_that_share_a_cell_count_once(tmp_path: Path) -> None:
    frames = [frame(f"f {number}", 8 * (number % 2), 0, 8, 8) for number in range(20)]
    write_sheet(tmp_path / "set" / "s.png", SHEET, frames)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png#f 0", "s.png#f 1") and not event.notes
    assert {item.group for item in event.quarantine} == {"duplicate"}


def test_a_description_that_fits_nowhere_leaves_the_picture_whole(tmp_path: Path) -> None:
    write_sheet(tmp_path / "set" / "s.png", SHEET, [frame("a", 40, 0, 8, 8), frame("b", 48, 0, 8, 8)])
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("s.png",) and not event.quarantine
    assert "lies outside" in notes(event, "description")["s.png"]
