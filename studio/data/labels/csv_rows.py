"""Read the rows of a CSV that names files of its folder: labels.csv and sets.csv."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from studio.core.names import escape_unprintable, nfc
from studio.data.files.source_files import UnreadableFile

_MAX_PROBLEMS = 100  # listed problems; further problems are only counted
_MAX_NAME = 200  # characters of a file name in a problem
_UNCLOSED = "a quotation mark is not closed, or stands in the middle of a text"
_SEPARATOR_LINE = re.compile(rb"\A(?:\xef\xbb\xbf)?sep=.(?=[\r\n])", re.IGNORECASE)  # the first line for Excel: sep=;
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")


@dataclass(eq=False, slots=True)
class Problems:
    """Unusable lines of a labels file as (line number, reason). more: number of further problems, not listed."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    more: int = 0

    def add(self, line: int, reason: str) -> None:
        if len(self.lines) < _MAX_PROBLEMS:
            self.lines.append((line, reason))
        else:
            self.more += 1

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each problem, sorted by line."""
        for line, reason in sorted(self.lines):
            yield f"line {line:,}: {reason}"
        if self.more:
            yield f"{self.more:,} more lines can't be used"


def read_text_head(data: bytes) -> tuple[bytes, str]:
    """Return a CSV without Excel's separator line, and its delimiter: a tab, ';', ',', or '' for a single column.

    Raises UnreadableFile for empty data, and data other than UTF-8 text.
    """
    data = _SEPARATOR_LINE.sub(b"", data)
    first = _first_line(data)
    return data, next((mark for mark in "\t;," if mark in re.sub(r'"[^"]*"', "", first)), "")


def _first_line(data: bytes) -> str:
    """Return the first non-blank line. Raises UnreadableFile for empty data, and data other than UTF-8 text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"line {line:,} is not UTF-8 text: save it from the spreadsheet as 'CSV UTF-8'"
        raise UnreadableFile("unreadable", reason) from None
    if "\0" in text:
        raise UnreadableFile("unreadable", "not a text file")
    first = next((line for line in io.StringIO(text[: 1 << 20]) if line.strip()), "")
    if not first:
        raise UnreadableFile("unreadable", "empty: the file has no text")
    return first


def csv_rows(data: bytes, delimiter: str, problems: Problems, file_column: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Parse a CSV; yields (line number, cells) for every non-blank row, with `file_column` moved to the front."""
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


def file_key(cell: str) -> str:
    """Convert the file name in a cell to a key of LabelsTable.rows."""
    return nfc("/".join(part for part in cell.replace("\\", "/").split("/") if part not in ("", ".")))


def why_outside(cell: str) -> str:
    """Return why the file name in a cell leads out of the table's folder; '' for a name in the folder."""
    name, path = escape_unprintable(cell[:_MAX_NAME]), cell.replace("\\", "/")
    if _ABSOLUTE.match(path):
        return f"{name!r} is an absolute path: write the path relative to the folder of this table"
    return f"{name!r} leads out of the folder of this table" if ".." in path.split("/") else ""
