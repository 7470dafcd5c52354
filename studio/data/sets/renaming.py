"""Rename views and frames of sets, by changing the import options `rows` and `columns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from studio.core.errors import BadInputError
from studio.core.formatting import count
from studio.data.options import ImportOptions
from studio.data.sets.cell_names import CellNames, can_rename, check_name, check_unique
from studio.data.sets.layout import SetLayout
from studio.data.sets.sheets import column_name, row_name
from studio.data.sets.words import SpriteName

Axis = Literal["rows", "columns"]  # the views or the frames; also the name of the import option
AXIS_LABELS: dict[Axis, str] = {"rows": "Names of views", "columns": "Names of frames"}
_NAMING: dict[Axis, Callable[[int, Sequence[str]], str]] = {"rows": row_name, "columns": column_name}
_NOUNS: dict[Axis, str] = {"rows": "view", "columns": "frame"}
_MOST = 1024  # rows or columns of a sheet


def parse_names(options: ImportOptions, axis: Axis) -> CellNames:
    """Parse the import option that names the views or frames. Raises BadInputError."""
    return CellNames.parse(getattr(options, axis), AXIS_LABELS[axis])


@dataclass(frozen=True)
class CellRenamer:
    """Renames views and frames of imported sets.

    Names of a sheet's rows and columns become lists like 'down,up'; names from files, folders, tags, atlases or
    sets.csv become pairs like 'front=down'.
    """

    layout: SetLayout
    sprites: Sequence[str]  # sprites' names
    options: ImportOptions  # the options that found the sets
    latest: ImportOptions  # the running import's options, or else `options`; renaming changes a copy

    def shown_name(self, axis: Axis, name: str) -> str:
        """Return a view's or frame's name in `latest`. name: the name in `layout`."""
        latest, position = parse_names(self.latest, axis), self._position(axis, name)
        found = parse_names(self.options, axis).found(name) if position < 0 else _NAMING[axis](position, latest.names)
        return latest.shown(found)

    def why_fixed(self, axis: Axis, name: str) -> str:
        """Return why the user can't edit a name, as a sentence; '' for an editable name."""
        if not name:
            return "Your files don't name this frame."
        if self._position(axis, name) >= 0 or can_rename(parse_names(self.options, axis).found(name)):
            return ""
        return f"{name!r} can't be edited here: it holds a comma, spaces at its ends, or too many letters."

    def rename(self, axis: Axis, name: str, text: str) -> ImportOptions:
        """Return options with another name for a view or frame. Raises BadInputError for an impossible name.

        text: the new name; names separated by commas also name the next views or frames.
        """
        position = self._position(axis, name)
        typed = [check_name(part, AXIS_LABELS[axis]) for part in text.split(",")]
        if wrong := next((part for part in typed if "=" in part), ""):
            raise BadInputError(f"{AXIS_LABELS[axis]}: {wrong!r} holds an equals sign.", "Choose another name.")
        names = self._rename_found(axis, name, typed) if position < 0 else self._rename_tiles(axis, position, typed)
        return self.latest.replace(**{axis: names.to_text()})

    def _rename_tiles(self, axis: Axis, position: int, typed: Sequence[str]) -> CellNames:
        """Return names with other names for sheets' rows or columns, from a position on."""
        latest, total = parse_names(self.latest, axis), self.layout.columns[1]
        total = len(self.layout.rows) if axis == "rows" else total
        listed = [_NAMING[axis](index, latest.names) for index in range(total)]
        wanted = _replaced(listed, position, typed, axis)
        check_unique(wanted, AXIS_LABELS[axis])
        own = next((end for end in range(total, 0, -1) if wanted[end - 1] != _NAMING[axis](end - 1, ())), 0)
        return CellNames(tuple(wanted[:own]), latest.renamed)

    def _rename_found(self, axis: Axis, name: str, typed: Sequence[str]) -> CellNames:
        """Return names with other names for found views or frames, from `name` on.

        Equal names join two views or frames. Raises BadInputError if a character has both.
        """
        listed = self._names[axis]
        shown = [self.shown_name(axis, each) for each in listed]
        wanted = _replaced(shown, listed.index(name), typed, axis)
        new_names = dict(zip(listed, wanted, strict=True))
        joined: dict[tuple[str, str], list[int]] = {}
        for number, cell in enumerate(self.layout.cells):
            row, _, column = cell.partition("/")
            own, other = (row, column) if axis == "rows" else (column, row)
            joined.setdefault((new_names.get(own, own), other), []).append(number)
        for (new, _), numbers in joined.items():
            both = int(np.count_nonzero(self.layout.present[:, numbers].sum(axis=1) > 1))
            if both:
                title = f"{AXIS_LABELS[axis]}: {count(both, 'character')} would have {new!r} twice."
                raise BadInputError(title, "Number equal names: step, step2.")
        unique = dict(zip(shown, wanted, strict=True))
        return parse_names(self.latest, axis).with_shown([*unique], [*unique.values()])

    @cached_property
    def _names(self) -> dict[Axis, list[str]]:
        """The names in `layout`, in order and without repeats."""
        columns = dict.fromkeys(cell.partition("/")[2] for cell in self.layout.cells)
        return {"rows": [*self.layout.rows], "columns": [name for name in columns if name]}

    def _position(self, axis: Axis, name: str) -> int:
        """Return the index of a sheet's row or column by name, from 0; -1 for names from files."""
        if self.layout.kind != "sheets" or (axis == "rows" and self._are_strips):
            return -1
        given = parse_names(self.options, axis).names
        return next((position for position in range(_MOST) if _NAMING[axis](position, given) == name), -1)

    @cached_property
    def _are_strips(self) -> bool:
        """Whether every view is a sheet with a single row, 'orc_down.png', named after the view."""
        used = set(self.layout.table[self.layout.table >= 0].tolist())
        return not any((SpriteName.of(self.sprites[sprite]).tile or (0, 0))[0] for sprite in used)


def _replaced(listed: Sequence[str], position: int, typed: Sequence[str], axis: Axis) -> list[str]:
    """Replace names by typed names, from a position on. Raises BadInputError for too many typed names."""
    left = len(listed) - position
    if len(typed) > left:
        title = f"{AXIS_LABELS[axis]}: {len(typed)} names for {count(left, _NOUNS[axis])}."
        raise BadInputError(title, "Start further left.")
    return [*listed[:position], *typed, *listed[position + len(typed) :]]
