"""Cells of sets, by name: 'down/step' is the row 'down' and the column 'step', 'down' is a row with a single cell."""

from __future__ import annotations

from collections.abc import Sequence

GAP = -1  # a cell without a sprite, in a table of sprite indices; a position without a cell, in a table of cells


def numbers_by_row(cells: Sequence[str]) -> dict[str, list[int]]:
    """Return the cells' indices, by row name."""
    numbers: dict[str, list[int]] = {}
    for number, cell in enumerate(cells):
        numbers.setdefault(cell.partition("/")[0], []).append(number)
    return numbers


def columns_by_row(cells: Sequence[str]) -> dict[str, list[str]]:
    """Return the cells' columns, by row name. A cell without a column has the column ''."""
    return {row: [cells[number].partition("/")[2] for number in own] for row, own in numbers_by_row(cells).items()}
