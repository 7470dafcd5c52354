"""The plot of a run: losses and other series. Importing the module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from studio.app.widgets.plot.series import (
    MARK_TITLES,
    Columns,
    LineStyle,
    MarkKind,
    Numbers,
    Series,
    Smoothed,
    StepMark,
    StyledCurve,
)
from studio.app.widgets.plot.time_plot import PlotTab, TimePlot
from studio.core import formatting
from studio.core.curves import SMOOTHING_STEPS

LOSS = "Loss"


class SeriesTab(PlotTab):
    """A tab with a series and its smoothed curve, and with `beside`, dots of other figures on the same axis, by label.

    validation: points to draw too. dots: draw each value as a dot.
    """

    def __init__(
        self, name: str, unit: str = "", smoothing: float = 0.0, validation: Series | None = None, *,
        dots: bool = False, from_zero: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(smoothing, from_zero=from_zero)
        self.raw = Series()
        self.validation = validation
        self.beside: dict[str, Series] = {}
        self._name, self._unit, self._dots = name, unit, dots
        self.smoothed = [Smoothed(self.raw, smoothing)]

    def lines(self) -> list[StyledCurve]:
        """Return raw and smoothed curve, or only the raw curve in full colour, and the validation points."""
        if self.smoothing > 0:
            smoothed = StyledCurve("Smoothed", self.smoothed[0], LineStyle("bold"), self._unit)
            lines = [StyledCurve(self._name, self.raw, LineStyle("raw"), self._unit), smoothed]
        else:
            lines = [StyledCurve(self._name, self.raw, LineStyle("dots" if self._dots else "thin"), self._unit)]
        if self.validation is not None:
            lines.append(StyledCurve("Validation", self.validation, LineStyle("dots", 1)))
        others = enumerate(self.beside.items(), len(lines))
        return lines + [StyledCurve(label, series, LineStyle("dots", tint)) for tint, (label, series) in others]

    def columns(self) -> Columns:
        validation: Columns = [("validation", self.validation)] if self.validation is not None else []
        return [(self._name.lower(), self.raw), ("smoothed", self.smoothed[0]), *validation, *self.beside.items()]

    def cut(self, step: int) -> None:
        """Remove all values from `step` on, except of the validation."""
        for series in (self.raw, *self.beside.values()):
            series.cut(step)


class LossPlot(TimePlot):
    """The plot of a run: loss (raw, smoothed, validation), and other series in tabs."""

    def __init__(self) -> None:
        validation = Series()
        tabs = {LOSS: SeriesTab(LOSS, smoothing=SMOOTHING_STEPS, validation=validation)}
        super().__init__("Loss over steps", tabs)
        self.validation, self.tabs = validation, tabs
        self.bar.setTabToolTip(0, "Show the loss; lower is better.")
        self.legend.reserve(("checkpoint", "best"))  # every run gets these marks

    def append(self, steps: Numbers, losses: Numbers) -> None:
        """Append losses at rising `steps`. In a resumed run, first remove all data after the first step."""
        if self.tabs[LOSS].raw.append(steps, losses):
            first = int(steps[0])
            for name, tab in self.tabs.items():
                if name != LOSS:
                    tab.cut(first)
            self.validation.cut(first + 1)  # the validation after `first` steps precedes step `first`
            self.marks[:] = [mark for mark in self.marks if mark.step <= first]
        self.data_changed()

    def append_validation(self, step: int, loss: float) -> None:
        self.validation.append([step], [loss])
        self.data_changed()

    def append_series(
        self, name: str, steps: Numbers, values: Numbers, unit: str = "", *, position: int = -1, dots: bool = False,
        from_zero: bool = False, beside: str = "", tip: str = "",
    ) -> None:  # fmt: skip
        """Append to a named series ('Learning rate'). The first call adds a tab, at `position` or last.

        dots: draw each value as a dot, for sparse values. from_zero: include 0 in the value axis. beside: append to
        the tab's other figure of this label instead. tip: tooltip of the tab.
        """
        if name not in self.tabs:
            noisy = len(steps) > 1 and steps[1] - steps[0] == 1  # a value for each step
            smoothing = SMOOTHING_STEPS if noisy else 0.0
            self.tabs[name] = SeriesTab(name, unit, smoothing, dots=dots, from_zero=from_zero)
            index = self.bar.insertTab(position, name)
            self.bar.setTabToolTip(index, tip or f"Show the curve '{name}' over the same steps.")
        tab = self.tabs[name]
        is_new = beside not in ("", *tab.beside)
        series = tab.beside.setdefault(beside, Series()) if beside else tab.raw
        series.append(steps, values)
        if self.tab() is tab and is_new:
            self.show_lines(keep_values=True)
        elif self.tab() is tab:
            self.data_changed()

    def add_mark(self, step: int, kind: MarkKind, text: str = "") -> None:
        """Mark a step on all tabs. A new 'best' mark replaces the old mark; a step has a single mark of each kind."""
        text = f"{text or MARK_TITLES[kind]}, step {formatting.number(step)}"
        others = [mark for mark in self.marks if mark.kind != kind or (kind != "best" and mark.step != step)]
        self.marks[:] = [*others, StepMark(step, kind, text)]
        self.data_changed()

    def clear(self) -> None:
        """Remove all data, for a new run."""
        self.bar.setCurrentIndex(0)
        while self.bar.count() > 1:
            self.bar.removeTab(1)
        for name in [name for name in self.tabs if name != LOSS]:
            del self.tabs[name]
        self.marks.clear()
        for series in (self.tabs[LOSS].raw, self.validation):
            series.cut(float("-inf"))
        self.auto_range()
