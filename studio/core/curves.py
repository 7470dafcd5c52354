"""Smooth and downsample curves, and choose axis ranges, for the window and for saved plots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Range = tuple[float, float]
Values = NDArray[np.float64]

# Colours for overlaid curves, readable on white.
CURVE_COLOURS = ("#4f5bd5", "#c9762b", "#2b8f83", "#b84a7d", "#7a8a1f", "#2f86c1", "#8a5a44", "#6d6d78")
MAX_CURVES = len(CURVE_COLOURS)  # more colours would look alike
SMOOTHING_STEPS = 50.0  # default smoothing of noisy losses

_LOOK_BACK = 5  # early averages span at most 1 / _LOOK_BACK of the curve
_BLOCK = 1024  # length of a block in `_recur`
_MANY = 100  # values; shorter curves keep all values
_EARLY = 0.1  # share of the visible steps that skip_early ignores

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
    curves: Sequence[tuple[Values, Values]], steps: Range, current: Range, *, skip_early: bool, skip_outliers: bool
) -> Range:
    """Return the range of values to show, with a margin; return `current` while the curves still fit well.

    curves: steps and values of each curve. steps: first and last step to show. skip_early: ignore the first tenth of a
    long curve, because raw losses begin far above the rest. skip_outliers: ignore a few extreme values of a long curve.
    """
    settled = steps[0] + (_EARLY * (steps[1] - steps[0]) if skip_early else 0)
    found = [_bounds(curve_steps, values, settled, skip_outliers=skip_outliers) for curve_steps, values in curves]
    bounds = [pair for pair in found if pair is not None]
    if not bounds:
        return current
    low, high = min(pair[0] for pair in bounds), max(pair[1] for pair in bounds)
    span = high - low if high > low else abs(high) or 1.0
    if current[0] <= low and high <= current[1] and current[1] - current[0] <= 1.35 * span:
        return current
    return low - 0.06 * span, high + 0.08 * span


def _bounds(steps: Values, values: Values, settled: float, *, skip_outliers: bool) -> Range | None:
    """Return the smallest and the largest finite value of a curve; None without finite values.

    settled: ignore earlier steps of a long curve. skip_outliers: ignore the extremes of a long curve.
    """
    finite = np.isfinite(values)
    steps, values = steps[finite], values[finite]
    if not len(values):
        return None
    is_long, late = len(values) >= _MANY, values[steps >= settled]
    if is_long and len(late):
        values = late
    low, high = np.quantile(values, [0.002, 0.995]) if is_long and skip_outliers else (values.min(), values.max())
    return float(low), float(high)


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
    # Transposed, so that each step is one vector operation over contiguous memory.
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
