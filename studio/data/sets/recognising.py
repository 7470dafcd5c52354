"""Find sets in imported sprites by sets.csv, names, folders or tiles, according to the options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from studio.data.options import ReadOptions
from studio.data.sets.cell_names import CellNames
from studio.data.sets.layout import GAP, NO_SETS, Place, SetLayout
from studio.data.sets.naming import Places, folder_order, in_sets, places_by_folders, places_by_words
from studio.data.sets.sheets import places_by_sheets
from studio.data.sets.table import SetTables
from studio.data.sets.words import VIEWS, SpriteName, Words, natural

_FEWEST_SETS = 3  # fewer sets count only if the user asks for sets
_MOSTLY = 0.5  # smallest share: of sprites in sets, and of sets with the most common row
_MOST_CELLS, _LARGEST_TABLE = 1024, 1 << 22  # limits of columns and table entries; rarer cells are left out
_SAMPLE, _FEWEST = 4096, 0.4  # names in the quick test, and smallest share with words for cells
_AT_ONCE = 4096  # names between two yields

_Order = Callable[[Place], Any]


@dataclass(frozen=True)
class _Found:
    """Places by index of the sprite's name, and the cells' sort key."""

    kind: str
    places: Places
    order: _Order


class FoundSets(NamedTuple):
    """The sets found in imported sprites. places: (set, cell) indices by index of the sprite's name."""

    layout: SetLayout = NO_SETS
    places: Mapping[int, tuple[int, int]] = MappingProxyType({})


def find_sets(
    names: Sequence[str], sprite_of: NDArray[np.int64], options: ReadOptions, tables: SetTables
) -> Generator[int, None, FoundSets]:
    """Find sets in imported sprites; yields the number of processed names.

    names: sprites' names, with left-out duplicates. sprite_of: int64 [names], sprite index by name.
    """
    if options.sets == "off":
        return FoundSets()
    rows, columns = CellNames.parse(options.rows, "Rows"), CellNames.parse(options.columns, "Columns")
    found = yield from _find(names, options, tables, rows.names, columns.names)
    return _layout(_renamed(found, rows, columns), sprite_of) if found is not None else FoundSets()


def _find(
    names: Sequence[str], options: ReadOptions, tables: SetTables, rows: Sequence[str], columns: Sequence[str]
) -> Generator[int, None, _Found | None]:
    """Find sprites' places, with found names for rows and columns; `find_sets` then applies the user's names."""
    listed = tables.places(names)
    if options.sets == "csv" or (options.sets == "auto" and listed):
        return _by_table(listed, rows)
    if options.sets == "auto" and not rows and not _may_be_sets(names, Words()):
        return None
    split = []
    for number, name in enumerate(names):
        split.append(SpriteName.of(name))
        if not number % _AT_ONCE:
            yield number
    if options.sets != "auto":
        return _of_kind(options.sets, split, rows, columns)
    for kind in ("names", "sheets"):
        found = _of_kind(kind, split, rows, columns, certain=False)
        yield len(names)
        if _are_sets(found, len(names)):
            is_by_folders = places_by_words(split, Words.of(rows, columns, split), only_folders=True) == found.places
            return replace(found, kind="folders") if is_by_folders else found
    return None


def _of_kind(
    kind: str, names: Sequence[SpriteName], rows: Sequence[str], columns: Sequence[str], *, certain: bool = True
) -> _Found:
    """Return the places by the kind of naming `kind`. certain: the user asks for sets."""
    if kind == "sheets":
        places = places_by_sheets(names, rows, columns, certain=certain)
        return _Found(kind, places, _listed_order(rows or VIEWS, columns))
    words = Words.of(rows, columns, names)
    places = places_by_words(names, words, only_folders=kind == "folders")
    if kind == "folders" and not places and not rows:
        places = places_by_folders(names)
        return _Found(kind, places, _listed_order(folder_order(places, rows), columns))
    typed = {row.lower(): row for row in rows}
    spelt = {number: place._replace(row=typed.get(place.row, place.row)) for number, place in places.items()}
    return _Found(kind, spelt, words.order)


def _renamed(found: _Found, rows: CellNames, columns: CellNames) -> _Found:
    """Return the places with the user's names. Cells keep the order; in a joined cell, the first sprite counts."""
    if not (rows.renamed or columns.renamed):
        return found
    row_of, column_of = dict[str, str](), dict[str, str]()  # first found name by the user's name
    for place in sorted({place._replace(name="") for place in found.places.values()}, key=found.order):
        row_of.setdefault(rows.shown(place.row), place.row)
        column_of.setdefault(columns.shown(place.column), place.column)

    def order(place: Place) -> Any:
        return found.order(place._replace(row=row_of[place.row], column=column_of[place.column]))

    named = {
        number: place._replace(row=rows.shown(place.row), column=columns.shown(place.column))
        for number, place in found.places.items()
    }
    return _Found(found.kind, in_sets(named), order)


def _by_table(places: Places, rows: Sequence[str]) -> _Found:
    listed = [*rows, *dict.fromkeys(place.row for place in places.values())]
    return _Found("csv", places, _listed_order(listed, tuple(dict.fromkeys(place.column for place in places.values()))))


def _listed_order(rows: Sequence[str], columns: Sequence[str]) -> _Order:
    """Return a sort key for cells: first listed rows and columns in order, then by name."""
    row_rank, column_rank = (
        {name: rank for rank, name in reversed([*enumerate(listed)])} for listed in (rows, columns)
    )

    def order(place: Place) -> Any:
        row, column = (rank.get(name, len(rank)) for rank, name in ((row_rank, place.row), (column_rank, place.column)))
        return row, natural(place.row), column, natural(place.column)

    return order


def _may_be_sets(names: Sequence[str], words: Words) -> bool:
    """Return whether enough names may name cells: a quick test on a sample, before parsing a million names."""
    some = names[:: max(1, len(names) // _SAMPLE)]
    return sum("#r" in name or words.hint.search(name) is not None for name in some) >= _FEWEST * len(some)


def _are_sets(found: _Found, total: int) -> bool:
    """Return whether places surely form sets: many sets, from most sprites, with a common row. total: sprites."""
    cells = Counter(place.name for place in found.places.values())
    rows = Counter(row for row, _ in {(place.row, place.name) for place in found.places.values()})
    is_common = bool(rows) and rows.most_common(1)[0][1] >= _MOSTLY * len(cells)
    return len(cells) >= _FEWEST_SETS and is_common and len(found.places) >= _MOSTLY * total


def _layout(found: _Found, sprite_of: NDArray[np.int64]) -> FoundSets:
    """Build the table of sets and cells."""
    first: Mapping[str, Place] = {place.cell: place for place in found.places.values()}
    sets = tuple(sorted({place.name for place in found.places.values()}, key=natural))
    if not sets:
        return FoundSets()
    counts = Counter(place.cell for place in found.places.values())
    common = [cell for cell, _ in counts.most_common(max(1, min(_MOST_CELLS, _LARGEST_TABLE // len(sets))))]
    cells = tuple(sorted(common, key=lambda cell: found.order(first[cell])))
    cell_index, set_index = ({name: index for index, name in enumerate(listed)} for listed in (cells, sets))
    at = {
        number: (set_index[place.name], cell_index[place.cell])
        for number, place in found.places.items()
        if place.cell in cell_index
    }
    table = np.full((len(sets), len(cells)), GAP, np.int32)
    for number, cell in at.items():
        table[cell] = sprite_of[number]
    return FoundSets(SetLayout(cells, sets, table, found.kind), at)
