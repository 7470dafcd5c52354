from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from studio.core.records import Count, convert, parse


@dataclass(frozen=True)
class _Record:
    name: str
    step: Count
    share: float = 0.5
    figures: dict[str, float] | None = None
    state: Literal["on", "off"] = "on"


def test_record_survives_json_and_unknown_fields_are_ignored() -> None:
    found = parse('{"name": "a", "step": 3, "share": 1, "figures": {"loss": NaN}, "surprise": []}', _Record)
    assert (found.name, found.step, found.share, found.state) == ("a", 3, 1.0, "on")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": 5, "step": 3}, "'name' holds a whole number where a text belongs"),
        ({"name": None, "step": 3}, "'name' holds nothing where a text belongs"),
        ({"name": "a", "step": 3.5}, "'step' holds a number where a whole number belongs"),
        ({"name": "a", "step": True}, "'step' holds yes or no where a whole number belongs"),
        ({"name": "a", "step": -1}, "'step' is out of range (Expected int >= 0)"),
        ({"name": "a"}, "'step' is missing"),
        ({"name": "a", "step": 3, "figures": []}, "'figures' holds a list where a group of fields or nothing belongs"),
        ({"name": "a", "step": 3, "figures": {"loss": "x"}}, "'figures' holds a text where a number belongs"),
        ({"name": "a", "step": 3, "state": "up"}, "'state' can't be 'up'"),
        ([], "the file holds a list where a group of fields belongs"),
    ],
)
def test_fault_34_error_names_the_field(values: object, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        convert(values, _Record)
    assert str(caught.value) == words


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, b"\xff\xfe", '{"name": "a", "step": ' + "9" * 5000 + "}"])
def test_invalid_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text, _Record)
