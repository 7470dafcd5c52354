"""Cells of sets by their names, and the tasks by which a model of sets is judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from studio.core.metrics import EXACT

_SIDES = {"left": "right", "west": "east", "l": "r", "w": "e"}
_OTHER_SIDE = {**_SIDES, **{right: left for left, right in _SIDES.items()}}
_MOST_ROWS = 12  # with a figure of their own
_SAME = 1 / 255  # largest difference between equal colours


@dataclass(frozen=True)
class Task:
    """Cells to draw from given cells. given: [C]. repeated: [C], the given cell that the baseline repeats."""

    given: tuple[bool, ...]
    repeated: tuple[int, ...]
    is_first: bool  # whether all cells are drawn from the first cell; otherwise later cells from those that begin rows


def tasks_of(cells: Sequence[str]) -> list[Task]:
    """Return the tasks for these cells: all cells from the first, and later cells from those that begin the rows."""
    leads, rows = first_of_rows(cells), _rows(cells)
    found = [Task(tuple(number == 0 for number in range(len(cells))), (0,) * len(cells), is_first=True)]
    if 1 < sum(leads) < len(cells):
        found.append(Task(leads, tuple(rows.index(row) for row in rows), is_first=False))
    return found


def first_of_rows(cells: Sequence[str]) -> tuple[bool, ...]:
    """Return which cells begin a row: the first column of each view."""
    rows = _rows(cells)
    return tuple(rows.index(row) == number for number, row in enumerate(rows))


def mirrored_cells(cells: Sequence[str]) -> tuple[int, ...]:
    """Return the index of each cell's mirror image: 'right/step' for 'left/step', itself for 'down'; -1 if missing."""
    found = {cell: number for number, cell in enumerate(cells)}
    return tuple(found.get(_mirrored(cell), -1) for cell in cells)


class ExactShares:
    """Shares of exactly right pixels, in the union of the true and the drawn silhouettes, over many sets."""

    def __init__(self, cells: Sequence[str]) -> None:
        self._cells = cells
        self._sums: dict[str, list[float]] = {}  # by name of the figure: right pixels, pixels of the union

    def add(self, task: Task, true: Tensor, drawn: Tensor, missing: Tensor) -> None:
        """Count the pixels of drawn cells. true, drawn: x [B, C, 4, S, S]. missing: bool [B, C], the drawn cells."""
        union = ((true[:, :, 3] > -1) | (drawn[:, :, 3] > -1)) & missing[:, :, None, None]
        right = union & ((true - drawn).abs().amax(2) < _SAME)
        # Counts of a cell over all sets: [C] each.
        counts = torch.stack([right.sum((0, 2, 3)), union.sum((0, 2, 3))], 1).double().cpu()
        for number, (own_right, own_union) in enumerate(counts.tolist()):
            for name in self._figures(task, number):
                sums = self._sums.setdefault(name, [0.0, 0.0])
                sums[0] += own_right
                sums[1] += own_union

    def shares(self) -> dict[str, float]:
        """Return the shares by name: 'exact', 'exact ROW' of the row's first cell, and 'exact steps' of later cells.

        The first two count cells drawn from the first cell, the last cells drawn from the first cells of all rows.
        """
        return {EXACT.name: 0.0, **{name: right / union for name, (right, union) in self._sums.items() if union}}

    def _figures(self, task: Task, cell: int) -> list[str]:
        if not task.is_first:
            return [f"{EXACT.name} steps"]
        rows = list(dict.fromkeys(_rows(self._cells)))
        row = _rows(self._cells)[cell]
        has_own = first_of_rows(self._cells)[cell] and 0 < rows.index(row) <= _MOST_ROWS
        return [EXACT.name, *([f"{EXACT.name} {row}"] if has_own else [])]


def _rows(cells: Sequence[str]) -> list[str]:
    return [cell.partition("/")[0] for cell in cells]


def _mirrored(cell: str) -> str:
    row, slash, column = cell.partition("/")
    words = re.split(r"([-_ ])", row)
    return "".join(_OTHER_SIDE.get(word, word) for word in words) + slash + column
