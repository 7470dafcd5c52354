"""Tasks to evaluate a model of sets: draw some cells of validation sets from other cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from studio.core.metrics import EXACT

_MOST_ROWS = 12  # rows with an own figure
_SAME = 1 / 255  # largest difference between equal colours


@dataclass(frozen=True)
class Task:
    """Cells to draw from given cells, compared with a baseline that copies given cells."""

    name: str  # the figure's name, for all judged cells
    given: tuple[bool, ...]  # [C]
    judged: tuple[bool, ...]  # [C]
    repeated: tuple[int, ...]  # [C], the given cell that the baseline repeats
    mirrors: bool = False  # whether the baseline repeats the mirror image
    rows: tuple[str, ...] = ()  # [C], the row if a cell counts for a row's own figure, else ''; empty: no such figures

    def baseline(self, x: Tensor) -> Tensor:
        """Return the cells of the baseline, x [B, C, 4, S, S]."""
        repeated = x[:, self.repeated]
        return repeated.flip(-1) if self.mirrors else repeated

    def names(self, cell: int) -> list[str]:
        """Return the figures that count a judged cell: 'exact', 'exact up'."""
        return [self.name, *([f"{self.name} {self.rows[cell]}"] if self.rows and self.rows[cell] else [])]


def tasks_of(cells: Sequence[str], partners: Sequence[int]) -> list[Task]:
    """Return the tasks for these cells. partners: see `find_partners`.

    'exact' draws all cells from the first cell, with a figure for the first cell of every row. 'exact steps' draws the
    later cells of rows from the first cells of all rows. 'exact side' draws a view from the opposite view, such as
    right from left.
    """
    count, rows, leads = len(cells), _rows(cells), first_of_rows(cells)

    def only(number: int) -> tuple[bool, ...]:
        return tuple(cell == number for cell in range(count))

    others = tuple(number > 0 for number in range(count))
    listed = list(dict.fromkeys(rows))[1 : 1 + _MOST_ROWS]
    own = tuple(row if is_lead and row in listed else "" for row, is_lead in zip(rows, leads, strict=True))
    found = [Task(EXACT.name, only(0), others, (0,) * count, rows=own)]
    if 1 < sum(leads) < count:
        steps = tuple(not is_lead for is_lead in leads)
        found.append(Task(f"{EXACT.name} steps", leads, steps, tuple(rows.index(row) for row in rows)))
    sides = (number for number, other in enumerate(partners) if leads[number] and other > number)
    if (side := next(sides, None)) is not None:
        found.append(Task(f"{EXACT.name} side", only(side), only(partners[side]), (side,) * count, mirrors=True))
    return found


def first_of_rows(cells: Sequence[str]) -> tuple[bool, ...]:
    """Return True for cells that begin a row, False for other cells."""
    rows = _rows(cells)
    return tuple(rows.index(row) == number for number, row in enumerate(rows))


class ExactShares:
    """Counts exactly right pixels over many sets, as shares of the union of true and drawn silhouettes."""

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = {}  # by name of the figure: right pixels, pixels of the union

    def add(self, task: Task, true: Tensor, drawn: Tensor, there: Tensor) -> None:
        """Count the pixels of the judged cells. true, drawn: x [B, C, 4, S, S]. there: bool [B, C], the sets' cells."""
        judged = there & torch.tensor(task.judged, device=there.device)
        union = ((true[:, :, 3] > -1) | (drawn[:, :, 3] > -1)) & judged[:, :, None, None]
        right = union & ((true - drawn).abs().amax(2) < _SAME)
        counts = torch.stack([right.sum((0, 2, 3)), union.sum((0, 2, 3))], 1).double().cpu()  # [C, 2], over all sets
        for cell, (own_right, own_union) in enumerate(counts.tolist()):
            for name in task.names(cell) if task.judged[cell] else ():
                sums = self._sums.setdefault(name, [0.0, 0.0])
                sums[0] += own_right
                sums[1] += own_union

    def shares(self) -> dict[str, float]:
        """Return the shares by the name of the figure; without a pixel 0."""
        return {name: right / max(union, 1.0) for name, (right, union) in self._sums.items()}


def _rows(cells: Sequence[str]) -> list[str]:
    return [cell.partition("/")[0] for cell in cells]
