"""Dropped paths -> the plain files under them and in archives, a million of them in little memory.

None is opened but the archives.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import re
import stat
from array import array
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, overload

from studio.core.errors import BadInputError
from studio.core.names import escape_unprintable
from studio.data.archives.zip_archive import Archive, files_in_archive
from studio.data.files.source_files import (
    ArchiveFolder,
    ImportIssue,
    Member,
    SkippedItem,
    SourceFile,
    is_archive,
    is_foreign,
    is_ignored,
    os_error_reason,
)
from studio.data.sources.base import PICTURE_SUFFIXES

_NAME_ENDS = re.compile(r"[-_. ]|(?<!\d)\d+$")  # where an ending such as '-sheet' or '0' begins
_MOST_SHORTER = 8  # shortened names tried for a picture
_RUN = 4096  # files that are sorted in one go: sorting lets no other thread work


@dataclass(frozen=True, slots=True)
class Root:
    """A dropped file or folder.

    label: first parts of the names of all files in the root; () for a single dropped folder or archive. Parent folders
    are included if several roots have the same name. folders: first parts of the class names of all files in the root.
    """

    path: Path
    label: tuple[str, ...]
    is_folder: bool
    folders: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return escape_unprintable((self.path.stem if self.is_archive else self.path.name) or str(self.path))

    @property
    def shares_name(self) -> bool:
        """Whether another dropped root has an equal name, and `label` includes parent folders."""
        return len(self.label) > 1

    @property
    def default_class(self) -> str:
        """The class of files directly in the root, unless `folders` names a class."""
        return "/".join((*self.label[:-1], self.name))

    @property
    def is_archive(self) -> bool:
        return not self.is_folder and is_archive(self.path.name)


def resolve_roots(paths: Sequence[Path]) -> tuple[Root, ...]:
    """What was dropped, in a fixed order, without what lies inside another one. Raises BadInputError for none."""
    if not paths:
        raise BadInputError("No files or folders were given.", "Name a folder of sprites.")
    chosen: dict[str, bool] = {}
    for path in paths:
        where = os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links, and the name is the link's
        try:
            chosen[where] = stat.S_ISDIR(os.stat(where).st_mode)  # noqa: PTH116 - a dropped link is followed
        except FileNotFoundError:
            raise BadInputError(
                f"There is no file or folder {escape_unprintable(str(path))!r}.", "Check its name."
            ) from None
        except OSError as error:
            title = f"{escape_unprintable(str(path))!r} can't be opened: {error.strerror}."
            raise BadInputError(title, "Check its permissions and its drive.") from None
    folders = [where for where, is_folder in chosen.items() if is_folder]
    kept = sorted(where for where in chosen if not any(_inside(where, folder) for folder in folders))
    labels = _labels([Path(where) for where in kept])
    found = [Root(Path(where), label, chosen[where]) for where, label in zip(kept, labels, strict=True)]
    if len(found) == 1 and (found[0].is_folder or found[0].is_archive):
        return (replace(found[0], label=()),)
    one_name = len(found) > 1 and len({label[-1] for label in labels}) == 1  # an equal name can't tell classes apart
    return tuple(root if one_name else replace(root, folders=(root.name,)) for root in found)


def _labels(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Return the shortest unique end of each path: 'a/pack' and 'b/pack' -> ('a', 'pack'), ('b', 'pack')."""
    lengths = [1] * len(paths)
    while True:
        ends = [path.parts[-length:] for path, length in zip(paths, lengths, strict=True)]
        counts = Counter(ends)
        longer = [
            min(length + (counts[end] > 1), len(path.parts))
            for path, length, end in zip(paths, lengths, ends, strict=True)
        ]
        if longer == lengths:
            return [tuple(map(escape_unprintable, end)) for end in ends]
        lengths = longer


def _inside(where: str, folder: str) -> bool:
    return where != folder and where.startswith(folder.rstrip(os.sep) + os.sep)


def title_of_roots(roots: Sequence[Root]) -> str:
    """What to call a set of sprites from `roots`: 'dcss', 'items + monsters', 'a + b + 3 more'."""
    names = [root.name for root in roots]
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " + ".join(names)


def find_file(roots: Sequence[Root], name: str) -> SourceFile | None:
    """The file of this name as it is now, looked for only where it can be."""
    items = (item for root in roots for item in walk_files(root, wanted=name))
    return next((item for item in items if isinstance(item, SourceFile) and item.name == name), None)


