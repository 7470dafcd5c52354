"""What would come of a cut, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.data.files.source_files import UnreadableFile
from studio.data.images.canvas import COMMON_SIZES
from studio.data.import_result import DetectedSheet, SpritesImported
from studio.data.importing.sheet_preview import SheetPreview
from studio.data.options import LARGEST_CANVAS, ImportOptions, SheetGrid
from studio.data.sheets.cells import GridCells
from studio.data.sheets.slicing import check_sprite_count, fits_canvas

CUT_TITLE = "Cut the sheets"


@dataclass(frozen=True)
class SheetsToSlice:
    """The sheets of an import, by their names in it.

    singles: sprites beside them, that stay whole. canvas: pixels, of those. reason: why nobody had to ask for this.
    grids: those that the import recognised, by the names of their sheets.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    options: ImportOptions
    singles: int = 0
    canvas: int = 0
    reason: str = ""
    grids: Mapping[str, SheetGrid] = field(default_factory=dict)


@dataclass(frozen=True)
class SliceOutcome:
    """sprites: how many, 0 where the sheet would not be cut. words: a short sentence. side: of the largest, pixels."""

    sprites: int
    text: str
    side: int = 0


def grid_outcome(cells: GridCells | None, left_over: str = "") -> SliceOutcome:
    """Describe the cut along a grid. left_over: a sentence about pixels outside the whole cells, or empty."""
    if cells is None:
        return SliceOutcome(0, "No grid is seen in this sheet: it would stay whole.")
    if cells.filled.size < 2:
        return SliceOutcome(0, "Fewer than two whole cells fit: the sheet would stay whole.")
    left_out = formatting.count(cells.empty, "empty cell")
    text = f"{formatting.count(cells.sprites, 'sprite')}, {left_out} left out" if cells.empty else ""
    if left_over:
        text = f"{text or formatting.count(cells.sprites, 'sprite')}; {left_over}"
    return _outcome(cells.sprites, text, max(cells.grid.tile_width, cells.grid.tile_height))


def boxes_outcome(boxes: NDArray[np.int64] | None, trouble: str = "") -> SliceOutcome:
    """What cutting a packed sheet gives. Without boxes it is not known yet, or `trouble` is why there are none."""
    if boxes is None:
        return SliceOutcome(0, trouble or "Looking for the sprites…")
    if len(boxes) < 2:
        return SliceOutcome(0, "Nothing parts its sprites: the sheet would stay whole.")
    return _outcome(len(boxes), "", int((boxes[:, 2:] - boxes[:, :2]).max()))


def _outcome(count: int, text: str, side: int) -> SliceOutcome:
    if not count:
        return SliceOutcome(0, "All cells are empty: the sheet would stay whole.")
    if side > LARGEST_CANVAS:
        text = f"{text or formatting.count(count, 'sprite')}, up to {side:,} pixels large: at most {LARGEST_CANVAS} fit"
    try:
        check_sprite_count(count)
    except UnreadableFile as refused:
        return SliceOutcome(0, f"The sheet {refused.reason}.")
    return SliceOutcome(count, text or formatting.count(count, "sprite"), side)


def with_fitting_canvas(options: ImportOptions, sheets: SheetsToSlice, sheet: SheetPreview, side: int) -> ImportOptions:
    """The options with a canvas that holds sprites of `side` pixels and leaves single sprites whole, if that is one."""
    if options.uses_detected_grids and sheets.grids and not 0 < side <= options.size:
        return options.replace(size=0)  # it knows which pictures are sheets, and fits the canvas to their cells
    if not options.size and not sheets.singles:
        return options
    size = options.size or sheets.canvas
    if side > size:
        size = next((common for common in COMMON_SIZES if common >= side), LARGEST_CANVAS)
    fitting = options.replace(size=size)
    return options.replace(size=0) if fits_canvas(sheet.rgba, fitting) else fitting


def describe_effects(options: ImportOptions, sheets: SheetsToSlice, *, alone: bool = False) -> str:
    """Describe what a cut does to the other sheets and to single sprites.

    alone: whether the sheet on show has its own grid.
    """
    text, automatic, many = [], options.uses_detected_grids, len(sheets.names)
    if alone:
        others = "along their detected grids" if automatic else "as before"
        text.append(f"These numbers apply to this sheet only. The other sheets are cut {others}.")
    elif many > 1:
        each = f"Each of the {many:,} sheets is cut along its detected grid."
        text.append(each if automatic else f"These numbers apply to all {many:,} sheets.")
    if automatic and sheets.grids and not options.size:
        others = f"{_others(sheets)} whole, and the" if sheets.singles else "The"
        text.append(f"{others} canvas is made to fit.")
    elif options.size:
        single = "Smaller pictures stay"
        if sheets.singles:
            single = _others(sheets)
        text.append(f"{single} whole; the canvas is {options.size} × {options.size} pixels.")
    elif sheets.singles:
        text.append("Every picture in which cells are seen is cut.")
    return " ".join(text)


def _others(sheets: SheetsToSlice) -> str:
    return f"{formatting.count(sheets.singles, 'other sprite')} {'stays' if sheets.singles == 1 else 'stay'}"


def describe_result(found: SpritesImported) -> str:
    """Describe a finished cut: number of sheets, of sprites, and of cells left out for each reason."""
    sheets = {item.name for item in found.note_groups.get("cut sheet", ())}
    kept = sum(name.rpartition("#")[0] in sheets for name in found.sprites.names)
    were = "was" if len(sheets) == 1 else "were"
    text = f"{formatting.count(len(sheets), 'picture')} {were} cut into {formatting.count(kept, 'sprite')}."
    size = found.sprites.size
    left_out = []
    if cells := count_skipped_cells(found, "duplicate"):
        left_out.append(formatting.count(cells, "duplicate"))
    if cells := count_skipped_cells(found, "wrong size"):
        left_out.append(f"{cells:,} larger than the canvas of {size} × {size} pixels")
    return f"{text} Left out: {', '.join(left_out)}." if left_out else text


def count_skipped_cells(found: SpritesImported, group: str) -> int:
    """Count the cells of cut sheets in a quarantine group, such as 'duplicate'."""
    sheets = {item.name for item in found.note_groups.get("cut sheet", ())}
    return sum(item.name.rpartition("#")[0] in sheets for item in found.quarantine_groups.get(group, ()))


def describe_proposal(sheets: Sequence[DetectedSheet]) -> str:
    """'44 pictures look like strips or sheets of many sprites: cut them into up to 371 sprites of about 16 × 16?'"""
    sizes: Counter[tuple[int, int]] = Counter()
    for sheet in sheets:
        sizes[sheet.grid.tile_width, sheet.grid.tile_height] += sheet.sprites
    (width, height), _ = sizes.most_common(1)[0]
    look, them = ("looks like a strip or a sheet", "it") if len(sheets) == 1 else ("look like strips or sheets", "them")
    pictures, sprites = formatting.count(len(sheets), "picture"), formatting.count(sizes.total(), "sprite")
    about = "" if len(sizes) == 1 else "about "
    return f"{pictures} {look} of many sprites: cut {them} into up to {sprites} of {about}{width} × {height} pixels?"
