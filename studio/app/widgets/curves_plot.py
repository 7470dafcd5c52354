"""Curves of several runs over one another. Importing this module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app import parts
from studio.app.widgets import labels, plot_saving
from studio.app.widgets.plot_area import Look
from studio.app.widgets.plot_frame import PlotFrame
from studio.app.widgets.plot_lines import Line
from studio.app.widgets.series import Curve, Numbers, Series, Smoothed

_SMOOTHING = 50.0


class CurvesPlot(QWidget):
    """Loss curves to compare, with a legend; log switch, smoothing, crosshair and saving as in `LossPlot`."""

    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._curves: list[tuple[str, Series, Smoothed]] = []
        self._smoothing = _SMOOTHING
        self._log = False
        self._frame = PlotFrame("Losses of the chosen runs", labels.heading("Loss"), long_legend=True)
        self.setLayout(parts.column(self._frame))
        self._frame.log_changed.connect(self._take_log)
        self._frame.smoothing_changed.connect(self._take_smoothing)
        self._frame.save_requested.connect(self.save_requested)
        self._show()

    def set_curves(self, curves: Sequence[tuple[str, Numbers, Numbers]]) -> None:
        """Show (label, steps, losses) of each run, in the order of the theme's curve colours."""
        self._curves = []
        for label, steps, losses in curves:
            series = Series()
            series.append(steps, losses)
            self._curves.append((label, series, Smoothed(series, self._smoothing)))
        self._show()
        self._frame.plot.auto_range()

    def save(self, path: Path) -> None:
        """Write the plot as .png, .svg or .csv. Raises OSError, or UsageError for another suffix."""
        columns: list[tuple[str, Curve]] = []
        for label, series, smoothed in self._curves:
            columns += [(label, series), (f"{label}, smoothed", smoothed)]
        plot_saving.save(self._frame.plot, columns, path)

    @Slot(bool)
    def _take_log(self, log: bool) -> None:
        self._log = log
        self._show()

    @Slot(float)
    def _take_smoothing(self, steps: float) -> None:
        self._smoothing = steps
        for _, _, smoothed in self._curves:
            smoothed.constant = steps
        self._show()

    def _show(self) -> None:
        """Only the smoothed curves, if they are: the raw ones would hide each other."""
        self._frame.show_state(log=self._log, smoothing=self._smoothing)
        if self._smoothing > 0:
            lines = [Line(label, mean, Look("bold", tint)) for tint, (label, _, mean) in enumerate(self._curves)]
        else:
            lines = [Line(label, raw, Look("thin", tint)) for tint, (label, raw, _) in enumerate(self._curves)]
        self._frame.plot.set_lines(lines)
