"""A plot with its controls."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QTabBar, QToolButton, QWidget

from studio.app import parts
from studio.app.widgets.smoothing_slider import SmoothingSlider
from studio.app.widgets.time_plot import TimePlot


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
        parts.describe(
            self._log, "Logarithmic axis", "Show the values on a logarithmic axis, where small ones stay apart."
        )
        self._smoothing = SmoothingSlider()
        fit = parts.tool("fit", "Show all", "Fit the axes to the data and follow it again, as a double-click does.")
        save = parts.tool("save", "Save plot", "Save this plot as a picture (PNG, SVG) or as a table (CSV).")
        row = parts.row(head, self._log, fit, save)
        row.setStretch(0, 1)
        if long_legend:
            row.insertWidget(1, self._smoothing)
        else:
            self.plot.add_control(self._smoothing)
        self.setLayout(parts.column(row, self.plot, spacing=parts.GRID // 2))
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
