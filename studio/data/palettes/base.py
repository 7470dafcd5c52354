"""What a palette is, and what every kind of palette file answers: are these bytes mine, and which colours are in them.

A new kind is one new file in this folder (or in a package that names its module in the entry-point group
'studio.data.palettes'): a subclass of `PaletteFormat`. Loading, saving and the contract tests find it.
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
    """One colour of a file. where: its place there, for people ('line 12')."""

    where: str
    colour: Colour
    name: str = ""


class Unreadable(Exception):  # noqa: N818 - it is an answer of a format, not a fault of the program
    """A file that is no palette of its kind. where: 'line 12', or empty for all of it. reason: one plain sentence."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where


class PaletteFormat(ABC):
    """A kind of palette file. Stateless."""

    name: str = ""
    title: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    order: ClassVar[int] = 0  # formats are tried in this order; the file suffix decides between equal orders

    @abstractmethod
    def recognises(self, data: bytes) -> bool:
        """Whether a file that begins like `data`, which are all of it, is of this kind, whatever its name."""

    @abstractmethod
    def read(self, data: bytes) -> Palette:
        """The palette in a whole file. Raises Unreadable, and nothing else whatever the bytes are."""

    @abstractmethod
    def write(self, palette: Palette) -> bytes:
        """The whole file. Raises UsageError for a palette that this format can't hold."""


def palette_from(entries: Iterable[NamedColour], name: str = "") -> Palette:
    """A palette of colours as they are read. Raises Unreadable for none of them, and at the first one too many."""
    found: list[NamedColour] = []
    for entry in entries:
        if len(found) == MOST_COLOURS:
            raise Unreadable(f"more than {MOST_COLOURS:,} colours, which is no palette any more", entry.where)
        found.append(entry)
    if not found:
        raise Unreadable("there are no colours in it")
    names = tuple(entry.name for entry in found)
    return Palette(np.array([entry.colour for entry in found], np.uint8), name, names if any(names) else ())
