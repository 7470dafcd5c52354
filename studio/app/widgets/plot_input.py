"""Mouse and keyboard over a plot, in the plot's own terms."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent

from studio.app.widgets.plot_area import PlotArea

_NOTCH = 120  # eighths of a degree
_FACTOR = 0.8  # of a notch
_WALKS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}
_ZOOMS = {Qt.Key.Key_Plus: _FACTOR, Qt.Key.Key_Equal: _FACTOR, Qt.Key.Key_Minus: 1 / _FACTOR}
_FITS = (Qt.Key.Key_0, Qt.Key.Key_Home)


class PlotInput(QObject):
    """Watches the canvas of a plot.

    zoomed: factor, the point that stays (a step or a value; not a number: the crosshair), and whether it is the values
    that are zoomed. panned: by which share of the width. walked: by how many pixels. fitted: all is to be shown.
    """

    hovered = Signal(float)
    left = Signal()
    zoomed = Signal(float, float, bool)
    panned = Signal(float)
    walked = Signal(int)
    fitted = Signal()

    def __init__(self, area: PlotArea) -> None:
        super().__init__(area)
        self._area = area
        area.canvas.installEventFilter(self)
        area.canvas.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take wheel and keys, look at the rest."""
        if isinstance(event, QWheelEvent):
            self._wheel(event)
            return True
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._key(event)
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseMove:
            self._move(event.position())
        elif event.type() == QEvent.Type.Leave:
            self.left.emit()
        elif event.type() == QEvent.Type.MouseButtonDblClick:
            self.fitted.emit()
        return super().eventFilter(watched, event)

    def _move(self, position: QPointF) -> None:
        step, _ = self._area.at(position)
        if step is None:
            self.left.emit()
        else:
            self.hovered.emit(step)

    def _wheel(self, event: QWheelEvent) -> None:
        """Over the curves the steps are zoomed, over the axis of values or with Ctrl the values; sideways pans."""
        turn = event.angleDelta()
        if abs(turn.x()) > abs(turn.y()):
            self.panned.emit(-0.1 * turn.x() / _NOTCH)
            return
        step, value = self._area.at(event.position())
        on_values = step is None or bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        about = value if on_values or step is None else step
        self.zoomed.emit(_FACTOR ** (turn.y() / _NOTCH), about, on_values)

    def _key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key in _WALKS:
            self.walked.emit(_WALKS[key])
        elif key in _ZOOMS:
            self.zoomed.emit(_ZOOMS[key], float("nan"), False)
        elif key in _FITS:
            self.fitted.emit()
        elif key == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            return False
        return True