def walk_files(root: Root, *, wanted: str = "") -> Iterator[SourceFile | ImportIssue | SkippedItem]:
    """Yield the plain files of `root` and of its archives in any order, skipped items and unreadable items.

    wanted: a file name; folders that can't hold the file are not searched. Hidden files and folders are ignored.
    Links inside a folder are not followed: the walk finds targets inside `root` anyway, and the user did not drop
    targets outside.
    """
    if not root.is_folder:
        yield from _dropped_file(root)
        return
    waiting: list[tuple[str, tuple[str, ...]]] = [(str(root.path), ())]
    seen: set[tuple[int, int] | str] = set()
    while waiting:
        where, folders = waiting.pop()
        try:
            about = os.stat(where)  # noqa: PTH116
            # Some file systems report inode 0 for all folders.
            identity = (about.st_dev, about.st_ino) if about.st_ino else os.path.realpath(where)
            if identity in seen:
                continue  # a mount or a junction that leads back into itself
            seen.add(identity)
            with os.scandir(where) as listing:
                entries = list(listing)
            siblings = frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except OSError as error:
            yield ImportIssue(_name(root, folders, ""), os_error_reason(error, "folder"), "no access", Path(where))
            continue
        if wanted:
            entries = [
                one
                for one in entries
                if f"{wanted}/".startswith(f"{_name(root, folders, escape_unprintable(one.name))}/")
            ]
        yield from _entries(root, entries, siblings, folders, waiting)


def _entries(
    root: Root,
    entries: list[os.DirEntry[str]],
    siblings: frozenset[str],
    folders: tuple[str, ...],
    waiting: list[tuple[str, tuple[str, ...]]],
) -> Iterator[SourceFile | ImportIssue | SkippedItem]:
    """The files among the entries of one folder; its sub-folders go to `waiting`."""
    for entry in entries:
        if is_ignored(entry.name):
            continue
        name = _name(root, folders, escape_unprintable(entry.name))
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError as error:
            yield ImportIssue(name, os_error_reason(error, "file"), "no access", Path(entry.path))
            continue
        if is_foreign(entry.name, is_folder=stat.S_ISDIR(about.st_mode)):
            yield SkippedItem(name)
        elif stat.S_ISDIR(about.st_mode):
            waiting.append((entry.path, (*folders, escape_unprintable(entry.name))))
        elif stat.S_ISREG(about.st_mode) and is_archive(entry.name):
            label = (*root.label, *folders, escape_unprintable(entry.name))
            classes = (*root.folders, *folders, escape_unprintable(Path(entry.path).stem))
            yield from _archived(Archive(entry.path, label, classes, root.default_class))
        elif stat.S_ISREG(about.st_mode):
            parts = (*root.folders, *folders) if folders or not root.shares_name else ()
            yield SourceFile(entry.path, name, parts, root.default_class, siblings, about.st_size, about.st_mtime_ns)
        elif stat.S_ISLNK(about.st_mode):
            yield ImportIssue(name, "a link: links inside a folder are not followed", "refused", Path(entry.path))
        elif os.path.splitext(entry.name)[1].lower() in PICTURE_SUFFIXES:  # noqa: PTH122
            yield ImportIssue(name, "not a plain file but a pipe or a device", "refused", Path(entry.path))


def _archived(archive: Archive) -> Iterator[SourceFile | ImportIssue | SkippedItem]:
    try:
        yield from files_in_archive(archive)
    except OSError as error:
        yield ImportIssue(archive.name, os_error_reason(error, "file"), "no access", Path(archive.path_str))


def _dropped_file(root: Root) -> Iterator[SourceFile | ImportIssue | SkippedItem]:
    """Yield a dropped file, with its folder as class, and its description files; for an archive, its files."""
    name = "/".join(root.label) or escape_unprintable(root.path.name)
    try:
        about = root.path.stat()
    except OSError as error:
        yield ImportIssue(name, os_error_reason(error, "file"), "no access", root.path)
        return
    if not stat.S_ISREG(about.st_mode):
        yield ImportIssue(name, "not a plain file but a pipe or a device", "refused", root.path)
        return
    if root.is_archive:
        yield from _archived(Archive(str(root.path), root.label, root.folders, root.default_class))
        return
    default_class = escape_unprintable(root.path.parent.name) or root.name
    companions = dict(_companions(root.path))
    siblings = frozenset({root.path.name, *(companion.name for companion in companions)})
    yield SourceFile(str(root.path), name, (), default_class, siblings, about.st_size, about.st_mtime_ns)
    for companion, about in companions.items():
        other = "/".join((*root.label[:-1], escape_unprintable(companion.name)))
        yield SourceFile(str(companion), other, (), default_class, siblings, about.st_size, about.st_mtime_ns)


