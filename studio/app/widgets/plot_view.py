"""Which part of its data a plot shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.widgets.crosshair import Crosshair
from studio.app.widgets.plot_area import PlotArea
from studio.app.widgets.plot_lines import Line
from studio.core import curves
from studio.core.curves import Range, Values

_EMPTY = (0.0, 100.0)  # steps, before there are any


class PlotView(QObject):
    """Follows the data until the user moves the view. The values fit what is visible until the user moves those.

    changed: something else is to be drawn, and soon, since the user waits for it.
    """

    changed = Signal()

    def __init__(self, area: PlotArea, crosshair: Crosshair) -> None:
        super().__init__(area)
        self._area = area
        self._crosshair = crosshair
        self._lines: tuple[Line, ...] = ()
        self._follows = True
        self._fits = True
        area.moved_by_user.connect(self._moved)
        area.view_changed.connect(self.changed)

    def set_lines(self, lines: Sequence[Line], *, keep_values: bool) -> None:
        """Show these; the visible steps stay, the values are fitted unless they are to stay too."""
        self._lines = tuple(lines)
        self._fits = self._fits or not keep_values
        self.changed.emit()

    def steps(self) -> Range:
        """The steps to draw now."""
        return self._all_steps() if self._follows else self._area.ranges()[0]

    def values(self, drawn: Sequence[tuple[Values, Values]], *, log: bool) -> Range:
        """The values to show when the lines are drawn like this."""
        steps, shown = self.steps(), self._area.ranges()[1]
        if not self._fits:
            return shown
        # A smoothed curve lies within its raw one, and would drag one outlier along for many steps.
        rough = [points for line, points in zip(self._lines, drawn, strict=True) if line.look.style != "bold"]
        few = all(line.look.style == "dots" for line in self._lines)
        return curves.values_range(rough or drawn, steps, shown, whole=log or few)

    def fit_values(self) -> None:
        """Fit the values to what is visible, and keep them fitting."""
        self._fits = True
        self.changed.emit()

    @Slot()
    def fit(self) -> None:
        """Show everything, and follow new data again."""
        self._follows = self._fits = True
        self.changed.emit()

    @Slot(float, float, bool)
    def zoom(self, factor: float, about: float, values: bool) -> None:
        """Zoom steps or values about a point that stays; not a number stands for the crosshair or the middle."""
        steps, shown = self._area.ranges()
        low, high = shown if values else steps
        if math.isnan(about):
            step = self._crosshair.step()
            about = (low + high) / 2 if step is None else step
        zoomed = (about + (low - about) * factor, about + (high - about) * factor)
        if values:
            self._fits = False
            self._area.set_ranges(steps, zoomed)
        else:
            whole = self._all_steps()
            self._follows = zoomed[0] <= whole[0] and zoomed[1] >= whole[1]  # nothing more to see
            self._area.set_ranges(zoomed, shown)
        self.changed.emit()

    @Slot(float)
    def pan(self, share: float) -> None:
        """Move sideways by a share of the width."""
        (left, right), values = self._area.ranges()
        self._follows = False
        self._area.set_ranges((left + share * (right - left), right + share * (right - left)), values)
        self.changed.emit()

    @Slot(bool, bool)
    def _moved(self, steps: bool, values: bool) -> None:
        self._follows = self._follows and not steps
        self._fits = self._fits and not values

    def _all_steps(self) -> Range:
        filled = [line.curve.steps for line in self._lines if len(line.curve.steps)]
        if not filled:
            return _EMPTY
        first, last = min(float(steps[0]) for steps in filled), max(float(steps[-1]) for steps in filled)
        return curves.steps_range(first, last, self._area.ranges()[0])
