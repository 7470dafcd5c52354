"""Build `Attributes` sprite by sprite, change values, and check names and values that users type."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from studio.core.errors import UsageError
from studio.core.names import escape_unprintable
from studio.data.attributes.attributes import NO_ATTRIBUTES, NONE, Attributes

MOST_VALUES = 1000  # values of an attribute
MOST_ATTRIBUTES = 32
LONGEST = 80  # characters of a name or a value
_EXAMPLE = "Example: element"


class AttributeColumns:
    """Attributes under construction: a column of values per attribute, with a row per sprite."""

    def __init__(self, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Begin with the columns of `attributes`."""
        self.overfull = dict[str, None]()  # attributes with too many values, which `build` drops
        self._values: dict[str, dict[str, int]] = {}  # attribute -> value -> code
        self._codes: dict[str, array[int]] = {}
        for name, values, codes in zip(attributes.names, attributes.values, attributes.table.T, strict=True):
            self._values[name] = {value: code for code, value in enumerate(values)}
            self._codes[name] = array("h", np.ascontiguousarray(codes).tobytes())

    def put(self, row: int, name: str, value: str) -> None:
        """Set a sprite's value; '' removes the value. Adds a missing attribute. Rows may come in any order."""
        if name not in self._codes:
            if not value:
                return
            if len(self._codes) >= MOST_ATTRIBUTES:
                self.overfull[name] = None
                return
            self._values[name], self._codes[name] = {}, array("h")
        values, codes = self._values[name], self._codes[name]
        if value and value not in values and len(values) >= MOST_VALUES:
            self.overfull[name] = None
            return
        if row >= len(codes):
            codes.extend([NONE] * (row + 1 - len(codes)))
        codes[row] = values.setdefault(value, len(values)) if value else NONE

    def get(self, row: int, name: str) -> str:
        """Return a sprite's value of an attribute, '' without a value."""
        codes = self._codes.get(name)
        if codes is None or row >= len(codes) or codes[row] == NONE:
            return ""
        return list(self._values[name])[codes[row]]

    def columns(self, count: int) -> Iterator[tuple[str, NDArray[np.int16], tuple[str, ...]]]:
        """Yield name, codes int16 [count] and sorted values of each attribute with a value."""
        for name, stored in self._codes.items():
            codes = np.full(count, NONE, np.int16)
            codes[: len(stored)] = stored
            known = list(self._values[name])
            used = sorted({known[code] for code in np.unique(codes[codes != NONE]).tolist()})
            if not used or name in self.overfull:
                continue
            rank = {value: code for code, value in enumerate(used)}
            becomes = np.array([*(rank.get(value, NONE) for value in known), NONE], np.int16)
            yield name, becomes[codes], tuple(used)

    def build(self, count: int) -> Attributes:
        """Return the attributes of `count` sprites, without attributes and values that no sprite has."""
        columns = list(self.columns(count))
        if not columns:
            return NO_ATTRIBUTES
        names, codes, values = zip(*columns, strict=True)
        return Attributes(names, values, np.stack(codes, axis=1))


def checked_attribute(text: str) -> str:
    """Return a typed name of an attribute without blanks around it. Raises UsageError for an unusable name."""
    name = escape_unprintable(text.strip())
    if not name:
        raise UsageError("Type a name for the attribute.", _EXAMPLE)
    if any(mark in name for mark in "=,"):
        raise UsageError("The name of an attribute has no '=' and no comma.", _EXAMPLE)
    if len(name) > LONGEST:
        raise UsageError("The name of the attribute is too long.", f"Use at most {LONGEST} characters.")
    return name


def checked_value(text: str) -> str:
    """Return a typed value without blanks around it; '' for none. Raises UsageError for a long value."""
    value = escape_unprintable(text.strip())
    if len(value) > LONGEST:
        raise UsageError("The value is too long.", f"Use at most {LONGEST} characters.")
    return value


def pair(name: str, value: str) -> tuple[str, str] | None:
    """Return an attribute's name and value from a file; None if the name or the value is unusable."""
    try:
        name, value = checked_attribute(name.replace("=", " ").replace(",", " ")), checked_value(value)
    except UsageError:
        return None
    return (name, value) if value else None
