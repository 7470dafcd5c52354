"""Grids detected from pixels, for sheets composed of known tiles, and their sliced cells."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.random import Generator

from studio.data.files.source_files import SourceImage
from studio.data.options import ImportOptions, SheetGrid
from studio.data.sheets.cells import SummedAreaTable, find_cells
from studio.data.sheets.grids import propose_grid
from studio.data.sheets.slicing import grid_from_options, slice_sheet
from tests.data.composing import demo_sheets, laid
from tests.data.making import Pixels

SIZES = [(8, 8), (16, 16), (32, 32), (16, 24), (32, 16), (48, 32)]
# Left, top, spacing, and what is left behind an equal margin.
PLACES = [(0, 0, 0, 0), (1, 1, 1, 0), (0, 0, 2, 0), (2, 2, 2, 0), (4, 4, 0, 0), (3, 5, 1, 0), (5, 2, 0, 3)]


def drawn(rng: Generator, width: int, height: int, *, opaque: bool = False) -> Pixels:
    """Draw an outlined blob in three flat colours, which may touch the tile's border; opaque: with a ground colour."""
    y, x = np.mgrid[:height, :width]
    middle_x, middle_y = width / 2 - 0.5 + rng.uniform(-1, 1), height / 2 - 0.5 + rng.uniform(-1, 1)
    wide, high = width * rng.uniform(0.35, 0.55), height * rng.uniform(0.35, 0.55)
    angle = np.arctan2(y - middle_y, x - middle_x)
    lobes = 1 + 0.15 * np.sin(angle * rng.integers(2, 6) + rng.uniform(0, 6))
    far = np.hypot((x - middle_x) / wide, (y - middle_y) / high) / lobes
    rgba = np.zeros((height, width, 4), np.uint8)
    if opaque:
        rgba[:] = (*rng.integers(0, 255, 3), 255)
    for reach in (1.0, 0.8, 0.45):
        rgba[far < reach] = (*rng.integers(0, 255, 3), 255)
    return rgba


def assembled(
    rng: Generator, grid: SheetGrid, columns: int, rows: int, *, rest: int = 0, opaque: bool = False
) -> Pixels:
    """A sheet with equal margins and some rest behind them, one place in eight left empty."""
    width, height = grid.tile_width, grid.tile_height
    empty = np.zeros((height, width, 4), np.uint8)
    cells = [drawn(rng, width, height, opaque=opaque) if rng.random() > 0.125 else empty for _ in range(columns * rows)]
    return np.pad(laid(cells, grid, columns), ((0, rest), (0, rest), (0, 0)))


def proposed(rgba: Pixels, least_confidence: float = 0) -> SheetGrid | None:
    grid = propose_grid(rgba)
    assert grid is None or grid.confidence > least_confidence
    return grid and replace(grid, confidence=1.0)


def test_grids_of_composed_sheets() -> None:
    rng = np.random.default_rng(5)
    cases = list(product(SIZES, PLACES))
    wrong = []
    for number, ((width, height), (left, top, spacing, rest)) in enumerate(cases):
        grid = SheetGrid(width, height, left, top, spacing)
        found = proposed(assembled(rng, grid, 6, 4, rest=rest, opaque=number % 2 == 1))
        wrong += [] if found == grid else [(grid, found)]
    assert len(cases) == 42 and len(wrong) <= 1, wrong


def test_grids_of_the_demo_sheets() -> None:
    for rgba, frames in demo_sheets():
        assert proposed(rgba, least_confidence=0.9) == SheetGrid(frames[0]["w"], frames[0]["h"])


def test_a_strip_and_drawn_lines() -> None:
    rng = np.random.default_rng(1)
    strip = propose_grid(assembled(rng, SheetGrid(16, 24), 8, 1))
    assert strip is not None and (strip.tile_width, strip.tile_height) == (16, 24)
    lined = assembled(rng, SheetGrid(16, 16, 1, 1, 1), 6, 5)
    lined[::17] = lined[:, ::17] = (90, 90, 90, 255)
    assert proposed(lined) == SheetGrid(16, 16, 1, 1, 1)


def test_no_grid_without_evidence() -> None:
    rng = np.random.default_rng(2)
    seen = [propose_grid(drawn(rng, size, size)) for size in (16, 32, 48) for _ in range(6)]
    assert sum(grid is not None for grid in seen) <= 1
    noise = np.full((64, 64, 4), 255, np.uint8)
    noise[..., :3] = rng.integers(0, 255, (64, 64, 3))
    for rgba in (noise, noise[:1], np.zeros((64, 64, 4), np.uint8), np.full((64, 64, 4), 255, np.uint8), noise[:3, :3]):
        assert propose_grid(rgba) is None


def scattered(seed: int, height: int, width: int, background: tuple[int, ...]) -> Pixels:
    rng = np.random.default_rng(seed)
    rgba = np.full((height, width, 4), background, np.uint8)
    for y, x in rng.integers(1, (height - 1, width - 1), (14, 2)).tolist():
        rgba[y, x] = (*rng.integers(0, 200, 3).tolist(), 255)
    return rgba


@pytest.mark.parametrize("background", [(0, 0, 0, 0), (255, 0, 255, 255)])
@pytest.mark.parametrize(
    "grid",
    [
        SheetGrid(8, 8),
        SheetGrid(5, 7, 3, 3, 2),
        SheetGrid(16, 4, 0, 5, 1),
        SheetGrid(64, 48),
        SheetGrid(1, 1, 2, 2, 3),
        SheetGrid(65, 8),
    ],
)
def test_cells_equal_a_slow_search(grid: SheetGrid, background: tuple[int, ...]) -> None:
    rgba = scattered(grid.tile_width, 48, 64, background)
    tops = range(grid.top, 48 - grid.tile_height + 1, grid.tile_height + grid.spacing)
    lefts = range(grid.left, 64 - grid.tile_width + 1, grid.tile_width + grid.spacing)
    expected = [
        [bool((rgba[y : y + grid.tile_height, x : x + grid.tile_width] != background).any()) for x in lefts]
        for y in tops
    ]
    cells = find_cells(grid, SummedAreaTable.of(rgba))
    assert cells.tops.tolist() == list(tops) and cells.lefts.tolist() == list(lefts)
    assert cells.filled.tolist() == expected
    assert cells.sprites == sum(map(sum, expected)) and cells.empty == len(tops) * len(lefts) - cells.sprites


def test_filled_cells_are_sliced() -> None:
    options = ImportOptions(sheets="grid", tile=9, tile_height=7, margin=2, spacing=1)
    rgba = scattered(3, 60, 80, (0, 0, 0, 0))
    cells = find_cells(grid_from_options(options), SummedAreaTable.of(rgba))
    places = [(cells.tops[row], cells.lefts[column]) for row, column in np.argwhere(cells.filled)]
    cut = slice_sheet(SourceImage(rgba.copy()), "s", options)
    assert len(cut) == len(places) > 3 and cells.empty
    for picture, (y, x) in zip(cut, places, strict=True):
        assert (picture.rgba == rgba[y : y + 7, x : x + 9]).all()
