"""Parse numbers in a table, and decide for each column between decimal points and decimal commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

AUTO, POINT, COMMA = MARKS = ("auto", "point", "comma")
_GROUPS = "[ \u00a0\u202f'\u2019]"  # thousands separators with either decimal mark: spaces and apostrophes
_DIGITS = r"(?:[1-9]\d{{0,2}}(?:{1}\d{{3}})+|[1-9]\d{{0,2}}(?:{2}\d{{3}})+|\d+)"
_NUMBER = rf"[+-]?(?:{_DIGITS}(?:{{0}}\d*)?|{{0}}\d+)(?:[eE][+-]?\d+)?"
_PATTERNS = {
    POINT: re.compile(_NUMBER.format(r"\.", ",", _GROUPS), re.ASCII),
    COMMA: re.compile(_NUMBER.format(",", r"\.", _GROUPS), re.ASCII),
}
_REMOVED = {POINT: re.compile(f"{_GROUPS}|,"), COMMA: re.compile(rf"{_GROUPS}|\.")}


def parse_number(text: str, mark: str) -> float | None:
    """Parse a number written with the decimal mark POINT or COMMA; return None if `text` is not a number."""
    if not _PATTERNS[mark].fullmatch(text):
        return None
    return float(_REMOVED[mark].sub("", text).replace(",", "."))


def is_number(text: str) -> bool:
    """Return whether `text` is a number with a decimal point or with a decimal comma."""
    return any(pattern.fullmatch(text) for pattern in _PATTERNS.values())


@dataclass(eq=False, slots=True)
class ColumnMarks:
    """Counts a table column's cells by decimal mark."""

    points: int = 0  # cells that parse only with a decimal point
    commas: int = 0  # cells that parse only with a decimal comma
    example: str = ""  # the first cell whose number depends on the mark, like '1.234'
    has_comma: bool = False  # whether an ambiguous cell contains a comma

    def add(self, text: str) -> None:
        """Update the counts with the text of a cell."""
        as_point, as_comma = parse_number(text, POINT), parse_number(text, COMMA)
        if as_comma is None:
            self.points += as_point is not None
        elif as_point is None:
            self.commas += 1
        elif as_point != as_comma:
            self.example = self.example or text
            self.has_comma = self.has_comma or "," in text

    @property
    def is_ambiguous(self) -> bool:
        """Whether the column has cells like '1.234', with two readings, and the other cells do not decide."""
        return not self.mark and bool(self.example)

    @property
    def mark(self) -> str:
        """The decimal mark, POINT or COMMA, of most unambiguous cells; '' for a tie."""
        if self.points == self.commas:
            return ""
        return POINT if self.points > self.commas else COMMA


def decide_marks(columns: Sequence[ColumnMarks], delimiter: str) -> list[str]:
    """Return the decimal mark, POINT or COMMA, by table column.

    A column without a clear mark takes the other columns' mark. If the other columns disagree or have no mark, commas
    in the column suggest a decimal comma, unless ',' also delimits the columns. delimiter: between columns.
    """
    decided = {column.mark for column in columns if column.mark}
    marks = []
    for column in columns:
        likely = COMMA if delimiter != "," and (column.has_comma or column.commas) else POINT
        marks.append(column.mark or (min(decided) if len(decided) == 1 else likely))
    return marks
