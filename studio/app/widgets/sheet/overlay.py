"""Drawing over the visible part of a sheet with whole arrays, so that a million cells are as fast as ten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QImage, QPainter

from studio.app import theme
from studio.data.sheets.cells import GridCells

_CLEAR, _VEIL, _HATCH, _DARK, _LIGHT = range(5)
_DASH = 4  # dash length in line widths; dark and light dashes are visible on all colours
_HATCHING = 7  # distance of hatching lines in line widths
_NARROWEST = 4  # in line widths; smaller cells are drawn without lines

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]
S = TypeVar("S", bound=np.generic)


@dataclass(frozen=True, slots=True)
class SheetPart:
    """The part of an enlarged sheet to draw.

    box: its rectangle on the enlarged sheet. zoom: device pixels for a sheet pixel. line: line width. In device pixels.
    """

    box: QRect
    zoom: int
    line: int


def draw_cells(painter: QPainter, target: QRect, part: SheetPart, cells: GridCells) -> None:
    """Draw a grid's cells at `target`, with empty cells hatched."""
    codes = _veiled(part, cells)
    if min(cells.grid.tile_width, cells.grid.tile_height) * part.zoom >= _NARROWEST * part.line and cells.filled.size:
        dashes = _dashes(part)
        right, bottom = cells.lefts + cells.grid.tile_width, cells.tops + cells.grid.tile_height
        across = _range(part.box.x(), part.box.width(), cells.lefts[0] * part.zoom, right[-1] * part.zoom + part.line)
        down = _range(part.box.y(), part.box.height(), cells.tops[0] * part.zoom, bottom[-1] * part.zoom + part.line)
        for edges in (cells.lefts, right):
            places = _line_pixels(edges, part.box.x(), part.box.width(), part)
            codes[down, places] = dashes[down, places]
        for edges in (cells.tops, bottom):
            places = _line_pixels(edges, part.box.y(), part.box.height(), part)
            codes[places, across] = dashes[places, across]
    _draw(painter, target, codes)


def draw_boxes(painter: QPainter, target: QRect, part: SheetPart, boxes: Ints) -> None:
    """Draw boxes int [n, 4] (left, top, right, bottom, the last two exclusive), and a veil over the rest."""
    box, line = part.box, part.line
    codes = np.full((box.height(), box.width()), _VEIL, np.uint8)
    places = boxes * part.zoom - np.array([box.x(), box.y()] * 2)
    places[:, 2:] += line
    seen = (places[:, :2] < (box.width(), box.height())).all(axis=1) & (places[:, 2:] > 0).all(axis=1)
    dashes = _dashes(part)
    shown = places[seen].tolist()
    for left, top, right, bottom in shown:
        codes[max(top, 0) : max(bottom - line, 0), max(left, 0) : max(right - line, 0)] = _CLEAR
    for left, top, right, bottom in shown:
        high, wide = slice(max(top, 0), bottom), slice(max(left, 0), right)
        for x in (left, right - line):
            across = slice(max(x, 0), max(x + line, 0))
            codes[high, across] = dashes[high, across]
        for y in (top, bottom - line):
            down = slice(max(y, 0), max(y + line, 0))
            codes[down, wide] = dashes[down, wide]
    _draw(painter, target, codes)


def _veiled(part: SheetPart, cells: GridCells) -> Codes:
    """Return how to shade a sheet, uint8 [h, w] per screen pixel: sprites clear, empty cells hatched, the rest dim."""
    kind = np.where(cells.filled, _CLEAR, _HATCH).astype(np.uint8)
    kind = np.pad(kind, (0, 1), constant_values=_VEIL)  # last row and column: outside
    box = part.box
    columns = _which(cells.lefts, cells.grid.tile_width, box.x(), box.width(), part.zoom)
    rows = _which(cells.tops, cells.grid.tile_height, box.y(), box.height(), part.zoom)
    codes = kind[:, columns][rows]
    if cells.empty:
        between = _across(part, _diagonals(part) % (_HATCHING * part.line) >= part.line)
        codes[(codes == _HATCH) & between] = _VEIL
    return codes


def _which(starts: Ints, size: int, first: int, count: int, zoom: int) -> Ints:
    """Return the cell index of each of `count` device pixels from `first` on; -1 outside the cells."""
    pixels = np.arange(first, first + count) // zoom
    cell = np.searchsorted(starts, pixels, "right") - 1
    if len(starts):
        cell[pixels >= starts[cell] + size] = -1
    return cell


def _line_pixels(edges: Ints, first: int, count: int, part: SheetPart) -> Ints:
    places = (edges[:, None] * part.zoom + np.arange(part.line)).reshape(-1) - first
    return places[(places >= 0) & (places < count)]


def _range(first: int, count: int, start: int, end: int) -> slice:
    return slice(max(0, int(start) - first), max(0, min(count, int(end) - first)))


def _dashes(part: SheetPart) -> Codes:
    """Return dark and light dashes as codes uint8 [h, w]. The dashes scroll with the sheet."""
    turns = _diagonals(part) // (_DASH * part.line) % 2
    return _across(part, np.where(turns, _LIGHT, _DARK).astype(np.uint8))


def _diagonals(part: SheetPart) -> Ints:
    """Return the sums x + y of the part's diagonals, ascending: int [h + w - 1]."""
    first = part.box.x() + part.box.y()
    return np.arange(first, first + part.box.width() + part.box.height() - 1)


def _across(part: SheetPart, by_diagonal: NDArray[S]) -> NDArray[S]:
    """Return the values of each pixel's diagonal: [h, w], a view. by_diagonal: [h + w - 1]."""
    return sliding_window_view(by_diagonal, part.box.width())


def _draw(painter: QPainter, target: QRect, codes: Codes) -> None:
    colours = theme.colours()
    table = [QColor(0, 0, 0, 0), QColor(colours.window), QColor(colours.muted), QColor(0, 0, 0), QColor(255, 255, 255)]
    for colour, alpha in zip(table[1:], (185, 150, 190, 215), strict=True):
        colour.setAlpha(alpha)
    codes = np.ascontiguousarray(codes)  # alive until drawn: the image shares its memory
    height, width = codes.shape
    image = QImage(codes.data, width, height, width, QImage.Format.Format_Indexed8)
    image.setColorTable([colour.rgba() for colour in table])
    painter.drawImage(target, image)
