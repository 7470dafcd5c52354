"""A curve in a plot: what it shows, how it looks, and what it reads at a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from studio.app.widgets.plot.area import Look
from studio.app.widgets.plot.series import Curve
from studio.core import curves, wording
from studio.core.curves import Values

Mark = Literal["checkpoint", "incident", "best"]

_DASH = "–"


@dataclass(frozen=True)
class PlacedMark:
    """A mark at a step, with words for whoever points at it."""

    step: int
    kind: Mark
    text: str


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with its label, its look and the unit of its values."""

    label: str
    curve: Curve
    look: Look
    unit: str = ""

    def points(self, low: float, high: float, columns: int, *, log: bool) -> tuple[Values, Values]:
        """What to draw between two steps: all peaks of a rough curve, some points of a smooth one."""
        thin = curves.sampled if self.look.style == "bold" else curves.envelope
        steps, values = thin(self.curve.steps, self.curve.values, low, high, columns)
        if log:
            values = np.log10(values, where=values > 0, out=np.full(len(values), np.nan))
        return steps, values

    def value_at(self, step: float) -> float | None:
        """The newest value at `step`; None before the curve begins and, dots aside, after it has ended."""
        steps = self.curve.steps
        index = int(np.searchsorted(steps, step, side="right")) - 1
        if index < 0 or (self.look.style != "dots" and step > steps[-1]):
            return None
        return float(self.curve.values[index])

    def reading(self, step: float | None) -> str:
        """That value in words; without a step, the newest."""
        value = self.value_at(step if step is not None else self._last())
        if value is None:
            return _DASH
        return f"{wording.decimal(value)} {self.unit}".rstrip()

    def nearest_step(self, step: float) -> float | None:
        """The step of the curve's own that is nearest; None while it is empty."""
        steps = self.curve.steps
        if not len(steps):
            return None
        index = min(int(np.searchsorted(steps, step)), len(steps) - 1)
        if index and step - steps[index - 1] <= steps[index] - step:
            index -= 1
        return float(steps[index])

    def _last(self) -> float:
        return float(self.curve.steps[-1]) if len(self.curve.steps) else 0.0
