"""Records read back from the disk: JSON that is checked against what it is to be, and the wrong field is named."""

from __future__ import annotations

import json
import re
from typing import Annotated, TypeVar

import msgspec

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=2**62)]
Seconds = Annotated[float, msgspec.Meta(ge=0, lt=2**40)]

_EXPECTED = re.compile(r"Expected `(?P<wanted>.+?)`, got `(?P<got>.+?)`")
_PLACE = re.compile(r" - at `\$\.?(?P<place>.*)`$")
_WORDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "yes or no", "object": "a group of fields",
    "array": "a list", "null": "nothing",
}  # fmt: skip


def parse(text: bytes | str, kind: type[T]) -> T:
    """The record that a JSON text holds. Raises ValueError, which says in words what is wrong with it."""
    try:
        values = json.loads(text)  # not msgspec's own reader: figures may be NaN, which Python writes and reads
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return convert(values, kind)


def convert(values: object, kind: type[T]) -> T:
    """The record that values from JSON stand for; fields that `kind` does not know are left out. Raises ValueError."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error))) from None


def _in_words(said: str) -> str:
    """'Expected `str`, got `int` - at `$.created`' -> "'created' holds a whole number where a text belongs"."""
    place = _PLACE.search(said)
    said = _PLACE.sub("", said)
    name = f"'{place['place'].partition('[')[0]}'" if place else "it"
    if expected := _EXPECTED.fullmatch(said):
        wanted, got = (
            " or ".join(_WORDS.get(word, word) for word in expected[part].split(" | ")) for part in ("wanted", "got")
        )
        return f"{name} holds {got} where {wanted} belongs"
    if missing := re.fullmatch(r"Object missing required field `(.+)`", said):
        inside = f" in {name}" if place else ""
        return f"'{missing[1]}' is missing{inside}"
    if invalid := re.fullmatch(r"Invalid enum value (.+)", said):
        return f"{name} can't be {invalid[1]}"
    return f"{name} is out of its bounds ({said.replace('`', '')})"
