"""Read attributes from folders, file names, labels.csv and Aseprite files, and propose folders or names as attributes.

Folder levels and words in names are positions at first: 'swords/fire' has the values 'swords' and 'fire'. Positions
get a name from the user or from their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from studio.core.errors import BadInputError, UsageError
from studio.core.names import escape_unprintable
from studio.data.attributes.attributes import NONE, Attributes
from studio.data.attributes.columns import AttributeColumns, checked_attribute, pair
from studio.data.files.source_files import ImportIssue

SKIPPED = "-"  # in the option for names: a level or word that is no attribute
_LABEL = "Names of attributes"
_MOST_PAIRS = 32  # in a text
_MOST_PROPOSED = 64  # limit of values in a proposed attribute
_MOST_SHOWN = 3  # values in a description
_FEWEST = 4  # sprites that a proposal needs
_SEPARATOR = re.compile(r"[\s_.,()\[\]+-]+")
_FRAME = re.compile(r"(?:.*\s)?\d+|r\d+ c\d+")  # file parts with the name of a frame, not of a sprite
_KNOWN = {
    "element": "fire ice water earth air wind lightning thunder electric poison acid holy light dark shadow nature "
    "frost cold arcane void",
    "colour": "red green blue yellow orange purple violet pink brown black white grey gray cyan magenta gold silver",
    "rarity": "common uncommon rare epic legendary mythic unique magic normal cursed",
    "view": "front back left right up down side top north south east west",
}
_WORDS = {name: frozenset(words.split()) for name, words in _KNOWN.items()}


@dataclass(frozen=True)
class AttributeProposal:
    """Attributes that folder levels or words in names would give. source: 'folders' or 'names'."""

    source: str
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    def describe(self) -> str:
        """Describe the attributes for users: 'kind (shields, swords) and element (fire, ice, water and 2 more)'."""
        return " and ".join(describe_values(*each) for each in zip(self.names, self.values, strict=True))


def describe_values(name: str, values: Sequence[str]) -> str:
    """Describe an attribute for users by its first values: 'element (fire, ice, water and 2 more)'."""
    more = f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else ""
    return f"{name} ({', '.join(values[:_MOST_SHOWN])}{more})"


def parse_names(text: str) -> tuple[str, ...]:
    """Return the names of positions from the import option; '-' skips a position. Raises BadInputError."""
    names = []
    for part in text.split(",") if text.strip() else ():
        try:
            name = checked_attribute(part)
        except UsageError as error:
            raise BadInputError(f"{_LABEL}: {error.title}", error.hint) from None
        if name in names and name != SKIPPED:
            raise BadInputError(f"{_LABEL}: {name!r} is there twice.", "Name each attribute once: kind,element")
        names.append(name)
    return tuple(names)


def pairs_in(text: str) -> Iterator[tuple[str, str]]:
    """Parse the attributes in a user's text like 'element=fire, rarity=rare'."""
    for part in re.split(r"[\r\n,;]+", text)[:_MOST_PAIRS]:
        name, equals, value = part.partition("=")
        if equals and (found := pair(name, value)):
            yield found


