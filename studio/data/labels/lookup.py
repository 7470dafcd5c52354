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
from studio.data.attributes.columns import pair
from studio.data.decimal_marks import AUTO
from studio.data.files.source_files import ImportIssue, SourceFile, UnreadableFile, os_error_reason
from studio.data.images.decoding import read_bytes
from studio.data.labels.table import MAX_NUMBERS, LabelsTable, read_table

_OWN_NAME = "labels.csv"
_FILE_NAMES = frozenset({_OWN_NAME, "metadata.csv"})  # metadata.csv: Hugging Face data sets
_MAX_NAMED = 3
_PROGRESS_FILES = 4096


@dataclass(eq=False, slots=True)
class _LabelsFile:
    """A parsed labels file, with counts for the report."""

    file: SourceFile
    table: LabelsTable
    first: int  # number of the file's first row, counted over all labels files
    used: NDArray[np.bool_]  # [R], whether a sprite has the row
    unlabelled: int = 0  # number of sprites without a row, counted in the nearest labels file
    unlabelled_names: list[str] = field(default_factory=list)  # names of a few sprites without a row

    @property
    def folder(self) -> str:
        """The folder part of the file's name, ending in '/'; '' for a file at the top."""
        return _folder(self.file)

    def covers(self, file: SourceFile) -> bool:
        """Return whether `file` is in or below this file's folder. Compares paths, because names may be ambiguous."""
        if self.file.member is not None:
            return file.path_str == self.file.path_str
        return file.path_str.startswith(self.file.path_str[: -len(self.file.file_name)])

    def find(self, name: str, label_names: Sequence[str]) -> int:
        """Return the index of a sprite's row in this labels file; -1 without a row.

        name: path of the sprite's file, relative to the folder of the labels file. label_names: possible names of the
        sprite in its file; the first name with a row counts.
        """
        stem = _without_suffix(name)
        keys = (f"{file}#{part}" for part in label_names for file in (name, stem))
        for key in (*keys, name, stem):
            row = self.table.rows.get(key, -1)
            if row >= 0:
                return row
        return -1


