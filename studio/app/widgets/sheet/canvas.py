"""A sheet with its cells and draggable handles."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import ARROWS
from studio.app.widgets.sheet.area import SheetArea
from studio.app.widgets.sheet.overlay import SheetPart, draw_boxes, draw_cells
from studio.data.options import LARGEST_CANVAS, SheetGrid
from studio.data.sheets.cells import GridCells

_IN_SIGHT = 12  # logical pixels between a focused handle and the edges
Kind = Literal["margin", "tile", "spacing"]
KINDS: tuple[Kind, ...] = ("margin", "spacing", "tile")  # tab order

_SIDE = 19  # logical pixels that react to the mouse
_MARK = 11  # logical pixels that are drawn
_LOOKS = {  # accessible name, what a drag changes, cursor
    "margin": ("Margin: the grid's start", "margins", Qt.CursorShape.SizeAllCursor),
    "spacing": ("Spacing: the second cell's near edge", "spacing", Qt.CursorShape.SizeHorCursor),
    "tile": ("Tile size handle", "tile size", Qt.CursorShape.SizeFDiagCursor),
}


class SheetCanvas(SheetArea):
    """A sheet with its cells and handles. grid_moved: the SheetGrid that the user dragged; `show_cells` answers."""

    grid_moved = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._cells: GridCells | None = None
        self._boxes: NDArray[np.int64] | None = None
        self.handles = {kind: Handle(kind, self) for kind in KINDS}

    def show_cells(self, cells: GridCells | None) -> None:
        """Draw a grid's cells and handles; None removes them."""
        self._cells, self._boxes = cells, None
        self.refresh()

    def show_boxes(self, boxes: NDArray[np.int64] | None) -> None:
        """Draw boxes int [n, 4]: left, top, right, bottom, the last two exclusive; None removes them."""
        self._cells, self._boxes = None, boxes
        self.refresh()

    def paint_over(self, painter: QPainter, target: QRect, part: SheetPart) -> None:
        if self._cells is not None:
            draw_cells(painter, target, part, self._cells)
        elif self._boxes is not None:
            draw_boxes(painter, target, part, self._boxes)

    def refresh(self) -> None:
        """Move the handles to their positions and redraw."""
        if self._cells is None and any(handle.hasFocus() for handle in self.handles.values()):
            self.setFocus()  # before the focused handle is hidden
        for kind, handle in self.handles.items():
            handle.setVisible(self._cells is not None)
            if self._cells is not None:
                handle.move_to(self.point(*handle_position(kind, self._cells.grid)))
        super().refresh()

    def grid(self) -> SheetGrid | None:
        """Return the drawn grid; None without one."""
        return self._cells.grid if self._cells is not None else None

    def scroll_to(self, handle: Handle) -> None:
        """Scroll until the handle is visible."""
        middle = handle.geometry().center()
        seen = self.viewport().rect().adjusted(_IN_SIGHT, _IN_SIGHT, -_IN_SIGHT, -_IN_SIGHT)
        across = min(max(middle.x(), seen.left()), seen.right())
        down = min(max(middle.y(), seen.top()), seen.bottom())
        self.scroll_by(middle - QPoint(across, down))


def handle_position(kind: Kind, grid: SheetGrid) -> tuple[int, int]:
    """Return a handle's position on the sheet in pixels: corners of the first cell, or the second cell's left edge."""
    if kind == "margin":
        return grid.left, grid.top
    if kind == "tile":
        return grid.left + grid.tile_width, grid.top + grid.tile_height
    return grid.left + grid.tile_width + grid.spacing, grid.top + grid.tile_height // 2


def moved(grid: SheetGrid, kind: Kind, across: int, down: int) -> SheetGrid:
    """Return the grid after a handle was moved: another margin, tile size or spacing, in sheet pixels."""
    if kind == "tile":
        width, height = (_bounded(size + by, 1) for size, by in ((grid.tile_width, across), (grid.tile_height, down)))
        return replace(grid, tile_width=width, tile_height=height)
    if kind == "spacing":
        return replace(grid, spacing=_bounded(grid.spacing + across, 0))
    return replace(grid, left=_bounded(grid.left + across, 0), top=_bounded(grid.top + down, 0))


def _bounded(value: int, low: int) -> int:
    return min(max(value, low), LARGEST_CANVAS)


class Handle(QWidget):
    """A square on a canvas to drag the grid's margin, tile size or spacing."""

    def __init__(self, kind: Kind, canvas: SheetCanvas) -> None:
        super().__init__(canvas.viewport())
        self._kind, self._canvas = kind, canvas
        self._start, self._start_grid = QPoint(), canvas.grid()  # mouse position on the screen when a drag started
        name, what, cursor = _LOOKS[kind]
        factory.set_name_and_tip(self, name, f"Drag, or use the arrow keys, to change the {what}.")
        self.setCursor(cursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.resize(_SIDE, _SIDE)
        self.hide()

    def move_to(self, point: QPoint) -> None:
        """Move the handle's centre to a point of the parent."""
        self.move(point - QPoint(_SIDE // 2, _SIDE // 2))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._start, self._start_grid = event.globalPosition().toPoint(), self._canvas.grid()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag by positions on the screen, since the handle moves under the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton and self._start_grid is not None:
            distance = event.globalPosition().toPoint() - self._start
            across, down = (distance * (self.devicePixelRatioF() / self._canvas.zoom())).toTuple()
            self._canvas.grid_moved.emit(moved(self._start_grid, self._kind, across, down))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move by a sheet pixel with an arrow key, by eight with Shift."""
        step, grid = ARROWS.get(Qt.Key(event.key())), self._canvas.grid()
        if step is None or grid is None:
            super().keyPressEvent(event)
            return
        times = 8 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        self._canvas.grid_moved.emit(moved(grid, self._kind, times * step[0], times * step[1]))
        self._canvas.scroll_to(self)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._canvas.scroll_to(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a light square (round for spacing) with a dark rim and accent centre, visible on all colours."""
        colours = theme.colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF((_SIDE - _MARK) / 2, (_SIDE - _MARK) / 2, _MARK, _MARK)
        for colour, width in (("#ffffff", 4), (colours.accent, 2)) if self.hasFocus() else ():
            painter.setPen(QPen(QColor(colour), width))
            painter.drawRoundedRect(box.adjusted(-2, -2, 2, 2), 4, 4)
        painter.setPen(QPen(QColor("#202020"), 1))
        painter.setBrush(QColor("#ffffff"))
        radius = _MARK / 2 if self._kind == "spacing" else 2
        painter.drawRoundedRect(box, radius, radius)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.accent))
        painter.drawRoundedRect(box.adjusted(2.5, 2.5, -2.5, -2.5), radius, radius)
