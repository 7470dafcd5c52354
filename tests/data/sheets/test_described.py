"""Descriptions for another picture size, for a part of a sheet, or with repeated frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.core.generators import run_to_end
from studio.data.importing.sheet_preview import load_sheet_preview
from studio.data.options import SheetGrid
from tests.data.composing import laid
from tests.data.making import Pixels, frame, imported, notes, sprite, write, write_sheet

TWO = [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)]
SHEET = np.concatenate([sprite(0), sprite(1)], axis=1)


def described(folder: Path, rgba: Pixels, *, width: int = 16, height: int = 8, frames: Any = TWO) -> None:
    """Write a sheet with a description for another picture size."""
    write(folder / "s.png", rgba)
    meta = {"image": "s.png", "size": {"w": width, "h": height}}
    (folder / "s.json").write_text(json.dumps({"frames": frames, "meta": meta}))


@pytest.mark.parametrize("factor", [2, 3])
def test_sheet_upscaled_after_export(tmp_path: Path, factor: int) -> None:
    described(tmp_path / "set", SHEET.repeat(factor, 0).repeat(factor, 1))
    event = imported(tmp_path / "set", shrink=factor)
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all()
    assert f"scaled by {factor}" in notes(event, "description")["s.png"]


def test_sheet_downscaled_after_export(tmp_path: Path) -> None:
    described(tmp_path / "set", SHEET[::2, ::2])
    event = imported(tmp_path / "set", size=4)
    assert (event.sprites.rgba == [sprite(0)[::2, ::2], sprite(1)[::2, ::2]]).all()
    assert "scaled by 1/2" in notes(event, "description")["s.png"]


def test_a_sheet_of_an_odd_size_stays_whole(tmp_path: Path) -> None:
    described(tmp_path / "set", SHEET[::2, ::2], frames=[frame("a", 0, 0, 7, 7)])
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("s.png",) and "fractions of pixels" in notes(event, "description")["s.png"]


@pytest.mark.parametrize("shape", [(16, 32), (20, 20)])
def test_a_sheet_whose_canvas_was_extended(tmp_path: Path, shape: tuple[int, int]) -> None:
    larger = np.zeros((*shape, 4), np.uint8)
    larger[:8, :16] = SHEET
    described(tmp_path / "set", larger)
    event = imported(tmp_path / "set")
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all()
    assert "frames were used unscaled" in notes(event, "description")["s.png"]


def test_a_described_size_that_contradicts_the_frames_is_ignored(tmp_path: Path) -> None:
    described(tmp_path / "set", SHEET, width=8, height=4)
    event = imported(tmp_path / "set")
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all() and not notes(event, "description")


def test_frames_sharing_a_cell_count_once(tmp_path: Path) -> None:
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


TILESET = laid([sprite(number, 16) for number in range(16)], SheetGrid(16, 16), 4)


def coin_of_a_tileset(folder: Path) -> None:
    """Write a sheet of 16 tiles with a description of the second tile."""
    write_sheet(folder / "tiles.png", TILESET, [frame("coin", 16, 0, 16, 16)])


def test_the_undescribed_tiles_are_reported_and_can_be_cut(tmp_path: Path) -> None:
    coin_of_a_tileset(tmp_path)
    event = imported(tmp_path)
    assert event.sprites.names == ("tiles.png#coin",)
    said = notes(event, "partly described")["tiles.png"]
    assert "1 sprite described in tiles.json" in said and "15 more sprites of 16 x 16" in said
    assert [(sheet.name, sheet.sprites) for sheet in event.sheets] == [("tiles.png", 15)]
    for tile in (0, 16):
        cut = imported(tmp_path, sheets="grid", tile=tile)
        assert len(cut.sprites) == 16 and "tiles.png#coin" in cut.sprites.names and not cut.quarantine
        assert cut.sprites.class_names == ("tiles",) and not notes(cut, "partly described")


def test_the_cut_preview_shows_only_undescribed_tiles(tmp_path: Path) -> None:
    coin_of_a_tileset(tmp_path)
    sheet = run_to_end(load_sheet_preview([tmp_path], "tiles.png"))
    assert sheet.proposed is not None and (sheet.proposed.tile_width, sheet.proposed.tile_height) == (16, 16)
    assert not sheet.rgba[:16, 16:32].any() and (sheet.rgba[16:] == TILESET[16:]).all()


def test_the_ground_of_an_opaque_tileset_covers_the_described_tile(tmp_path: Path) -> None:
    ground = np.array((40, 90, 60, 255), np.uint8)
    opaque = np.where(TILESET[..., 3:] > 0, TILESET, ground)
    write_sheet(tmp_path / "tiles.png", opaque, [frame("coin", 16, 0, 16, 16)])
    assert len(imported(tmp_path, sheets="grid", tile=16).sprites) == 16


def test_extruded_edges_are_not_reported(tmp_path: Path) -> None:
    extruded = np.pad(sprite(0)[1:-1, 1:-1], ((2, 2), (2, 2), (0, 0)), mode="edge")
    sheet = np.concatenate([extruded, extruded[::-1]], axis=1)
    write_sheet(tmp_path / "s.png", sheet, [frame("a", 2, 2, 6, 6), frame("b", 12, 2, 6, 6)])
    event = imported(tmp_path)
    assert len(event.sprites) == 2 and not notes(event, "partly described")
