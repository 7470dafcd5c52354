"""The loss plot and what its tabs show. Importing this module imports pyqtgraph (0.4 s)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.plot import saving
from studio.app.widgets.plot.area import Look
from studio.app.widgets.plot.frame import PlotFrame, tab_bar
from studio.app.widgets.plot.lines import Line, Mark, PlacedMark
from studio.app.widgets.plot.series import Curve, Numbers, Series, Smoothed
from studio.core import wording
from studio.core.curves import SMOOTHING_STEPS

__all__ = ["LossPlot", "Mark", "Numbers"]


class LossPlot(QWidget):
    """One run: loss (raw, smoothed, validation) and, a tab away, other series over the same steps.

    step_hovered: the step under the crosshair; hover_ended: the mouse has left. save_requested: the Save button; the
    owner asks for a path and calls `save`.
    """

    step_hovered = Signal(int)
    hover_ended = Signal()
    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._data = PlotData()
        self._bar = tab_bar()
        self._bar.addTab(LOSS)
        self._bar.setTabToolTip(0, "Show how wrong the model is; lower is better.")
        self._frame = PlotFrame("Loss over steps", self._bar)
        self._plot = self._frame.plot
        self._shown = LOSS
        self.setLayout(factory.column(self._frame))
        self._bar.currentChanged.connect(self._show_tab)
        self._frame.log_changed.connect(self._take_log)
        self._frame.smoothing_changed.connect(self._take_smoothing)
        self._frame.save_requested.connect(self.save_requested)
        self._plot.step_hovered.connect(self.step_hovered)
        self._plot.hover_ended.connect(self.hover_ended)
        self._plot.set_marks(self._data.marks)
        self._show_tab()

    def append(self, steps: Numbers, losses: Numbers) -> None:
        """Append losses at rising `steps`; what was known from steps[0] on is replaced (a resumed run)."""
        self._data.append(steps, losses)
        self._plot.data_changed()

    def append_validation(self, step: int, loss: float) -> None:
        """Append a point of the validation line."""
        self._data.validation.append([step], [loss])
        self._plot.data_changed()

    def append_series(
        self, name: str, steps: Numbers, values: Numbers, unit: str = "", *, place: int = -1, dots: bool = False
    ) -> None:
        """Append to another series ('Learning rate'); the first call with a name adds its tab, at `place` or last.

        dots: show each value, as they are few.
        """
        if self._data.append_series(name, steps, values, unit, dots=dots):
            index = self._bar.insertTab(place, name)
            self._bar.setTabToolTip(index, f"Show '{name}' over the same steps.")
        if name == self._shown:
            self._plot.data_changed()

    def add_mark(self, step: int, kind: Mark, text: str = "") -> None:
        """Mark a step on every tab."""
        self._data.add_mark(step, kind, text)
        self._plot.data_changed()

    def clear(self) -> None:
        """Forget all data: a new run begins."""
        self._bar.setCurrentIndex(0)
        while self._bar.count() > 1:
            self._bar.removeTab(1)
        self._data.clear()
        self._plot.auto_range()

    def set_redraw_interval_ms(self, interval_ms: int) -> None:
        """Shortest time between redraws for new data: every redraw slows a training beside it."""
        self._plot.set_redraw_interval_ms(interval_ms)

    def catch_up(self) -> None:
        """Draw what came since the last redraw, without waiting for the next one."""
        self._plot.refresh()

    def set_smoothing(self, steps: float) -> None:
        """Time constant of the smoothed curve, in steps; 0 switches it off."""
        self._data.tabs[LOSS].smoothed.constant = steps
        self._show_tab()

    def set_log(self, log: bool) -> None:
        """Logarithmic or linear loss axis."""
        self._data.tabs[LOSS].log = log
        self._show_tab()

    def auto_range(self) -> None:
        """Fit the axes to the data, and follow new data again."""
        self._plot.auto_range()

    def save(self, path: Path) -> None:
        """Write the tab on show as .png, .svg or .csv. Raises OSError, or UsageError for another suffix."""
        saving.save(self._plot, self._data.tabs[self._shown].columns(), path)

    @Slot()
    def _show_tab(self) -> None:
        """Show the series of the tab with its own axis and smoothing; the visible steps stay."""
        self._shown = self._bar.tabText(self._bar.currentIndex())
        tab = self._data.tabs[self._shown]
        self._frame.show_state(log=tab.log, smoothing=tab.smoothed.constant)
        self._plot.set_lines(tab.lines())

    @Slot(bool)
    def _take_log(self, log: bool) -> None:
        self._data.tabs[self._shown].log = log
        self._show_tab()

    @Slot(float)
    def _take_smoothing(self, steps: float) -> None:
        self._data.tabs[self._shown].smoothed.constant = steps
        self._show_tab()


LOSS = "Loss"

_WORDS: dict[Mark, str] = {"checkpoint": "Checkpoint", "incident": "Incident", "best": "Best so far"}


@dataclass(eq=False)
class Tab:
    """A series, its smoothed curve, and how they are shown."""

    name: str
    unit: str = ""
    validation: Series | None = None
    dots: bool = False  # each value counts: they are few
    log: bool = False
    raw: Series = field(default_factory=Series)
    smoothed: Smoothed = field(init=False)

    def __post_init__(self) -> None:
        self.smoothed = Smoothed(self.raw)

    def lines(self) -> list[Line]:
        """Raw and smoothed, or raw alone but in full colour; then the points of the held-out sprites."""
        if self.smoothed.constant > 0:
            lines = [
                Line(self.name, self.raw, Look("raw"), self.unit),
                Line("Smoothed", self.smoothed, Look("bold"), self.unit),
            ]
        else:
            lines = [Line(self.name, self.raw, Look("dots" if self.dots else "thin"), self.unit)]
        if self.validation is not None:
            lines.append(Line("Held out", self.validation, Look("dots", 1)))
        return lines

    def columns(self) -> list[tuple[str, Curve]]:
        """The same as columns of a table."""
        columns: list[tuple[str, Curve]] = [(self.name.lower(), self.raw), ("smoothed", self.smoothed)]
        if self.validation is not None:
            columns.append(("validation", self.validation))
        return columns


class PlotData:
    """Losses, validation, other series and marks of one run."""

    def __init__(self) -> None:
        self.validation = Series()
        self.tabs: dict[str, Tab] = {LOSS: Tab(LOSS, validation=self.validation)}
        self.tabs[LOSS].smoothed.constant = SMOOTHING_STEPS
        self.marks: list[PlacedMark] = []

    def append(self, steps: Numbers, losses: Numbers) -> None:
        """Append losses. A resumed run replaces all that came after its first step, whatever it was."""
        if not self.tabs[LOSS].raw.append(steps, losses):
            return
        first = int(steps[0])
        for tab in self.tabs.values():
            if tab.name != LOSS:
                tab.raw.cut(first)
        self.validation.cut(first + 1)  # a figure after `first` steps was measured before step `first` was taken
        self.marks[:] = [mark for mark in self.marks if mark.step <= first]

    def append_series(self, name: str, steps: Numbers, values: Numbers, unit: str, *, dots: bool) -> bool:
        """Append to another series. Returns whether it is a new one."""
        new = name not in self.tabs
        if new:
            self.tabs[name] = Tab(name, unit, dots=dots)
            if len(steps) > 1 and steps[1] - steps[0] == 1:  # a value for each step is as noisy as the losses
                self.tabs[name].smoothed.constant = SMOOTHING_STEPS
        self.tabs[name].raw.append(steps, values)
        return new

    def add_mark(self, step: int, kind: Mark, text: str) -> None:
        """Add a mark; there is one 'best', and one mark of a kind at a step."""
        same = [mark for mark in self.marks if mark.kind == kind and (kind == "best" or mark.step == step)]
        for mark in same:
            self.marks.remove(mark)
        self.marks.append(PlacedMark(step, kind, f"{text or _WORDS[kind]}, step {wording.number(step)}"))

    def clear(self) -> None:
        """Forget everything but how the losses are shown."""
        loss = self.tabs[LOSS]
        self.tabs = {LOSS: loss}
        self.marks.clear()
        for series in (loss.raw, self.validation):
            series.cut(float("-inf"))
