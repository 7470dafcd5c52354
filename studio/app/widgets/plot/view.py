"""The visible range of a plot, and its control by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent

from studio.app.widgets.plot.canvas import PlotCanvas
from studio.app.widgets.plot.legend import Crosshair
from studio.app.widgets.plot.series import StyledCurve
from studio.core import curves
from studio.core.curves import Range

_EMPTY = (0.0, 100.0)  # range of steps for an empty plot
_NOTCH = 120  # wheel angle of a notch, in eighths of a degree
_FACTOR = 0.8  # zoom factor of a notch
_WALKS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -20, Qt.Key.Key_PageDown: 20}
_ZOOMS = {Qt.Key.Key_Plus: _FACTOR, Qt.Key.Key_Equal: _FACTOR, Qt.Key.Key_Minus: 1 / _FACTOR}
_FITS = (Qt.Key.Key_0, Qt.Key.Key_Home)


class PlotView(QObject):
    """The visible range of a plot. changed: the plot must be redrawn soon.

    Follows new data until the user changes the range of steps. Fits the values until the user changes their range.
    """

    changed = Signal()

    def __init__(self, canvas: PlotCanvas, crosshair: Crosshair) -> None:
        super().__init__(canvas)
        self.fits = True  # fit the value range to the visible steps
        self._canvas, self._crosshair = canvas, crosshair
        self._lines: tuple[StyledCurve, ...] = ()
        self._follows = True
        canvas.moved_by_user.connect(self._moved)
        canvas.view_changed.connect(self.changed)

    def set_lines(self, lines: Sequence[StyledCurve], *, keep_values: bool) -> None:
        """Show these lines and keep the visible steps. keep_values: keep the value range too."""
        self._lines = tuple(lines)
        self.fits = self.fits or not keep_values
        self.changed.emit()

    def steps(self) -> Range:
        """Return the range of steps to draw."""
        return self._all_steps() if self._follows else self._canvas.ranges()[0]

    @Slot()
    def fit(self) -> None:
        """Show everything and follow new data."""
        self._follows = self.fits = True
        self.changed.emit()

    def zoom(self, factor: float, about: float | None = None, *, values: bool = False) -> None:
        """Zoom the steps or the values about a fixed point; None stands for the crosshair or else the middle."""
        steps, shown = self._canvas.ranges()
        low, high = shown if values else steps
        if about is None:
            step = self._crosshair.step()
            about = (low + high) / 2 if step is None else step
        zoomed = (about + (low - about) * factor, about + (high - about) * factor)
        if values:
            self.fits = False
            self._canvas.set_ranges(steps, zoomed)
        else:
            whole = self._all_steps()
            self._follows = zoomed[0] <= whole[0] and zoomed[1] >= whole[1]  # zoomed out to everything
            self._canvas.set_ranges(zoomed, shown)
        self.changed.emit()

    def pan(self, share: float) -> None:
        """Pan sideways by a share of the width."""
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
    """Moves a plot's crosshair and visible range with mouse and keys."""

    def __init__(self, canvas: PlotCanvas, crosshair: Crosshair, view: PlotView) -> None:
        super().__init__(canvas)
        self._canvas, self._crosshair, self._view = canvas, crosshair, view
        canvas.widget.installEventFilter(self)
        canvas.widget.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle wheel and keys, and watch mouse moves."""
        if isinstance(event, QWheelEvent):
            self._wheel(event)
            return True
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._key(event)
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseMove:
            self._crosshair.hover(self._canvas.at(event.position())[0])
        elif event.type() == QEvent.Type.Leave:
            self._crosshair.leave()
        elif event.type() == QEvent.Type.MouseButtonDblClick:
            self._view.fit()
        return super().eventFilter(watched, event)

    def _wheel(self, event: QWheelEvent) -> None:
        """Zoom the steps; over the value axis or with Ctrl, zoom the values; pan for a sideways wheel."""
        turn = event.angleDelta()
        if abs(turn.x()) > abs(turn.y()):
            self._view.pan(-0.1 * turn.x() / _NOTCH)
            return
        step, value = self._canvas.at(event.position())
        has_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        on_values = has_control or self._canvas.is_over_values(event.position())
        self._view.zoom(_FACTOR ** (turn.y() / _NOTCH), value if on_values else step, values=on_values)

    def _key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key in _WALKS:
            self._crosshair.step_by(_WALKS[key])
        elif key in _ZOOMS:
            self._view.zoom(_ZOOMS[key])
        elif key in _FITS:
            self._view.fit()
        elif key == Qt.Key.Key_Escape:
            self._crosshair.leave()
        else:
            return False
        return True
