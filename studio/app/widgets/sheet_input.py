"""Mouse and keyboard over a sheet: zooming and scrolling."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea

_NOTCH = 120  # what one click of a wheel turns; touchpads send many smaller turns
_STEP = 32  # logical pixels
_ZOOMS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1, Qt.Key.Key_Underscore: -1}
_SCROLLS = {
    Qt.Key.Key_Left: QPoint(-_STEP, 0),
    Qt.Key.Key_Right: QPoint(_STEP, 0),
    Qt.Key.Key_Up: QPoint(0, -_STEP),
    Qt.Key.Key_Down: QPoint(0, _STEP),
}


class SheetInput(QObject):
    """Watches a scroll area. zoomed: steps, and the place that stays (None: the middle). scrolled: logical pixels."""

    zoomed = Signal(int, object)
    scrolled = Signal(QPoint)

    def __init__(self, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._turned = 0
        self._held: QPoint | None = None  # where the mouse holds the sheet
        area.installEventFilter(self)
        area.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what zooms or scrolls, leave the rest."""
        kind = event.type()
        if isinstance(event, QKeyEvent) and kind == QEvent.Type.KeyPress:
            return self._key(event)
        if isinstance(event, QWheelEvent) and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._wheel(event)
            return True
        if isinstance(event, QMouseEvent) and kind == QEvent.Type.MouseButtonPress:
            self._held = event.globalPosition().toPoint()
        elif isinstance(event, QMouseEvent) and kind == QEvent.Type.MouseMove and self._held is not None:
            here = event.globalPosition().toPoint()
            self.scrolled.emit(self._held - here)
            self._held = here
        elif kind == QEvent.Type.MouseButtonRelease:
            self._held = None
        return super().eventFilter(watched, event)

    def _key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key in _ZOOMS:
            self.zoomed.emit(_ZOOMS[key], None)
        elif key in _SCROLLS:
            self.scrolled.emit(_SCROLLS[key])
        else:
            return False
        return True

    def _wheel(self, event: QWheelEvent) -> None:
        self._turned += event.angleDelta().y()
        steps = int(self._turned / _NOTCH)
        self._turned -= steps * _NOTCH
        if steps:
            self.zoomed.emit(steps, event.position().toPoint())
