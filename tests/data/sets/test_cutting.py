"""Cutting the sheet of a set into cells."""

from __future__ import annotations

import numpy as np
import pytest

from studio.core.errors import SetsError
from studio.data.sets.cutting import check_cell, cut_sheet, sheet_size
from studio.data.sets.layout import list_cells

CELLS = ("down/stand", "down/step", "up/stand")


def test_a_sheet_has_a_row_for_each_view() -> None:
    assert sheet_size(CELLS, 4) == (8, 8) and sheet_size(("front", "back", "left"), 4) == (4, 12)
    sheet = np.arange(8 * 8 * 4, dtype=np.uint8).reshape(8, 8, 4)
    sheet[:4, 4:] = 0
    cells, is_filled = cut_sheet(sheet, CELLS, 4)
    assert (cells[0] == sheet[:4, :4]).all() and (cells[2] == sheet[4:, :4]).all()
    assert is_filled.tolist() == [True, False, True]


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(SetsError, match=r"hero\.png has 8 x 4 pixels; a sheet of this model has 8 x 8"):
        cut_sheet(np.zeros((4, 8, 4), np.uint8), CELLS, 4, "hero.png")
    with pytest.raises(SetsError, match=r"hero\.png has 8 x 4 pixels; the model's cells have 4 x 4"):
        check_cell(np.zeros((4, 8, 4), np.uint8), 4, "hero.png")


def test_rows_with_equal_columns_are_listed_once() -> None:
    assert list_cells(CELLS) == "down/stand, down/step, up/stand"
    assert list_cells((*CELLS, "up/step")) == "down, up, each with /stand, /step"
    assert list_cells(("front", "back")) == "front, back"
