"""Read records from JSON files, check their fields, and name the wrong field in error messages."""

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
    """Parse a JSON text as a record of type `kind`. Raises ValueError with a message for users."""
    try:
        values = json.loads(text)  # metrics may be NaN: Python's json writes and reads NaN, msgspec.json does not
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return convert(values, kind)


def convert(values: object, kind: type[T]) -> T:
    """Convert decoded JSON `values` to a record of type `kind`; ignore extra fields. Raises ValueError."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(str(error))) from None


def _explain(message: str) -> str:
    """Rewrite an error message from msgspec for users.

    'Expected `str`, got `int` - at `$.created`' -> "'created' holds a whole number where a text belongs"
    """
    place = _PLACE.search(message)
    message = _PLACE.sub("", message)
    name = f"'{place['place'].partition('[')[0]}'" if place else "the file"
    if expected := _EXPECTED.fullmatch(message):
        wanted, got = (" or ".join(_WORDS.get(word, word) for word in part.split(" | ")) for part in expected.groups())
        return f"{name} holds {got} where {wanted} belongs"
    if missing := re.fullmatch(r"Object missing required field `(.+)`", message):
        inside = f" in {name}" if place else ""
        return f"'{missing[1]}' is missing{inside}"
    if unknown := re.fullmatch(r"Object contains unknown field `(.+)`", message):
        return f"{name} holds the unknown field '{unknown[1]}'"
    if invalid := re.fullmatch(r"Invalid enum value (.+)", message):
        return f"{name} can't be {invalid[1]}"
    return f"{name} is out of range ({message.replace('`', '')})"