def _companions(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the description files beside a dropped picture, found by name.

    For 'hero-sheet.png' the names are 'hero-sheet', 'hero-sheet.png' and 'hero'; for 'pack0.png' also 'pack'.
    """
    shorter = (path.stem[: end.start()] for end in islice(_NAME_ENDS.finditer(path.stem, 1), _MOST_SHORTER))
    for name in (path.stem, path.name, *shorter):
        for suffix in (".json", ".atlas", ".tres"):
            companion = path.with_name(f"{name}{suffix}")
            with contextlib.suppress(OSError):
                about = companion.lstat()
                if companion != path and stat.S_ISREG(about.st_mode):
                    yield companion, about


def _name(root: Root, folders: tuple[str, ...], name: str) -> str:
    return "/".join(part for part in (*root.label, *folders, name) if part) or root.name


class FileRow(NamedTuple):
    """What a file has of its own. group: the number of what it shares. file_name, size, mtime_ns: as in SourceFile."""

    folder: int
    file_name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, eq=False, slots=True)
class Folder:
    """The common fields of the files of one folder, as in SourceFile.

    where, name: the part of the files' `where` and `name` before the file name; for files in an archive, `where` is the
    path of the archive. members: the archive's entries; None on the disk. is_test: whether the files are test sprites.
    """

    path_str: str
    name: str
    folders: tuple[str, ...]
    default_class: str
    siblings: frozenset[str]
    members: ArchiveFolder | None
    is_test: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle, the names in one text: a million of them one by one would stop every other thread."""
        names = "/".join(self.siblings) if self.members is None else self.members
        return _unpickled, (names, self.path_str, self.name, self.folders, self.default_class, self.is_test)

    def file_for(self, row: FileRow) -> SourceFile:
        """One of its files."""
        member = Member(row.file_name, self.members) if self.members is not None else None
        where = self.path_str if member else self.path_str + row.file_name
        name = self.name + escape_unprintable(row.file_name)
        about = (row.size, row.mtime_ns, member, self.is_test)
        return SourceFile(where, name, self.folders, self.default_class, self.siblings, *about)


def _unpickled(
    names: str | ArchiveFolder, where: str, name: str, folders: tuple[str, ...], default_class: str, is_test: bool
) -> Folder:
    members = None if isinstance(names, str) else names
    siblings = frozenset(filter(None, names.split("/")) if isinstance(names, str) else names)
    return Folder(where, name, folders, default_class, siblings, members, is_test)


class FoundFiles(Sequence[SourceFile]):
    """Files in the order in which they were added, and once sorted by name; each is made anew when it is asked for.

    What the files of a folder share is kept once, the rest in columns: objects by the million would also stop the
    window whenever Python looks for garbage among them.
    """

    def __init__(self) -> None:
        self.folders: list[Folder] = []
        self._numbers: dict[int, int] = {}  # by the identity of what the files of a group share
        self._names: list[str] = []  # without folders, as on the disk
        self._folder_of = array("I")
        self._sizes, self._mtimes_ns = array("q"), array("q")
        self._order = array("I")

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> SourceFile: ...
    @overload
    def __getitem__(self, place: slice) -> list[SourceFile]: ...
    def __getitem__(self, place: int | slice) -> SourceFile | list[SourceFile]:
        if isinstance(place, slice):
            return [self.folders[row.folder].file_for(row) for row in self.rows(place)]
        row = self._row(self._order[place])
        return self.folders[row.folder].file_for(row)

    def rows(self, place: slice) -> list[FileRow]:
        """The same files as rows; what they share is in `folders`."""
        return [self._row(number) for number in self._order[place]]

    def add(self, file: SourceFile) -> None:
        """Put a file at the end."""
        shared = id(file.member.folder if file.member else file.siblings)
        number = self._numbers.get(shared)
        if number is None:
            number = self._numbers[shared] = len(self.folders)
            where = file.path_str if file.member else file.path_str.removesuffix(file.file_name)
            name = file.name.removesuffix(escape_unprintable(file.file_name))
            members = file.member.folder if file.member else None
            self.folders.append(Folder(where, name, file.folders, file.default_class, file.siblings, members))
        self._order.append(len(self._names))
        self._names.append(file.file_name)
        self._folder_of.append(number)
        self._sizes.append(file.size)
        self._mtimes_ns.append(file.mtime_ns)

    def sort(self) -> Generator[int, None, None]:
        """Sort by name, then by path, a little at a time: yields how many files are in order."""
        runs = []
        for start in range(0, len(self), _RUN):
            runs.append(sorted(self._order[start : start + _RUN], key=self._key))
            yield 0
        order = array("I")
        for row in heapq.merge(*runs, key=self._key):
            order.append(row)
            if not len(order) % _RUN:
                yield len(order)
        self._order = order

    def _key(self, row: int) -> tuple[str, str]:
        folder, name = self.folders[self._folder_of[row]], self._names[row]
        return folder.name + escape_unprintable(
            name
        ), folder.path_str if folder.members is not None else folder.path_str + name

    def _row(self, number: int) -> FileRow:
        return FileRow(self._folder_of[number], self._names[number], self._sizes[number], self._mtimes_ns[number])
