"""Match two layouts' cells by view and frame."""

from __future__ import annotations

import re
from collections.abc import Sequence

from studio.core.set_cells import columns_by_row
from studio.data.sets.words import DOWN, LEFT, RIGHT, UP

_SIDEWAYS = {**dict.fromkeys((*LEFT, "l", "w"), "left"), **dict.fromkeys((*RIGHT, "r", "e", "side"), "right")}
_UPRIGHT = {**dict.fromkeys((*DOWN, "d", "s"), "down"), **dict.fromkeys((*UP, "u", "n"), "up")}
_SAME = 3  # likeness of rows facing equal ways
# Facing of a character by the row's name: 'down', 'up' or '', and 'left', 'right' or ''.
_FACING = {
    "".join((first, second)): (upright, sideways)
    for first, upright in {"": "", **_UPRIGHT}.items()
    for second, sideways in {"": "", **_SIDEWAYS}.items()
    if first or second
}


def match_cells(cells: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the most similar cell of `known` for every cell of `cells`, by name; '' without a similar row.

    Prefers the row with the cell's row name, then a row facing equally (front, down, south), then equally left or
    right, then equally down or up. In the row, prefers the column with equal name, then with equal position, then the
    last column.
    """
    known_rows, rows = columns_by_row(known), columns_by_row(cells)
    found = []
    for cell in cells:
        row, _, column = cell.partition("/")
        nearest = max(known_rows, key=lambda other: _likeness(row, other), default="")
        if not _likeness(row, nearest):
            found.append("")
            continue
        columns = known_rows[nearest]
        position = min(rows[row].index(column), len(columns) - 1)
        chosen = column if column in columns else columns[position]
        found.append(f"{nearest}/{chosen}" if chosen else nearest)
    return found


def same_view(word: str, rows: Sequence[str]) -> str:
    """Return the row named `word`, or else a row facing equally, like 'front' and 'down'; '' without a match."""
    return max((row for row in rows if _likeness(word, row) >= _SAME), key=lambda row: _likeness(word, row), default="")


def _likeness(row: str, other: str) -> int:
    """Return the likeness of two rows' facing, from 0 to 4."""
    if row == other:
        return 4
    (upright, sideways), (other_upright, other_sideways) = _facing(row), _facing(other)
    same_upright, same_sideways = upright == other_upright, sideways == other_sideways
    if same_upright and same_sideways and (upright or sideways):
        return 3
    return 2 if same_sideways and sideways else int(same_upright and upright != "")


def _facing(row: str) -> tuple[str, str]:
    return _FACING.get(re.sub("[^a-z]", "", row.lower()), ("", ""))
