"""Slice sheets without a description: by a grid, or at transparent gaps (packed sheets)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.files.source_files import SourceImage, UnreadableFile
from studio.data.images.canvas import as_rgba, as_uint32, clear_hidden, undo_upscaling
from studio.data.images.components import Ints, label_components, runs_of
from studio.data.options import MAX_SHEET_SPRITES, ImportOptions, SheetGrid
from studio.data.sheets.cells import SummedAreaTable, find_cells
from studio.data.sheets.grids import background_pixel

_FEWEST_PIXELS = 6  # smaller components are sparks or dirt
_NEAR = 4  # pixels between a spark and the box of its sprite, at most


@dataclass(frozen=True, eq=False, slots=True)
class PackedSprite:
    """A sprite sliced from a packed sheet: its row from 0, position in pixels, and pixels, uint8 [h, w, 4]."""

    row: int
    left: int
    top: int
    rgba: Rgba


@dataclass(frozen=True, eq=False, slots=True)
class _Components:
    """Connected components of a picture."""

    label: NDArray[np.int32]  # [H, W], component of each pixel, -1 for background
    boxes: Ints  # [n, 4], left, top, right and bottom (exclusive)
    pixels: Ints  # [n], size of each component


def slice_sheet(
    picture: SourceImage, sheet: str, options: ImportOptions, own_grid: SheetGrid | None = None
) -> Sequence[SourceImage]:
    """Slice a picture into sprites as `options` say; return the picture alone if it is not sliced.

    sheet: the picture's name for users. own_grid: grid detected or set for the picture. Raises
    UnreadableFile for too many sprites.
    """
    clear_hidden(picture.rgba)
    if own_grid is None and not options.uses_detected_grids and fits_canvas(picture.rgba, options):
        return (picture,)
    if own_grid is None and options.sheets == "packed":
        cut = list(_by_gaps(picture.rgba, options))
    else:
        grid = grid_for(options, own_grid)
        cut = list(_by_grid(picture.rgba, grid)) if grid else []
    if not cut:
        return (picture,)
    digits = len(str(1 + max(row for row, _, _ in cut)))  # padded: class names sort like the rows
    names = [f"{sheet} row {row + 1:0{digits}}" if options.sheet_classes == "row" else sheet for row, _, _ in cut]
    return [SourceImage(rgba, part, (name,)) for name, (_, part, rgba) in zip(names, cut, strict=True)]


def fits_canvas(rgba: Rgba, options: ImportOptions) -> bool:
    """Return whether a picture, with upscaling undone, fits the canvas. rgba: uint8 [H, W, 4], no hidden colours."""
    return options.size > 0 and max(undo_upscaling(rgba, options.shrink).shape[:2]) <= options.size


def _by_grid(rgba: Rgba, grid: SheetGrid) -> Iterator[tuple[int, str, Rgba]]:
    """Yield row, name and pixels of each tile with foreground; ends at once for a grid of a single tile."""
    if grid.rows(rgba.shape[0]) * grid.columns(rgba.shape[1]) < 2:
        return
    for row, column, tile in slice_grid(rgba, grid):
        yield row, f"r{row + 1} c{column + 1}", tile


def _by_gaps(rgba: Rgba, options: ImportOptions) -> Iterator[tuple[int, str, Rgba]]:
    """Yield row, name and pixels of each sprite between gaps; ends at once for a single sprite."""
    pieces = slice_packed(rgba, options.gap)
    if len(pieces) > 1:
        yield from ((piece.row, str(number), piece.rgba) for number, piece in enumerate(pieces, 1))


def grid_for(options: ImportOptions, own_grid: SheetGrid | None) -> SheetGrid | None:
    """Return the grid to slice a sheet: `own_grid`, detected or set for this sheet, or by the settings; else None."""
    if own_grid is not None or options.uses_detected_grids:
        return own_grid
    return grid_from_options(options) if options.sheets == "grid" else None


def grid_from_options(options: ImportOptions) -> SheetGrid:
    """Return the grid with the tile size, margins and spacing in `options`."""
    top = options.margin if options.margin_top < 0 else options.margin_top
    return SheetGrid(options.tile, options.tile_height or options.tile, options.margin, top, options.spacing)


def slice_grid(rgba: Rgba, grid: SheetGrid) -> list[tuple[int, int, Rgba]]:
    """Return row, column (from 0) and pixels of all whole tiles with foreground. Raises UnreadableFile for too many."""
    cells = find_cells(grid, SummedAreaTable.of(rgba))
    check_sprite_count(cells.sprites)
    found = []
    for row, column in np.argwhere(cells.filled).tolist():
        y, x = int(cells.tops[row]), int(cells.lefts[column])
        found.append((row, column, rgba[y : y + grid.tile_height, x : x + grid.tile_width].copy()))
    return found


def slice_packed(rgba: Rgba, gap: int) -> list[PackedSprite]:
    """Return every sprite of uint8 [H, W, 4] in reading order, with background in place of its neighbours.

    A sprite is a group of pixels connected, also diagonally, across up to `gap` background pixels. Sparks (tiny
    components) join a near sprite; others are dropped. Raises UnreadableFile for too many sprites.
    """
    pixels = as_uint32(rgba)
    background = background_pixel(pixels)
    parts = _with_sparks(_connected(pixels != background, gap))
    found = []
    for row, number in _in_reading_order(parts):
        left, top, right, bottom = parts.boxes[number].tolist()
        inside = parts.label[top:bottom, left:right] == number
        piece = np.where(inside, pixels[top:bottom, left:right], np.uint32(background))
        found.append(PackedSprite(row, left, top, as_rgba(piece)))
    return found


def _connected(filled: NDArray[np.bool_], gap: int) -> _Components:
    """Return the connected components of bool [H, W], in no fixed order."""
    height, width = filled.shape
    # Each pixel becomes a block of gap + 1: blocks touch exactly if at most `gap` pixels lie between.
    blocks = np.zeros((height + gap, width + gap), bool)
    rows = np.zeros((height, width + gap), bool)
    for step in range(gap + 1):
        rows[:, step : step + width] |= filled
    for step in range(gap + 1):
        blocks[step : step + height] |= rows
    label = label_components(blocks, diagonal=True)[:height, :width]
    row, start, end = runs_of(filled)
    numbers, label_of = np.unique(label[row, start], return_inverse=True)
    check_sprite_count(len(numbers))
    renumbered = np.full(int(label.max(initial=-1)) + 2, -1, np.int32)  # the last entry maps -1 to -1
    renumbered[numbers] = np.arange(len(numbers))
    label = np.where(filled, renumbered[label], -1)
    boxes = np.tile(np.array([width, height, 0, 0]), (len(numbers), 1))
    for side, (low, high) in enumerate(((start, end), (row, row + 1))):
        np.minimum.at(boxes[:, side], label_of, low)
        np.maximum.at(boxes[:, side + 2], label_of, high)
    return _Components(label, boxes, np.bincount(label_of, end - start, len(numbers)).astype(np.int64))


def _with_sparks(parts: _Components) -> _Components:
    """Merge components of a few pixels into a near sprite, or drop them; their boxes become empty."""
    small = parts.pixels < _FEWEST_PIXELS
    large = np.flatnonzero(~small)
    if not small.any() or not len(large):
        return parts
    becomes = np.arange(len(small))
    boxes = parts.boxes.copy()
    boxes[small] = 0
    for number in np.flatnonzero(small):
        left, top, right, bottom = parts.boxes[number]
        others = parts.boxes[large]
        apart = np.maximum(others[:, :2] - (right, bottom), (left, top) - others[:, 2:]).max(axis=1)
        nearest = int(apart.argmin())
        becomes[number] = large[nearest] if apart[nearest] <= _NEAR else -1
        if becomes[number] >= 0:
            box = boxes[becomes[number]]
            box[:2], box[2:] = np.minimum(box[:2], (left, top)), np.maximum(box[2:], (right, bottom))
    label = np.where(parts.label >= 0, becomes[parts.label], -1)
    return _Components(label, boxes, np.where(small, 0, parts.pixels))


def _in_reading_order(parts: _Components) -> Iterator[tuple[int, int]]:
    """Yield (row, component) in reading order. A row's components have their middle above the bottom of its first."""
    rows: list[list[int]] = []
    for number in np.lexsort((-parts.boxes[:, 3], parts.boxes[:, 1])).tolist():
        if not parts.pixels[number]:
            continue
        if not rows or parts.boxes[number, [1, 3]].mean() >= parts.boxes[rows[-1][0], 3]:
            rows.append([])
        rows[-1].append(number)
    for row, numbers in enumerate(rows):
        yield from ((row, number) for number in sorted(numbers, key=parts.boxes[:, 0].__getitem__))


def check_sprite_count(count: int) -> None:
    """Raise UnreadableFile for more sprites than allowed in a sheet."""
    if count > MAX_SHEET_SPRITES:
        raise UnreadableFile("refused", f"would be sliced into {count:,} sprites; the limit is {MAX_SHEET_SPRITES:,}")
