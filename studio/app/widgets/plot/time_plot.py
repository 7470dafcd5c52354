"""A plot over steps that redraws only what has changed and is visible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from studio.app.widgets import factory
from studio.app.widgets.plot.area import PlotArea
from studio.app.widgets.plot.crosshair import Crosshair
from studio.app.widgets.plot.legend import PlotLegend
from studio.app.widgets.plot.lines import Line, PlacedMark
from studio.app.widgets.plot.view import PlotInput, PlotView

_PROMPT_MS = 15  # after what the user does; new data wait for the interval
_TIP = "Drag to move, turn the wheel to zoom (with Ctrl: the values), double-click or press 0 to show all."


class TimePlot(QWidget):
    """Legend and curves. The owner appends to the lines' data and calls `data_changed`.

    redrawn: it has been drawn anew.
    """

    step_hovered = Signal(int)
    hover_ended = Signal()
    redrawn = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.legend = PlotLegend()
        self.area = PlotArea()
        self.crosshair = Crosshair(self.area, self.legend)
        self._input = PlotInput(self.area)
        self._view = PlotView(self.area, self.crosshair)
        self._lines: tuple[Line, ...] = ()
        self._marks: Sequence[PlacedMark] = ()
        self._log = False
        self._dirty = False
        self._interval_ms = 33
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(factory.GRID // 2)
        self._top = factory.row(self.legend, spacing=2 * factory.GRID)
        self._top.setStretch(0, 1)
        layout.addLayout(self._top)
        layout.addWidget(self.area, 1)
        factory.describe(self.area.canvas, name, _TIP)
        self._connect()

    def add_control(self, control: QWidget) -> None:
        """Put a control beside the legend."""
        self._top.addWidget(control, alignment=Qt.AlignmentFlag.AlignTop)

    def set_lines(self, lines: Sequence[Line], *, keep_values: bool = False) -> None:
        """Show these curves; the visible steps stay, the values are fitted unless they are to stay too."""
        self._lines = tuple(lines)
        self.area.set_looks([line.look for line in lines])
        self.crosshair.set_lines(lines)
        self._view.set_lines(lines, keep_values=keep_values)

    def set_marks(self, marks: Sequence[PlacedMark]) -> None:
        """Show these marks; the sequence may grow afterwards."""
        self._marks = marks
        self.crosshair.set_marks(marks)
        self.data_changed()

    def set_log(self, log: bool) -> None:
        """Logarithmic or linear axis of values."""
        if log != self._log:
            self._log = log
            self.area.set_log(log)
            self._view.fit_values()

    def set_redraw_interval_ms(self, interval_ms: int) -> None:
        """Shortest time between redraws for new data."""
        self._interval_ms = interval_ms

    @Slot()
    def data_changed(self) -> None:
        """Redraw soon, if visible; else when shown again."""
        self._wake(self._interval_ms)

    @Slot()
    def auto_range(self) -> None:
        """Fit the axes to the data, and follow new data again."""
        self._view.fit()

    @Slot()
    def refresh(self, detail: int = 1) -> None:
        """Redraw now, with so many points for each pixel."""
        steps = self._view.steps()
        columns = self.area.columns() * detail
        drawn = [line.points(*steps, columns, log=self._log) for line in self._lines]
        self.area.set_ranges(steps, self._view.values(drawn, log=self._log))
        for index, points in enumerate(drawn):
            self.area.draw(index, *points)
        for kind in ("checkpoint", "incident", "best"):
            self.area.draw_marks(kind, np.array([mark.step for mark in self._marks if mark.kind == kind], dtype=float))
        self.crosshair.refresh()
        self._dirty = False  # with that, also for our own change of the ranges
        self._timer.stop()
        self.redrawn.emit()

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with what came while hidden."""
        super().showEvent(event)
        if self._dirty:
            self._wake(0)

    def _connect(self) -> None:
        self._timer.timeout.connect(self.refresh)
        self._view.changed.connect(self._soon)
        self._input.hovered.connect(self.crosshair.hover)
        self._input.left.connect(self.crosshair.leave)
        self._input.walked.connect(self.crosshair.walk)
        self._input.zoomed.connect(self._view.zoom)
        self._input.panned.connect(self._view.pan)
        self._input.fitted.connect(self._view.fit)
        self.crosshair.step_hovered.connect(self.step_hovered)
        self.crosshair.hover_ended.connect(self.hover_ended)

    def _wake(self, within_ms: int) -> None:
        self._dirty = True
        if self.isVisible() and (not self._timer.isActive() or self._timer.remainingTime() > within_ms):
            self._timer.start(within_ms)

    @Slot()
    def _soon(self) -> None:
        self._wake(_PROMPT_MS)
