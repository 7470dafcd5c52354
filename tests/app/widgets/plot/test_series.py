"""Growing curves, smoothing and thinning, compared with slow reference code."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.app.widgets.plot.series import Series, Smoothed
from studio.core import curves
from studio.core.curves import Values


def naive(steps: Values, values: Values, constant: float) -> Values:
    """Compute the recurrence value by value."""
    result, mean, last = [], math.nan, 0.0
    for count, (step, value) in enumerate(zip(steps.tolist(), values.tolist(), strict=True)):
        if not math.isnan(value):
            decay = min(math.exp(-(step - last) / constant), count / (count + 5))
            mean = value if math.isnan(mean) else decay * mean + (1 - decay) * value
        last = step
        result.append(mean)
    return np.array(result)


def make_series(steps: Values, values: Values) -> Series:
    series = Series()
    series.append(steps, values)
    return series


@pytest.mark.parametrize("constant", [0.3, 1.0, 50.0, 10_000.0])
@pytest.mark.parametrize("count", [1, 2, 1023, 1024, 1025, 5000])
def test_smoothing_matches_the_recurrence(constant: float, count: int) -> None:
    rng = np.random.default_rng(count)
    steps = np.cumsum(rng.integers(1, 4, count)).astype(float)
    values = rng.normal(1, 0.3, count)
    values[rng.random(count) < 0.05] = np.nan
    series = Series()
    growing = Smoothed(series, constant)
    for first, last in itertools.pairwise(np.unique([0, *rng.integers(0, count, 40), count]).tolist()):
        series.append(steps[first:last], values[first:last])
        assert len(growing.values) == last
    for smoothed in (growing, Smoothed(make_series(steps, values), constant)):
        np.testing.assert_allclose(smoothed.values, naive(steps, values, constant), rtol=1e-10)


def test_smoothing_starts_at_the_first_number() -> None:
    series = make_series(np.arange(4.0), np.array([np.nan, np.inf, 2.0, 4.0]))
    smoothed = Smoothed(series, 1.0)
    assert np.isnan(smoothed.values[:2]).all() and smoothed.values[2] == 2.0
    smoothed.constant = 0
    np.testing.assert_array_equal(smoothed.values, series.values)
    smoothed.constant = 5
    assert smoothed.values[3] == pytest.approx(naive(series.steps, series.values, 5)[3])


def test_append_replaces_the_tail() -> None:
    series = make_series(np.arange(100.0), np.ones(100))
    smoothed = Smoothed(series, 10)
    assert smoothed.values[-1] == 1.0
    assert series.append([60, 61], [5.0, 6.0])
    assert not series.append([62], [7.0])
    assert series.steps.tolist() == list(range(63))
    assert series.values[58:].tolist() == [1.0, 1.0, 5.0, 6.0, 7.0]
    np.testing.assert_allclose(smoothed.values, naive(series.steps, series.values, 10))


def columns_by_brute_force(steps: Values, values: Values, low: float, high: float, columns: int) -> list[Values]:
    """Return the finite values of each pixel column."""
    edges = np.linspace(low, high, columns + 1)
    found = []
    for left, right in itertools.pairwise(edges):
        inside = (steps >= left) & ((steps < right) | ((right == high) & (steps <= right)))
        found.append(values[inside & np.isfinite(values)])
    return found


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(0, 3000), columns=st.integers(2, 120), seed=st.integers(0, 999), view=st.tuples(
        st.floats(-0.2, 0.6), st.floats(0.05, 1.2)
    ),
)  # fmt: skip
def test_thinning_keeps_extremes(count: int, columns: int, seed: int, view: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 9, count)).astype(float)
    values = rng.normal(0, 1, count)
    values[rng.random(count) < 0.02] = np.nan
    whole = float(steps[-1]) if count else 100.0
    low, high = view[0] * whole, (view[0] + view[1]) * whole
    x, y = curves.envelope(steps, values, low, high, columns)
    assert len(x) == len(y) <= 2 * columns + 4
    assert (np.diff(x) >= 0).all()
    width = (high - low) / columns
    for index, column in enumerate(columns_by_brute_force(steps, values, low, high, columns)):
        if len(column):
            near = (x >= low + index * width - width) & (x <= low + (index + 1) * width + width)
            assert column.min() in y[near] and column.max() in y[near]


def test_few_points_are_not_thinned() -> None:
    steps, values = np.arange(50.0), np.arange(50.0) ** 2
    x, y = curves.envelope(steps, values, 10, 20, 100)
    assert x.tolist() == list(range(9, 22)) and y.tolist() == [step**2 for step in range(9, 22)]


def test_thinning_keeps_a_single_peak() -> None:
    values = np.zeros(1_000_000)
    values[123_456] = 9.0
    x, y = curves.envelope(np.arange(1e6), values, 0, 1e6, 800)
    assert len(x) <= 1604 and y.max() == 9.0
    assert abs(x[np.argmax(y)] - 123_456) <= 1e6 / 800


def test_smooth_curve_keeps_its_points() -> None:
    steps = np.arange(10_100.0)
    before, _ = curves.decimate(steps[:10_000], steps[:10_000], 0, 11_000, 500)
    after, values = curves.decimate(steps, steps, 0, 11_000, 500)
    assert set(before[:-1]) <= set(after) and after[-1] == 10_099 and len(after) <= 1001
    np.testing.assert_array_equal(after, values)
