"""Texts and numbers for the preview of a slicing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studio.core import formatting
from studio.data.files.source_files import UnreadableFile
from studio.data.images.canvas import COMMON_SIZES
from studio.data.import_result import NO_SHEETS, DetectedSheet, SheetSummary, SpritesImported
from studio.data.importing.sheet_preview import SheetPreview
from studio.data.options import LARGEST_CANVAS, ImportOptions, SheetGrid
from studio.data.sets.layout import SetLayout, SetProposal
from studio.data.sets.sheets import row_name
from studio.data.sheets.cells import GridCells
from studio.data.sheets.slicing import check_sprite_count, fits_canvas

SLICE_TITLE = "slice sheets"
_MOST_NAMED = 3  # folders


@dataclass(frozen=True)
class SheetsToSlice:
    """The sheets to show in the slicing view."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]  # of the sheets
    options: ImportOptions
    detected: tuple[DetectedSheet, ...] = ()
    summary: SheetSummary = NO_SHEETS
    singles: int = 0  # number of other sprites, which stay whole
    canvas: int = 0  # side of the open sprites in pixels
    reason: str = ""  # why the view opened by itself

    @cached_property
    def grids(self) -> Mapping[str, SheetGrid]:
        """The detected grids by sheet name."""
        return {sheet.name: sheet.grid for sheet in self.detected}


@dataclass(frozen=True)
class SliceOutcome:
    """The expected result of slicing a sheet."""

    sprites: int  # count, 0 if the sheet stays whole
    text: str  # a sentence
    side: int = 0  # the largest sprite's side in pixels


def grid_outcome(cells: GridCells | None, left_over: str = "") -> SliceOutcome:
    """Describe slicing along a grid. left_over: a sentence about pixels outside whole cells, or ''."""
    if cells is None:
        return SliceOutcome(0, "No grid detected. The sheet stays whole.")
    if cells.filled.size < 2:
        return SliceOutcome(0, "Fewer than two cells fit. The sheet stays whole.")
    text = formatting.count(cells.sprites, "sprite")
    text += f", {formatting.count(cells.empty, 'empty cell')} skipped" if cells.empty else ""
    text += f"; {left_over}" if left_over else ""
    return _outcome(cells.sprites, text, max(cells.grid.tile_width, cells.grid.tile_height))


def boxes_outcome(boxes: NDArray[np.int64] | None, trouble: str = "") -> SliceOutcome:
    """Describe slicing along boxes int64 [n, 4]; None while searching, or if `trouble` says why boxes are missing."""
    if boxes is None:
        return SliceOutcome(0, trouble or "Detecting sprites…")
    if len(boxes) < 2:
        return SliceOutcome(0, "No transparent gaps found. The sheet stays whole.")
    return _outcome(len(boxes), formatting.count(len(boxes), "sprite"), int((boxes[:, 2:] - boxes[:, :2]).max()))


def _outcome(count: int, text: str, side: int) -> SliceOutcome:
    if not count:
        return SliceOutcome(0, "All cells are empty. The sheet stays whole.")
    if side > LARGEST_CANVAS:
        text = f"{text}, up to {side:,} pixels large. The limit is {LARGEST_CANVAS}."
    try:
        check_sprite_count(count)
    except UnreadableFile as refused:
        return SliceOutcome(0, f"The sheet {refused.reason}.")
    return SliceOutcome(count, text, side)


def with_fitting_canvas(options: ImportOptions, sheets: SheetsToSlice, sheet: SheetPreview, side: int) -> ImportOptions:
    """Return the options with a canvas, the size of all sprites, that fits cells of `side` pixels."""
    if options.uses_detected_grids and sheets.grids and not 0 < side <= options.size:
        return options.replace(size=0)  # size 0: the import fits the canvas to the sheets' cells
    if not options.size and not sheets.singles:
        return options
    size = options.size or sheets.canvas
    if side > size:
        size = next((common for common in COMMON_SIZES if common >= side), LARGEST_CANVAS)
    fitting = options.replace(size=size)
    return options.replace(size=0) if fits_canvas(sheet.rgba, fitting) else fitting


def describe_effects(options: ImportOptions, sheets: SheetsToSlice, *, alone: bool = False) -> str:
    """Describe what slicing does to other sheets and to single sprites. alone: the shown sheet has its own grid."""
    text, automatic, many = [], options.uses_detected_grids, len(sheets.names)
    if alone:
        others = "by their detected grids" if automatic else "as before"
        text.append(f"These numbers apply to this sheet only. Other sheets are sliced {others}.")
    elif many > 1:
        if automatic and sheets.detected and not options.sheet_grids:
            sprites = sum(sheet.sprites for sheet in sheets.detected)
            classes = sheets.summary.count_classes(options.sheet_classes)
            text.append(f"Result: up to {sprites:,} sprites{_in_classes(classes)}.")
        each = f"All {many:,} sheets are sliced by their own detected grids."
        text.append(each if automatic else f"Tile size and spacing apply to all {many:,} sheets.")
    if automatic and sheets.grids and not options.size:
        text.append(f"{_others(sheets.summary.whole)} whole." if sheets.summary.whole else "")
        text.append(describe_skipped_images(sheets.summary, options))
        text.append("The canvas is fitted automatically.")
    elif options.size:
        single = _others(sheets.singles) if sheets.singles else "Smaller images stay"
        text.append(f"{single} whole. Canvas: {options.size} × {options.size} pixels.")
    elif sheets.singles:
        text.append("All images with detected cells are sliced.")
    return " ".join(filter(None, text))


