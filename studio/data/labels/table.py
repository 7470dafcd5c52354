r"""Parse a labels.csv: a class for each file, or numbers to predict.

    file,visible,brightness             file;class
    swords/short.png,0.31,0.72          short.png;sword
    potions.png#3,0.12,                 potions.png#3;potion

The first column names the file, with '/' or '\' between sub-folders, relative to the folder of the CSV, with or without
suffix; another column may be named 'file' in the headings. The first line may be headings. Commas, semicolons or tabs
separate the columns. Each column of numbers has either decimal points or decimal commas (see decimal_marks.py).
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from studio.core.names import escape_unprintable
from studio.data.attributes.columns import LONGEST
from studio.data.decimal_marks import AUTO, COMMA, POINT, ColumnMarks, decide_marks, is_number, parse_number
from studio.data.files.source_files import UnreadableFile
from studio.data.labels.csv_rows import Problems, csv_rows, file_key, read_text_head, why_outside

MAX_NUMBERS = 64  # number columns
_SAMPLE_ROWS = 1000  # the first rows decide the type of a column
_YIELD_ROWS = 2000  # rows between two yields
_FEW_ROWS = 4  # tables with fewer rows need no repeated texts
_MAX_NAME = 200  # characters of a class or a heading
_MAX_NUMBER = 1e30  # the square must be finite in float32 on every device
_FILE_HEADINGS = frozenset({"file", "filename", "file_name", "file name", "name", "path", "image", "picture", "sprite"})
_CAPTION_HEADINGS = frozenset({"text", "caption", "description", "prompt"})  # headings of image captions
_CLASS_HEADINGS = frozenset({"class", "class_name", "class name", "label", "category", "tag"})
_ONE_COLUMN = "only one column: add a column with classes or numbers"
_MISSING = frozenset({"", "nan"})
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


@dataclass(eq=False, slots=True)
class LabelsTable:
    """The rows of a parsed labels file."""

    rows: dict[str, int]  # row index by file name, relative to the folder of the CSV
    lines: NDArray[np.int32]  # [R], line number of each row
    classes: NDArray[np.int32]  # [R], index into `class_names`, -1 for no class
    class_names: tuple[str, ...]
    numbers: NDArray[np.float32]  # [R, C], NaN if missing
    number_names: tuple[str, ...]  # headings of the C columns
    problems: Problems
    texts: Sequence[tuple[str, Sequence[str]]] = ()  # (heading, cells [R]) per column of texts with a heading
    ambiguous: tuple[str, ...] = ()  # a sentence per column of numbers with unclear decimal marks


def read_table(
    data: bytes, names_file: Callable[[str], bool], decimal_mark: str = AUTO
) -> Generator[None, None, LabelsTable]:
    """Parse a labels file; yields None regularly and returns the table.

    data: UTF-8 text. names_file: function that returns whether a file with this name exists. decimal_mark: POINT or
    COMMA for all columns; AUTO decides for each column by all its cells. Raises UnreadableFile for an unusable file;
    unusable lines become problems of the table.
    """
    data, delimiter = read_text_head(data)
    if not delimiter:
        raise UnreadableFile("unreadable", _ONE_COLUMN)
    problems = Problems()
    head = list(islice(csv_rows(data, delimiter, problems), _SAMPLE_ROWS))
    if not head:
        raise UnreadableFile("unreadable", f"no readable line: {next(problems.sentences(), 'all are empty')}")
    file_column = _file_column(head, names_file)
    head = list(islice(csv_rows(data, delimiter, Problems(), file_column), _SAMPLE_ROWS))
    problems = Problems()  # discarded: the second pass reports these problems again
    layout = _layout(head, file_column, names_file, problems)
    counts = [ColumnMarks() for _ in layout.number_columns]
    if decimal_mark == AUTO:
        yield from _count_marks(layout, counts, csv_rows(data, delimiter, Problems(), file_column))
    marks = decide_marks(counts, delimiter) if decimal_mark == AUTO else [decimal_mark] * len(counts)
    builder = _TableBuilder(layout, marks, names_file, problems)
    rows = islice(csv_rows(data, delimiter, problems, file_column), layout.has_headings, None)
    for count, (line, cells) in enumerate(rows):
        builder.add(line, cells)
        if count % _YIELD_ROWS == 0:
            yield
    columns = zip(layout.number_names, counts, marks, strict=True)
    ambiguous = [_ambiguity(name, each.example, mark) for name, each, mark in columns if each.is_ambiguous]
    return replace(builder.table(), ambiguous=tuple(ambiguous))


def _count_marks(
    layout: _Layout, counts: Sequence[ColumnMarks], rows: Iterator[tuple[int, list[str]]]
) -> Generator[None, None, None]:
    """Count the decimal marks in every column of numbers; yields None regularly."""
    for number, (_, cells) in enumerate(islice(rows, layout.has_headings, None)):
        for column, marks in zip(layout.number_columns, counts, strict=True):
            if column < len(cells):
                marks.add(cells[column])
        if number % _YIELD_ROWS == 0:
            yield


def _ambiguity(name: str, example: str, mark: str) -> str:
    read, other = (parse_number(example, each) for each in (mark, POINT if mark == COMMA else COMMA))
    return f"the numbers of {name!r} fit two notations: {example} was read as {read:g}, but may mean {other:g}"


@dataclass(frozen=True)
class _Layout:
    """Which columns of a labels file hold the class and the numbers. Column 0 holds the file names."""

    width: int  # number of columns
    has_headings: bool
    class_column: int  # -1 for no class column
    number_columns: tuple[int, ...]
    number_names: tuple[str, ...]
    text_columns: tuple[int, ...]
    text_names: tuple[str, ...]  # headings of the columns of texts


def _file_column(head: Sequence[tuple[int, list[str]]], names_file: Callable[[str], bool]) -> int:
    """Return the column with file names: with a heading like 'file' and the name of a known file; 0 if unclear."""
    first = head[0][1]
    if first[0].lower() in _FILE_HEADINGS or names_file(file_key(first[0])):
        return 0
    named = [column for column in range(1, len(first)) if first[column].lower() in _FILE_HEADINGS]
    found = (c for c in named if any(len(cells) > c and names_file(file_key(cells[c])) for _, cells in head[1:]))
    return next(found, 0)


def _layout(
    head: Sequence[tuple[int, list[str]]], file_column: int, names_file: Callable[[str], bool], problems: Problems
) -> _Layout:
    """Guess from the first rows which columns hold the class and numbers. Column 0 holds the file names.

    file_column: index of the file names in the file. Raises UnreadableFile for a single and for too many columns.
    """
    width = _width([cells for _, cells in head])
    first_line, first = head[0]
    has_headings = _are_headings(first, head, names_file)
    titles = [*first, *[""] * width][:width]
    headings = [escape_unprintable(cell)[:_MAX_NAME] if has_headings else "" for cell in titles]
    body = [cells for _, cells in head[has_headings:] if len(cells) >= width]
    kinds = ["", *(_kind([cells[column] for cells in body]) for column in range(1, width))]
    if file_column and not headings[1]:
        kinds[1] = ""  # row numbers written by pandas
    named = (column for column in range(1, width) if headings[column].lower() in _CLASS_HEADINGS)
    texts = [column for column in range(1, width) if kinds[column] == "texts"]
    classes = [column for column in texts if headings[column].lower() not in _CAPTION_HEADINGS]
    class_column = next(named, classes[0] if classes else -1)
    read = [column for column in classes if headings[column] and _repeats([cells[column] for cells in body])]
    for column in texts:
        if column not in (class_column, *read):
            name = f" ({headings[column]})" if headings[column] else ""
            number = column if column <= file_column else column + 1
            problems.add(first_line, f"column {number}{name} holds texts and is not read: {_why_unread(name)}")
    if headings[max(class_column, 0)].lower() in _CLASS_HEADINGS or read == [class_column]:
        read = [column for column in read if column != class_column]
    numbers = [column for column in range(1, width) if kinds[column] == "numbers" and column != class_column]
    if len(numbers) > MAX_NUMBERS:
        reason = f"too many columns of numbers: {len(numbers):,}, at most {MAX_NUMBERS} are read"
        raise UnreadableFile("refused", reason)
    names = _unique_names([headings[column] for column in numbers])
    text_names = _unique_names([headings[column] for column in read])
    return _Layout(width, has_headings, class_column, tuple(numbers), names, tuple(read), text_names)


def _repeats(cells: Sequence[str]) -> bool:
    """Return whether texts are few words that repeat, as the values of an attribute, and no captions."""
    filled = [cell for cell in cells if cell.lower() not in _MISSING]
    return len(filled) < _FEW_ROWS or 2 * len({*filled}) <= len(filled)


def _why_unread(name: str) -> str:
    return "its texts hardly repeat" if name else "it has no heading"


def _width(rows: Sequence[list[str]]) -> int:
    """Return the usual number of columns, without empty columns at the end. Raises UnreadableFile for one column."""
    length = Counter(map(len, rows)).most_common(1)[0][0]
    for width in range(length, 1, -1):
        if any(cells[width - 1] for cells in rows if len(cells) == length):
            return width
    raise UnreadableFile("unreadable", _ONE_COLUMN)


def _are_headings(
    first: Sequence[str], head: Sequence[tuple[int, list[str]]], names_file: Callable[[str], bool]
) -> bool:
    """Return whether the row `first` holds headings: known words, or texts above numbers. head: the first rows."""
    with_numbers = any(_kind([cell]) == "numbers" for cell in first[1:])
    about_files = first[0].lower() in _FILE_HEADINGS
    if about_files and not with_numbers:
        return True  # even if a file 'sprite.png' exists
    if names_file(file_key(first[0])):
        return False
    if about_files or any(cell.lower() in _CLASS_HEADINGS for cell in first[1:]):
        return True
    second = head[1][1][1:] if len(head) > 1 else []
    return not with_numbers and any(_kind([cell]) == "numbers" for cell in second)


def _kind(cells: Sequence[str]) -> str:
    """Classify a column: 'numbers' if at least half of the filled cells are numbers, else 'texts'; '' without any."""
    filled = [cell for cell in cells if cell.lower() not in _MISSING]
    numbers = sum(bool(is_number(cell) or _INFINITE.fullmatch(cell)) for cell in filled)
    return ("numbers" if 2 * numbers >= len(filled) else "texts") if filled else ""


def _unique_names(headings: Sequence[str]) -> tuple[str, ...]:
    """Return a unique name for each column of numbers: the heading, or 'value 1' for a column without a heading."""
    names: list[str] = []
    for position, heading in enumerate(headings, 1):
        name = plain = heading or ("value" if len(headings) == 1 else f"value {position}")
        number = 2
        while name in names:
            name, number = f"{plain} {number}", number + 1
        names.append(name)
    return tuple(names)


class _TableBuilder:
    """Builds a LabelsTable row by row. marks: POINT or COMMA for each number column."""

    def __init__(
        self, layout: _Layout, marks: Sequence[str], names_file: Callable[[str], bool], problems: Problems
    ) -> None:
        self._layout, self._names_file, self._problems = layout, names_file, problems
        self._columns = tuple(zip(layout.number_columns, marks, strict=True))
        self._rows: dict[str, int] = {}
        self._lines, self._classes, self._numbers = array("i"), array("i"), array("f")
        self._class_index: dict[str, int] = {}
        self._texts: list[list[str]] = [[] for _ in layout.text_columns]

    def add(self, line: int, cells: list[str]) -> None:
        """Add a row of cells; an unusable row becomes a problem with its line number."""
        key = file_key(cells[0])
        problem = self._problem(key, cells)
        if problem:
            self._problems.add(line, problem)
            return
        self._rows[key] = len(self._lines)
        self._lines.append(line)
        self._classes.append(self._class(line, cells))
        for column, texts in zip(self._layout.text_columns, self._texts, strict=True):
            texts.append(self._text(line, cells[column]))
        self._numbers.extend(self._number(line, cells[column], mark) for column, mark in self._columns)

    def table(self) -> LabelsTable:
        """Return the table of all added rows."""
        numbers = np.array(self._numbers, np.float32).reshape(len(self._lines), len(self._layout.number_columns))
        lines, classes = np.array(self._lines, np.int32), np.array(self._classes, np.int32)
        names = tuple(self._class_index)
        texts = list(zip(self._layout.text_names, self._texts, strict=True))
        about = (self._layout.number_names, self._problems, texts)
        return LabelsTable(self._rows, lines, classes, names, numbers, *about)

    def _problem(self, key: str, cells: list[str]) -> str:
        """Return why a row is unusable; '' for a usable row."""
        width = self._layout.width
        if len(cells) < width or any(cells[width:]):
            return f"{len(cells)} columns instead of {width}"
        name = escape_unprintable(cells[0][:_MAX_NAME])
        if outside := why_outside(cells[0]):
            return outside
        if not key:
            return "no file name"
        if key in self._rows:
            return f"{name!r} already has a row: line {self._lines[self._rows[key]]:,}"
        return "" if self._names_file(key) else f"no file {name!r} found"

    def _class(self, line: int, cells: list[str]) -> int:
        column = self._layout.class_column
        name = escape_unprintable(cells[column]) if column >= 0 else ""
        if len(name) > _MAX_NAME:
            self._problems.add(line, f"its class has {len(name):,} letters: at most {_MAX_NAME} can be read")
            return -1
        return self._class_index.setdefault(name, len(self._class_index)) if name else -1

    def _text(self, line: int, cell: str) -> str:
        """Return the value of an attribute, '' for none; a long text becomes a problem."""
        text = "" if cell.lower() in _MISSING else sys.intern(escape_unprintable(cell))
        if len(text) <= LONGEST:
            return text
        self._problems.add(line, f"an attribute has {len(text):,} letters: at most {LONGEST} can be read")
        return ""

    def _number(self, line: int, cell: str, mark: str) -> float:
        """Parse a number; return NaN for a missing number and for an unusable number, which becomes a problem."""
        if cell.lower() in _MISSING:
            return math.nan
        value = parse_number(cell, mark)
        if value is not None and abs(value) <= _MAX_NUMBER:
            return value
        text, reason = escape_unprintable(cell[:_MAX_NAME]), "is not a number"
        if value is not None or _INFINITE.fullmatch(cell):
            reason = "is too large"
        elif is_number(cell):
            reason = f"is not a number with a decimal {mark}, unlike other cells of the column"
        self._problems.add(line, f"{text!r} {reason} and counts as missing")
        return math.nan
