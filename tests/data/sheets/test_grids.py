"""Grids told from pixels, against sheets that were put together from known tiles."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.random import Generator
from PIL import Image

from studio.data.images.canvas import clear_hidden
from studio.data.options import Grid
from studio.data.sheets.grids import propose_grid
from tests.data.making import Pixels

DEMO = Path(__file__).resolve().parents[3] / "assets/demo/demo sprites"
SIZES = [(8, 8), (16, 16), (32, 32), (16, 24), (32, 16), (48, 32)]
# Left, top, spacing, and what is left behind an equal margin.
PLACES = [(0, 0, 0, 0), (1, 1, 1, 0), (0, 0, 2, 0), (2, 2, 2, 0), (4, 4, 0, 0), (3, 5, 1, 0), (5, 2, 0, 3)]


def drawn(rng: Generator, width: int, height: int, *, opaque: bool = False) -> Pixels:
    """An outlined blob of three flat colours that may touch the border of its tile; opaque: on ground of its own."""
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


def assembled(rng: Generator, grid: Grid, columns: int, rows: int, *, rest: int = 0, opaque: bool = False) -> Pixels:
    """A sheet with equal margins and some rest behind them, one place in eight left empty."""
    step_x, step_y = grid.tile_width + grid.spacing, grid.tile_height + grid.spacing
    height, width = 2 * grid.top + rows * step_y - grid.spacing, 2 * grid.left + columns * step_x - grid.spacing
    sheet = np.zeros((height + rest, width + rest, 4), np.uint8)
    for row, column in product(range(rows), range(columns)):
        if rng.random() > 0.125:
            y, x = grid.top + row * step_y, grid.left + column * step_x
            tile = drawn(rng, grid.tile_width, grid.tile_height, opaque=opaque)
            sheet[y : y + grid.tile_height, x : x + grid.tile_width] = tile
    return sheet


def test_grids_of_sheets_that_were_put_together() -> None:
    rng = np.random.default_rng(5)
    cases = list(product(SIZES, PLACES))
    wrong = []
    for number, ((width, height), (left, top, spacing, rest)) in enumerate(cases):
        grid = Grid(width, height, left, top, spacing)
        proposed = propose_grid(assembled(rng, grid, 6, 4, rest=rest, opaque=number % 2 == 1))
        if proposed is None or replace(proposed, confidence=1.0) != grid:
            wrong.append((grid, proposed))
    assert len(cases) == 42 and len(wrong) <= 1, wrong


def test_grids_of_the_demo_sheets() -> None:
    for path in sorted(DEMO.glob("*.png")):
        rgba = np.array(Image.open(path).convert("RGBA"))
        clear_hidden(rgba)
        frame = json.loads(path.with_suffix(".json").read_text())["frames"][0]["frame"]
        proposed = propose_grid(rgba)
        assert proposed is not None and proposed.confidence > 0.9, path.name
        assert replace(proposed, confidence=1.0) == Grid(frame["w"], frame["h"]), path.name


def test_a_strip_and_drawn_lines() -> None:
    rng = np.random.default_rng(1)
    strip = assembled(rng, Grid(16, 24), 8, 1)
    proposed = propose_grid(strip)
    assert proposed is not None and (proposed.tile_width, proposed.tile_height) == (16, 24)
    lined = assembled(rng, Grid(16, 16, 1, 1, 1), 6, 5)
    lined[::17] = lined[:, ::17] = (90, 90, 90, 255)
    proposed = propose_grid(lined)
    assert proposed is not None and replace(proposed, confidence=1.0) == Grid(16, 16, 1, 1, 1)


def test_no_grid_without_evidence() -> None:
    rng = np.random.default_rng(2)
    seen = [propose_grid(drawn(rng, size, size)) for size in (16, 32, 48) for _ in range(6)]
    assert sum(grid is not None for grid in seen) <= 1
    noise = np.full((64, 64, 4), 255, np.uint8)
    noise[..., :3] = rng.integers(0, 255, (64, 64, 3))
    for rgba in (noise, noise[:1], np.zeros((64, 64, 4), np.uint8), np.full((64, 64, 4), 255, np.uint8), noise[:3, :3]):
        assert propose_grid(rgba) is None
