"""The bytes of a labels.csv -> what it says of which file: a class, or numbers to be predicted.

    file,visible,brightness             file;class
    swords/short.png,0.31,0.72          short.png;sword
    potions.png#3,0.12,                 potions.png#3;potion

The first column is the file, sub-folders with '/' or '\\' from the CSV's own folder on, with or without its suffix;
headings may name another column 'file'. A line of headings may come first. Commas, semicolons or tabs part the columns.
Each column of numbers has decimal points or decimal commas throughout, as its cells show (see `notation`).
"""

from __future__ import annotations

import csv
import io
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from studio.core.names import escape_unprintable, nfc
from studio.data.decimal_marks import AUTO, COMMA, POINT, ColumnNotation, is_number, marks_of, number_in
from studio.data.files.source_files import UnreadableFile

MOST_NUMBERS = 64  # columns of numbers
_MOST_PROBLEMS = 100  # that are listed one by one
_LOOKED_AT = 1000  # rows that decide what a column holds
_AT_ONCE = 2000  # rows between two signs of life
_LONGEST_NAME = 200  # letters of a class or a heading
_LARGEST = 1e30  # whose square still is a number on every device
_FILE_WORDS = frozenset({"file", "filename", "file_name", "file name", "name", "path", "image", "picture", "sprite"})
_CAPTION_WORDS = frozenset({"text", "caption", "description", "prompt"})  # headings in data sets of captioned pictures
_CLASS_WORDS = frozenset({"class", "class_name", "class name", "label", "category", "tag"})
_ONE_COLUMN = "it has one column only: after each file, its class or its numbers are needed"
_UNCLOSED = "a quotation mark in it is not closed, or stands in the middle of a text"
_MISSING = frozenset({"", "nan"})
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_SEPARATOR_LINE = re.compile(rb"\A(?:\xef\xbb\xbf)?sep=.(?=[\r\n])", re.IGNORECASE)  # the first line for Excel: sep=;
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")


@dataclass(eq=False, slots=True)
class Problems:
    """Lines that can't be used, with the reasons; of very many, only the first ones are kept."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    more: int = 0

    def add(self, line: int, reason: str) -> None:
        if len(self.lines) < _MOST_PROBLEMS:
            self.lines.append((line, reason))
        else:
            self.more += 1

    def sentences(self) -> Iterator[str]:
        """Each with its line, in the order of the lines."""
        for line, reason in sorted(self.lines):
            yield f"line {line:,}: {reason}"
        if self.more:
            yield f"{self.more:,} more lines can't be used"


@dataclass(eq=False, slots=True)
class LabelsTable:
    """What a labels.csv says, a row for each file.

    rows: index of the row by its file's name, relative to the CSV's folder.
    lines: where it stands in the file. classes: index into `class_names`, -1 for none. Both int32 [R].
    numbers: float32 [R, C], NaN where missing. number_names: what each of the C columns is called.
    ambiguous: a sentence for each column whose numbers can be read with decimal points and with decimal commas.
    """

    rows: dict[str, int]
    lines: NDArray[np.int32]
    classes: NDArray[np.int32]
    class_names: tuple[str, ...]
    numbers: NDArray[np.float32]
    number_names: tuple[str, ...]
    problems: Problems
    ambiguous: tuple[str, ...] = ()


def read_table(
    data: bytes, names_file: Callable[[str], bool], decimal_mark: str = AUTO
) -> Generator[None, None, LabelsTable]:
    """Parse a labels file; yields None regularly.

    data: UTF-8 text. names_file: whether a file with this name exists. decimal_mark: POINT or COMMA for all columns;
    AUTO decides for each column by all its cells. Raises Refused for an unusable file; unusable lines become problems
    of the table.
    """
    data = _SEPARATOR_LINE.sub(b"", data)
    first = _first_line(data)
    problems = Problems()
    delimiter = next((mark for mark in "\t;," if mark in re.sub(r'"[^"]*"', "", first)), "")
    if not delimiter:
        raise UnreadableFile("unreadable", _ONE_COLUMN)
    head = list(islice(_rows(data, delimiter, problems), _LOOKED_AT))
    if not head:
        raise UnreadableFile("unreadable", f"no line of it can be read: {next(problems.sentences(), 'all are empty')}")
    file_column = _file_column(head, names_file)
    head = list(islice(_rows(data, delimiter, Problems(), file_column), _LOOKED_AT))
    problems = Problems()  # the second pass reports the problems of these rows again
    layout = _layout(head, file_column, names_file, problems)
    notations = [ColumnNotation() for _ in layout.number_columns]
    if decimal_mark == AUTO:
        yield from _count_notations(layout, notations, _rows(data, delimiter, Problems(), file_column))
    marks = marks_of(notations, delimiter) if decimal_mark == AUTO else [decimal_mark] * len(notations)
    table = _Filling(layout, marks, names_file, problems)
    rows = islice(_rows(data, delimiter, problems, file_column), layout.has_headings, None)
    for count, (line, cells) in enumerate(rows):
        table.add(line, cells)
        if count % _AT_ONCE == 0:
            yield
    columns = zip(layout.number_names, notations, marks, strict=True)
    ambiguous = [_ambiguity(name, each.example, mark) for name, each, mark in columns if each.is_ambiguous]
    return replace(table.finished(), ambiguous=tuple(ambiguous))


def _count_notations(
    layout: _Layout, notations: Sequence[ColumnNotation], rows: Iterator[tuple[int, list[str]]]
) -> Generator[None, None, None]:
    """Add the cells of each number column to its notation; yields None regularly."""
    for count, (_, cells) in enumerate(islice(rows, layout.has_headings, None)):
        for column, notation in zip(layout.number_columns, notations, strict=True):
            if column < len(cells):
                notation.add(cells[column])
        if count % _AT_ONCE == 0:
            yield


def _ambiguity(name: str, example: str, mark: str) -> str:
    taken, other = (number_in(example, each) for each in (mark, POINT if mark == COMMA else COMMA))
    return f"the numbers of {name!r} fit two notations: {example} was read as {taken:g}, but may mean {other:g}"


def _first_line(data: bytes) -> str:
    """The first line with anything in it. Raises Refused when `data` are no UTF-8 text, or nothing."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"line {line:,} is not UTF-8 text: save it from the spreadsheet as 'CSV UTF-8'"
        raise UnreadableFile("unreadable", reason) from None
    if "\0" in text:
        raise UnreadableFile("unreadable", "not a text: its contents are something else")
    first = next((line for line in io.StringIO(text[: 1 << 20]) if line.strip()), "")
    if not first:
        raise UnreadableFile("unreadable", "empty: there is nothing in it")
    return first


