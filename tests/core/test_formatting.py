"""What numbers look like to people."""

from __future__ import annotations

import datetime
import math

from studio.core import formatting

GB = 2**30


def test_a_duration_has_its_two_largest_units() -> None:
    seconds = {0.0: "0 s", 0.01: "0.1 s", 0.44: "0.4 s", 2.0: "2 s", 9.96: "10 s", 42.4: "42 s", 59.6: "1 min"}
    longer = {200.0: "3 min 20 s", 3599.7: "1 h", 3661.0: "1 h 1 min", 97_200.0: "1 d 3 h", 86_400_000.0: "1,000 d"}
    odd = {-5.0: "0 s", math.inf: "–", math.nan: "–"}
    for value, text in {**seconds, **longer, **odd}.items():
        assert formatting.duration(value) == text
    assert formatting.time_left(200.0) == "3 min 20 s left" and formatting.time_left(math.inf) == ""


def test_memory_is_in_the_unit_of_the_whole() -> None:
    of_all = {(1.2, 8): "1.2 of 8 GB", (0.2, 8): "0.2 of 8 GB", (0, 24): "0 of 24 GB"}
    alone = {(1.2, 0): "1.2 GB", (0.5, 0): "512 MB", (2 / 2**20, 0): "2 KB", (0, 0): "0 KB", (1500, 0): "1.5 TB"}
    for (used, total), text in {**of_all, **alone}.items():
        assert formatting.memory(int(used * GB), total * GB) == text


def test_a_rate_has_two_digits_at_least() -> None:
    for value, text in {182.3: "182", 5.83: "5.8", 0.163: "0.16", 0.0: "0", 12_345.6: "12,346"}.items():
        assert formatting.rate(value) == f"{text} sprites/s"
    assert formatting.rate(math.nan) == "–"


def test_times_are_local() -> None:
    noted = datetime.datetime(2026, 11, 21, 4, 3).astimezone().astimezone(datetime.UTC)
    assert formatting.local_time(noted.isoformat()) == "2026-11-21 04:03"
    assert formatting.local_time("yesterday") == "yesterday"


def test_shares_and_differences_in_words() -> None:
    for share, text in {0.123: "12.3 %", 0.05: "5 %", 1.0: "100 %", 0.0: "0 %", math.nan: "–"}.items():
        assert formatting.percent(share) == text
    agreements = {0.0: "exactly the same", 3e-8: "the same to 7 digits", 1e-4: "the same to 4 digits"}
    for share, text in {**agreements, 0.0123: "the same (within 1.2 %)"}.items():
        assert formatting.describe_agreement(share) == text


def test_numbers_and_counts() -> None:
    for value, text in {0.081239: "0.08124", 1.0: "1", 12_345.6: "12,346", 0.000012: "1.2e-05"}.items():
        assert formatting.decimal(value) == text
    assert formatting.decimal(math.nan) == "NaN" and formatting.decimal(math.inf) == "infinite"
    axis = {0.0: "0", 0.05: "0.05", 250.0: "250", 12_000.0: "12,000", 2.5e6: "2.5e6", -4e9: "-4e9", 3e-5: "3e-5"}
    assert {value: formatting.axis_label(value) for value in axis} == axis
    assert formatting.number(19_200) == "19,200"
    assert formatting.count(1, "sprite") == "1 sprite"
    assert formatting.count(19_200, "sprite") == "19,200 sprites"
    assert formatting.count(2, "copy", "copies") == "2 copies"
