"""What numbers look like to people."""

from __future__ import annotations

import math

import pytest

from studio.core import wording

MB, GB = 2**20, 2**30


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.01, "0.1 s"),
        (0.44, "0.4 s"),
        (2.0, "2 s"),
        (9.96, "10 s"),
        (42.4, "42 s"),
        (59.6, "1 min"),
        (200.0, "3 min 20 s"),
        (3599.7, "1 h"),
        (3600 + 61, "1 h 1 min"),
        (86_400 + 3 * 3600, "1 d 3 h"),
        (1000 * 86_400, "1,000 d"),
        (-5.0, "0 s"),
        (math.inf, "–"),
        (math.nan, "–"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.0, "exactly the same"), (3e-8, "the same to 7 digits"), (1e-4, "the same to 4 digits")],
)
def test_agreement(difference: float, text: str) -> None:
    assert wording.agreement(difference) == text


def test_time_left_says_nothing_while_unknown() -> None:
    assert wording.time_left(200.0) == "3 min 20 s left"
    assert wording.time_left(math.inf) == ""


@pytest.mark.parametrize(
    ("used", "total", "text"),
    [
        (int(1.2 * GB), 8 * GB, "1.2 of 8 GB"),
        (200 * MB, 8 * GB, "0.2 of 8 GB"),
        (0, 24 * GB, "0 of 24 GB"),
        (int(1.2 * GB), 0, "1.2 GB"),
        (512 * MB, 0, "512 MB"),
        (2048, 0, "2 KB"),
        (0, 0, "0 KB"),
        (1500 * GB, 0, "1.5 TB"),
    ],
)
def test_memory(used: int, total: int, text: str) -> None:
    assert wording.memory(used, total) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (182.3, "182 sprites/s"),
        (5.83, "5.8 sprites/s"),
        (0.163, "0.16 sprites/s"),
        (0.0, "0 sprites/s"),
        (12_345.6, "12,346 sprites/s"),
        (math.nan, "–"),
    ],
)
def test_rate(value: float, text: str) -> None:
    assert wording.rate(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.123, "12.3 %"), (0.05, "5 %"), (1.0, "100 %"), (0.0, "0 %"), (math.nan, "–")]
)
def test_percent(share: float, text: str) -> None:
    assert wording.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.081239, "0.08124"),
        (1.0, "1"),
        (12_345.6, "12,346"),
        (0.000012, "1.2e-05"),
        (math.nan, "not a number"),
        (math.inf, "infinite"),
    ],
)
def test_decimal(value: float, text: str) -> None:
    assert wording.decimal(value) == text


def test_numbers_and_counts() -> None:
    assert wording.number(19_200) == "19,200"
    assert wording.count(1, "sprite") == "1 sprite"
    assert wording.count(19_200, "sprite") == "19,200 sprites"
    assert wording.count(2, "copy", "copies") == "2 copies"
