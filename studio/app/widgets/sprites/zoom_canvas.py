"""A canvas that shows a sprite at a whole-number zoom, to zoom with the wheel and to pan."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from studio.app import theme
from studio.app.widgets.input import NOTCH
from studio.app.widgets.sprites.painting import as_image, checkerboard
from studio.core.arrays import Rgba
from studio.data.pixels.editing import Point

_LARGEST_ZOOM = 64  # device pixels for a sprite pixel


class ZoomCanvas(QWidget):
    """A sprite at a whole number of device pixels for a sprite pixel. The wheel zooms, dragging a pan button moves.

    pan_buttons: the mouse buttons that move the sprite. shrinks: whether a sprite larger than the canvas is shrunk to
    fit. zoom_changed: the zoom may have changed.
    """

    pan_buttons = Qt.MouseButton.MiddleButton
    shrinks = False
    zoom_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._sprite: Rgba = np.zeros((1, 1, 4), np.uint8)
        self._zoom = 0  # device pixels for a sprite pixel; 0 fits the canvas
        self._pan = QPoint()  # offset of the sprite from the canvas centre in device pixels
        self._pan_start: QPoint | None = None  # start of a drag in device pixels

    def set_sprite(self, sprite: Rgba, changed: QRect | None = None) -> None:
        """Show uint8 [H, W, 4]; a sprite of another size is fitted into the canvas.

        changed: the pixels that may differ from the sprite before; None for all.
        """
        same_size = sprite.shape == self._sprite.shape
        self._sprite = np.ascontiguousarray(sprite)
        if same_size:
            self.update(self.rect() if changed is None else self._box(changed))
        else:
            self.fit()

    def zoom(self) -> float:
        """Return the zoom: device pixels for a sprite pixel, a whole number or, if the sprite is shrunk, below 1."""
        (height, width), ratio = self._sprite.shape[:2], self.devicePixelRatioF()
        fitting = min(self.width() * ratio / width, self.height() * ratio / height)
        if self._zoom or fitting >= 1:
            return self._zoom or min(int(fitting), _LARGEST_ZOOM)
        return max(fitting, 1 / _LARGEST_ZOOM) if self.shrinks else 1

    @Slot()
    def fit(self) -> None:
        """Zoom so that the whole sprite fits."""
        self._zoom, self._pan = 0, QPoint()
        self.update()
        self.zoom_changed.emit()

    @Slot()
    def zoom_in(self) -> None:
        self._zoom_to(int(self.zoom() + max(1, self.zoom() // 4)), self.rect().center())

    @Slot()
    def zoom_out(self) -> None:
        self._zoom_to(int(self.zoom() - max(1, self.zoom() // 5)), self.rect().center())

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
        height, width = self._sprite.shape[:2]
        return bool(0 <= place[0] < width and 0 <= place[1] < height)

    def is_panning(self) -> bool:
        """Return whether the user drags the sprite."""
        return self._pan_start is not None

    def paint_over(self, painter: QPainter, part: QRect, target: QRect) -> None:
        """Draw on top of the sprite pixels `part`, which cover `target` in device pixels."""

    def paintEvent(self, event: QPaintEvent) -> None:
        """Redraw only the outdated part of the sprite."""
        ratio, origin, zoom = self.devicePixelRatioF(), self._origin(), self.zoom()
        height, width = self._sprite.shape[:2]
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.colours().window))
        painter.scale(1 / ratio, 1 / ratio)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, zoom < 1)
        first, last = self.place(event.rect().topLeft()), self.place(event.rect().bottomRight())
        part = QRect(QPoint(*first), QPoint(*last)).intersected(QRect(0, 0, width, height))
        if part.isEmpty():
            return
        target = QRect(part.topLeft() * zoom + origin, part.size() * zoom)
        painter.setBrushOrigin(origin)
        painter.fillRect(target, checkerboard(ratio))
        painter.drawImage(target, as_image(self._sprite), part)
        self.paint_over(painter, part, target)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.zoom_changed.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if turned:
            step = max(1, self.zoom() // 4) * (1 if turned > 0 else -1)
            self._zoom_to(int(self.zoom() + step * max(1, abs(turned) // NOTCH)), event.position().toPoint())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() & self.pan_buttons:
            self._pan_start = (event.position() * self.devicePixelRatioF()).toPoint() - self._pan

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pan_start is not None:
            self._pan = (event.position() * self.devicePixelRatioF()).toPoint() - self._pan_start
            self._zoom = max(1, int(self.zoom()))
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() & self.pan_buttons:
            self._pan_start = None

    def _origin(self) -> QPoint:
        """Return the sprite's top left corner in device pixels."""
        (height, width), ratio = self._sprite.shape[:2], self.devicePixelRatioF()
        sides = (self.width(), width), (self.height(), height)
        across, down = ((round(room * ratio) - pixels * self.zoom()) // 2 for room, pixels in sides)
        return QPoint(int(across), int(down)) + self._pan

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
        self.zoom_changed.emit()
