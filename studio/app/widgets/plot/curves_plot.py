"""The plot that compares runs. Importing the module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from PySide6.QtCore import QSignalBlocker, Slot

from studio.app.widgets.plot.loss_plot import LOSS
from studio.app.widgets.plot.series import Columns, LineStyle, Numbers, Series, Smoothed, StyledCurve
from studio.app.widgets.plot.time_plot import PlotTab, TimePlot
from studio.core.curves import SMOOTHING_STEPS


class Points(Protocol):
    """Points of a curve: values at ascending training steps."""

    @property
    def steps(self) -> Numbers: ...
    @property
    def values(self) -> Numbers: ...


class FigureTab(PlotTab):
    """A tab with curves of the same figure, such as loss, for several runs."""

    def __init__(self, smoothing: float = 0.0) -> None:
        super().__init__(smoothing)
        self._runs: list[tuple[str, int, Series]] = []

    def clear(self) -> None:
        self._runs, self.smoothed = [], []

    def add(self, label: str, tint: int, curve: Points) -> None:
        """Add a run's curve. tint: index into the theme's curve colours."""
        series = Series()
        series.append(curve.steps, curve.values)
        self._runs.append((label, tint, series))
        self.smoothed.append(Smoothed(series, self.smoothing))

    def lines(self) -> list[StyledCurve]:
        """Return the smoothed curves if smoothing is on, else the raw curves."""
        pairs = zip(self._runs, self.smoothed, strict=True)
        if self.smoothing > 0:
            return [StyledCurve(label, mean, LineStyle("bold", tint)) for (label, tint, _), mean in pairs]
        return [StyledCurve(label, raw, LineStyle("thin", tint)) for label, tint, raw in self._runs]

    def columns(self) -> Columns:
        columns: Columns = []
        for (label, _, series), smoothed in zip(self._runs, self.smoothed, strict=True):
            columns += [(label, series), (f"{label}, smoothed", smoothed)]
        return columns


class CurvesPlot(TimePlot):
    """The plot that compares runs, with a tab for each figure."""

    def __init__(self) -> None:
        figures = {LOSS: FigureTab(SMOOTHING_STEPS)}
        super().__init__("Curves of the selected runs", figures, long_legend=True)
        self._figures = figures

    def set_curves(self, runs: Sequence[tuple[str, Mapping[str, Points]]], *, keep_view: bool = False) -> None:
        """Show the curves of several runs. runs: each run's label, and its curves by figure.

        keep_view: keep the visible range, because the same runs have newer curves.
        """
        before = self.tab()
        for figure in self._figures.values():
            figure.clear()
        for tint, (label, curves) in enumerate(runs):
            for name, curve in curves.items():
                self._figures.setdefault(name, FigureTab()).add(label, tint, curve)
        self._show_tabs([name for name, figure in self._figures.items() if figure.smoothed or name == LOSS])
        if keep_view and self.tab() is before:
            self.show_lines(keep_values=True)
        else:
            self._on_tab_changed()

    def _show_tabs(self, names: list[str]) -> None:
        """Show these tabs, and keep the current tab if possible."""
        kept = self.bar.tabText(self.bar.currentIndex())
        with QSignalBlocker(self.bar):
            while self.bar.count():
                self.bar.removeTab(0)
            for name in names:
                self.bar.addTab(name)
            self.bar.setCurrentIndex(names.index(kept) if kept in names else 0)

    @Slot()
    def _on_tab_changed(self) -> None:
        super()._on_tab_changed()
        self.auto_range()
