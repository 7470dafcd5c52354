"""The editor's canvas: a sprite at whole-number zoom, with a hatched selection."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.widgets.input import ARROWS, NOTCH
from studio.app.widgets.sprites.painting import as_image, checkerboard
from studio.data.pixels.editing import EditedSprite, Mask, Point

_LARGEST_ZOOM = 64  # device pixels for a sprite pixel
_GRID_FROM = 8  # smallest zoom with grid lines
_HATCH = 8  # device pixels between lines
_VEIL = 0.55  # opacity of the veil over selected pixels
_SMALLEST = QSize(160, 120)
_LEFT, _RIGHT, _MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton


class PixelCanvas(QWidget):
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
        self._zoom = 0  # device pixels for a sprite pixel; 0 fits the canvas
        self._pan = QPoint()  # offset of the sprite from the canvas centre in device pixels
        self._cursor: Point | None = None
        self._pan_start: QPoint | None = None  # start of a middle-button drag in device pixels
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
        same_size = edit.sprite.shape == self._edit.sprite.shape
        self._edit = EditedSprite(np.ascontiguousarray(edit.sprite), np.ascontiguousarray(edit.keep))
        if not same_size:
            self._cursor = None
            self.fit()
        else:
            self.update(self.rect() if changed is None else self._box(changed))

    def zoom(self) -> int:
        """Return the zoom: device pixels for a sprite pixel."""
        room = int(min(self.width(), self.height()) * self.devicePixelRatioF())
        return self._zoom or max(1, min(room // len(self._edit.sprite), _LARGEST_ZOOM))

    @Slot()
    def fit(self) -> None:
        """Zoom so that the whole sprite fits."""
        self._zoom, self._pan = 0, QPoint()
        self.update()

    @Slot()
    def zoom_in(self) -> None:
        self._zoom_to(self.zoom() + max(1, self.zoom() // 4), self.rect().center())

    @Slot()
    def zoom_out(self) -> None:
        self._zoom_to(self.zoom() - max(1, self.zoom() // 5), self.rect().center())

    def place(self, point: QPoint) -> Point:
        """Return the sprite pixel at a canvas position."""
        ratio, origin, zoom = self.devicePixelRatioF(), self._origin(), self.zoom()
        return int((point.x() * ratio - origin.x()) // zoom), int((point.y() * ratio - origin.y()) // zoom)

    def point(self, place: Point) -> QPoint:
        """Return the canvas position of a sprite pixel's centre."""
        ratio, origin, zoom = self.devicePixelRatioF(), self._origin(), self.zoom()
        x, y = ((start + (c + 0.5) * zoom) / ratio for c, start in zip(place, origin.toTuple(), strict=True))
        return QPoint(int(x), int(y))

    def is_inside(self, place: Point) -> bool:
        """Return whether the pixel lies inside the sprite."""
        return all(0 <= c < len(self._edit.sprite) for c in place)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Redraw only the outdated part of the sprite."""
        ratio, origin, zoom = self.devicePixelRatioF(), self._origin(), self.zoom()
        size = len(self._edit.sprite)
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.colours().window))
        painter.scale(1 / ratio, 1 / ratio)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        first, last = self.place(event.rect().topLeft()), self.place(event.rect().bottomRight())
        part = QRect(QPoint(*first), QPoint(*last)).intersected(QRect(0, 0, size, size))
        if part.isEmpty():
            return
        target = QRect(part.topLeft() * zoom + origin, part.size() * zoom)
        painter.setBrushOrigin(origin)
        painter.fillRect(target, checkerboard(ratio))
        painter.drawImage(target, as_image(self._edit.sprite), part)
        hidden = ~self._edit.keep[part.top() : part.bottom() + 1, part.left() : part.right() + 1]
        if hidden.any():
            _draw_hidden(painter, target, hidden, origin)
        if zoom >= _GRID_FROM:
            _draw_grid(painter, target, zoom)
        if self._cursor is not None and self.is_inside(self._cursor):
            _draw_cursor(painter, QRect(QPoint(*self._cursor) * zoom + origin, QSize(zoom, zoom)))

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if turned:
            step = max(1, self.zoom() // 4) * (1 if turned > 0 else -1)
            self._zoom_to(self.zoom() + step * max(1, abs(turned) // NOTCH), event.position().toPoint())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == _MIDDLE:
            self._pan_start = (event.position() * self.devicePixelRatioF()).toPoint() - self._pan
        elif event.button() in (_LEFT, _RIGHT) and not self._stroke:
            self._stroke = True
            alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
            self.pressed.emit(self.place(event.position().toPoint()), event.button() == _RIGHT, alt)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pan_start is not None:
            self._pan = (event.position() * self.devicePixelRatioF()).toPoint() - self._pan_start
            self._zoom = self.zoom()
            self.update()
            return
        place = self.place(event.position().toPoint())
        if place != self._cursor:
            self._set_cursor(place)
            if self._stroke:
                self.dragged.emit(place)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == _MIDDLE:
            self._pan_start = None
        elif self._stroke and not event.buttons() & (_LEFT | _RIGHT):
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

    def _origin(self) -> QPoint:
        """Return the sprite's top left corner in device pixels."""
        side, ratio = len(self._edit.sprite) * self.zoom(), self.devicePixelRatioF()
        across, down = ((round(c * ratio) - side) // 2 for c in (self.width(), self.height()))
        return QPoint(across, down) + self._pan

    def _box(self, part: QRect) -> QRect:
        """Return the canvas rectangle that covers these sprite pixels, in logical pixels."""
        ratio, zoom = self.devicePixelRatioF(), self.zoom()
        box = QRectF(part.topLeft() * zoom + self._origin(), part.size() * zoom)
        return QRectF(box.topLeft() / ratio, box.size() / ratio).toAlignedRect().adjusted(-1, -1, 1, 1)

    def _zoom_to(self, zoom: int, about: QPoint) -> None:
        """Set the zoom; the pixel under the point stays in place."""
        zoom = min(max(zoom, 1), _LARGEST_ZOOM)
        fixed, before = about * self.devicePixelRatioF(), self._origin()
        across, down = ((c - o) / self.zoom() for c, o in zip(fixed.toTuple(), before.toTuple(), strict=True))
        self._zoom = zoom
        wanted = fixed - QPoint(round(across * zoom), round(down * zoom))
        self._pan += wanted - self._origin()
        self.update()

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
