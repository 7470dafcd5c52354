"""Look up the class and the numbers of each sprite in the labels.csv and metadata.csv files of an import.

A labels file covers the files in its folder and in sub-folders. The nearest labels file with a row for a sprite counts.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Event, Progress
from studio.core.names import nfc
from studio.core.threads import run_in_threads
from studio.data.decimal_marks import AUTO
from studio.data.files.source_files import ImportIssue, SourceFile, UnreadableFile, os_error_reason
from studio.data.images.decoding import read_bytes
from studio.data.labels.table import MOST_NUMBERS, LabelsTable, read_table

_OWN_NAME = "labels.csv"
_FILE_NAMES = frozenset({_OWN_NAME, "metadata.csv"})  # metadata.csv: Hugging Face data sets
_MOST_NAMED = 3
_AT_ONCE = 4096  # files


def is_labels_file(file: SourceFile) -> bool:
    """Whether this is a file of labels; it is then nothing else."""
    return file.file_name.lower() in _FILE_NAMES


@dataclass(eq=False, slots=True)
class _Sheet:
    """A labels file that was read. first: the number of its first row among those of all. used: bool [R], by sprites.

    unlabelled: how many sprites it should tell of and doesn't. unlabelled_names: the first of them.
    """

    file: SourceFile
    table: LabelsTable
    first: int
    used: NDArray[np.bool_]
    unlabelled: int = 0
    unlabelled_names: list[str] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """The folder part of the file's name, ending in '/'; '' for a file at the top."""
        return _folder(self.file)

    def covers(self, file: SourceFile) -> bool:
        """Whether `file`, by its name below this one's folder, really is there: two folders can share a name."""
        if self.file.member is not None:
            return file.path_str == self.file.path_str
        return file.path_str.startswith(self.file.path_str[: -len(self.file.file_name)])

    def find(self, name: str, parts: Sequence[str]) -> int:
        """Return the row of a sprite; -1 without a row.

        name: of the sprite's file, relative to the folder of the labels file. parts: the sprite's names from
        `names_in_file`; the first name with a row counts.
        """
        stem = _without_suffix(name)
        keys = (f"{file}#{part}" for part in parts for file in (name, stem))
        for key in (*keys, name, stem):
            row = self.table.rows.get(key, -1)
            if row >= 0:
                return row
        return -1


