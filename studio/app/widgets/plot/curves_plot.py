"""Curves of several runs over one another. Importing this module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.plot import saving
from studio.app.widgets.plot.area import Look
from studio.app.widgets.plot.frame import PlotFrame, tab_bar
from studio.app.widgets.plot.lines import Line
from studio.app.widgets.plot.loss_plot import LOSS
from studio.app.widgets.plot.series import Curve, Numbers, Series, Smoothed
from studio.core.curves import SMOOTHING_STEPS


class Points(Protocol):
    """A curve as it comes: values at rising steps."""

    @property
    def steps(self) -> Numbers: ...
    @property
    def values(self) -> Numbers: ...


@dataclass(eq=False)
class _Figure:
    """One figure of all runs, each with its colour and label, and how it is shown."""

    smoothing: float = 0.0
    log: bool = False
    curves: list[tuple[int, str, Series, Smoothed]] = field(default_factory=list)

    def lines(self) -> list[Line]:
        """Only the smoothed curves, if they are: the raw ones would hide each other."""
        if self.smoothing > 0:
            return [Line(label, mean, Look("bold", tint)) for tint, label, _, mean in self.curves]
        return [Line(label, raw, Look("thin", tint)) for tint, label, raw, _ in self.curves]


class CurvesPlot(QWidget):
    """Runs to compare, a tab for each figure, with a legend; log, smoothing, crosshair and saving as in `LossPlot`."""

    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._figures = {LOSS: _Figure(smoothing=SMOOTHING_STEPS)}
        self._bar = tab_bar()
        self._bar.addTab(LOSS)
        self._frame = PlotFrame("Curves of the chosen runs", self._bar, long_legend=True)
        self.setLayout(factory.column(self._frame))
        self._bar.currentChanged.connect(self._show_figure)
        self._frame.log_changed.connect(self._take_log)
        self._frame.smoothing_changed.connect(self._take_smoothing)
        self._frame.save_requested.connect(self.save_requested)
        self._show()

    def set_curves(self, runs: Sequence[tuple[str, Mapping[str, Points]]], *, keep_view: bool = False) -> None:
        """Show (label, its curves by figure) of each run, in the order of the theme's curve colours.

        keep_view: they are the same runs with newer curves, and what the user looks at stays.
        """
        before = self._shown()
        for figure in self._figures.values():
            figure.curves = []
        for tint, (label, curves) in enumerate(runs):
            for name, curve in curves.items():
                figure = self._figures.setdefault(name, _Figure())
                series = Series()
                series.append(curve.steps, curve.values)
                figure.curves.append((tint, label, series, Smoothed(series, figure.smoothing)))
        self._show_tabs([name for name, figure in self._figures.items() if figure.curves or name == LOSS])
        if keep_view and self._shown() is before:
            self._show(keep_values=True)
        else:
            self._show_figure()

    def save(self, path: Path) -> None:
        """Write the tab on show as .png, .svg or .csv. Raises OSError, or UsageError for another suffix."""
        columns: list[tuple[str, Curve]] = []
        for _, label, series, smoothed in self._shown().curves:
            columns += [(label, series), (f"{label}, smoothed", smoothed)]
        saving.save(self._frame.plot, columns, path)

    def _shown(self) -> _Figure:
        return self._figures[self._bar.tabText(self._bar.currentIndex())]

    def _show_tabs(self, names: list[str]) -> None:
        """Have a tab for each of these; the one on show stays if it is among them."""
        kept = self._bar.tabText(self._bar.currentIndex())
        self._bar.blockSignals(True)
        while self._bar.count():
            self._bar.removeTab(0)
        for name in names:
            self._bar.addTab(name)
        self._bar.setCurrentIndex(names.index(kept) if kept in names else 0)
        self._bar.blockSignals(False)

    @Slot(bool)
    def _take_log(self, log: bool) -> None:
        self._shown().log = log
        self._show()

    @Slot(float)
    def _take_smoothing(self, steps: float) -> None:
        figure = self._shown()
        figure.smoothing = steps
        for _, _, _, smoothed in figure.curves:
            smoothed.constant = steps
        self._show()

    @Slot()
    def _show_figure(self) -> None:
        self._show()
        self._frame.plot.auto_range()

    def _show(self, *, keep_values: bool = False) -> None:
        figure = self._shown()
        self._frame.show_state(log=figure.log, smoothing=figure.smoothing)
        self._frame.plot.set_lines(figure.lines(), keep_values=keep_values)
