"""`SetLayout`: a table of sets (characters) and cells (views and frames), with a sprite per cell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.core import set_cells
from studio.core.formatting import count

_MOST_NAMED = 12  # rows in a description
GAP = set_cells.GAP  # in SetLayout.table


class Place(NamedTuple):
    """A sprite's place: name of the set, row (view) and column (frame) of the cell. column: '' without frames."""

    name: str
    row: str
    column: str

    @property
    def cell(self) -> str:
        """The cell's name: 'down/step', or 'down' without a column."""
        return f"{self.row}/{self.column}" if self.column else self.row


@dataclass(frozen=True, eq=False)
class SetLayout:
    """Sets of sprites as a table: a row per set, a column per cell.

    The import keeps a single sprite for equal pixels, so a sprite may fill several cells, also in several sets.
    """

    cells: tuple[str, ...] = ()  # cell names, 'down/step' or 'down', row by row
    sets: tuple[str, ...] = ()  # names of the sets
    table: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))  # [S, C], sprite or GAP
    kind: str = ""  # what the import recognised sets by: 'folders', 'names', 'sheets' or 'csv'
    chosen: bool = False  # True if the user chose the sets; training and validation never split a chosen set

    def __post_init__(self) -> None:
        assert self.table.shape == (len(self.sets), len(self.cells)) and self.table.dtype == np.int32

    def __len__(self) -> int:
        return len(self.sets)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The names of the rows (views), in order."""
        return tuple(dict.fromkeys(cell.partition("/")[0] for cell in self.cells))

    @cached_property
    def columns(self) -> tuple[int, int]:
        """The smallest and largest number of columns (frames) over sets."""
        widths = self._widths()
        return (int(widths.min()), int(widths.max())) if len(widths) else (0, 0)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Mask of missing cells, bool [S, C]. Columns behind a set's last filled column don't count as missing."""
        expected = self._column_numbers() < self._widths()[:, None]
        return np.asarray(expected & (self.table < 0))

    @cached_property
    def gaps(self) -> int:
        """The number of missing cells."""
        return int(np.count_nonzero(self.missing))

    @property
    def present(self) -> NDArray[np.bool_]:
        """Mask of the cells with a sprite: bool [S, C]."""
        present: NDArray[np.bool_] = self.table != GAP
        return present

    @property
    def digest(self) -> str:
        """Hash of the layout, 16 hex digits; '' without sets."""
        if not self.sets:
            return ""
        digest = hashlib.sha256(repr((self.cells, self.sets, self.kind, self.chosen)).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.table).data)
        return digest.hexdigest()[:16]

    def take(self, indices: NDArray[np.int64], total: int) -> SetLayout:
        """Return the layout for the sprites at `indices` among `total`; drops sets without a sprite."""
        if not self.sets:
            return self
        becomes = np.full(total + 1, GAP, np.int64)  # the last entry: a gap stays a gap
        becomes[indices[::-1]] = np.arange(len(indices))[::-1]  # for repeated indices, the first counts
        return self.renumbered(becomes)

    def renumbered(self, becomes: NDArray[np.int64]) -> SetLayout:
        """Return the layout with new sprite indices; drops sets without a sprite.

        becomes: int64 [N + 1], new index or GAP, by sprite; the last entry must be GAP.
        """
        table = becomes[self.table].astype(np.int32)
        return replace(self, table=table)._without_empty_sets() if self.sets else self

    def without(self, places: Iterable[tuple[int, int]]) -> SetLayout:
        """Return the layout with gaps at (set, cell) indices; drops sets without a sprite."""
        table = self.table.copy()
        for at in places:
            table[at] = GAP
        return replace(self, table=table)._without_empty_sets()

    def part(self, sets: NDArray[np.bool_], cells: NDArray[np.bool_]) -> SetLayout:
        """Return the layout with only the sets and cells to keep. sets: bool [S]. cells: bool [C]."""
        names, cell_names = (
            tuple(name for name, is_kept in zip(listed, kept.tolist(), strict=True) if is_kept)
            for listed, kept in ((self.sets, sets), (self.cells, cells))
        )
        return replace(self, cells=cell_names, sets=names, table=self.table[sets][:, cells])

    def joined_groups(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Join groups for the split, to keep sets whole: int64 [N]. Sets with common sprites share a group."""
        numbers, index = np.unique(groups, return_inverse=True)
        parent = list(range(len(numbers)))

        def root(number: int) -> int:
            while parent[number] != number:
                parent[number] = parent[parent[number]]
                number = parent[number]
            return number

        for members in self.table:
            own = [root(number) for number in np.unique(index[members[members >= 0]]).tolist()]
            for number in own:
                parent[root(number)] = root(own[0])
        return numbers[np.array([root(number) for number in range(len(numbers))], np.int64)[index]]

    def describe(self, noun: str = "character") -> str:
        """Describe the sets for users: '83 characters with 4 views x 4 frames: down, up, left, right'."""
        return describe_sets(len(self.sets), self.rows, self.columns, noun)

    def summary(self) -> dict[str, Any]:
        """Return a summary for programs: numbers of sets and missing cells, and the cells' names."""
        cells = {"rows": list(self.rows), "columns": list(self.columns), "cells": list(self.cells)}
        return {"kind": self.kind, "chosen": self.chosen, "count": len(self.sets), **cells, "gaps": self.gaps}

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, with the table as a flat list."""
        about = {"cells": list(self.cells), "sets": list(self.sets), "kind": self.kind, "chosen": self.chosen}
        return {**about, "table": self.table.ravel().tolist()}

    @classmethod
    def from_json(cls, values: Any, total: int) -> SetLayout:
        """Create a layout from `to_json`'s output. total: number of sprites. Raises ValueError for invalid values."""
        try:
            cells, sets = tuple(values["cells"]), tuple(values["sets"])
            table = np.array(values["table"], np.int64).reshape(len(sets), len(cells))
            kind, chosen = values["kind"], values["chosen"]
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise ValueError("no sets") from error
        texts = all(isinstance(text, str) for text in (*cells, *sets, kind)) and isinstance(chosen, bool)
        if (
            not texts
            or len({*cells}) < len(cells)
            or bool(cells) != bool(sets)
            or not ((table >= GAP) & (table < total)).all()
        ):
            raise ValueError("sets of other sprites")
        return cls(cells, sets, table.astype(np.int32), kind, chosen)

    def _column_numbers(self) -> NDArray[np.int64]:
        """Return the cells' positions in their rows, from 0: int64 [C]."""
        rows = [cell.partition("/")[0] for cell in self.cells]
        return np.array([rows[:index].count(row) for index, row in enumerate(rows)], np.int64)

    def _widths(self) -> NDArray[np.int64]:
        """Return the number of columns by set, up to the last filled column: int64 [S]."""
        widths: NDArray[np.int64] = np.where(self.table >= 0, self._column_numbers() + 1, 0).max(axis=1, initial=0)
        return widths

    def _without_empty_sets(self) -> SetLayout:
        used = self.table.max(axis=1, initial=GAP) >= 0
        if used.all():
            return self
        sets = tuple(name for name, is_used in zip(self.sets, used.tolist(), strict=True) if is_used)
        return replace(self, sets=sets, table=self.table[used]) if sets else NO_SETS


NO_SETS = SetLayout()


def find_cell(cells: Sequence[str], name: str) -> int:
    """Return a cell's index by name; a row's name alone means the row's first cell. -1 for unknown names."""
    if name in cells:
        return cells.index(name)
    return next((index for index, cell in enumerate(cells) if cell.partition("/")[0] == name), -1)


def list_cells(cells: Sequence[str]) -> str:
    """List cell names: 'down, up', or 'down, up, each with /stand, /step' for rows with equal columns."""
    rows = set_cells.columns_by_row(cells)
    columns = {*map(tuple, rows.values())}
    equal = columns.pop()
    if columns or len(equal) < 2 or len(rows) < 2:
        return ", ".join(cells)
    return f"{', '.join(rows)}, each with {', '.join(f'/{column}' for column in equal)}"


@dataclass(frozen=True)
class SetProposal:
    """Sets to expect from other import options: unsliced sheets with equal rows."""

    count: int
    rows: tuple[str, ...]
    columns: tuple[int, int]  # smallest and largest number

    def describe(self, noun: str = "character") -> str:
        """Describe the sets for users, like SetLayout.describe."""
        return describe_sets(self.count, self.rows, self.columns, noun)


def describe_sets(total: int, rows: Sequence[str], columns: tuple[int, int], noun: str) -> str:
    """Describe sets for users: numbers of sets, views and frames, and the views' names."""
    frames = "" if columns[1] <= 1 else f" x {columns[0]} to {columns[1]} frames"
    if columns[0] == columns[1] > 1:
        frames = f" x {columns[0]} frames"
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return f"{count(total, noun)} with {count(len(rows), 'view')}{frames}: {', '.join(rows[:_MOST_NAMED])}{more}"
