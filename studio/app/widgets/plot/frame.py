"""A plot with its controls: tabs, and how much its curves are smoothed."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QLabel, QSizePolicy, QSlider, QTabBar, QToolButton, QWidget

from studio.app.widgets import factory
from studio.app.widgets.plot.time_plot import TimePlot
from studio.core import wording


class PlotFrame(QWidget):
    """Above: what the owner puts there, the log switch, fitting, saving. Below: the plot with its legend.

    Smoothing has its place beside the legend, or above where the legend needs the room (`long_legend`).

    log_changed and smoothing_changed: by the user.
    """

    log_changed = Signal(bool)
    smoothing_changed = Signal(float)
    save_requested = Signal()

    def __init__(self, name: str, head: QWidget, *, long_legend: bool = False) -> None:
        super().__init__()
        self.plot = TimePlot(name)
        self._log = QCheckBox("Log")
        factory.describe(
            self._log, "Logarithmic axis", "Show the values on a logarithmic axis, where small ones stay apart."
        )
        self._smoothing = SmoothingSlider()
        fit = factory.tool("fit", "Show all", "Fit the axes to the data and follow it again, as a double-click does.")
        save = factory.tool("save", "Save plot", "Save this plot as a picture (PNG, SVG) or as a table (CSV).")
        row = factory.row(head, self._log, fit, save)
        row.setStretch(0, 1)
        if long_legend:
            row.insertWidget(1, self._smoothing)
        else:
            self.plot.add_control(self._smoothing)
        self.setLayout(factory.column(row, self.plot, spacing=factory.GRID // 2))
        self._log.toggled.connect(self.log_changed)
        self._smoothing.changed.connect(self.smoothing_changed)
        fit.clicked.connect(self.plot.auto_range)
        save.clicked.connect(self.save_requested)

    def show_state(self, *, log: bool, smoothing: float) -> None:
        """Make controls and axis say this, without sending anything."""
        self._log.blockSignals(True)
        self._log.setChecked(log)
        self._log.blockSignals(False)
        self._smoothing.set_steps(smoothing)
        self.plot.set_log(log)


def tab_bar() -> QTabBar:
    """A bar that chooses what a plot shows; it shrinks where there is little room. Tabs are added by the owner."""
    bar = QTabBar()
    bar.setAccessibleName("Curves")
    bar.setDrawBase(False)
    bar.setExpanding(False)
    bar.setUsesScrollButtons(True)
    bar.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    for arrow in bar.findChildren(QToolButton):
        arrow.setToolTip("Show the tabs further on.")
    return bar


_PER_DECADE = 10
_LAST = 4 * _PER_DECADE  # 10,000 steps
_SLIDER_WIDTH = 88


class SmoothingSlider(QWidget):
    """A time constant from 1 to 10,000 steps, or none. changed: by the user."""

    changed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _LAST)
        self.slider.setPageStep(_PER_DECADE // 2)
        self.slider.setFixedWidth(_SLIDER_WIDTH)
        factory.describe(self.slider, "Smoothing", "Over how many steps the bold curve is averaged; at the left, none.")
        self._words = QLabel()
        self._words.setToolTip(self.slider.toolTip())
        self._words.setMinimumWidth(self._words.fontMetrics().horizontalAdvance("10,000 steps") + 4)
        self.setLayout(factory.row(self.slider, self._words))
        self._say(0)
        self.slider.valueChanged.connect(self._moved)

    def set_steps(self, steps: float) -> None:
        """Show this time constant."""
        self.slider.blockSignals(True)
        self.slider.setValue(0 if steps < 1 else round(_PER_DECADE * math.log10(steps)))
        self.slider.blockSignals(False)
        self._say(steps)

    @Slot(int)
    def _moved(self, place: int) -> None:
        steps = float(_rounded(10 ** (place / _PER_DECADE))) if place else 0.0
        self._say(steps)
        self.changed.emit(steps)

    def _say(self, steps: float) -> None:
        self._words.setText(wording.count(round(steps), "step") if steps else "Not smoothed")


def _rounded(steps: float) -> int:
    """Two digits are enough: 1259 -> 1300."""
    return int(float(f"{steps:.2g}"))
