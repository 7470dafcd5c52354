"""The handles of a grid that lies over a sheet: dragged with the mouse, moved with the arrow keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from studio.app import parts, theme
from studio.data.grids import Grid
from studio.data.imported import LARGEST_CANVAS

Kind = Literal["margin", "tile", "spacing"]
KINDS: tuple[Kind, ...] = ("margin", "spacing", "tile")  # the order in which Tab goes through them

_SIDE = 19  # logical pixels that take the mouse
_MARK = 11  # of them are drawn
_TEXTS = {
    "margin": ("Margin: where the grid begins", "Drag it, or use the arrow keys, to change the margins."),
    "spacing": ("Spacing: the second cell's near edge", "Drag it, or use the arrow keys, to change the spacing."),
    "tile": ("Tile size: the first cell's corner", "Drag it, or use the arrow keys, to change the size of the tiles."),
}
_CURSORS = {
    "margin": Qt.CursorShape.SizeAllCursor,
    "spacing": Qt.CursorShape.SizeHorCursor,
    "tile": Qt.CursorShape.SizeFDiagCursor,
}
_STEPS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


def place_of(kind: Kind, grid: Grid) -> tuple[int, int]:
    """Where a handle lies on the sheet, in pixels: at the first cell's corners, at the second's near edge."""
    if kind == "margin":
        return grid.left, grid.top
    if kind == "tile":
        return grid.left + grid.tile_width, grid.top + grid.tile_height
    return grid.left + grid.tile_width + grid.spacing, grid.top + grid.tile_height // 2


def moved(grid: Grid, kind: Kind, across: int, down: int) -> Grid:
    """The grid with one of its handles moved by whole pixels; the margins change with the first cell's corner."""
    if kind == "tile":
        width, height = (_bounded(size + by, 1) for size, by in ((grid.tile_width, across), (grid.tile_height, down)))
        return replace(grid, tile_width=width, tile_height=height)
    if kind == "spacing":
        return replace(grid, spacing=_bounded(grid.spacing + across, 0))
    return replace(grid, left=_bounded(grid.left + across, 0), top=_bounded(grid.top + down, 0))


def _bounded(value: int, low: int) -> int:
    return min(max(value, low), LARGEST_CANVAS)


class Handle(QWidget):
    """One handle. Its owner places it.

    pressed: its kind; a drag begins. dragged: its kind and by how many logical pixels since then. nudged: its kind and
    by how many pixels of the sheet. focused: its kind.
    """

    pressed = Signal(str)
    dragged = Signal(str, QPoint)
    nudged = Signal(str, int, int)
    focused = Signal(str)

    def __init__(self, kind: Kind, parent: QWidget) -> None:
        super().__init__(parent)
        self.kind = kind
        self._from = QPoint()
        parts.describe(self, *_TEXTS[kind])
        self.setCursor(_CURSORS[kind])
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.resize(_SIDE, _SIDE)
        self.hide()

    def put(self, point: QPoint) -> None:
        """Place its middle, in its parent's coordinates."""
        self.move(point - QPoint(_SIDE // 2, _SIDE // 2))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to drag."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._from = event.globalPosition().toPoint()
            self.pressed.emit(self.kind)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag. Global positions, as the handle moves under the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(self.kind, event.globalPosition().toPoint() - self._from)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """An arrow key moves by one pixel of the sheet, with Shift by eight."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        times = 8 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        self.nudged.emit(self.kind, times * step[0], times * step[1])

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Be seen."""
        super().focusInEvent(event)
        self.focused.emit(self.kind)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A light mark with a dark rim and the accent inside, which is seen on all colours; round for the spacing."""
        colours = theme.colours()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF((_SIDE - _MARK) / 2, (_SIDE - _MARK) / 2, _MARK, _MARK)
        if self.hasFocus():
            painter.setPen(QPen(QColor("#ffffff"), 4))
            painter.drawRoundedRect(box.adjusted(-2, -2, 2, 2), 4, 4)
            painter.setPen(QPen(QColor(colours.accent), 2))
            painter.drawRoundedRect(box.adjusted(-2, -2, 2, 2), 4, 4)
        painter.setPen(QPen(QColor("#202020"), 1))
        painter.setBrush(QColor("#ffffff"))
        radius = _MARK / 2 if self.kind == "spacing" else 2
        painter.drawRoundedRect(box, radius, radius)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.accent))
        painter.drawRoundedRect(box.adjusted(2.5, 2.5, -2.5, -2.5), radius, radius)