@dataclass(eq=False)
class AttributeReader:
    """Collects the attributes of an import's sprites. source: the import option `attributes`. names: of positions."""

    source: str
    names: tuple[str, ...] = ()
    notes: list[ImportIssue] = field(default_factory=list)
    _given: AttributeColumns = field(default_factory=AttributeColumns)  # by the files' contents and tables
    _folders: AttributeColumns = field(default_factory=AttributeColumns)  # by the number of the level
    _words: AttributeColumns = field(default_factory=AttributeColumns)  # by the number of the word

    def add(
        self, row: int, name: str, folders: Sequence[str], stem: str, part: str,
        of_file: Iterable[tuple[str, str]], of_table: Iterable[tuple[str, str]],
    ) -> None:  # fmt: skip
        """Add a sprite. row: its index. of_file, of_table: attributes in the file and in labels.csv, which wins."""
        if self.source == "off":
            return
        for attribute, value in of_file:
            self._given.put(row, attribute, value)
        for attribute, value in of_table:
            other = self._given.get(row, attribute)
            if other not in ("", value):
                reason = f"{attribute} is {value!r} in the table and {other!r} in the file: the table counts"
                self.notes.append(ImportIssue(name, reason, "attributes"))
            self._given.put(row, attribute, value)
        if self.source in ("auto", "folders"):
            for number, folder in enumerate(folders):
                self._folders.put(row, str(number), folder)
        if self.source in ("auto", "names"):
            last = part.rpartition("/")[2]
            text = stem if not last or _FRAME.fullmatch(last) else last
            words = [word for word in _SEPARATOR.split(escape_unprintable(text)) if word and not word.isdecimal()]
            for number, word in enumerate(words if len(words) > 1 else ()):
                self._words.put(row, str(number), word)

    def build(self, count: int) -> Attributes:
        """Return the attributes of `count` sprites: first from tables and files, then from folders and words."""
        positions = {"folders": self._folders, "names": self._words}.get(self.source)
        columns = _useful(positions, count) if positions is not None else []
        for name, (codes, values) in zip(self.names or _names_for(columns), columns, strict=False):
            for row in np.flatnonzero(codes != NONE).tolist() if name != SKIPPED else ():
                if not self._given.get(row, name):
                    self._given.put(row, name, values[codes[row]])
        for name in self._given.overfull:
            reason = f"{name!r} is no attribute: it has too many values, or there are too many attributes"
            self.notes.append(ImportIssue(name, reason, "attributes"))
        return self._given.build(count)

    def proposal(self, count: int, *, has_sets: bool) -> AttributeProposal | None:
        """Return clear attributes of folders, or else of file names; None without clear attributes.

        has_sets: whether the words in names tell the views and frames of characters.
        """
        if self.source != "auto":
            return None
        for source, positions in (("folders", self._folders), ("names", self._words)):
            columns = _useful(positions, count)[:3] if not (has_sets and source == "names") else []
            if len(columns) > 1 and _cross(columns[0], columns[1]):
                names = self.names[: len(columns)] or _names_for(columns)
                return AttributeProposal(source, names, tuple(values for _, values in columns))
        return None


_Column = tuple[NDArray[np.int16], tuple[str, ...]]  # codes int16 [N], values


def _useful(positions: AttributeColumns, count: int) -> list[_Column]:
    """Return the positions at which sprites differ, and share values."""
    columns = []
    for _, codes, values in positions.columns(count):
        has_value = int((codes != NONE).sum())
        if 2 * len(values) <= has_value and (len(values) > 1 or has_value < count):
            columns.append((codes, values))
    return columns


def _cross(first: _Column, second: _Column) -> bool:
    """Return whether two columns look independent: in most sprites, both values occur with several other values."""
    codes, others = first[0].astype(np.int64), second[0].astype(np.int64)
    both = (codes != NONE) & (others != NONE)
    if both.sum() < max(_FEWEST, len(codes) / 2) or max(len(first[1]), len(second[1])) > _MOST_PROPOSED:
        return False
    table = np.zeros((len(first[1]), len(second[1])), np.bool_)
    table[codes[both], others[both]] = True
    shared = (table.sum(1) > 1)[codes[both]] & (table.sum(0) > 1)[others[both]]
    return 2 * int(shared.sum()) > len(codes)


def _names_for(columns: Sequence[_Column]) -> tuple[str, ...]:
    """Return a name for each position from its values: 'element', 'colour', 'rarity' or 'view', else 'kind'."""
    names: list[str] = []
    for _, values in columns:
        lower = [value.lower() for value in values]
        known = (name for name, words in _WORDS.items() if 2 * sum(value in words for value in lower) >= len(lower))
        name = plain = next(known, "kind")
        number = 2
        while name in names:
            name, number = f"{plain} {number}", number + 1
        names.append(name)
    return tuple(names)