def names_in_file(parts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names by which a labels file may name each sprite of a file, the full name first.

    'gems/ruby' may also be named 'ruby' if no other sprite of the file is named 'ruby' or ends in '/ruby'.
    """
    last_names = [part.rpartition("/")[2] for part in parts]
    counts = Counter(last_names)
    pairs = zip(parts, last_names, strict=True)
    return [(part, last) if part != last and counts[last] == 1 else (part,) * bool(part) for part, last in pairs]


class LabelLookup:
    """What the labels files of an import say of its sprites; nothing where there are none."""

    def __init__(self) -> None:
        self._sheets: list[_Sheet] = []
        self._starts: list[int] = []  # the number of the first row of each
        self._count = 0  # of rows
        self._by_folder: dict[str, list[_Sheet]] = {}  # as the names of the files in it begin
        self.target_names: tuple[str, ...] = ()

    def add(self, file: SourceFile, table: LabelsTable) -> None:
        """Take what one file says. All of them must be here before the first question."""
        sheet = _Sheet(file, table, self._count, np.zeros(len(table.lines), bool))
        self._sheets.append(sheet)
        self._starts.append(self._count)
        self._by_folder.setdefault(_folder(file), []).append(sheet)
        self._count += len(table.lines)
        new = [name for name in table.number_names if name not in self.target_names]
        room = MOST_NUMBERS - len(self.target_names)
        for name in new[room:]:
            table.problems.add(1, f"{name!r} is not read: all tables together give more than {MOST_NUMBERS} numbers")
        self.target_names = (*self.target_names, *new[:room])

    def row_of(self, file: SourceFile, parts: Sequence[str]) -> int:
        """Return the row of a sprite, for `class_of` and `targets_of`; -1 without a row.

        parts: the sprite's names from `names_in_file`.
        """
        if not self._sheets:
            return -1
        name, found = nfc(file.name), -1
        nearest: _Sheet | None = None
        counting: _Sheet | None = None
        for sheet, folder in self._above(file, name):
            nearest = nearest or sheet
            row = sheet.find(name[len(folder) :], parts)
            if row < 0:
                continue
            if counting is None:
                counting, found = sheet, sheet.first + row
            elif not sheet.used[row]:
                place = "beside this table" if counting.folder == sheet.folder else "nearer to it"
                reason = f"{name!r} has a row in a {counting.file.file_name.lower()} {place}"
                sheet.table.problems.add(int(sheet.table.lines[row]), reason)
            sheet.used[row] = True
        if found < 0 and nearest is not None:
            nearest.unlabelled += 1
            if nearest.unlabelled <= _MOST_NAMED:
                nearest.unlabelled_names.append(f"{file.name}#{parts[0]}" if parts else file.name)
        return found

    def class_of(self, row: int) -> str:
        """Its class; empty where it names none."""
        if row < 0:
            return ""
        sheet = self._sheets[bisect.bisect_right(self._starts, row) - 1]
        label = int(sheet.table.classes[row - sheet.first])
        return sheet.table.class_names[label] if label >= 0 else ""

    def targets_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The numbers of many rows: float32 [N, T], NaN where missing, as throughout the row -1."""
        return self._targets[rows]

    def differ(self, row: int, other: int) -> bool:
        """Whether two rows give other numbers."""
        return not np.array_equal(self._targets[row], self._targets[other], equal_nan=True)

    def notes(self) -> Iterator[ImportIssue]:
        """What deserves a look, once every sprite has been asked for."""
        for sheet in self._sheets:
            for name, row in sheet.table.rows.items():
                if "#" in name and not sheet.used[row]:
                    sheet.table.problems.add(int(sheet.table.lines[row]), f"there is no sprite {name!r}")
            for sentence in sheet.table.problems.sentences():
                yield ImportIssue(sheet.file.name, sentence, "labels", sheet.file.path)
            for sentence in sheet.table.ambiguous:
                yield ImportIssue(sheet.file.name, sentence, "ambiguous numbers", sheet.file.path)
            if sheet.unlabelled:
                named = ", ".join(sheet.unlabelled_names)
                more = f" and {sheet.unlabelled - _MOST_NAMED:,} more" if sheet.unlabelled > _MOST_NAMED else ""
                yield ImportIssue(sheet.file.name, f"without a row in it: {named}{more}", "labels", sheet.file.path)

    @cached_property
    def _targets(self) -> NDArray[np.float32]:
        """float32 [rows + 1, T]; the last row answers for -1."""
        places = {name: place for place, name in enumerate(self.target_names)}
        targets = np.full((self._count + 1, len(places)), np.nan, np.float32)
        for sheet in self._sheets:
            rows = slice(sheet.first, sheet.first + len(sheet.used))
            for name, column in zip(sheet.table.number_names, sheet.table.numbers.T, strict=True):
                if name in places:
                    targets[rows, places[name]] = column
        return targets

    def _above(self, file: SourceFile, name: str) -> Iterator[tuple[_Sheet, str]]:
        """The labels files that a file could be in, the nearest first, and what names in their folders begin with."""
        end = len(name)
        while end >= 0:
            end = name.rfind("/", 0, end)
            folder = name[: end + 1]
            for sheet in self._by_folder.get(folder, ()):
                if sheet.covers(file):
                    yield sheet, folder


def read_labels(
    files: Sequence[SourceFile], decimal_mark: str = AUTO
) -> Generator[Event, None, tuple[LabelLookup, list[ImportIssue]]]:
    """Read the labels files among `files`; return the labels and the unusable labels files.

    A metadata.csv without a row for any of the files is ignored. decimal_mark: as in `read_table`.
    """
    labelling, problems, lines = LabelLookup(), list[ImportIssue](), 0
    found = []
    for number, file in enumerate(files, 1):
        if is_labels_file(file):
            found.append(file)
        if not number % _AT_ONCE:
            yield Progress(number, len(files), "files looked through")
    with closing(
        run_in_threads(partial(_read, files=files, decimal_mark=decimal_mark), [found] if found else [], threads=1)
    ) as batches:
        for batch in batches:
            for item in batch:
                if isinstance(item, ImportIssue):
                    problems.append(item)
                elif item is not None and (len(item[1].lines) or item[0].file_name.lower() == _OWN_NAME):
                    labelling.add(*item)
                    lines += len(item[1].lines)
            yield Progress(lines, 0, "labels read")
    return labelling, problems


def _read(
    found: Sequence[SourceFile], files: Sequence[SourceFile], decimal_mark: str
) -> Iterator[tuple[SourceFile, LabelsTable] | ImportIssue | None]:
    """Each labels file, or why it can't be used; None now and then."""
    names = set[str]()
    for file in files:
        name = nfc(file.name)
        names.update((name, _without_suffix(name)))
    for file in found:
        try:
            table = yield from read_table(read_bytes(file), partial(_is_known, _folder(file), names), decimal_mark)
        except UnreadableFile as refused:
            yield ImportIssue(file.name, refused.reason, refused.group, file.path)
        except OSError as error:
            yield ImportIssue(file.name, os_error_reason(error, "file"), "no access", file.path)
        else:
            yield file, table


def _is_known(folder: str, names: set[str], name: str) -> bool:
    return folder + name in names or folder + name.rpartition("#")[0] in names


def _without_suffix(name: str) -> str:
    folder, slash, file_name = name.rpartition("/")
    return f"{folder}{slash}{file_name.rpartition('.')[0] or file_name}"


def _folder(file: SourceFile) -> str:
    """Return the folder part of the file's name, ending in '/'; '' for a file at the top."""
    name = nfc(file.name)
    return name[: name.rfind("/") + 1]
