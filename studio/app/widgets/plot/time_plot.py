"""A plot of curves over steps, with tabs; redraws only visible changes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QSizePolicy, QSlider, QTabBar, QToolButton, QWidget

from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.plot import saving
from studio.app.widgets.plot.canvas import PlotCanvas
from studio.app.widgets.plot.legend import Crosshair, PlotLegend
from studio.app.widgets.plot.series import MARK_TITLES, Columns, Smoothed, StepMark, StyledCurve
from studio.app.widgets.plot.view import PlotInput, PlotView
from studio.core import formatting

_PROMPT_MS = 15  # delay after user input; new data wait for the interval
_TIP = "Drag to pan, scroll to zoom, Ctrl+scroll: Y axis. Double-click or 0: show all."
_PER_DECADE = 10
_LAST = 4 * _PER_DECADE  # 10,000 steps
_SLIDER_WIDTH = 64
_NARROW, _NARROW_HEAD = 340, 440  # logical pixels; smoothing beside the legend or the tabs goes below in narrower plots


class PlotTab(ABC):
    """The content of a tab. smoothing: time constant of smoothed curves in steps; 0 for no smoothing.

    from_zero: the linear value axis includes 0.
    """

    def __init__(self, smoothing: float = 0.0, *, from_zero: bool = False) -> None:
        self.log = False
        self.from_zero = from_zero
        self.smoothing = smoothing
        self.smoothed: list[Smoothed] = []

    def set_smoothing(self, steps: float) -> None:
        """Smooth all curves with this time constant in steps."""
        self.smoothing = steps
        for curve in self.smoothed:
            curve.constant = steps

    @abstractmethod
    def lines(self) -> list[StyledCurve]:
        """Return the curves that the tab draws, with their colours and styles."""

    @abstractmethod
    def columns(self) -> Columns:
        """Return the curves as table columns."""


class TimePlot(QWidget):
    """A plot with tabs, legend, curves and controls. Subclasses append to the tabs' data and call `data_changed`.

    step_hovered: the crosshair's step. hover_ended: the crosshair is hidden. redrawn: the plot was redrawn.
    save_requested: the Save button; the owner asks for a path and calls `save`.
    """

    step_hovered = Signal(int)
    hover_ended = Signal()
    redrawn = Signal()
    save_requested = Signal()

    def __init__(self, name: str, tabs: Mapping[str, PlotTab], *, long_legend: bool = False) -> None:
        """Create a plot with these tabs. long_legend: place the smoothing slider beside the tabs, not the legend."""
        super().__init__()
        self.marks: list[StepMark] = []
        self.bar = _tab_bar(tabs)
        self.legend = PlotLegend()
        self.canvas = PlotCanvas()
        self.crosshair = Crosshair(self.canvas, self.legend, self.marks)
        self._tabs = tabs
        self._view = PlotView(self.canvas, self.crosshair)
        self._log = factory.check_box("Log", "Use a logarithmic Y axis.")
        self._log.setAccessibleName("Logarithmic axis")
        self._smoothing = SmoothingSlider()
        self._head = factory.row()  # tabs and buttons
        self._top = factory.row(spacing=2 * factory.GRID)  # legend and smoothing
        self._long_legend = long_legend
        self._dirty = False
        self._interval_ms = 33
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        factory.set_name_and_tip(self.canvas.widget, name, _TIP)
        self._lay_out()
        PlotInput(self.canvas, self.crosshair, self._view)
        self.bar.currentChanged.connect(self._on_tab_changed)
        self._log.toggled.connect(self.set_log)
        self._smoothing.changed.connect(self.set_smoothing)
        self._timer.timeout.connect(self.refresh)
        self._view.changed.connect(self._on_view_changed)
        self.crosshair.step_hovered.connect(self.step_hovered)
        self.crosshair.hover_ended.connect(self.hover_ended)
        self.show_lines()

    def tab(self) -> PlotTab:
        return self._tabs[self.bar.tabText(self.bar.currentIndex())]

    @Slot()
    def show_lines(self, *, keep_values: bool = False) -> None:
        """Show the current tab's lines and keep the visible steps. keep_values: keep the value range too."""
        tab = self.tab()
        with QSignalBlocker(self._log):
            self._log.setChecked(tab.log)
        self._smoothing.set_steps(tab.smoothing)
        self.canvas.set_value_axis(log=tab.log, from_zero=tab.from_zero)
        lines = tab.lines()
        self.canvas.set_lines(lines)
        self.crosshair.set_lines(lines)
        self._view.set_lines(lines, keep_values=keep_values)

    @Slot(bool)
    def set_log(self, log: bool) -> None:
        """Use a logarithmic or linear value axis for the current tab."""
        self.tab().log = log
        self.show_lines()

    @Slot(float)
    def set_smoothing(self, steps: float) -> None:
        """Smooth the current tab's curves with this time constant in steps; 0 for no smoothing."""
        self.tab().set_smoothing(steps)
        self.show_lines()

    def set_redraw_interval_ms(self, interval_ms: int) -> None:
        """Set the shortest time between redraws for new data, since redraws slow a training down."""
        self._interval_ms = interval_ms

    @Slot()
    def data_changed(self) -> None:
        """Redraw soon, or when shown again."""
        self._schedule_redraw(self._interval_ms)

    @Slot()
    def auto_range(self) -> None:
        """Fit the axes to the data and follow new data."""
        self._view.fit()

    @Slot()
    def refresh(self, detail: int = 1) -> None:
        """Redraw now. detail: points for each pixel."""
        self.canvas.draw(self._view.steps(), fit_values=self._view.fits, detail=detail)
        for kind in MARK_TITLES:
            self.canvas.draw_marks(kind, np.array([float(mark.step) for mark in self.marks if mark.kind == kind]))
        self.crosshair.refresh()
        self._dirty = False  # set here, since set_ranges also marks the plot dirty
        self._timer.stop()
        self.redrawn.emit()

    def save(self, path: Path) -> None:
        """Save the current tab as .png, .svg or .csv. Raises OSError, or UsageError for another suffix."""
        self.refresh(saving.SCALE)
        try:
            saving.save(self.legend, self.canvas, self.tab().columns(), path)
        finally:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the smoothing slider below the legend in a narrow plot."""
        super().resizeEvent(event)
        is_narrow = self.width() < (_NARROW_HEAD if self._long_legend else _NARROW)
        direction = QBoxLayout.Direction
        self._top.setDirection(direction.TopToBottom if is_narrow else direction.LeftToRight)
        if self._long_legend:
            self._place_smoothing(in_head=not is_narrow)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._dirty:
            self._schedule_redraw(0)

    def _place_smoothing(self, *, in_head: bool) -> None:
        """Place the smoothing slider after the tabs, or with the legend."""
        if in_head and self._head.indexOf(self._smoothing) < 0:
            self._head.insertWidget(1, self._smoothing)
        elif not in_head and self._top.indexOf(self._smoothing) < 0:
            self._top.addWidget(self._smoothing, alignment=Qt.AlignmentFlag.AlignTop)

    def _lay_out(self) -> None:
        tip = "Fit the axes to the data and follow new data. (Double-click)"
        fit = factory.tool_button("fit", "Show all", tip, self.auto_range)
        save = factory.tool_button("save", "Save plot", "Save this plot as PNG, SVG or CSV.", self.save_requested)
        self._head.addWidget(self.bar, 1)
        for part in (self._log, fit, save):
            self._head.addWidget(part)
        self._top.addWidget(self.legend, 1)
        self._place_smoothing(in_head=self._long_legend)
        self.setLayout(factory.column(self._head, self._top, self.canvas, spacing=factory.GRID // 2, grows=2))

    def _schedule_redraw(self, within_ms: int) -> None:
        self._dirty = True
        if self.isVisible() and (not self._timer.isActive() or self._timer.remainingTime() > within_ms):
            self._timer.start(within_ms)

    @Slot()
    def _on_tab_changed(self) -> None:
        self.show_lines()

    @Slot()
    def _on_view_changed(self) -> None:
        self._schedule_redraw(_PROMPT_MS)


class SmoothingSlider(QWidget):
    """A slider for a time constant from 1 to 10,000 steps, or off. changed: the user moved the slider."""

    changed = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _LAST)
        self.slider.setPageStep(_PER_DECADE // 2)
        self.slider.setFixedWidth(_SLIDER_WIDTH)
        WheelNeedsFocus(self.slider)
        factory.set_name_and_tip(self.slider, "Smoothing", "Steps to average the bold curve over; leftmost: off.")
        self._words = QLabel()
        self._words.setToolTip(self.slider.toolTip())
        self._words.setMinimumWidth(self._words.fontMetrics().horizontalAdvance("10,000 steps") + 4)
        self.setLayout(factory.row(self.slider, self._words))
        self._show(0)
        self.slider.valueChanged.connect(self._on_moved)

    def set_steps(self, steps: float) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(0 if steps < 1 else round(_PER_DECADE * math.log10(steps)))
        self._show(steps)

    @Slot(int)
    def _on_moved(self, value: int) -> None:
        # Round to two digits: 1259 -> 1300.
        steps = float(f"{10 ** (value / _PER_DECADE):.2g}") if value else 0.0
        self._show(steps)
        self.changed.emit(steps)

    def _show(self, steps: float) -> None:
        self._words.setText(formatting.count(round(steps), "step") if steps else "Not smoothed")


def _tab_bar(names: Mapping[str, PlotTab]) -> QTabBar:
    """Return a tab bar that shrinks if there is little room."""
    bar = QTabBar()
    WheelNeedsFocus(bar)
    factory.set_name_and_tip(bar, "Curves", "Choose the curves to plot.")
    bar.setDrawBase(False)
    bar.setExpanding(False)
    bar.setUsesScrollButtons(True)
    bar.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    for name in names:
        bar.addTab(name)
    for arrow in bar.findChildren(QToolButton):
        arrow.setToolTip("Scroll the tabs.")
    return bar
