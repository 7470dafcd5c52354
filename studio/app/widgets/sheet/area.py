"""A scroll area for a large image at whole-number zoom; draws only the visible part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PySide6.QtCore import QPoint, QPointF, QRect, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QWidget

from studio.app.widgets import factory
from studio.app.widgets.input import ARROWS, NOTCH
from studio.app.widgets.sheet.overlay import SheetPart
from studio.app.widgets.sprites.painting import as_image, checkerboard
from studio.core.arrays import Rgba

_NO_SHEET: Rgba = np.zeros((0, 0, 4), np.uint8)
ZOOMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_ROOM = 24  # logical pixels around the sheet, for handles at its edges
_EASY = 32  # logical pixels; smaller cells are hard to grab
_STEP = 48  # device pixels for a third of a wheel notch
_ARROW_STEP = 32  # logical pixels
_ZOOMS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1, Qt.Key.Key_Underscore: -1}


class SheetArea(QAbstractScrollArea):
    """Scroll area for a sheet at whole-number zoom. zoom_changed: the zoom changed.

    Scroll bars count device pixels, so that all sprite pixels have the same size on screen.
    """

    zoom_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._rgba: Rgba = _NO_SHEET
        self._zoom = 1
        self._wheel_angle = 0  # since the last whole notch
        self._drag_position: QPoint | None = None  # last mouse position of a drag, on the screen
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        factory.set_name_and_tip(self, "Sheet", "The sheet with its cells. Drag to pan, Ctrl+scroll to zoom.")

    def show_sheet(self, rgba: Rgba | None) -> None:
        """Show a sheet from its top left corner; None shows an empty area.

        rgba: uint8 [H, W, 4], not copied, so don't change the array.
        """
        self._rgba = _NO_SHEET if rgba is None else np.ascontiguousarray(rgba)
        self._fit_bars()
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.setValue(0)
        self.refresh()

    def zoom(self) -> int:
        """Return the zoom: device pixels for a sheet pixel."""
        return self._zoom

    def set_zoom(self, zoom: int, about: QPoint | None = None) -> None:
        """Set the zoom, a value of ZOOMS. The sheet point at `about` in the viewport, or the centre, stays in place."""
        about = self.viewport().rect().center() if about is None else about
        ratio, origin = self.devicePixelRatioF(), self._origin()
        across, down = ((c * ratio - o) / self._zoom for c, o in zip(about.toTuple(), origin.toTuple(), strict=True))
        self._zoom = zoom
        self._fit_bars()
        self.scroll_by(self.point(across, down) - about)
        self.refresh()
        self.zoom_changed.emit()

    def step_zoom(self, steps: int, about: QPoint | None = None) -> None:
        """Zoom by this many steps of ZOOMS."""
        index = ZOOMS.index(self._zoom) + steps
        self.set_zoom(ZOOMS[min(max(index, 0), len(ZOOMS) - 1)], about)

    def point(self, across: float, down: float) -> QPoint:
        """Return the viewport position of a sheet position in sheet pixels."""
        ratio, origin = self.devicePixelRatioF(), self._origin()
        return ((QPointF(across, down) * self._zoom + origin) / ratio).toPoint()

    def scroll_by(self, distance: QPoint) -> None:
        """Scroll by logical pixels."""
        ratio = self.devicePixelRatioF()
        for bar, by in ((self.horizontalScrollBar(), distance.x()), (self.verticalScrollBar(), distance.y())):
            bar.setValue(bar.value() + round(by * ratio))

    def paint_over(self, painter: QPainter, place: QRect, part: SheetPart) -> None:
        """Paint over the visible part of the sheet; subclasses override. place: target in device pixels."""

    def refresh(self) -> None:
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        ratio, zoom, origin = self.devicePixelRatioF(), self._zoom, self._origin()
        line = max(1, round(ratio))
        height, width = self._rgba.shape[:2]
        seen = QRect(QPoint(0, 0), self.viewport().size() * ratio).translated(-origin)
        part = seen.intersected(QRect(0, 0, width * zoom + line, height * zoom + line))
        if not self._rgba.size or part.isEmpty():
            return
        source = QRect(QPoint(part.x() // zoom, part.y() // zoom), QPoint(part.right() // zoom, part.bottom() // zoom))
        source = source.intersected(QRect(0, 0, width, height))
        target = QRect(source.topLeft() * zoom + origin, source.size() * zoom)
        painter = QPainter(self.viewport())
        painter.scale(1 / ratio, 1 / ratio)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.setBrushOrigin(origin)
        painter.fillRect(target, checkerboard(ratio))
        painter.drawImage(target, as_image(self._rgba), source)
        self.paint_over(painter, part.translated(origin), SheetPart(part, zoom, line))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom with + and -, and scroll with the arrow keys."""
        key = Qt.Key(event.key())
        if key in _ZOOMS:
            self.step_zoom(_ZOOMS[key])
        elif key in ARROWS:
            self.scroll_by(QPoint(*ARROWS[key]) * _ARROW_STEP)
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with Ctrl; scroll otherwise."""
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event)
            return
        self._wheel_angle += event.angleDelta().y()
        steps = int(self._wheel_angle / NOTCH)
        self._wheel_angle -= steps * NOTCH
        if steps:
            self.step_zoom(steps, event.position().toPoint())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag_position = event.globalPosition().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan during a drag."""
        if self._drag_position is not None:
            before, self._drag_position = self._drag_position, event.globalPosition().toPoint()
            self.scroll_by(before - self._drag_position)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag_position = None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_bars()
        self.refresh()

    def scrollContentsBy(self, across: int, down: int) -> None:
        self.refresh()

    def _axes(self) -> Iterator[tuple[QScrollBar, int, int]]:
        """Yield for x and y: scroll bar, viewport size and sheet size in device pixels."""
        size, (height, width) = self.viewport().size() * self.devicePixelRatioF(), self._rgba.shape[:2]
        yield self.horizontalScrollBar(), size.width(), width * self._zoom
        yield self.verticalScrollBar(), size.height(), height * self._zoom

    def _origin(self) -> QPoint:
        """Return the sheet's top left corner in device pixels of the viewport; a small sheet is centred."""
        margin = round(_ROOM * self.devicePixelRatioF())
        axes = self._axes()
        return QPoint(*((room - size) // 2 if not bar.maximum() else margin - bar.value() for bar, room, size in axes))

    def _fit_bars(self) -> None:
        margins = 2 * round(_ROOM * self.devicePixelRatioF())
        for bar, room, length in self._axes():
            bar.setRange(0, max(0, length + margins - room))
            bar.setPageStep(room)
            bar.setSingleStep(_STEP)


def fitting_zoom(area: SheetArea, width: int, height: int, cell: int) -> int:
    """Return the largest zoom that shows the whole sheet, or a larger zoom if its cells would be hard to grab.

    width, height, cell: sizes of the sheet and of the shorter side of a cell, in sheet pixels.
    """
    ratio, room = area.devicePixelRatioF(), area.viewport().size()
    most = min((room.width() - 2 * _ROOM) * ratio / width, (room.height() - 2 * _ROOM) * ratio / height)
    easy = next((zoom for zoom in ZOOMS if zoom * cell >= _EASY * ratio), ZOOMS[-1])
    return max([easy, *(zoom for zoom in ZOOMS if zoom <= most)])


class ZoomBar(QWidget):
    """Buttons for a sheet's zoom."""

    def __init__(self, area: SheetArea) -> None:
        super().__init__()
        self._area = area
        self.smaller = factory.tool_button("zoom-out", "Zoom out", "Zoom out. (-)", self._on_smaller_clicked)
        self.larger = factory.tool_button("zoom-in", "Zoom in", "Zoom in. (+)", self._on_larger_clicked)
        self._words = factory.text("", "muted", wrap=False)
        self.setLayout(factory.row(self.smaller, self._words, self.larger, spacing=4))
        area.zoom_changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _on_smaller_clicked(self) -> None:
        self._area.step_zoom(-1)

    @Slot()
    def _on_larger_clicked(self) -> None:
        self._area.step_zoom(1)

    @Slot()
    def _refresh(self) -> None:
        zoom = self._area.zoom()
        self._words.setText(f"{zoom}×")
        self.smaller.setEnabled(zoom > ZOOMS[0])
        self.larger.setEnabled(zoom < ZOOMS[-1])
