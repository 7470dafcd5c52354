"""What the tabs of a loss plot show."""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.app.widgets.plot_area import Look
from studio.app.widgets.plot_lines import Line, Mark, PlacedMark
from studio.app.widgets.series import Curve, Numbers, Series, Smoothed
from studio.core import wording
from studio.core.curves import SMOOTHING_STEPS

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
