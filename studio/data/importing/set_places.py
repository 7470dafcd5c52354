"""Find imported sprites' places in sets, and propose sets from unsliced sheets."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from studio.core.events import Event, Notice
from studio.data.import_result import ImportResult
from studio.data.importing.import_buffer import ImportBuffer
from studio.data.options import ImportOptions, ReadOptions
from studio.data.sets.cell_names import CellNames
from studio.data.sets.layout import SetProposal
from studio.data.sets.recognising import FoundSets, find_sets
from studio.data.sets.sheets import SheetShape, propose_sets, with_common_grid
from studio.data.sets.table import SetTables
from studio.data.sets.words import SpriteName
from studio.data.sheets.recognising import SheetCandidate

_HINTS = {
    "folders": "Put each view into its own folder, with equal file names: front/knight.png, back/knight.png.",
    "sheets": "Use a sheet for each character, with a row for each view. --tile sets the size of a cell.",
    "names": "Name files like knight_walk_left_2.png, or give your words for views with --rows.",
    "csv": "Put a sets.csv with the columns file, set, cell beside the sprites.",
}


def options_of_sets(options: ImportOptions) -> ImportOptions:
    """Return options with slicing turned on for sets by sheets. Raises BadInputError for unusable names of cells."""
    CellNames.parse(options.rows, "Rows")
    CellNames.parse(options.columns, "Columns")
    is_whole = options.sets == "sheets" and options.sheets == "as they are"
    return options.replace(sheets="grid") if is_whole else options


def add_sets(
    imported: ImportResult, options: ReadOptions, tables: SetTables, total: int
) -> Generator[int, None, ImportResult]:
    """Return an import with the places of sprites and duplicates in sets; yields `total`.

    The split never divides a chosen set. Whole sheets are no cells: a proposal to slice sheets comes first.
    """
    sprites, duplicates = imported.sprites, imported.duplicates
    layout, places = FoundSets()
    if imported.proposed_sets is None or tables:
        names = [*sprites.names, *(each.item.name for each in duplicates)]
        first = np.array([each.first for each in duplicates], np.int64)
        finding = find_sets(names, np.concatenate([np.arange(len(sprites)), first]), options, tables)
        layout, places = yield from _counting(finding, total)
    notes = tuple(sorted([*imported.notes, *tables.notes()], key=lambda issue: issue.name))
    if not len(layout):
        return replace(imported, notes=notes)
    sprites = replace(sprites, sets=layout)
    if options.sets != "auto" or layout.kind == "csv":
        sprites = sprites.with_chosen_sets()
    placed = (replace(each, place=places.get(len(sprites) + number)) for number, each in enumerate(duplicates))
    return replace(
        imported, sprites=sprites, notes=notes, duplicates=tuple(placed),
        proposed_sets=None,
    )  # fmt: skip


def _counting(finding: Generator[int, None, FoundSets], total: int) -> Generator[int, None, FoundSets]:
    """Run `finding` and return the result, but yield `total`, the number of files."""
    while True:
        try:
            next(finding)
        except StopIteration as end:
            return cast(FoundSets, end.value)
        yield total


def propose_unsliced(
    buffer: ImportBuffer, options: ImportOptions, sheets: Mapping[int, SheetCandidate]
) -> SetProposal | None:
    """Return the sets after slicing the detected `sheets`; None if the sheets are not clearly sets."""
    if options.sets != "auto" or options.sheets != "as they are" or options.shrink != 1 or not sheets:
        return None
    sizes = buffer.picture_sizes()
    shapes = with_common_grid(_shapes(buffer, sheets), sizes)
    named = {SpriteName.of(buffer.files[number].name): shape for number, shape in sorted(shapes.items())}
    return propose_sets(named, len(sizes), CellNames.parse(options.rows, "Rows").names)


def share_grid(
    buffer: ImportBuffer, options: ImportOptions, sheets: Mapping[int, SheetCandidate]
) -> dict[int, SheetCandidate]:
    """Return the sheets, with the collection's usual grid for fitting sheets and further fitting pictures."""
    if options.shrink != 1:
        return dict(sheets)
    shapes = with_common_grid(_shapes(buffer, sheets), buffer.picture_sizes())
    return {
        number: sheets[number]
        if number in sheets and sheets[number].grid == shape.grid
        else SheetCandidate(shape.grid, shape.rows * shape.columns, 0.0, 0.0)
        for number, shape in sorted(shapes.items())
    }


def _shapes(buffer: ImportBuffer, sheets: Mapping[int, SheetCandidate]) -> dict[int, SheetShape]:
    return {number: SheetShape.of(sheet.grid, buffer.sheet_sizes[number]) for number, sheet in sheets.items()}


def notices_on_sets(imported: ImportResult, options: ReadOptions) -> Iterator[Event]:
    """Yield a notice if the user chose a kind of sets, but the import found no sets."""
    if options.sets in _HINTS and not len(imported.sprites.sets):
        yield Notice("warning", f"No sets were found by {options.sets}.", _HINTS[options.sets])
