"""Which part of its data a plot shows, and how mouse and keyboard move it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent

from studio.app.widgets.plot.canvas import PlotCanvas
from studio.app.widgets.plot.legend import Crosshair
from studio.app.widgets.plot.series import PlotLine
from studio.core import curves
from studio.core.curves import Range

_EMPTY = (0.0, 100.0)  # steps, before there are any
_NOTCH = 120  # eighths of a degree
_FACTOR = 0.8  # of a notch
_WALKS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}
_ZOOMS = {Qt.Key.Key_Plus: _FACTOR, Qt.Key.Key_Equal: _FACTOR, Qt.Key.Key_Minus: 1 / _FACTOR}
_FITS = (Qt.Key.Key_0, Qt.Key.Key_Home)


class PlotView(QObject):
    """Follows the data until the user moves the view. The values fit what is visible until the user moves those.

    changed: another part is to be drawn, and soon, since the user waits for it.
    """

    changed = Signal()

    def __init__(self, canvas: PlotCanvas, crosshair: Crosshair) -> None:
        super().__init__(canvas)
        self.fits = True  # the values, what is visible
        self._canvas = canvas
        self._crosshair = crosshair
        self._lines: tuple[PlotLine, ...] = ()
        self._follows = True
        canvas.moved_by_user.connect(self._moved)
        canvas.view_changed.connect(self.changed)

    def set_lines(self, lines: Sequence[PlotLine], *, set_values: bool) -> None:
        """Show these; the visible steps stay, the values are fitted unless they are to stay too."""
        self._lines = tuple(lines)
        self.fits = self.fits or not set_values
        self.changed.emit()

    def steps(self) -> Range:
        """The steps to draw now."""
        return self._all_steps() if self._follows else self._canvas.ranges()[0]

    @Slot()
    def fit(self) -> None:
        """Show everything, and follow new data again."""
        self._follows = self.fits = True
        self.changed.emit()

    @Slot(float, float, bool)
    def zoom(self, factor: float, about: float, values: bool) -> None:
        """Zoom steps or values about a point that stays; not a number stands for the crosshair or the middle."""
        steps, shown = self._canvas.ranges()
        low, high = shown if values else steps
        if math.isnan(about):
            step = self._crosshair.step()
            about = (low + high) / 2 if step is None else step
        zoomed = (about + (low - about) * factor, about + (high - about) * factor)
        if values:
            self.fits = False
            self._canvas.set_ranges(steps, zoomed)
        else:
            whole = self._all_steps()
            self._follows = zoomed[0] <= whole[0] and zoomed[1] >= whole[1]  # nothing more to see
            self._canvas.set_ranges(zoomed, shown)
        self.changed.emit()

    @Slot(float)
    def pan(self, share: float) -> None:
        """Move sideways by a share of the width."""
        (left, right), values = self._canvas.ranges()
        self._follows = False
        self._canvas.set_ranges((left + share * (right - left), right + share * (right - left)), values)
        self.changed.emit()

    @Slot(bool, bool)
    def _moved(self, steps: bool, values: bool) -> None:
        self._follows = self._follows and not steps
        self.fits = self.fits and not values

    def _all_steps(self) -> Range:
        filled = [line.curve.steps for line in self._lines if len(line.curve.steps)]
        if not filled:
            return _EMPTY
        first, last = min(float(steps[0]) for steps in filled), max(float(steps[-1]) for steps in filled)
        return curves.steps_range(first, last, self._canvas.ranges()[0])


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

    def __init__(self, canvas: PlotCanvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        canvas.widget.installEventFilter(self)
        canvas.widget.viewport().installEventFilter(self)

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
        step, _ = self._canvas.at(position)
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
        step, value = self._canvas.at(event.position())
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
