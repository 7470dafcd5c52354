"""Detect the sheets among the pictures of an import, and choose the grids for slicing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import replace

from studio.core.events import Event, Notice, Progress
from studio.core.threads import run_in_thread
from studio.data.doctor.fixes import exclusion_filter
from studio.data.importing.import_buffer import ImportBuffer
from studio.data.importing.set_places import share_grid
from studio.data.importing.sheet_grids import match_sheet_grids, parse_sheet_grids
from studio.data.options import ImportOptions, SheetGrid
from studio.data.reading.finding import FoundFiles
from studio.data.sheets.recognising import (
    SheetCandidate,
    SizeInFolder,
    most_likely_grid,
    vote_on_sheets,
    without_lone_sheets,
)


def choose_grids(
    buffer: ImportBuffer, files: FoundFiles, options: ImportOptions
) -> Generator[Event, None, tuple[dict[int, SheetCandidate], dict[int, SheetGrid]]]:
    """Decide which pictures are sheets; return the detected sheets, and the grids for slicing, by file number."""
    sizes = {number: (_folder(files, number), size) for number, size in buffer.sheet_sizes.items()}
    voted = vote_on_sheets(buffer.candidates, sizes)
    sheets = voted
    if voted:
        pictures = yield from run_in_thread(_count_pictures(buffer, files), len(files), "sizes compared")
        sheets = without_lone_sheets(voted, sizes, pictures)
    if options.uses_detected_grids:
        sheets = sheets or voted  # the user asks to slice, and no other picture is a sheet
        sheets |= further_sheets(buffer, sheets, options.size)
    if options.sets == "sheets" and options.uses_detected_grids:
        sheets = share_grid(buffer, options, sheets)
    own = yield from _grids_from_options(files, options.sheet_grids)
    sheets |= {number: replace(sheets[number], grid=grid) for number, grid in own.items() if number in sheets}
    detected = {number: sheet.grid for number, sheet in sheets.items()} if options.uses_detected_grids else {}
    return sheets, detected | own


def _folder(files: FoundFiles, number: int) -> str:
    return files[number].name.rpartition("/")[0]


def _count_pictures(buffer: ImportBuffer, files: FoundFiles) -> Generator[int, None, Counter[SizeInFolder]]:
    """Count the pictures by folder and size; yield the number of counted pictures after each."""
    counts: Counter[SizeInFolder] = Counter()
    for done, (number, size) in enumerate(buffer.picture_sizes().items(), 1):
        counts[_folder(files, number), size] += 1
        yield done
    return counts


def further_sheets(buffer: ImportBuffer, sheets: Mapping[int, SheetCandidate], size: int) -> dict[int, SheetCandidate]:
    """Return further images to slice by a grid, though their grids are less certain, by file number.

    With a canvas size, these are images larger than the canvas; without, all candidates if `sheets` is empty.
    """
    further: dict[int, SheetCandidate] = {}
    if sheets and not size:
        return further
    for number, candidates in buffer.candidates.items():
        sheet = None if number in sheets else most_likely_grid(candidates)
        if sheet is not None and (not size or max(buffer.sheet_sizes[number]) > size):
            further[number] = sheet
    return further


def _grids_from_options(files: FoundFiles, text: str) -> Generator[Event, None, dict[int, SheetGrid]]:
    """Parse ImportOptions.sheet_grids; return grids by file number. Yields notices on unknown names."""
    if not text:
        return {}
    numbers: dict[str, int] = {}
    for number in range(len(files)):
        numbers.setdefault(files[number].name, number)
        yield Progress(number, len(files), "files checked")
    grids = match_sheet_grids(text, numbers)
    for pattern in parse_sheet_grids(text):
        if not any(map(exclusion_filter(pattern), grids)):
            hint = "Correct the name in the grids for individual sheets."
            yield Notice("warning", f"No sheet matches {pattern!r}.", hint)
    return {numbers[name]: grid for name, grid in grids.items()}