def _in_classes(classes: int) -> str:
    """Return ' in 7 classes'; '' for a single class, or an unknown number."""
    return f" in {classes:,} classes" if classes > 1 else ""


def describe_skipped_images(summary: SheetSummary, options: ImportOptions) -> str:
    """Say which images, other than sheets, the import will skip after slicing; '' without skipped images."""
    if not summary.skipped:
        return ""
    width, height, _ = summary.skipped[0]
    of, unit = (f" of {width:,} × {height:,} pixels", "") if len(summary.skipped) == 1 else ("", " pixels")
    images = formatting.count(sum(count for *_, count in summary.skipped), "image")
    reason = "not" if options.other_sizes == "leave out" else "larger than"
    return f"{images}{of} will be skipped: {reason} {summary.canvas} × {summary.canvas}{unit}."


def describe_hidden_folders(found: SpritesImported) -> str:
    """Say which folders show no sprites before slicing; '' without hidden folders."""
    names = found.sheet_summary.hidden
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    appear = "appears" if len(names) == 1 else "appear"
    return f"{', '.join(names[:_MOST_NAMED])}{more} {appear} only after slicing."


def _others(images: int) -> str:
    return f"{formatting.count(images, 'other image')} {'stays' if images == 1 else 'stay'}"


def describe_result(found: SpritesImported, options: ImportOptions) -> str:
    """Describe a finished slicing: sheets, sprites, classes, and skipped images and cells by reason."""
    sheets, sprites = set(sliced_sheets(found)), found.sprites
    kept = [index for index, name in enumerate(sprites.names) if name.rpartition("#")[0] in sheets]
    classes = len(np.unique(sprites.labels[kept]))
    by = f"{_in_classes(classes)}, by {found.sheet_summary.classes}" if classes > 1 else ""
    text = f"{formatting.count(len(sheets), 'image')} sliced into {formatting.count(len(kept), 'sprite')}{by}."
    duplicates, others, uncut = (
        len(found.quarantine_groups.get(group, ())) for group in ("duplicate", "wrong size", "looks like a sheet")
    )
    size = f"{sprites.size} × {sprites.size} pixels"
    reason = f"not {size}" if options.other_sizes == "leave out" else f"larger than {size}"
    is_skipped = duplicates and not len(sprites.sets)  # duplicates fill cells of sets
    skipped = [formatting.count(duplicates, "duplicate")] if is_skipped else []
    skipped += [f"{others:,} {reason}"] if others else []
    skipped += [formatting.count(uncut, "possible sheet")] if uncut else []
    return f"{text} Skipped: {', '.join(skipped)}." if skipped else text


def sliced_sheets(found: SpritesImported) -> list[str]:
    return [item.name for item in found.note_groups.get("cut sheet", ())]


def count_skipped_cells(found: SpritesImported, group: str) -> int:
    """Count the sliced sheets' cells in a quarantine group, such as 'duplicate'."""
    sheets = set(sliced_sheets(found))
    return sum(item.name.rpartition("#")[0] in sheets for item in found.quarantine_groups.get(group, ()))


def describe_characters(sets: SetLayout | SetProposal) -> str:
    """Return '83 characters with 4 views × 4 frames: down, up, left, right.', without names if nobody gave any."""
    cells, colon, names = sets.describe().partition(":")
    return cells.replace(" x ", " × ") + (f"{colon}{names}." if has_names(sets) else ".")


def has_names(sets: SetLayout | SetProposal) -> bool:
    """Return whether files or the user named the views of characters."""
    return row_name(0, ()) not in sets.rows


def describe_proposal(sheets: Sequence[DetectedSheet], classes: int = 0) -> str:
    """Return '44 images look like sheets. Slice them into up to 371 sprites of about 16 × 16 pixels in 7 classes?'

    classes: 0 if unknown.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    for sheet in sheets:
        sizes[sheet.grid.tile_width, sheet.grid.tile_height] += sheet.sprites
    (width, height), _ = sizes.most_common(1)[0]
    look, them = ("looks like a sheet", "it") if len(sheets) == 1 else ("look like sheets", "them")
    images, sprites = formatting.count(len(sheets), "image"), formatting.count(sizes.total(), "sprite")
    of = f"of {'about ' if len(sizes) > 1 else ''}{width} × {height} pixels"
    return f"{images} {look}. Slice {them} into up to {sprites} {of}{_in_classes(classes)}?"
