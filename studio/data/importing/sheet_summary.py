"""Decide the classes of sliced sheets in an import, and predict what slicing does to other images."""

from __future__ import annotations

from collections.abc import Mapping

from studio.core.names import escape_unprintable
from studio.data.files.source_files import SourceFile
from studio.data.images.canvas import propose_canvas_size
from studio.data.import_result import NO_SHEETS, SheetSummary
from studio.data.importing.import_buffer import ImportBuffer
from studio.data.options import ImportOptions
from studio.data.sheets.recognising import SheetCandidate


def summarize_sheets(
    buffer: ImportBuffer, options: ImportOptions, sheets: Mapping[int, SheetCandidate]
) -> SheetSummary:
    """Summarize the sliced files of an import, or before slicing the detected `sheets`, given by file number."""
    numbers = buffer.sliced or sheets.keys()
    if not numbers:
        return NO_SHEETS
    own = [buffer.files[number] for number in numbers]
    folders = {folder_class(file, options.class_levels) for file in own}
    names = {sheet_class(file, escape_unprintable(file.stem), options.class_levels) for file in own}
    # A set is held out whole: no class may consist of a single set.
    auto = "folder" if len(folders) > 1 or options.sets == "sheets" else "sheet"
    decided = auto if options.sheet_classes == "auto" else options.sheet_classes
    if not buffer.sliced and options.shrink != 1:  # tiles shrink
        return SheetSummary(decided, len(folders), len(names))
    canvas = options.size or propose_canvas_size(buffer.sizes) if buffer.sliced else _canvas_after(buffer, sheets)
    whole, skipped = buffer.count_by_fit(canvas, numbers, exactly=options.other_sizes == "leave out")
    return SheetSummary(decided, len(folders), len(names), canvas, whole, skipped)


def _canvas_after(buffer: ImportBuffer, sheets: Mapping[int, SheetCandidate]) -> int:
    """Return the side of the canvas that the import chooses after slicing the detected sheets."""
    sizes = buffer.sizes.copy()
    for number, sheet in sheets.items():
        sizes[buffer.sheet_sizes[number]] -= 1
        sizes[sheet.grid.tile_width, sheet.grid.tile_height] += sheet.sprites
    return propose_canvas_size(+sizes)


def folder_class(file: SourceFile, levels: int) -> str:
    """Return the class that a file's folders name: up to `levels` folders, or the opened folder."""
    return "/".join(file.folders[:levels]) or file.default_class


def sheet_class(file: SourceFile, sheet: str, levels: int) -> str:
    """Return the class of a sheet's sprites: up to `levels` folders, then the name of the sheet or row."""
    return "/".join((*file.folders[:levels], sheet))
