"""The editor's canvas: a sprite at whole-number zoom, with a hatched selection."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPen

from studio.app import theme
from studio.app.widgets.input import ARROWS
from studio.app.widgets.sprites.zoom_canvas import ZoomCanvas
from studio.data.pixels.editing import EditedSprite, Mask, Point

_GRID_FROM = 8  # smallest zoom with grid lines
_HATCH = 8  # device pixels between lines
_VEIL = 0.55  # opacity of the veil over selected pixels
_SMALLEST = QSize(160, 200)
_LEFT, _RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton


class PixelCanvas(ZoomCanvas):
    """Canvas for a sprite that reports strokes as sprite pixels (x, y), which may lie outside during a stroke.

    pressed: start of a stroke: pixel, whether with the right button, whether with Alt. dragged: the next pixel.
    released: end of the stroke, at its last pixel. needs_two_ends: by keyboard, one Enter begins a stroke and the next
    ends the stroke; otherwise Enter clicks.
    """

    pressed = Signal(tuple, bool, bool)
    dragged = Signal(tuple)
    released = Signal(tuple)

    def __init__(self) -> None:
        super().__init__()
        self._edit = EditedSprite.of(np.zeros((1, 1, 4), np.uint8))
        self._cursor: Point | None = None
        self._stroke = False
        self.needs_two_ends = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setMinimumSize(_SMALLEST)
        self.setAccessibleName("Sprite")
        about = (
            "The sprite. Arrow keys move to a pixel, Enter uses the tool there; "
            "lines, rectangles and moves end at the next Enter. + and - zoom, 0 fits."
        )
        self.setAccessibleDescription(about)

    def set_edit(self, edit: EditedSprite, changed: QRect | None = None) -> None:
        """Show an edit. changed: the pixels that may differ from the last edit; None for all."""
        if edit.sprite.shape != self._edit.sprite.shape:
            self._cursor = None
        self._edit = EditedSprite(np.ascontiguousarray(edit.sprite), np.ascontiguousarray(edit.keep))
        self.set_sprite(self._edit.sprite, changed)

    def paint_over(self, painter: QPainter, part: QRect, target: QRect) -> None:
        """Draw the selection, the grid and the cursor."""
        origin, zoom = self._origin(), int(self.zoom())
        hidden = ~self._edit.keep[part.top() : part.bottom() + 1, part.left() : part.right() + 1]
        if hidden.any():
            _draw_hidden(painter, target, hidden, origin)
        if zoom >= _GRID_FROM:
            _draw_grid(painter, target, zoom)
        if self._cursor is not None and self.is_inside(self._cursor):
            _draw_cursor(painter, QRect(QPoint(*self._cursor) * zoom + origin, QSize(zoom, zoom)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        if event.button() in (_LEFT, _RIGHT) and not self._stroke:
            self._stroke = True
            alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
            self.pressed.emit(self.place(event.position().toPoint()), event.button() == _RIGHT, alt)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if self.is_panning():
            return
        place = self.place(event.position().toPoint())
        if place != self._cursor:
            self._set_cursor(place)
            if self._stroke:
                self.dragged.emit(place)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if self._stroke and not event.buttons() & (_LEFT | _RIGHT):
            self._end_stroke(self.place(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the cursor with the arrow keys, by 8 pixels with Shift; Enter clicks, or begins and ends a stroke."""
        step, shift = ARROWS.get(Qt.Key(event.key())), Qt.KeyboardModifier.ShiftModifier
        if step is not None:
            times, most = 8 if event.modifiers() & shift else 1, len(self._edit.sprite) - 1
            start = self._cursor if self._cursor is not None and self.is_inside(self._cursor) else (0, 0)
            x, y = (min(max(c + times * by, 0), most) for c, by in zip(start, step, strict=True))
            self._set_cursor((x, y))
            if self._stroke:
                self.dragged.emit((x, y))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._cursor is not None:
            if not self._stroke:
                self._stroke = True
                self.pressed.emit(self._cursor, bool(event.modifiers() & shift), False)
                if self.needs_two_ends:
                    return
            self._end_stroke(self._cursor)
        else:
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Hide the cursor, unless the keyboard moves it."""
        super().leaveEvent(event)
        if not self.hasFocus():
            self._set_cursor(None)

    def _end_stroke(self, place: Point) -> None:
        self._stroke = False
        self.released.emit(place)

    def _set_cursor(self, place: Point | None) -> None:
        for old in (self._cursor, place):
            if old is not None:
                self.update(self._box(QRect(QPoint(*old), QSize(1, 1))))
        self._cursor = place


def _draw_hidden(painter: QPainter, target: QRect, hidden: Mask, origin: QPoint) -> None:
    """Draw a veil and hatching over hidden pixels, bool [H, W], at `target`. origin: of the hatching."""
    colours = theme.colours()
    veil = QImage(target.size(), QImage.Format.Format_ARGB32_Premultiplied)
    ground = QColor(colours.window)
    ground.setAlphaF(_VEIL)
    veil.fill(ground)
    mask = np.where(hidden, 255, 0).astype(np.uint8)
    height, width = mask.shape
    with QPainter(veil) as lines:
        lines.setBrushOrigin(origin - target.topLeft())
        lines.fillRect(veil.rect(), QBrush(_hatch(colours.accent)))
        lines.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationIn)
        lines.drawImage(veil.rect(), QImage(mask.data, width, height, width, QImage.Format.Format_Alpha8))
    painter.drawImage(target.topLeft(), veil)


def _hatch(colour: str) -> QImage:
    """Return a tile of slanted lines, in device pixels."""
    tile = QImage(_HATCH, _HATCH, QImage.Format.Format_ARGB32_Premultiplied)
    tile.fill(Qt.GlobalColor.transparent)
    for step in range(_HATCH):
        for thick in range(2):
            tile.setPixelColor((step + thick) % _HATCH, _HATCH - 1 - step, QColor(colour))
    return tile


def _draw_grid(painter: QPainter, target: QRect, zoom: int) -> None:
    """Draw thin grey lines between pixels, visible on light and dark colours."""
    painter.setPen(QPen(QColor(128, 128, 128, 70), 1))
    for x in range(target.left(), target.right() + 2, zoom):
        painter.drawLine(x, target.top(), x, target.bottom())
    for y in range(target.top(), target.bottom() + 2, zoom):
        painter.drawLine(target.left(), y, target.right(), y)


def _draw_cursor(painter: QPainter, box: QRect) -> None:
    """Draw a light and a dark frame, visible on all colours."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(0, 0, 0, 200), 1))
    painter.drawRect(box.adjusted(0, 0, -1, -1))
    painter.setPen(QPen(QColor(255, 255, 255, 230), 1))
    painter.drawRect(box.adjusted(1, 1, -2, -2))
