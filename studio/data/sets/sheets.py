"""Recognise sets in sheets: each sheet is a character, with views as rows and frames as columns of one grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from studio.data.options import SheetGrid
from studio.data.sets.layout import Place, SetProposal
from studio.data.sets.naming import Places
from studio.data.sets.words import SpriteName

_FEWEST_SHEETS, _MOST_ROWS, _MOST_COLUMNS = 3, 16, 16  # of sets recognised without being asked for
_MOSTLY = 0.5  # share of sheets with equal rows
_MOST_CELLS = 4096  # of a sheet that the user calls a set


@dataclass(frozen=True)
class SheetShape:
    """The grid of a sheet and its number of rows and columns."""

    grid: SheetGrid
    rows: int
    columns: int

    @classmethod
    def of(cls, grid: SheetGrid, size: tuple[int, int]) -> SheetShape:
        """Return the shape of a sheet of `size`, (width, height) in pixels."""
        return cls(grid, grid.rows(size[1]), grid.columns(size[0]))

    @property
    def kind(self) -> tuple[int, int, int]:
        """Tile size and rows, which the sheets of a collection share."""
        return self.grid.tile_width, self.grid.tile_height, self.rows


def common_shape(shapes: Iterable[SheetShape]) -> SheetShape | None:
    """Return a sheet with the tile size and rows of most sheets without margins; None without such sheets."""
    plain = [
        one for one in shapes if not (one.grid.left or one.grid.top or one.grid.spacing) and one.rows * one.columns > 1
    ]
    counts = Counter(one.kind for one in plain)
    if not counts:
        return None
    best = counts.most_common(1)[0][0]
    return next(one for one in plain if one.kind == best)


def with_common_grid(shapes: Mapping[int, SheetShape], sizes: Mapping[int, tuple[int, int]]) -> dict[int, SheetShape]:
    """Return the shapes of all sheets in a collection, by file number: sheets that fit the usual grid get that grid.

    shapes: shapes by detected grids. sizes: (width, height) in pixels of every picture. A picture fits if whole tiles
    fill it, in as many rows as usual. Nothing changes if most fitting pictures are no such sheets.
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


def propose_sets(shapes: Sequence[SheetShape], pictures: int, rows: Sequence[str]) -> SetProposal | None:
    """Return the sets after slicing; None unless most pictures are sheets with equal rows.

    pictures: number of all pictures, sheets or not.
    """
    common = common_shape(shapes)
    own = [one for one in shapes if common and one.kind == common.kind]
    if common is None or not looks_like_sets(len(own), pictures, common.rows, max(one.columns for one in own)):
        return None
    columns = [one.columns for one in own]
    return SetProposal(len(own), tuple(row_name(row, rows) for row in range(common.rows)), (min(columns), max(columns)))


def looks_like_sets(sheets: int, pictures: int, rows: int, columns: int) -> bool:
    """Whether sheets with equal rows, among all pictures, are surely sets."""
    is_grid = 2 <= rows <= _MOST_ROWS and columns <= _MOST_COLUMNS
    return is_grid and sheets >= _FEWEST_SHEETS and sheets >= _MOSTLY * pictures


def places_by_sheets(
    names: Sequence[SpriteName], rows: Sequence[str], columns: Sequence[str], *, certain: bool
) -> Places:
    """Return the places of tiles, in sheets with the most common number of rows.

    rows, columns: names from the options; further rows are named 'row5', further columns '5'. certain: whether the user
    calls the sheets sets.
    """
    tiles: dict[str, dict[int, tuple[int, int]]] = {}
    for number, name in enumerate(names):
        if (at := name.tile) is not None:
            tiles.setdefault(name.path, {})[number] = at
    heights = {sheet: 1 + max(row for row, _ in own.values()) for sheet, own in tiles.items()}
    if not tiles:
        return {}
    usual = Counter(heights.values()).most_common(1)[0][0]
    sets = {sheet: own for sheet, own in tiles.items() if heights[sheet] == usual and 1 < len(own) <= _MOST_CELLS}
    widest = 1 + max((column for own in sets.values() for _, column in own.values()), default=0)
    if not certain and not looks_like_sets(len(sets), len(tiles), usual, widest):
        return {}
    return {
        number: Place(sheet, row_name(row, rows), column_name(column, columns))
        for sheet, own in sets.items()
        for number, (row, column) in own.items()
    }


def row_name(row: int, names: Sequence[str]) -> str:
    """Return the name of a sheet's row, from 0."""
    return names[row] if row < len(names) else f"row{row + 1}"


def column_name(column: int, names: Sequence[str]) -> str:
    """Return the name of a sheet's column, from 0."""
    return names[column] if column < len(names) else str(column + 1)
