"""Smooth and downsample curves, and choose axis ranges, for the window and for saved plots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from studio.core.formatting import decimal, number

Range = tuple[float, float]
Values = NDArray[np.float64]

# Colours for overlaid curves, readable on white.
CURVE_COLOURS = ("#4f5bd5", "#c9762b", "#2b8f83", "#b84a7d", "#7a8a1f", "#2f86c1", "#8a5a44", "#6d6d78")
MAX_CURVES = len(CURVE_COLOURS)  # more colours would look alike
SMOOTHING_STEPS = 50.0  # default smoothing of noisy losses

_LOOK_BACK = 5  # early averages span at most 1 / _LOOK_BACK of the curve
_BLOCK = 1024  # length of a block in `_recur`
_MANY = 100  # values; shorter curves keep all values
_EARLY = 0.1  # share of a run's steps in which outliers may lie off the value axis
_NEAR = 1.0  # early values at most this many heights away from the later values still fit the axis
_USUAL, _EXTREME = (0.002, 0.995), 3.0  # a value this many heights (between the quantiles) outside is extreme

_NOTHING = np.zeros(0)


def smooth_curve(steps: Values, values: Values, constant: float, done: Values = _NOTHING) -> Values:
    """Smooth a curve, float64 [n], with an exponential moving average.

    constant: time constant in steps; <= 0 returns the values unchanged. done: averages from an earlier call; only the
    averages after them are returned. Computes s[0] = x[0], s[k] = d s[k-1] + (1 - d) x[k] with
    d = exp(-(step[k] - step[k-1]) / constant), at most k / (k + 5): early averages span only the last fifth of the
    curve and soon forget a high start. Where x is not finite, s keeps its value.
    """
    first = len(done)
    if constant <= 0 or first >= len(steps):
        return values[first:]
    gaps = np.diff(steps[first:], prepend=steps[first - 1] if first else steps[0])
    count = np.arange(first, len(steps))
    decays = np.minimum(np.exp(-gaps / constant), count / (count + _LOOK_BACK))
    return _means(values[first:], decays, float(done[-1]) if first else np.nan)


def _window(steps: Values, low: float, high: float) -> tuple[int, int]:
    """Return the index range of points between two steps, plus one point on each side."""
    first = int(np.searchsorted(steps, low, side="left")) - 1
    last = int(np.searchsorted(steps, high, side="right")) + 1
    return max(0, first), min(len(steps), last)


def envelope(steps: Values, values: Values, low: float, high: float, columns: int) -> tuple[Values, Values]:
    """Downsample a curve to the minimum and maximum in each of `columns` columns between the steps low and high.

    Short curves are returned unchanged. NaN is ignored, except in columns with nothing else.
    """
    first, last = _window(steps, low, high)
    steps, values = steps[first:last], values[first:last]
    if len(steps) <= 2 * columns:
        return steps, values
    edges = np.searchsorted(steps, np.linspace(low, high, columns + 1)[:-1], side="left")
    beyond = np.searchsorted(steps, high, side="right")  # the neighbouring points get their own columns
    starts = np.unique(np.concatenate([[0], edges, [beyond]]))
    starts = starts[starts < len(steps)]
    ends = np.append(starts[1:], len(steps)) - 1
    lowest, highest = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    rising = values[ends] >= values[starts]  # order of the two points: the direction of the curve
    pairs = np.where(rising, (lowest, highest), (highest, lowest))
    return np.repeat((steps[starts] + steps[ends]) / 2, 2), pairs.T.reshape(-1)


def decimate(steps: Values, values: Values, low: float, high: float, columns: int) -> tuple[Values, Values]:
    """Thin out a smooth curve, from step `low` to `high`, to one or two points per plot column.

    Keeps indices that are multiples of a power of two, so the plot of a growing curve does not flicker.
    """
    first, last = _window(steps, low, high)
    count = last - first
    if count <= 2 * columns:
        return steps[first:last], values[first:last]
    stride = 1 << int(np.log2(count / columns))
    indices = np.append(np.arange(first // stride * stride, last, stride), last - 1)
    return steps[indices], values[indices]


def steps_range(first: float, last: float, current: Range) -> Range:
    """Return the axis range from the first to the last step; return `current` while it still fits."""
    span = max(1.0, last - first)
    if first - 0.05 * span <= current[0] <= first and last <= current[1] <= first + 1.1 * span:
        return current
    return first - 0.01 * span, last + 0.05 * span


def values_range(
    curves: Sequence[tuple[Values, Values]], current: Range, run: Range | None = None, *, from_zero: bool = False
) -> Range:
    """Return a range that shows all values, with a margin; return `current` while the curves still fit well.

    curves: steps and values of each curve. run: first and last step of the run. Outliers of its first tenth may lie
    off the range, because a loss begins far above the rest, and so may a few extreme values, which would leave no
    height for the rest; None: show these too. from_zero: include 0.
    """
    finite = [(steps[found], values[found]) for steps, values in curves if (found := np.isfinite(values)).any()]
    if not finite:
        return current
    steps, values = (np.concatenate(parts) for parts in zip(*finite, strict=True))
    low, high = float(values.min()), float(values.max())
    if run is not None and len(values) >= _MANY:
        late = values[steps >= run[0] + _EARLY * (run[1] - run[0])]
        late = late if len(late) else values
        usual = _widened(float(np.quantile(late, _USUAL[0])), float(np.quantile(late, _USUAL[1])), _EXTREME)
        late = late[(late >= usual[0]) & (late <= usual[1])]
        near = _widened(float(late.min()), float(late.max()), _NEAR)
        low, high = max(low, near[0]), min(high, near[1])
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    span = _span(low, high)
    if current[0] <= low and high <= current[1] and current[1] - current[0] <= 1.35 * span:
        return current
    return low - (0.02 if from_zero and low == 0 else 0.06) * span, high + 0.08 * span


def describe_off_range(curves: Sequence[tuple[Values, Values]], shown: Range) -> str:
    """Return 'off the axis: up to 0.98 near step 3' for the farthest value outside the range; '' if all are inside."""
    steps = np.concatenate([_NOTHING, *(steps for steps, _ in curves)])
    values = np.concatenate([_NOTHING, *(values for _, values in curves)])
    distances = np.fmax(shown[0] - values, values - shown[1])
    if not (distances > 0).any():
        return ""
    farthest = int(np.nanargmax(distances))
    way, step = "up" if values[farthest] > shown[1] else "down", number(int(steps[farthest]))
    return f"off the axis: {way} to {decimal(float(values[farthest]))} near step {step}"


def _widened(low: float, high: float, times: float) -> Range:
    """Return the range, widened on each side by `times` its height."""
    room = times * _span(low, high)
    return low - room, high + room


def _span(low: float, high: float) -> float:
    """Return the height of a range of values; the size of the value, or 1, for a constant curve."""
    return high - low if high > low else abs(high) or 1.0


def _means(values: Values, decays: Values, before: float) -> Values:
    """Return the moving averages s[k] = d[k] s[k-1] + (1 - d[k]) x[k] of x = values. before: s[-1] or NaN."""
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
    """Return the recurrence s[k] = keep[k] s[k-1] + add[k] with s[-1] = first.

    Computes all blocks in parallel, each from 0, then adds the final value of the block before.
    """
    count = len(keep)
    length = min(count, _BLOCK)
    blocks = -(-count // length)
    factors, sums = np.ones(blocks * length), np.zeros(blocks * length)
    factors[:count], sums[:count] = keep, add
    # Transposed: each step then reads contiguous memory in one vector operation.
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
