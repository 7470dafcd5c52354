"""Recognise sets in sheets: a sheet shows a character, with a row per view and a column per frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from studio.data.options import SheetGrid
from studio.data.sets.layout import Place, SetProposal
from studio.data.sets.naming import Places
from studio.data.sets.words import VIEWS, SpriteName, Words, parse

_FEWEST_SHEETS, _MOST_ROWS, _MOST_COLUMNS = 3, 16, 16  # limits for recognising sets unasked
_MOSTLY = 0.5  # share of sheets with equal rows
_MOST_CELLS = 4096  # limit per sheet if the user calls sheets sets


@dataclass(frozen=True)
class SheetShape:
    """A sheet's grid with the numbers of rows and columns."""

    grid: SheetGrid
    rows: int
    columns: int

    @classmethod
    def of(cls, grid: SheetGrid, size: tuple[int, int]) -> SheetShape:
        """Return a sheet's shape. size: (width, height) in pixels."""
        return cls(grid, grid.rows(size[1]), grid.columns(size[0]))

    @property
    def kind(self) -> tuple[int, int, int]:
        """Tile size and number of rows, equal for the sheets in a collection."""
        return self.grid.tile_width, self.grid.tile_height, self.rows


def common_shape(shapes: Iterable[SheetShape]) -> SheetShape | None:
    """Return an example of the most common tile size and rows, among sheets without margins; None without sheets."""
    plain = [
        one for one in shapes if not (one.grid.left or one.grid.top or one.grid.spacing) and one.rows * one.columns > 1
    ]
    counts = Counter(one.kind for one in plain)
    if not counts:
        return None
    best = counts.most_common(1)[0][0]
    return next(one for one in plain if one.kind == best)


def with_common_grid(shapes: Mapping[int, SheetShape], sizes: Mapping[int, tuple[int, int]]) -> dict[int, SheetShape]:
    """Give the collection's usual grid to fitting sheets; return the sheets' shapes by file number.

    shapes: shapes by detected grids. sizes: (width, height) in pixels by picture. A fitting picture consists of whole
    tiles, in the usual number of rows. If detection found the usual grid in under half of the fitting pictures, nothing
    changes.
    """
    common, found = common_shape(shapes.values()), dict(shapes)
    if common is None:
        return found
    fitting: dict[int, SheetShape] = {}
    for number, size in sizes.items():
        width, height = common.grid.tile_width, common.grid.tile_height
        shape = SheetShape.of(replace(common.grid, confidence=1.0), size)
        if size[0] % width == size[1] % height == 0 and shape.rows == common.rows and shape.columns <= _MOST_COLUMNS:
            fitting[number] = shape
    alike = [number for number, shape in shapes.items() if shape.kind == common.kind]
    further = fitting if len(alike) >= _MOSTLY * len(fitting) else {}
    return found | {number: shape for number, shape in further.items() if number not in alike}


def propose_sets(shapes: Mapping[SpriteName, SheetShape], pictures: int, rows: Sequence[str]) -> SetProposal | None:
    """Return the sets to expect after slicing; None unless most pictures are sheets with equal rows.

    shapes: sheet shapes by name. pictures: number of pictures, with and without sheets. rows: row names.
    """
    common = common_shape(shapes.values())
    if common is None:
        return None
    sheets = {sheet: shape for sheet, shape in shapes.items() if shape.kind == common.kind}
    places = _places_of_sheets(list(sheets), rows)
    views = tuple(row_name(row, rows) for row in range(common.rows))
    if common.rows == 1 and all(place.row for place in places.values()):
        words = Words((*rows, *VIEWS))
        views = tuple(dict.fromkeys(place.row for place in sorted(places.values(), key=words.order)))
    columns = Counter[tuple[str, str]]()  # by set and strip
    for sheet, shape in sheets.items():
        columns[places[sheet].name, places[sheet].row if common.rows == 1 else ""] += shape.columns
    if not looks_like_sets(len(sheets), pictures, len(views), max(columns.values())):
        return None
    total = len({place.name for place in places.values()})
    return SetProposal(total, views, (min(columns.values()), max(columns.values())))


