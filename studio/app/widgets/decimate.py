"""As many points as a plot has pixels, without losing a single peak."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def window(steps: Values, low: float, high: float) -> tuple[int, int]:
    """The range of indices whose points, and one more on each side, lie between two steps."""
    first = int(np.searchsorted(steps, low, side="left")) - 1
    last = int(np.searchsorted(steps, high, side="right")) + 1
    return max(0, first), min(len(steps), last)


def envelope(steps: Values, values: Values, low: float, high: float, columns: int) -> tuple[Values, Values]:
    """Points of a line that covers in each of `columns` between low and high the smallest and the largest value.

    Few points are returned as they are. Not-a-number is passed over, except where a column holds nothing else.
    """
    first, last = window(steps, low, high)
    steps, values = steps[first:last], values[first:last]
    if len(steps) <= 2 * columns:
        return steps, values
    edges = np.searchsorted(steps, np.linspace(low, high, columns + 1)[:-1], side="left")
    beyond = np.searchsorted(steps, high, side="right")  # the neighbours on both sides are columns of their own
    starts = np.unique(np.concatenate([[0], edges, [beyond]]))
    starts = starts[starts < len(steps)]
    ends = np.append(starts[1:], len(steps)) - 1
    lowest, highest = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    rising = values[ends] >= values[starts]  # drawn in the order of time, as far as two points can
    pairs = np.where(rising, (lowest, highest), (highest, lowest))
    return np.repeat((steps[starts] + steps[ends]) / 2, 2), pairs.T.reshape(-1)


def sampled(steps: Values, values: Values, low: float, high: float, columns: int) -> tuple[Values, Values]:
    """About one to two points a column: enough for a curve that is smooth already.

    They are multiples of a power of two, so that the same ones are taken while the curve grows: it does not shimmer.
    """
    first, last = window(steps, low, high)
    count = last - first
    if count <= 2 * columns:
        return steps[first:last], values[first:last]
    stride = 1 << int(np.log2(count / columns))
    places = np.arange(first // stride * stride, last, stride)
    places = np.append(places, last - 1)
    return steps[places], values[places]
