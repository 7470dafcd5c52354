"""The layout arithmetic of the grid, compared with brute force."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.app.widgets.sprites.cell_view import CellLayout

ROOMS = {3: 1, 7: 1, 20: 2, 21: 3, 50: 7}  # width in pixels, and number of 7-pixel cells in a line
COUNTS = (0, 1, 2, 3, 7, 8, 20)
LAYOUTS = [CellLayout.within(room, count, 7, 5) for room in ROOMS for count in COUNTS]


def drawn(cells: CellLayout) -> NDArray[np.int64]:
    """Return the cell of each pixel, int64 [height, width], -1 for none, filling line after line."""
    field = np.full((cells.height * max(1, cells.count), cells.width * cells.across), -1)
    column = line = 0
    for cell in range(cells.count):
        top, left = line * cells.height, column * cells.width
        assert (field[top : top + cells.height, left : left + cells.width] == -1).all()
        field[top : top + cells.height, left : left + cells.width] = cell
        column += 1
        if column == cells.across:
            column, line = 0, line + 1
    return field


def test_cell_at_matches_the_drawn_cell() -> None:
    assert [cells.across for cells in LAYOUTS] == [across for across in ROOMS.values() for _ in COUNTS]
    for cells in LAYOUTS:
        field = drawn(cells)
        height, width = field.shape
        assert [[cells.at(x, y) for x in range(width)] for y in range(height)] == field.tolist()
        for cell in range(cells.count):
            rows, columns = np.nonzero(field == cell)
            assert cells.place(cell) == (columns.min(), rows.min())
        assert cells.lines * cells.height == (np.nonzero((field >= 0).any(1))[0].max() + 1 if cells.count else 0)
        assert [cells.at(x, y) for x, y in ((-1, 0), (0, -1), (width, 0), (0, height))] == [-1] * 4


def test_runs_match_the_touched_cells() -> None:
    rng = np.random.default_rng(0)
    for cells in LAYOUTS:
        field = drawn(cells)
        for _ in range(50):
            left, right = np.sort(rng.integers(-10, field.shape[1] + 10, 2)).tolist()
            top, bottom = np.sort(rng.integers(-10, field.shape[0] + 10, 2)).tolist()
            seen = np.unique(field[max(top, 0) : max(bottom + 1, 0), max(left, 0) : max(right + 1, 0)])
            runs = cells.runs(left, top, right, bottom)
            assert [cell for first, last in runs for cell in range(first, last + 1)] == seen[seen >= 0].tolist()


def test_below_clamps_at_the_edges() -> None:
    for cells in LAYOUTS:
        for cell in range(cells.count):
            x, y = cells.place(cell)
            assert cells.below(cell, 0) == cell
            assert cells.below(cell, -1) == (cells.at(x, y - cells.height) if y else cell)
            under = cells.at(x, y + cells.height)
            in_last_line = y == (cells.lines - 1) * cells.height
            assert cells.below(cell, 1) == (under if under >= 0 else cell if in_last_line else cells.count - 1)
            assert cells.below(cell, -99) == cell % cells.across


def test_million_cells_are_one_run() -> None:
    cells = CellLayout.within(1900, 1_000_000, 40, 56)
    assert cells.runs(0, 0, 1900, cells.lines * 56) == [(0, 999_999)]
    assert cells.at(*cells.place(999_999)) == 999_999
