"""Numbers over steps that grow at the end, and the smoothed curve that grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.generic] | Sequence[float] | Sequence[int]
Steps = NDArray[np.int64]
Values = NDArray[np.float64]

_LOOK_BACK = 5  # smoothing: over at most 1 / _LOOK_BACK of the values so far
_BLOCK = 1024  # smoothing: so many steps of the recurrence are taken one after the other, for all blocks at once


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
    """The exponential mean of a series with a time constant in steps; each value is computed once.

    s[0] = x[0], s[k] = d s[k-1] + (1 - d) x[k] with d = exp(-(step[k] - step[k-1]) / constant), at first no more than
    k / (k + 5), which looks back over a fifth of the way: a curve that begins high does not drag that behind it. Where
    x is not a number s stays. Only one `Smoothed` may follow a series.
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
        done = len(self._values)
        if done < len(self._source):
            before = self._values.view()[-1] if done else np.nan
            steps = self._source.steps
            gaps = np.diff(steps[done:], prepend=steps[done - 1] if done else steps[0])
            count = np.arange(done, len(steps))
            decays = np.minimum(np.exp(-gaps / self._constant), count / (count + _LOOK_BACK))
            self._values.extend(smooth(self._source.values[done:], decays, float(before)))
        return self._values.view()


def smooth(values: Values, decays: Values, before: float) -> Values:
    """The recurrence s = d s + (1 - d) x over `values`, going on from `before` (not a number: begins anew)."""
    known = np.isfinite(values)
    if not known.any():
        return np.full(len(values), before)
    start = int(np.argmax(known))
    first = before if np.isfinite(before) else float(values[start])
    keep = np.where(known, decays, 1.0)
    add = np.where(known, (1.0 - keep) * np.where(known, values, 0.0), 0.0)
    means = _recur(keep, add, first)
    if not np.isfinite(before):
        means[:start] = np.nan
    return means


def _recur(keep: Values, add: Values, first: float) -> Values:
    """s[k] = keep[k] s[k-1] + add[k], s[-1] = first: all blocks at once as if begun at 0, then what each takes over."""
    count = len(keep)
    length = min(count, _BLOCK)
    blocks = -(-count // length)
    factors, sums = np.ones(blocks * length), np.zeros(blocks * length)
    factors[:count], sums[:count] = keep, add
    # One row is one step of every block: contiguous, so that each step is one sweep.
    factors = np.ascontiguousarray(factors.reshape(blocks, length).T)
    sums = np.ascontiguousarray(sums.reshape(blocks, length).T)
    for row in range(1, length):
        sums[row] += factors[row] * sums[row - 1]
        factors[row] *= factors[row - 1]
    carries = np.empty(blocks)
    carry = first
    for block in range(blocks):
        carries[block] = carry
        carry = float(factors[-1, block] * carry + sums[-1, block])
    return np.asarray((factors * carries + sums).T.reshape(-1)[:count])
