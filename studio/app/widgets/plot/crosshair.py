"""Reading values off a plot, with the mouse or the arrow keys."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.widgets.plot.area import PlotArea
from studio.app.widgets.plot.legend import STEP, Entry, PlotLegend
from studio.app.widgets.plot.lines import Line, PlacedMark
from studio.core import wording

_NEAR = 5  # pixels between the crosshair and a mark that it names


class Crosshair(QObject):
    """Shows the values at a step in the legend; without a step, the newest."""

    step_hovered = Signal(int)
    hover_ended = Signal()

    def __init__(self, area: PlotArea, legend: PlotLegend) -> None:
        super().__init__(area)
        self._area = area
        self._legend = legend
        self._lines: tuple[Line, ...] = ()
        self._marks: Sequence[PlacedMark] = ()
        self._step: float | None = None

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Read these curves; their steps are those of the longest."""
        self._lines = tuple(lines)
        self._legend.set_entries([STEP, *(Entry(line.label, line.look, line.unit) for line in lines)])
        self.refresh()

    def set_marks(self, marks: Sequence[PlacedMark]) -> None:
        """Name these when the crosshair is near."""
        self._marks = marks

    def step(self) -> float | None:
        """The step under the crosshair."""
        return self._step

    @Slot(float)
    def hover(self, near: float) -> None:
        """Go to the nearest step that has a value."""
        longest = max(self._lines, key=_length, default=None)
        step = longest.nearest_step(near) if longest else None
        if step is None or step == self._step:
            return
        self._step = step
        self.refresh()
        self.step_hovered.emit(int(step))

    @Slot()
    def leave(self) -> None:
        """Hide; the legend shows the newest values."""
        if self._step is not None:
            self._step = None
            self.refresh()
            self.hover_ended.emit()

    @Slot(int)
    def walk(self, columns: int) -> None:
        """Go on by some pixels, but at least to the next step."""
        (left, right), _ = self._area.ranges()
        steps = max((line.curve.steps for line in self._lines), key=len, default=None)
        if steps is None or not len(steps):
            return
        here = self._step if self._step is not None else float(min(right, steps[-1]))
        ahead = columns * (right - left) / self._area.columns()
        index = int(steps.searchsorted(here)) + (1 if columns > 0 else -1)
        next_step = float(steps[max(0, min(index, len(steps) - 1))])
        self.hover(max(here + ahead, next_step) if columns > 0 else min(here + ahead, next_step))

    def refresh(self) -> None:
        """Read the values anew: the data or the view have changed."""
        newest = max((float(line.curve.steps[-1]) for line in self._lines if len(line.curve.steps)), default=None)
        shown = self._step if self._step is not None else newest
        words = [wording.number(int(shown)) if shown is not None else "–"]
        words += [line.reading(self._step) for line in self._lines]
        self._legend.set_values(words)
        self._area.set_cross(self._step, self._note())

    def _note(self) -> str:
        if self._step is None or not self._marks:
            return ""
        (left, right), _ = self._area.ranges()
        near = _NEAR * (right - left) / self._area.columns()
        nearest = min(self._marks, key=self._distance)
        return nearest.text if self._distance(nearest) <= near else ""

    def _distance(self, mark: PlacedMark) -> float:
        return abs(mark.step - (self._step or 0.0))


def _length(line: Line) -> int:
    return len(line.curve.steps)
