"""Rows and columns of cells, from their names."""

from __future__ import annotations

from studio.core.set_cells import columns_by_row, numbers_by_row


def test_cells_of_a_row_need_not_follow_one_another() -> None:
    cells = ("down/stand", "up", "down/step", "left/stand")
    assert numbers_by_row(cells) == {"down": [0, 2], "up": [1], "left": [3]}
    assert columns_by_row(cells) == {"down": ["stand", "step"], "up": [""], "left": ["stand"]}
    assert not numbers_by_row(()) and not columns_by_row(())
