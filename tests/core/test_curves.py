"""The ranges of plot axes."""

from __future__ import annotations

import numpy as np

from studio.core.curves import Range, describe_off_range, values_range

STEPS = np.arange(1000.0)
RUN = (0.0, 999.0)
UNKNOWN: Range = (np.nan, np.nan)


def loss(**outliers: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a curve between 1 and 2 with these values at steps named 's10'."""
    values = 1.5 + 0.5 * np.sin(STEPS)
    for name, value in outliers.items():
        values[int(name[1:])] = value
    return [(STEPS, values)]


def test_late_peaks_are_inside_the_axis() -> None:
    drawn = loss(s700=4.0)
    low, high = values_range(drawn, UNKNOWN, RUN)
    assert high > 4 and describe_off_range(drawn, (low, high)) == ""


def test_outliers_of_the_first_steps_are_off_the_axis_and_described() -> None:
    drawn = loss(s0=20.0, s9=40.0, s10=np.nan)
    shown = values_range(drawn, UNKNOWN, RUN)
    assert 2.5 < shown[1] < 4
    assert describe_off_range(drawn, shown) == "off the axis: up to 40 near step 9"


def test_an_extreme_value_leaves_height_for_the_rest_and_is_described() -> None:
    drawn = loss(s700=-1e6)
    shown = values_range(drawn, UNKNOWN, RUN)
    assert shown[0] > -4 and describe_off_range(drawn, shown) == "off the axis: down to -1,000,000 near step 700"


def test_first_steps_near_the_rest_are_inside_the_axis() -> None:
    drawn = loss(s0=2.8, s1=0.2)
    assert not describe_off_range(drawn, values_range(drawn, UNKNOWN, RUN))


def test_logarithmic_axes_and_short_curves_show_everything() -> None:
    for drawn, run in ((loss(s0=40.0), None), ([(STEPS[:50], np.r_[40.0, np.ones(49)])], (0.0, 49.0))):
        assert not describe_off_range(drawn, values_range(drawn, UNKNOWN, run))


def test_axis_from_zero() -> None:
    low, high = values_range(loss(), UNKNOWN, RUN, from_zero=True)
    assert -0.1 < low <= 0 and 2 < high < 2.5


def test_range_stays_while_the_values_fit() -> None:
    shown = values_range(loss(), UNKNOWN, RUN)
    assert values_range(loss(s5=2.05), shown, RUN) == shown
    assert values_range([(STEPS, np.full(1000, np.nan))], shown, RUN) == shown
