"""Leftover pixels behind a grid, and grids without leftovers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.data.options import SheetGrid
from tests.data.composing import laid
from tests.data.making import Pixels, imported, notes, sprite, write
from tests.data.sheets.test_grids import drawn


def tiles(width: int, height: int, count: int = 16) -> list[Pixels]:
    rng = np.random.default_rng(0)
    return [drawn(rng, width, height) for _ in range(count)]


def left_over(folder: Path, rgba: Pixels, **options: Any) -> str:
    """Return the remark about a sheet cut along a grid; '' without a remark."""
    write(folder / "s.png", rgba)
    return notes(imported(folder, sheets="grid", **options), "left over").get("s.png", "")


def test_a_forgotten_spacing_is_named(tmp_path: Path) -> None:
    sheet = laid(tiles(16, 16), SheetGrid(16, 16, spacing=1), 4)
    said = left_over(tmp_path, sheet, tile=16)
    assert said == "3 px at the right and 3 px at the bottom left over: spacing 1 would fit"
    assert not left_over(tmp_path, sheet, tile=16, spacing=1)


def test_another_tile_size_is_named(tmp_path: Path) -> None:
    sheet = laid(tiles(12, 16), SheetGrid(12, 16), 4)
    assert "tiles of 12 x 16" in left_over(tmp_path, sheet, tile=20, tile_height=16)


@pytest.mark.parametrize("tile", [16, 0])
def test_strip_with_a_rest_names_whole_sizes(tmp_path: Path, tile: int) -> None:
    strip = np.concatenate([sprite(number, 16) for number in range(5)] + [np.full((16, 6, 4), 255, np.uint8)], axis=1)
    said = left_over(tmp_path, strip, tile=tile)
    assert said == "6 px at the right left over: 5 columns end at 80 px, 6 at 96 px"


@pytest.mark.parametrize("seed", [7, 8, 11])
def test_an_uncut_strip_with_a_cut_off_tile_is_reported(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    strip = np.concatenate([drawn(rng, 16, 16) for _ in range(6)], axis=1)[:, :86]
    write(tmp_path / "set" / "s.png", strip)
    words = "86 x 16 pixels, looks like 5 sprites of 16 x 16, 6 px at the right left over"
    assert notes(imported(tmp_path / "set"), "looks like a sheet") == {"s.png": words}
    cut = imported(tmp_path / "set", sheets="grid")
    assert len(cut.sprites) == 5 and notes(cut, "left over")["s.png"].startswith("6 px at the right left over")


def test_background_behind_the_last_tile_is_not_reported(tmp_path: Path) -> None:
    strip = np.pad(np.concatenate([sprite(number, 16) for number in range(5)], axis=1), ((0, 0), (0, 6), (0, 0)))
    assert not left_over(tmp_path, strip, tile=16)


def test_lines_around_the_tiles_are_not_reported(tmp_path: Path) -> None:
    sheet = np.full((69, 69, 4), (0, 0, 90, 255), np.uint8)
    for number, tile in enumerate(tiles(16, 16)):
        y, x = 1 + number // 4 * 17, 1 + number % 4 * 17
        sheet[y : y + 16, x : x + 16] = np.where(tile[..., 3:] > 0, tile, 0)
    assert not left_over(tmp_path, sheet, tile=16, spacing=1, margin=1)
    assert left_over(tmp_path, sheet, tile=16, spacing=1).endswith("left over: margin 1 would fit")
