"""Rename the views and frames of sets, which changes the import options `rows` and `columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from studio.core.errors import BadInputError
from studio.core.formatting import count
from studio.data.options import ImportOptions
from studio.data.sets.layout import SetLayout
from studio.data.sets.recognising import parse_cell_names
from studio.data.sets.sheets import column_name, row_name
from studio.data.sets.words import SpriteName

Axis = Literal["rows", "columns"]  # the views or the frames; also the name of the import option
AXIS_LABELS: dict[Axis, str] = {"rows": "Names of views", "columns": "Names of frames"}
_NAMING: dict[Axis, Callable[[int, Sequence[str]], str]] = {"rows": row_name, "columns": column_name}
_NOUNS: dict[Axis, str] = {"rows": "view", "columns": "frame"}
_MOST = 1024  # rows or columns of a sheet


def name_position(layout: SetLayout, names: Sequence[str], options: ImportOptions, axis: Axis, name: str) -> int:
    """Return the row or column of a sheet, from 0, that has this name; -1 if files give the name.

    names: of the sprites. options: of the import that found the sets.
    """
    if layout.kind != "sheets" or (axis == "rows" and _are_strips(layout, names)):
        return -1
    given, naming = parse_cell_names(getattr(options, axis), AXIS_LABELS[axis]), _NAMING[axis]
    return next((position for position in range(_MOST) if naming(position, given) == name), -1)


def name_at(options: ImportOptions, axis: Axis, position: int) -> str:
    """Return the name that options give to a row or column of the sheets, from 0."""
    return _NAMING[axis](position, parse_cell_names(getattr(options, axis), AXIS_LABELS[axis]))


def with_name(options: ImportOptions, axis: Axis, position: int, text: str, total: int) -> ImportOptions:
    """Return options that name a row or column of the sheets. Raises BadInputError for an empty or a repeated name.

    text: the name; names separated by commas also name the next rows or columns. total: number of rows or columns.
    """
    label, typed, left = AXIS_LABELS[axis], text.split(","), total - position
    if len(typed) > left:
        raise BadInputError(f"{label}: {len(typed)} names for {count(left, _NOUNS[axis])}.", "Start further left.")
    listed = [name_at(options, axis, index) for index in range(total)]
    listed[position : position + len(typed)] = typed
    checked = parse_cell_names(",".join(listed), label)
    own = next((end for end in range(total, 0, -1) if checked[end - 1] != _NAMING[axis](end - 1, ())), 0)
    return options.replace(**{axis: ",".join(checked[:own])})


def _are_strips(layout: SetLayout, names: Sequence[str]) -> bool:
    """Return whether each view is a sheet of a single row, 'orc_down.png', whose file names the view."""
    used = set(layout.table[layout.table >= 0].tolist())
    return not any((SpriteName.of(names[sprite]).tile or (0, 0))[0] for sprite in used)