def _rows(data: bytes, delimiter: str, problems: Problems, file_column: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the cells of each row, `file_column` moved to the front; skip blank rows."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True, skipinitialspace=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error:
            problems.add(line, _UNCLOSED)
            continue
        if any(cells):
            yield line, [*cells[file_column : file_column + 1], *cells[:file_column], *cells[file_column + 1 :]]


@dataclass(frozen=True)
class _Layout:
    """Which columns hold what. class_column: -1 for none. `number_columns` go with `number_names`."""

    width: int
    has_headings: bool
    class_column: int
    number_columns: tuple[int, ...]
    number_names: tuple[str, ...]


def _file_column(head: Sequence[tuple[int, list[str]]], names_file: Callable[[str], bool]) -> int:
    """Return the column of file names: 0, or a column with a heading like 'file' and names of known files."""
    first = head[0][1]
    if first[0].lower() in _FILE_WORDS or names_file(_key(first[0])):
        return 0
    named = [column for column in range(1, len(first)) if first[column].lower() in _FILE_WORDS]
    found = (c for c in named if any(len(cells) > c and names_file(_key(cells[c])) for _, cells in head[1:]))
    return next(found, 0)


def _layout(
    head: Sequence[tuple[int, list[str]]], file_column: int, names_file: Callable[[str], bool], problems: Problems
) -> _Layout:
    """Guess the layout from the first rows, file names in column 0. Raises Refused for too many number columns."""
    width = _width([cells for _, cells in head])
    first_line, first = head[0]
    has_headings = _are_headings(first, head, names_file)
    headings = [
        escape_unprintable(cell)[:_LONGEST_NAME] if has_headings else "" for cell in [*first, *[""] * width][:width]
    ]
    body = [cells for _, cells in head[has_headings:] if len(cells) >= width]
    kinds = ["", *(_kind([cells[column] for cells in body]) for column in range(1, width))]
    if file_column and not headings[1]:
        kinds[1] = ""  # row numbers written by pandas
    said = (column for column in range(1, width) if headings[column].lower() in _CLASS_WORDS)
    texts = [column for column in range(1, width) if kinds[column] == "texts"]
    classes = [column for column in texts if headings[column].lower() not in _CAPTION_WORDS]
    class_column = next(said, classes[0] if classes else -1)
    for column in texts:
        if column != class_column:
            name = f" ({headings[column]})" if headings[column] else ""
            number = column if column <= file_column else column + 1
            problems.add(first_line, f"column {number}{name} holds texts and is not read: only one is the class")
    numbers = [column for column in range(1, width) if kinds[column] == "numbers" and column != class_column]
    if len(numbers) > MOST_NUMBERS:
        raise UnreadableFile(
            "refused", f"too many columns of numbers: {len(numbers):,}, at most {MOST_NUMBERS} are read"
        )
    names = _names([headings[column] for column in numbers])
    return _Layout(width, has_headings, class_column, tuple(numbers), names)


def _width(rows: Sequence[list[str]]) -> int:
    """How many columns most rows have; spreadsheets write empty ones after them. Raises Refused for just one."""
    length = Counter(map(len, rows)).most_common(1)[0][0]
    for width in range(length, 1, -1):
        if any(cells[width - 1] for cells in rows if len(cells) == length):
            return width
    raise UnreadableFile("unreadable", _ONE_COLUMN)


def _are_headings(
    first: Sequence[str], head: Sequence[tuple[int, list[str]]], names_file: Callable[[str], bool]
) -> bool:
    """Whether the first row is one of headings: by its words, or as texts above numbers."""
    with_numbers = any(_kind([cell]) == "numbers" for cell in first[1:])
    about_files = first[0].lower() in _FILE_WORDS
    if about_files and not with_numbers:
        return True  # also where there is a picture 'sprite.png'
    if names_file(_key(first[0])):
        return False
    if about_files or any(cell.lower() in _CLASS_WORDS for cell in first[1:]):
        return True
    second = head[1][1][1:] if len(head) > 1 else []
    return not with_numbers and any(_kind([cell]) == "numbers" for cell in second)


def _kind(cells: Sequence[str]) -> str:
    """'numbers' where most that is there is one, else 'texts', '' where nothing is there."""
    there = [cell for cell in cells if cell.lower() not in _MISSING]
    numbers = sum(bool(is_number(cell) or _INFINITE.fullmatch(cell)) for cell in there)
    return ("numbers" if 2 * numbers >= len(there) else "texts") if there else ""


def _names(headings: Sequence[str]) -> tuple[str, ...]:
    """A name of its own for each column of numbers."""
    names: list[str] = []
    for place, heading in enumerate(headings, 1):
        name = plain = heading or ("value" if len(headings) == 1 else f"value {place}")
        number = 2
        while name in names:
            name, number = f"{plain} {number}", number + 1
        names.append(name)
    return tuple(names)


def _key(cell: str) -> str:
    """The name of a file as `rows` has it."""
    return nfc("/".join(part for part in cell.replace("\\", "/").split("/") if part not in ("", ".")))


class _Filling:
    """Build a LabelsTable row by row. marks: the decimal mark of each number column."""

    def __init__(
        self, layout: _Layout, marks: Sequence[str], names_file: Callable[[str], bool], problems: Problems
    ) -> None:
        self._layout, self._names_file, self._problems = layout, names_file, problems
        self._columns = tuple(zip(layout.number_columns, marks, strict=True))
        self._rows: dict[str, int] = {}
        self._lines, self._classes, self._numbers = array("i"), array("i"), array("f")
        self._class_index: dict[str, int] = {}

    def add(self, line: int, cells: list[str]) -> None:
        """Take one row, or say why not."""
        key = _key(cells[0])
        problem = self._problem(key, cells)
        if problem:
            self._problems.add(line, problem)
            return
        self._rows[key] = len(self._lines)
        self._lines.append(line)
        self._classes.append(self._class(line, cells))
        self._numbers.extend(self._number(line, cells[column], mark) for column, mark in self._columns)

    def finished(self) -> LabelsTable:
        numbers = np.array(self._numbers, np.float32).reshape(len(self._lines), len(self._layout.number_columns))
        lines, classes = np.array(self._lines, np.int32), np.array(self._classes, np.int32)
        names = tuple(self._class_index)
        return LabelsTable(self._rows, lines, classes, names, numbers, self._layout.number_names, self._problems)

    def _problem(self, key: str, cells: list[str]) -> str:
        """Why a row can't be used; empty when it can."""
        width = self._layout.width
        if len(cells) < width or any(cells[width:]):
            return f"{len(cells)} columns instead of {width}"
        name, path = escape_unprintable(cells[0][:_LONGEST_NAME]), cells[0].replace("\\", "/")
        if _ABSOLUTE.match(path):
            return f"{name!r} is a place on a disk: write the file's name from the folder of this table on"
        if ".." in path.split("/"):
            return f"{name!r} leads out of the folder of this table"
        if not key:
            return "it names no file"
        if key in self._rows:
            return f"{name!r} has a row already, which counts: line {self._lines[self._rows[key]]:,}"
        return "" if self._names_file(key) else f"there is no file {name!r}"

    def _class(self, line: int, cells: list[str]) -> int:
        column = self._layout.class_column
        name = escape_unprintable(cells[column]) if column >= 0 else ""
        if len(name) > _LONGEST_NAME:
            self._problems.add(line, f"its class has {len(name):,} letters: at most {_LONGEST_NAME} can be read")
            return -1
        return self._class_index.setdefault(name, len(self._class_index)) if name else -1

    def _number(self, line: int, cell: str, mark: str) -> float:
        if cell.lower() in _MISSING:
            return math.nan
        value = number_in(cell, mark)
        if value is not None and abs(value) <= _LARGEST:
            return value
        said, reason = escape_unprintable(cell[:_LONGEST_NAME]), "is not a number"
        if value is not None or _INFINITE.fullmatch(cell):
            reason = "is too large a number"
        elif is_number(cell):
            reason = f"is not a number with a decimal {mark}, unlike the rest of the column"
        self._problems.add(line, f"{said!r} {reason}: it counts as missing")
        return math.nan
