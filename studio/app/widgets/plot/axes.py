"""Axes that people can read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg

Ticks = list[tuple[float, Sequence[float]]]

_WIDE = 8.0  # a logarithmic axis over a smaller ratio has its ticks at round numbers, not at powers of ten


class StepAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Steps are whole numbers with thousands separators."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """10000.0 -> '10,000', 0.5 -> ''."""
        return [f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else "" for value in values]


class ValueAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Values, or in log mode their logarithms: then labelled at 1, 2 and 5, so that labels don't overlap."""

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Ticks:  # noqa: N803
        """Where ticks are, as logarithms in log mode."""
        if not self.logMode or maxVal - minVal > 12:  # decades; pyqtgraph thins out so many by itself
            ticks: Ticks = super().tickValues(minVal, maxVal, size)
            return ticks
        low, high = 10.0**minVal, 10.0**maxVal
        if high < _WIDE * low:
            return [(1.0, np.log10(_round_numbers(low, high)).tolist())]
        decades = range(math.floor(minVal), math.ceil(maxVal) + 1)
        places = [(digit, decade + math.log10(digit)) for decade in decades for digit in range(1, 10)]
        seen = [(digit, place) for digit, place in places if minVal <= place <= maxVal]
        labelled = [place for digit, place in seen if digit in (1, 2, 5)]
        return [(1.0, labelled), (0.1, [place for digit, place in seen if digit not in (1, 2, 5)])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """0.05 -> '0.05'; the ticks between 1, 2 and 5 have no label."""
        if not self.logMode:
            texts: list[str] = super().tickStrings(values, scale, spacing)
            return texts
        return [f"{10.0**value:.4g}" if spacing >= 1 else "" for value in values]


def _round_numbers(low: float, high: float) -> list[float]:
    """Some four to nine multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = max(factor for factor in (1, 2, 5) if factor * power * 4 <= high - low or factor == 1) * power
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]
