"""The cells of a grid: where they lie, which hold anything, and that those are what is cut."""

from __future__ import annotations

import numpy as np
import pytest

from studio.data.options import Grid, ImportOptions
from studio.data.sheets.cells import SummedArea, cells_of
from studio.data.sheets.slicing import given_grid, sliced
from studio.data.source_files import Picture
from tests.data.making import Pixels


def scattered(seed: int, height: int, width: int, *, opaque: bool) -> Pixels:
    """A few pixels on a background that is transparent, or magenta."""
    rng = np.random.default_rng(seed)
    rgba = np.zeros((height, width, 4), np.uint8)
    if opaque:
        rgba[:] = (255, 0, 255, 255)
    for y, x in rng.integers(1, (height - 1, width - 1), (14, 2)).tolist():
        rgba[y, x] = (*rng.integers(0, 200, 3).tolist(), 255)
    return rgba


@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize(
    "grid", [Grid(8, 8), Grid(5, 7, 3, 3, 2), Grid(16, 4, 0, 5, 1), Grid(64, 48), Grid(1, 1, 2, 2, 3), Grid(65, 8)]
)
def test_cells_are_those_of_a_search_one_by_one(grid: Grid, opaque: bool) -> None:
    rgba = scattered(grid.tile_width, 48, 64, opaque=opaque)
    background = rgba[0, 0]
    tops = range(grid.top, 48 - grid.tile_height + 1, grid.tile_height + grid.spacing)
    lefts = range(grid.left, 64 - grid.tile_width + 1, grid.tile_width + grid.spacing)
    expected = [
        [bool((rgba[y : y + grid.tile_height, x : x + grid.tile_width] != background).any()) for x in lefts]
        for y in tops
    ]
    cells = cells_of(grid, SummedArea.of(rgba))
    assert cells.tops.tolist() == list(tops) and cells.lefts.tolist() == list(lefts)
    assert cells.filled.tolist() == expected
    assert cells.sprites == sum(map(sum, expected)) and cells.empty == len(tops) * len(lefts) - cells.sprites


def test_filled_cells_are_what_is_cut() -> None:
    options = ImportOptions(sheets="grid", tile=9, tile_height=7, margin=2, spacing=1)
    rgba = scattered(3, 60, 80, opaque=False)
    cells = cells_of(given_grid(options), SummedArea.of(rgba))
    places = [(cells.tops[row], cells.lefts[column]) for row, column in np.argwhere(cells.filled)]
    cut = sliced(Picture(rgba.copy()), "s", options)
    assert len(cut) == len(places) > 3 and cells.empty
    for picture, (y, x) in zip(cut, places, strict=True):
        assert (picture.rgba == rgba[y : y + 7, x : x + 9]).all()
