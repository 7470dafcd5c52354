"""What part of the data the axes of a plot show. All ranges leave some room, so that they rarely change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Range = tuple[float, float]
Values = NDArray[np.float64]

_MANY = 100  # from so many points on, the few that lie far off may leave the picture
_EARLY = 0.1  # share of the visible steps


def steps_range(first: float, last: float, shown: Range) -> Range:
    """The whole way from the first to the last step; `shown` where that still fits."""
    span = max(1.0, last - first)
    if first - 0.05 * span <= shown[0] <= first and last <= shown[1] <= first + 1.1 * span:
        return shown
    return first - 0.01 * span, last + 0.05 * span


def values_range(drawn: Sequence[tuple[Values, Values]], steps: Range, shown: Range, *, whole: bool) -> Range:
    """Room for all curves between `steps`, outliers aside; `shown` where that still fits well.

    Unless it is to be `whole`, the very first steps may leave the picture: they lie far above the rest.
    """
    settled = steps[0] + (0 if whole else _EARLY * (steps[1] - steps[0]))
    bounds = [pair for pair in (_bounds(places, values, settled) for places, values in drawn) if pair is not None]
    if not bounds:
        return shown
    low, high = min(pair[0] for pair in bounds), max(pair[1] for pair in bounds)
    span = high - low if high > low else abs(high) or 1.0
    if shown[0] <= low and high <= shown[1] and shown[1] - shown[0] <= 1.35 * span:
        return shown
    return low - 0.06 * span, high + 0.08 * span


def _bounds(steps: Values, values: Values, settled: float) -> Range | None:
    """The smallest and the largest value of a curve, without the few of many that lie far off."""
    finite = np.isfinite(values)
    steps, values = steps[finite], values[finite]
    late = values[steps >= settled]
    if len(late):
        values = late
    if not len(values):
        return None
    low, high = np.quantile(values, [0.002, 0.995]) if len(values) >= _MANY else (values.min(), values.max())
    return float(low), float(high)
