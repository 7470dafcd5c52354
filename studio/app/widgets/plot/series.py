"""Numbers over steps that grow at the end, and the smoothed curve that grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from studio.core import curves
from studio.core.curves import Values

Numbers = NDArray[np.generic] | Sequence[float] | Sequence[int]
Steps = NDArray[np.int64]


class Buffer:
    """A float64 array that grows at the end without copying all of it each time."""

    def __init__(self) -> None:
        self._room = np.empty(256)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def view(self) -> Values:
        """What is in it, not copied."""
        return self._room[: self._count]

    def keep(self, count: int) -> None:
        """Forget all but the first `count`."""
        self._count = min(self._count, count)

    def extend(self, values: Values) -> None:
        """Append."""
        end = self._count + len(values)
        if end > len(self._room):
            larger = np.empty(max(end, 2 * len(self._room)))
            larger[: self._count] = self.view()
            self._room = larger
        self._room[self._count : end] = values
        self._count = end


class Curve(Protocol):
    """What a plot draws."""

    @property
    def steps(self) -> Values: ...
    @property
    def values(self) -> Values: ...


class Series:
    """Values at rising steps, as float64; what is not finite is kept as not a number."""

    def __init__(self) -> None:
        self._steps = Buffer()
        self._values = Buffer()
        self._first_changed = 0

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> Values:
        """The steps; whole numbers."""
        return self._steps.view()

    @property
    def values(self) -> Values:
        """The value at each step."""
        return self._values.view()

    def append(self, steps: Numbers, values: Numbers) -> bool:
        """Append; what was known from steps[0] on is replaced. Returns whether something was."""
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
        """Forget everything from `step` on. Returns whether there was something."""
        if not len(self) or self.steps[-1] < step:
            return False
        count = int(np.searchsorted(self.steps, step))
        self._steps.keep(count)
        self._values.keep(count)
        self._first_changed = min(self._first_changed, count)
        return True

    def take_first_changed(self) -> int:
        """The first index whose value may be another than at the last call."""
        changed, self._first_changed = self._first_changed, len(self)
        return changed


class Smoothed:
    """The exponential mean of a series as `curves.smooth` has it; each value is computed once.

    Only one `Smoothed` may follow a series.
    """

    def __init__(self, source: Series, constant: float = 0.0) -> None:
        self._source = source
        self._constant = constant
        self._values = Buffer()

    @property
    def constant(self) -> float:
        """The time constant in steps; 0: the values are those of the series."""
        return self._constant

    @constant.setter
    def constant(self, steps: float) -> None:
        if steps != self._constant:
            self._constant = steps
            self._values.keep(0)

    @property
    def steps(self) -> Values:
        """The steps of the series."""
        return self._source.steps

    @property
    def values(self) -> Values:
        """The smoothed value at each step."""
        if self._constant <= 0:
            return self._source.values
        self._values.keep(self._source.take_first_changed())
        self._values.extend(curves.smooth(self.steps, self._source.values, self._constant, self._values.view()))
        return self._values.view()
