"""What lies over a sheet that is to be cut: the lines of its cells, a veil over what is left out.

All in device pixels, for the visible part alone and by whole arrays, so that a million cells cost no more than ten.
"""

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
_DASH = 4  # lines wide: of two lightnesses by turns, they are seen on all colours
_HATCHING = 7  # lines wide: from one line over an empty cell to the next
_NARROWEST = 4  # lines wide: cells that are smaller are drawn without lines, which would hide them

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]
S = TypeVar("S", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Look:
    """How a sheet is seen.

    part: what of the enlarged sheet is drawn, counted from its top left corner. zoom: device pixels a pixel.
    line: width of a line.
    """

    part: QRect
    zoom: int
    line: int


def draw_cells(painter: QPainter, place: QRect, look: Look, cells: GridCells) -> None:
    """The cells of a grid, the empty ones hatched, at `place`."""
    codes = _veiled(look, cells)
    if min(cells.grid.tile_width, cells.grid.tile_height) * look.zoom >= _NARROWEST * look.line and cells.filled.size:
        dashes = _dashes(look)
        right, bottom = cells.lefts + cells.grid.tile_width, cells.tops + cells.grid.tile_height
        across = _range(look.part.x(), look.part.width(), cells.lefts[0] * look.zoom, right[-1] * look.zoom + look.line)
        down = _range(look.part.y(), look.part.height(), cells.tops[0] * look.zoom, bottom[-1] * look.zoom + look.line)
        for edges in (cells.lefts, right):
            places = _line_places(edges, look.part.x(), look.part.width(), look)
            codes[down, places] = dashes[down, places]
        for edges in (cells.tops, bottom):
            places = _line_places(edges, look.part.y(), look.part.height(), look)
            codes[places, across] = dashes[places, across]
    _draw(painter, place, codes)


def draw_boxes(painter: QPainter, place: QRect, look: Look, boxes: Ints) -> None:
    """Boxes: int [n, 4], left, top, right and bottom, the last two excluded. The rest is veiled."""
    part, line = look.part, look.line
    codes = np.full((part.height(), part.width()), _VEIL, np.uint8)
    places = boxes * look.zoom - np.array([part.x(), part.y()] * 2)
    places[:, 2:] += line
    seen = (places[:, :2] < (part.width(), part.height())).all(axis=1) & (places[:, 2:] > 0).all(axis=1)
    dashes = _dashes(look)
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
    _draw(painter, place, codes)


def _veiled(look: Look, cells: GridCells) -> Codes:
    """uint8 [h, w]: clear over sprites, hatched over empty cells, veiled between cells and outside of them."""
    kind = np.full((cells.filled.shape[0] + 1, cells.filled.shape[1] + 1), _VEIL, np.uint8)  # the last: outside
    kind[:-1, :-1] = np.where(cells.filled, _CLEAR, _HATCH)
    part = look.part
    columns = _which(cells.lefts, cells.grid.tile_width, part.x(), part.width(), look.zoom)
    rows = _which(cells.tops, cells.grid.tile_height, part.y(), part.height(), look.zoom)
    codes = kind[:, columns][rows]
    if cells.empty:
        between = _across(look, _diagonals(look) % (_HATCHING * look.line) >= look.line)
        codes[(codes == _HATCH) & between] = _VEIL
    return codes


def _which(starts: Ints, size: int, first: int, count: int, zoom: int) -> Ints:
    """The cell that each of `count` device pixels from `first` on lies in; -1 outside."""
    pixels = np.arange(first, first + count) // zoom
    cell = np.searchsorted(starts, pixels, "right") - 1
    if len(starts):
        cell[pixels >= starts[cell] + size] = -1
    return cell


def _line_places(edges: Ints, first: int, count: int, look: Look) -> Ints:
    places = (edges[:, None] * look.zoom + np.arange(look.line)).reshape(-1) - first
    return places[(places >= 0) & (places < count)]


def _range(first: int, count: int, start: int, end: int) -> slice:
    return slice(max(0, int(start) - first), max(0, min(count, int(end) - first)))


def _dashes(look: Look) -> Codes:
    """uint8 [h, w]: dark and light by turns, fixed to the sheet, so that scrolling does not let them crawl."""
    turns = _diagonals(look) // (_DASH * look.line) % 2
    return _across(look, np.where(turns, _LIGHT, _DARK).astype(np.uint8))


def _diagonals(look: Look) -> Ints:
    """int [h + w - 1]: the sums of both coordinates that there are."""
    first = look.part.x() + look.part.y()
    return np.arange(first, first + look.part.width() + look.part.height() - 1)


def _across(look: Look, by_diagonal: NDArray[S]) -> NDArray[S]:
    """What each diagonal has, for all pixels: [h, w], a view that takes no memory."""
    return sliding_window_view(by_diagonal, look.part.width())


def _draw(painter: QPainter, place: QRect, codes: Codes) -> None:
    colours = theme.colours()
    table = [QColor(0, 0, 0, 0), QColor(colours.window), QColor(colours.muted), QColor(0, 0, 0), QColor(255, 255, 255)]
    for colour, alpha in zip(table[1:], (185, 150, 190, 215), strict=True):
        colour.setAlpha(alpha)
    codes = np.ascontiguousarray(codes)  # alive until drawn: the image shares its memory
    height, width = codes.shape
    image = QImage(codes.data, width, height, width, QImage.Format.Format_Indexed8)
    image.setColorTable([colour.rgba() for colour in table])
    painter.drawImage(place, image)
