"""Base of palette file formats: recognise, read and write a format.

A new format is one new file in this folder (or in a package that lists its module in the entry-point group
'studio.data.palettes') with a subclass of `PaletteFormat`. Loading, saving and the contract tests find it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from studio.data.colour.palette import MOST_COLOURS, Palette

Colour = tuple[int, int, int, int]  # red, green, blue and alpha from 0 to 255


@dataclass(frozen=True, slots=True)
class NamedColour:
    """A colour read from a palette file."""

    where: str  # its position in the file, for error messages ('line 12')
    colour: Colour
    name: str = ""


class Unreadable(Exception):  # noqa: N818 - a result, not a bug
    """Raised for a file that is not a valid palette of its format. where: 'line 12', or '' for the whole file."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.reason, self.where = reason, where


class PaletteFormat(ABC):
    """A palette file format. Has no state."""

    name: str = ""
    title: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    order: ClassVar[int] = 0  # formats are tried in this order; the suffix decides between equals

    @abstractmethod
    def recognises(self, data: bytes) -> bool:
        """Return whether the complete file contents `data` have this format, whatever the file's name."""

    @abstractmethod
    def read(self, data: bytes) -> Palette:
        """Return the palette in the file contents. Raises only Unreadable, for any invalid data."""

    @abstractmethod
    def write(self, palette: Palette) -> bytes:
        """Return the file contents. Raises UsageError if the format can't hold the palette."""


def check_count(count: int, most: int = MOST_COLOURS) -> None:
    """Raise Unreadable for a file that announces or has no colours, or more than `most`."""
    if not count:
        raise Unreadable("it has no colours")
    if count > most:
        raise Unreadable(f"{count:,} colours announced; the limit is {most:,}")


def palette_from(entries: Iterable[NamedColour], name: str = "") -> Palette:
    """Create a palette from colours read from a file. Raises Unreadable for no colours or too many."""
    found: list[NamedColour] = []
    for entry in entries:
        if len(found) == MOST_COLOURS:
            raise Unreadable(f"more than {MOST_COLOURS:,} colours, too many for a palette", entry.where)
        found.append(entry)
    check_count(len(found))
    names = tuple(entry.name for entry in found)
    return Palette(np.array([entry.colour for entry in found], np.uint8), name, names if any(names) else ())