def looks_like_sets(sheets: int, pictures: int, rows: int, columns: int) -> bool:
    """Return whether sheets with equal rows surely form sets. sheets, pictures: numbers."""
    is_grid = 2 <= rows <= _MOST_ROWS and columns <= _MOST_COLUMNS
    return is_grid and sheets >= _FEWEST_SHEETS and sheets >= _MOSTLY * pictures


def places_by_sheets(
    names: Sequence[SpriteName], rows: Sequence[str], columns: Sequence[str], *, certain: bool
) -> Places:
    """Return the places of tiles, in sheets with the most common number of rows.

    rows, columns: names from the options; further rows become 'row5', further columns '5'. certain: the user calls the
    sheets sets. Several sheets for a character, 'orc_walk.png' and 'orc_idle.png', form a single set.
    """
    tiles: dict[SpriteName, dict[int, tuple[int, int]]] = {}
    for number, name in enumerate(names):
        if (at := name.tile) is not None:
            tiles.setdefault(name._replace(part=""), {})[number] = at
    if not tiles:
        return {}
    heights = {sheet: 1 + max(row for row, _ in own.values()) for sheet, own in tiles.items()}
    usual = Counter(heights.values()).most_common(1)[0][0]
    sets = {sheet: own for sheet, own in tiles.items() if heights[sheet] == usual and 1 < len(own) <= _MOST_CELLS}
    places = _places_of_sheets(list(sets), rows)
    views = usual if usual > 1 else len({place.row for place in places.values()})
    widest = 1 + max((column for own in sets.values() for _, column in own.values()), default=0)
    if not certain and not looks_like_sets(len(sets), len(tiles), views, widest):
        return {}
    return {
        number: _place_of_tile(places[sheet], at, usual, rows, columns)
        for sheet, own in sets.items()
        for number, at in own.items()
    }


def _places_of_sheets(sheets: Sequence[SpriteName], rows: Sequence[str]) -> dict[SpriteName, Place]:
    """Return the set by sheet. If most sets have several sheets, include the view or animation in a sheet's name."""
    words = Words((*(row.lower() for row in rows), *Words.of((), (), sheets).views))
    named = {sheet: parse(sheet, words) or Place(sheet.path, "", "") for sheet in sheets}
    if len({place.name for place in named.values()}) <= _MOSTLY * len(sheets):
        return named
    stems = {sheet.stem for sheet in sheets}
    by_folder = len(stems) == 1 < len(sheets)  # 'orc/sheet.png', 'elf/sheet.png'
    return {sheet: Place("/".join(sheet.folders) if by_folder else sheet.path, "", "") for sheet in sheets}


def _place_of_tile(
    sheet: Place, at: tuple[int, int], height: int, rows: Sequence[str], columns: Sequence[str]
) -> Place:
    """Return a tile's place. at: row and column.

    sheet: the set, with the view or animation in the sheet's name. height: the sheet's rows; a strip shows a single
    view.
    """
    is_strip = height == 1 and sheet.row != ""
    action = sheet.column if is_strip else f"{sheet.row}{sheet.column}"
    action += "." if action[-1:].isdecimal() else ""
    column = f"{action}{at[1] + 1}" if action else column_name(at[1], columns)
    return Place(sheet.name, sheet.row if is_strip else row_name(at[0], rows), column)


def row_name(row: int, names: Sequence[str]) -> str:
    """Return a row's name in a sheet. row: index from 0. names: names of the first rows."""
    return names[row] if row < len(names) else f"row{row + 1}"


def column_name(column: int, names: Sequence[str]) -> str:
    """Return a column's name in a sheet. column: index from 0. names: names of the first columns."""
    return names[column] if column < len(names) else str(column + 1)
