"""`Cells`: the views and frames of characters to save."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from studio.core import set_cells

GAP = set_cells.GAP  # in Cells.table


@dataclass(frozen=True)
class Row:
    """A row of a set: the frames of an animation, or a single view."""

    set_index: int
    name: str  # name of the view: 'down'
    label: str  # unique name of the animation: 'down'; with several sets 'hero_down'
    columns: tuple[str, ...]  # a frame name per cell; '' for a cell without a column
    sprites: tuple[int, ...]  # a sprite index per cell, GAP for a missing sprite; the last cell is never a GAP

    @property
    def filled(self) -> list[int]:
        """The indices of the sprites, without gaps."""
        return [sprite for sprite in self.sprites if sprite != GAP]


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of characters (sets) by cells, with the fields of SetLayout. Views are rows, frames are columns.

    A sprite may fill several cells. Sprites outside the table are not saved.
    """

    names: tuple[str, ...]  # cell names, 'down/step' or 'down', row by row
    table: NDArray[np.int32]  # [S, C], sprite index or GAP
    sets: tuple[str, ...] = ()  # set names; without names '1', '2', ...

    def __post_init__(self) -> None:
        assert self.table.ndim == 2 and self.table.shape[1] == len(self.names) == len({*self.names})
        assert len(self.sets) in (0, len(self.table)) and self.table.min(initial=GAP) >= GAP

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def full(cls, names: Sequence[str], count: int, sets: Sequence[str] = ()) -> Cells:
        """Return cells for `count` sprites that fill the first set, then the second set, and further sets."""
        table = np.arange(count, dtype=np.int32).reshape(-1, len(names))
        return cls(tuple(names), table, tuple(sets))

    @cached_property
    def set_names(self) -> tuple[str, ...]:
        """The name of each set."""
        return self.sets or tuple(str(number) for number in range(1, len(self) + 1))

    @cached_property
    def by_row(self) -> dict[str, list[int]]:
        """The indices in `names` of the cells of each row, by row name."""
        return set_cells.numbers_by_row(self.names)

    def rows(self) -> list[Row]:
        """Return the rows that have a sprite, set by set."""
        rows: list[Row] = []
        labels: set[str] = set()
        for number, (set_name, sprites) in enumerate(zip(self.set_names, self.table.tolist(), strict=True)):
            for name, cells in self.by_row.items():
                last = max((place for place, cell in enumerate(cells, 1) if sprites[cell] != GAP), default=0)
                label = free_label(f"{set_name}_{name}" if len(self) > 1 else name, labels)
                if last:
                    labels.add(label)
                    columns = tuple(self.names[cell].partition("/")[2] for cell in cells[:last])
                    rows.append(Row(number, name, label, columns, tuple(sprites[cell] for cell in cells[:last])))
        return rows

    def slots(self, most_rows: int) -> tuple[NDArray[np.int64], int]:
        """Arrange the cells in a grid; return the grid's row-by-row cell numbers [S, R, W], and its columns.

        R, W: rows of a set, and cells of the longest row. Sets stand below one another; a grid of more than `most_rows`
        rows has sets side by side.
        """
        rows, width = len(self.by_row), max(map(len, self.by_row.values()))
        below = max(1, min(len(self), most_rows // rows))
        across = -(-len(self) // below)
        numbers = np.arange(below * rows * across * width).reshape(below, rows, across, width)
        return numbers.transpose(2, 0, 1, 3).reshape(-1, rows, width)[: len(self)], across * width


def free_label(label: str, used: Iterable[str]) -> str:
    """Return `label` with underscores appended until it is not in `used`."""
    while label in used:
        label += "_"
    return label