def names_in_file(parts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the possible names in a labels file for each sprite of an image file, the full name first.

    parts: SourceImage.part for every sprite, '' without a name. 'gems/ruby' may also be named 'ruby' if 'ruby' is
    unique as a last name.
    """
    last_names = [part.rpartition("/")[2] for part in parts]
    counts = Counter(last_names)
    pairs = zip(parts, last_names, strict=True)
    return [(part, last) if part != last and counts[last] == 1 else (part,) * bool(part) for part, last in pairs]


class LabelLookup:
    """Finds class and numbers of a sprite in all labels files of an import. Add every file before the first lookup."""

    def __init__(self) -> None:
        self._files: list[_LabelsFile] = []
        self._first_rows: list[int] = []
        self._row_count = 0
        self._by_folder: dict[str, list[_LabelsFile]] = {}
        self.target_names: tuple[str, ...] = ()

    def add(self, file: SourceFile, table: LabelsTable) -> None:
        """Add the parsed table of a labels file."""
        labels = _LabelsFile(file, table, self._row_count, np.zeros(len(table.lines), bool))
        self._files.append(labels)
        self._first_rows.append(self._row_count)
        self._by_folder.setdefault(labels.folder, []).append(labels)
        self._row_count += len(table.lines)
        new = [name for name in table.number_names if name not in self.target_names]
        room = MAX_NUMBERS - len(self.target_names)
        for name in new[room:]:
            table.problems.add(1, f"{name!r} is not read: all tables together have more than {MAX_NUMBERS} numbers")
        self.target_names = (*self.target_names, *new[:room])

    def row_of(self, file: SourceFile, label_names: Sequence[str]) -> int:
        """Return the number of a sprite's row in the labels files; -1 without a row.

        Pass the number to `class_of` and `targets_of`. label_names: possible names of the sprite in its file, from
        `names_in_file`.
        """
        if not self._files:
            return -1
        name, found = nfc(file.name), -1
        nearest: _LabelsFile | None = None
        counting: _LabelsFile | None = None
        for labels, folder in self._covering(file, name):
            nearest = nearest or labels
            row = labels.find(name[len(folder) :], label_names)
            if row < 0:
                continue
            if counting is None:
                counting, found = labels, labels.first + row
            elif not labels.used[row]:
                where = "beside this table" if counting.folder == labels.folder else "nearer to it"
                reason = f"{name!r} has a row in a {counting.file.file_name.lower()} {where}"
                labels.table.problems.add(int(labels.table.lines[row]), reason)
            labels.used[row] = True
        if found < 0 and nearest is not None:
            nearest.unlabelled += 1
            if nearest.unlabelled <= _MAX_NAMED:
                nearest.unlabelled_names.append(f"{file.name}#{label_names[0]}" if label_names else file.name)
        return found

    def class_of(self, row: int) -> str:
        """Return the class name in a row, counted over all labels files; '' for a row without a class, and for -1."""
        if row < 0:
            return ""
        labels = self._files[bisect.bisect_right(self._first_rows, row) - 1]
        label = int(labels.table.classes[row - labels.first])
        return labels.table.class_names[label] if label >= 0 else ""

    def attributes_of(self, row: int) -> list[tuple[str, str]]:
        """Return the attributes in a row, counted over all labels files, with their values; [] for -1."""
        if row < 0:
            return []
        labels = self._files[bisect.bisect_right(self._first_rows, row) - 1]
        pairs = (pair(name, texts[row - labels.first]) for name, texts in labels.table.texts)
        return [each for each in pairs if each is not None]

    def targets_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the targets in `rows` of the labels files, int64 [N]: float32 [N, T], NaN if missing or for row -1."""
        return self._targets[rows]

    def differ(self, row: int, other: int) -> bool:
        """Return whether the targets in two rows of the labels files differ."""
        return not np.array_equal(self._targets[row], self._targets[other], equal_nan=True)

    def notes(self) -> Iterator[ImportIssue]:
        """Yield issues in the labels files, including unused rows. Call `row_of` for every sprite first."""
        for labels in self._files:
            table, file = labels.table, labels.file
            for name, row in table.rows.items():
                if "#" in name and not labels.used[row]:
                    table.problems.add(int(table.lines[row]), f"no sprite {name!r} found")
            for sentence in table.problems.sentences():
                yield ImportIssue(file.name, sentence, "labels", file.path)
            for sentence in table.ambiguous:
                yield ImportIssue(file.name, sentence, "ambiguous numbers", file.path)
            if labels.unlabelled:
                names = ", ".join(labels.unlabelled_names)
                more = f" and {labels.unlabelled - _MAX_NAMED:,} more" if labels.unlabelled > _MAX_NAMED else ""
                yield ImportIssue(file.name, f"no row for {names}{more}", "labels", file.path)

    @cached_property
    def _targets(self) -> NDArray[np.float32]:
        """The T targets of each row of all labels files, float32 [rows + 1, T]; the last row is NaN, for index -1."""
        columns = {name: column for column, name in enumerate(self.target_names)}
        targets = np.full((self._row_count + 1, len(columns)), np.nan, np.float32)
        for labels in self._files:
            rows = slice(labels.first, labels.first + len(labels.used))
            for name, numbers in zip(labels.table.number_names, labels.table.numbers.T, strict=True):
                if name in columns:
                    targets[rows, columns[name]] = numbers
        return targets

    def _covering(self, file: SourceFile, name: str) -> Iterator[tuple[_LabelsFile, str]]:
        """Yield (labels file, folder) for each labels file that covers `file`, the nearest first. name: in NFC."""
        end = len(name)
        while end >= 0:
            end = name.rfind("/", 0, end)
            folder = name[: end + 1]
            for labels in self._by_folder.get(folder, ()):
                if labels.covers(file):
                    yield labels, folder


def read_labels(
    files: Sequence[SourceFile], decimal_mark: str = AUTO
) -> Generator[Event, None, tuple[LabelLookup, list[ImportIssue]]]:
    """Read the labels files among `files`; return a LabelLookup, and the issues of unusable labels files.

    Ignores a metadata.csv without a row for any of the files. decimal_mark: POINT or COMMA; AUTO decides by column.
    """
    lookup, problems, lines = LabelLookup(), list[ImportIssue](), 0
    found = []
    for number, file in enumerate(files, 1):
        if file.file_name.lower() in _FILE_NAMES:
            found.append(file)
        if not number % _PROGRESS_FILES:
            yield Progress(number, len(files), "files searched")
    parsing = partial(_parse_files, files=files, decimal_mark=decimal_mark)
    with closing(run_in_threads(parsing, [found] if found else [], threads=1)) as batches:
        for batch in batches:
            for item in batch:
                if isinstance(item, ImportIssue):
                    problems.append(item)
                elif item is not None and (len(item[1].lines) or item[0].file_name.lower() == _OWN_NAME):
                    lookup.add(*item)
                    lines += len(item[1].lines)
            yield Progress(lines, 0, "labels read")
    return lookup, problems


def _parse_files(
    found: Sequence[SourceFile], files: Sequence[SourceFile], decimal_mark: str
) -> Iterator[tuple[SourceFile, LabelsTable] | ImportIssue | None]:
    """Yield (file, table) or an issue for each labels file in `found`; in between None, where the import may be closed.

    files: all files, to check names in the tables.
    """
    names = set[str]()
    for file in files:
        name = nfc(file.name)
        names.update((name, _without_suffix(name)))
    for file in found:
        try:
            table = yield from read_table(read_bytes(file), partial(_is_known, _folder(file), names), decimal_mark)
        except UnreadableFile as error:
            yield ImportIssue(file.name, error.reason, error.group, file.path)
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
