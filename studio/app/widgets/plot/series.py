"""Growing series of values over steps, their smoothing, and lines to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from studio.app import theme
from studio.core import curves, formatting
from studio.core.curves import Values

Numbers = NDArray[np.generic] | Sequence[float] | Sequence[int]
LineKind = Literal["raw", "bold", "thin", "dots"]
MarkKind = Literal["checkpoint", "incident", "best"]

MARK_TITLES: dict[MarkKind, str] = {"checkpoint": "Checkpoint", "best": "Best checkpoint", "incident": "Incident"}


class GrowingArray:
    """A float64 array that grows at the end in amortized constant time."""

    def __init__(self) -> None:
        self._room = np.empty(256)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def view(self) -> Values:
        """Return the values, not copied."""
        return self._room[: self._count]

    def truncate(self, count: int) -> None:
        """Keep only the first `count` values."""
        self._count = min(self._count, count)

    def extend(self, values: Values) -> None:
        end = self._count + len(values)
        if end > len(self._room):
            larger = np.empty(max(end, 2 * len(self._room)))
            larger[: self._count] = self.view()
            self._room = larger
        self._room[self._count : end] = values
        self._count = end


class PlotCurve(Protocol):
    """Steps and values of a curve to draw."""

    @property
    def steps(self) -> Values: ...
    @property
    def values(self) -> Values: ...


Columns = list[tuple[str, PlotCurve]]  # curves of a table, each with its name


class Series:
    """Values at rising steps, as float64. Infinite values are stored as NaN."""

    def __init__(self) -> None:
        self._steps, self._values = GrowingArray(), GrowingArray()
        self._first_changed = 0

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> Values:
        """The steps, whole numbers."""
        return self._steps.view()

    @property
    def values(self) -> Values:
        return self._values.view()

    def append(self, steps: Numbers, values: Numbers) -> bool:
        """Append values. Earlier values from steps[0] on are replaced. Return whether any were replaced."""
        new_steps = np.asarray(steps, dtype=np.float64)
        new_values = np.array(values, dtype=np.float64)
        if not len(new_steps):
            return False
        new_values[~np.isfinite(new_values)] = np.nan
        replaced = self.cut(float(new_steps[0]))
        self._steps.extend(new_steps)
        self._values.extend(new_values)
        return replaced

    def cut(self, step: float) -> bool:
        """Remove all values from `step` on. Return whether any were removed."""
        if not len(self) or self.steps[-1] < step:
            return False
        count = int(np.searchsorted(self.steps, step))
        self._steps.truncate(count)
        self._values.truncate(count)
        self._first_changed = min(self._first_changed, count)
        return True

    def pop_first_changed(self) -> int:
        """Return the first index whose value may have changed since the last call."""
        changed, self._first_changed = self._first_changed, len(self)
        return changed


class Smoothed:
    """The exponential moving average of a series. Computes each value once; a series feeds only one average."""

    def __init__(self, source: Series, constant: float = 0.0) -> None:
        self._source, self._constant = source, constant
        self._values = GrowingArray()

    @property
    def constant(self) -> float:
        """The time constant of the smoothing in steps; 0 for no smoothing."""
        return self._constant

    @constant.setter
    def constant(self, steps: float) -> None:
        if steps != self._constant:
            self._constant = steps
            self._values.truncate(0)

    @property
    def steps(self) -> Values:
        return self._source.steps

    @property
    def values(self) -> Values:
        """The smoothed value at each step."""
        if self._constant <= 0:
            return self._source.values
        self._values.truncate(self._source.pop_first_changed())
        self._values.extend(curves.smooth_curve(self.steps, self._source.values, self._constant, self._values.view()))
        return self._values.view()


@dataclass(frozen=True)
class LineStyle:
    """A line's kind, its index into the theme's curve colours, and whether it is dashed."""

    kind: LineKind
    tint: int = 0
    dashed: bool = False

    def colour(self) -> str:
        """Return the colour in the current theme."""
        colours = theme.colours()
        full = colours.curves[self.tint % len(colours.curves)]
        return theme.mix(colours.surface, full, 0.42) if self.kind == "raw" else full


@dataclass(frozen=True, eq=False)
class StyledCurve:
    """A curve with label, style and unit."""

    label: str
    curve: PlotCurve
    style: LineStyle
    unit: str = ""

    def points(self, low: float, high: float, columns: int, *, log: bool) -> tuple[Values, Values]:
        """Return steps and values to draw between two steps: all peaks of a rough curve, samples of a smooth curve."""
        thin = curves.decimate if self.style.kind == "bold" else curves.envelope
        steps, values = thin(self.curve.steps, self.curve.values, low, high, columns)
        if log:
            values = np.log10(values, where=values > 0, out=np.full(len(values), np.nan))
        return steps, values

    def value_at(self, step: float) -> float | None:
        """Return the last value up to `step`; None before the curve's start and, except for dots, after its end."""
        steps = self.curve.steps
        index = int(np.searchsorted(steps, step, side="right")) - 1
        if index < 0 or (self.style.kind != "dots" and step > steps[-1]):
            return None
        return float(self.curve.values[index])

    def reading(self, step: float | None) -> str:
        """Return the value at a step as text; without a step, the newest value."""
        value = self.value_at(step if step is not None else max(self.curve.steps[-1:], default=0.0))
        return f"{formatting.decimal(value)} {self.unit}".rstrip() if value is not None else "–"

    def nearest_step(self, step: float) -> float | None:
        """Return the curve's step nearest to `step`; None for an empty curve."""
        steps = self.curve.steps
        if not len(steps):
            return None
        index = min(int(np.searchsorted(steps, step)), len(steps) - 1)
        if index and step - steps[index - 1] <= steps[index] - step:
            index -= 1
        return float(steps[index])


def mark_colour(kind: MarkKind) -> str:
    """Return the colour of a kind of mark in the current theme."""
    colours = theme.colours()
    pale = theme.mix(colours.surface, colours.text, 0.25)
    return {"checkpoint": pale, "incident": colours.error, "best": colours.good}[kind]


@dataclass(frozen=True)
class StepMark:
    """A mark at a step. text: shown at the crosshair."""

    step: int
    kind: MarkKind
    text: str
