"""Find all files under dropped paths, in folders and archives. `FoundFiles` holds a million files in little memory."""

from __future__ import annotations

import contextlib
import heapq
import os
import posixpath
import re
import stat
from array import array
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, overload

from studio.core.errors import BadInputError
from studio.core.names import escape_unprintable
from studio.data.archives.zip_archive import Archive, files_in_archive
from studio.data.atlases.formats import linked_files
from studio.data.files.source_files import (
    MAX_ELSEWHERE,
    NOT_A_FILE,
    ArchiveFolder,
    ImportIssue,
    Member,
    SkippedItem,
    SourceFile,
    is_archive,
    is_foreign,
    is_ignored,
    is_tile_set,
    os_error_reason,
)
from studio.data.sources.base import PICTURE_SUFFIXES

_NAME_ENDS = re.compile(r"[-_. ]|(?<!\d)\d+$")  # start of a name's ending: '-sheet', '0'
_MAX_SHORTENED = 8  # shortened names tried for an image
_SORT_RUN = 4096  # files per sort: sorting blocks other threads

Found = SourceFile | ImportIssue | SkippedItem


@dataclass(frozen=True, slots=True)
class Root:
    """A file or folder that the user dropped."""

    path: Path
    label: tuple[str, ...]  # first parts of file names; () for a single folder or archive; with parents if ambiguous
    is_folder: bool
    folders: tuple[str, ...] = ()  # first parts of the class names
    is_alone: bool = False  # whether the user dropped nothing else

    @property
    def name(self) -> str:
        return escape_unprintable((self.path.stem if self.is_archive else self.path.name) or str(self.path))

    @property
    def shares_name(self) -> bool:
        """Whether another dropped file or folder has an equal name, so that `label` includes parent folders."""
        return len(self.label) > 1

    @property
    def default_class(self) -> str:
        """The class of files directly in the dropped folder, unless `folders` names a class."""
        return "/".join((*self.label[:-1], self.name))

    @property
    def is_archive(self) -> bool:
        return not self.is_folder and is_archive(self.path.name)


def resolve_roots(paths: Sequence[Path]) -> tuple[Root, ...]:
    """Convert dropped paths to sorted roots, without paths inside others. Raises BadInputError for missing paths."""
    if not paths:
        raise BadInputError("No files or folders given.", "Name a folder of sprites.")
    is_folder: dict[str, bool] = {}
    for path in paths:
        full = os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links and lose the link's name
        printable = escape_unprintable(str(path))
        try:
            is_folder[full] = stat.S_ISDIR(os.stat(full).st_mode)  # noqa: PTH116 - follows a dropped link
        except FileNotFoundError:
            raise BadInputError(f"No file or folder {printable!r} found.", "Check its name.") from None
        except OSError as error:
            title = f"{printable!r} can't be opened: {error.strerror}."
            raise BadInputError(title, "Check permissions and drive.") from None
    folders = [full for full in is_folder if is_folder[full]]
    kept = sorted(full for full in is_folder if not any(_is_inside(full, folder) for folder in folders))
    labels = _labels([Path(full) for full in kept])
    roots = [Root(Path(full), label, is_folder[full]) for full, label in zip(kept, labels, strict=True)]
    if len(roots) == 1 and (roots[0].is_folder or roots[0].is_archive):
        return (replace(roots[0], label=()),)
    roots = [replace(root, is_alone=len(roots) == 1) for root in roots]
    all_equal = len(roots) > 1 and len({label[-1] for label in labels}) == 1  # equal names can't be class names
    return tuple(root if all_equal else replace(root, folders=(root.name,)) for root in roots)


def _labels(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Return the shortest unique end of each path, in parts: 'a/pack', 'b/pack' -> ('a', 'pack'), ('b', 'pack')."""
    lengths = [1] * len(paths)
    while True:
        ends = [path.parts[-length:] for path, length in zip(paths, lengths, strict=True)]
        counts = Counter(ends)
        longer = [min(len(end) + (counts[end] > 1), len(path.parts)) for path, end in zip(paths, ends, strict=True)]
        if longer == lengths:
            return [tuple(map(escape_unprintable, end)) for end in ends]
        lengths = longer


def _is_inside(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep)


def title_of_roots(roots: Sequence[Root]) -> str:
    """Return a title for sprites imported from `roots`: 'dcss', 'items + monsters', 'a + b + 3 more'."""
    names = [root.name for root in roots]
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " + ".join(names)


def find_file(roots: Sequence[Root], name: str) -> SourceFile | None:
    """Return the file with this SourceFile.name, or None. Searches only the folders on the way to the file."""
    items = (item for root in roots for item in walk_files(root, wanted=name))
    return next((item for item in items if isinstance(item, SourceFile) and item.name == name), None)


def locate_sprites(paths: Sequence[Path], names: Iterable[str]) -> list[Path]:
    """Return the files, or archives, that contain imported sprites, each once.

    paths: the imported files and folders. names: of sprites, as in `Sprites.names`. Raises BadInputError if a file is
    missing.
    """
    roots, found = resolve_roots(paths), dict[Path, None]()
    for name in names:
        cuts = [name[:index] for index, character in enumerate(name) if character == "#"]  # file names may contain '#'
        file = next((file for cut in (name, *cuts) if (file := find_file(roots, cut)) is not None), None)
        if file is None:
            raise BadInputError(f"{name!r} was moved or deleted.", "Open the folder again.")
        found[file.path] = None
    return list(found)


def walk_files(root: Root, *, wanted: str = "") -> Iterator[Found]:
    """Yield the regular files of `root` and of archives in `root` in any order, and skipped and inaccessible items.

    wanted: a file name; only folders on the way to the file are searched. Hidden files and folders are ignored. Links
    inside a folder are refused: they may lead to files that the user did not drop.
    """
    if not root.is_folder:
        yield from _dropped_file(root)
        return
    waiting: list[tuple[str, tuple[str, ...]]] = [(str(root.path), ())]
    visited: set[tuple[int, int] | str] = set()
    while waiting:
        path, folders = waiting.pop()
        try:
            status = os.stat(path)  # noqa: PTH116
            # Some file systems report inode 0 for all folders.
            identity = (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)
            if identity in visited:
                continue  # a mount or a junction that leads back to a parent folder
            visited.add(identity)
            with os.scandir(path) as listing:
                entries = list(listing)
            siblings = frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except OSError as error:
            yield ImportIssue(_name(root, folders, ""), os_error_reason(error, "folder"), "no access", Path(path))
            continue
        if wanted:
            names = [f"{_name(root, folders, escape_unprintable(entry.name))}/" for entry in entries]
            entries = [entry for entry, name in zip(entries, names, strict=True) if f"{wanted}/".startswith(name)]
        yield from _folder_items(root, entries, siblings, folders, waiting)


def _folder_items(
    root: Root, entries: list[os.DirEntry[str]], siblings: frozenset[str], folders: tuple[str, ...],
    waiting: list[tuple[str, tuple[str, ...]]],
) -> Iterator[Found]:  # fmt: skip
    """Yield the files, skipped items and inaccessible items of a folder; append its sub-folders to `waiting`."""
    for entry in entries:
        if is_ignored(entry.name):
            continue
        name = _name(root, folders, escape_unprintable(entry.name))
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            yield ImportIssue(name, os_error_reason(error, "file"), "no access", Path(entry.path))
            continue
        mode = status.st_mode
        if is_foreign(entry.name, is_folder=stat.S_ISDIR(mode)):
            yield SkippedItem(name)
        elif stat.S_ISDIR(mode):
            waiting.append((entry.path, (*folders, escape_unprintable(entry.name))))
        elif stat.S_ISREG(mode) and is_archive(entry.name):
            label = (*root.label, *folders, escape_unprintable(entry.name))
            classes = (*root.folders, *folders, escape_unprintable(Path(entry.path).stem))
            yield from _archived(Archive(entry.path, label, classes, root.default_class))
        elif stat.S_ISREG(mode):
            parts = (*root.folders, *folders) if folders or not root.shares_name else ()
            yield SourceFile(entry.path, name, parts, root.default_class, siblings, status.st_size, status.st_mtime_ns)
        elif stat.S_ISLNK(mode):
            yield ImportIssue(name, "a link: links in folders are not followed", "refused", Path(entry.path))
        elif os.path.splitext(entry.name)[1].lower() in PICTURE_SUFFIXES:  # noqa: PTH122
            yield ImportIssue(name, NOT_A_FILE, "refused", Path(entry.path))


def _archived(archive: Archive) -> Iterator[Found]:
    try:
        yield from files_in_archive(archive)
    except OSError as error:
        yield ImportIssue(archive.name, os_error_reason(error, "file"), "no access", Path(archive.path_str))


def _dropped_file(root: Root) -> Iterator[Found]:
    """Yield a dropped image and its description files, a tile set and its pictures, or the files in an archive."""
    name = "/".join(root.label) or escape_unprintable(root.path.name)
    try:
        status = root.path.stat()
    except OSError as error:
        yield ImportIssue(name, os_error_reason(error, "file"), "no access", root.path)
        return
    if not stat.S_ISREG(status.st_mode):
        yield ImportIssue(name, NOT_A_FILE, "refused", root.path)
        return
    if root.is_archive:
        yield from _archived(Archive(str(root.path), root.label, root.folders, root.default_class))
        return
    default_class = escape_unprintable(root.path.parent.name) or root.name
    linked = linked_files(root.path) if root.is_alone else {}
    for path in [path for path in linked if path.suffix.lower() not in PICTURE_SUFFIXES and not is_tile_set(path.name)]:
        del linked[path]  # no other kind of file may be read
    found = {root.path: status, **dict(_descriptions(root.path)), **linked}
    names: dict[Path, list[str]] = {}
    for path in found:
        names.setdefault(path.parent, []).append(path.name)
    siblings = {folder: frozenset(own) for folder, own in names.items()}
    top = os.path.commonpath(names)
    for path, about in found.items():
        parts = map(escape_unprintable, path.relative_to(top).parts)
        own = "/".join((*root.label[:-1], *parts))
        yield SourceFile(str(path), own, (), default_class, siblings[path.parent], about.st_size, about.st_mtime_ns)


def _descriptions(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the description files beside a dropped image, found by name.

    For 'hero-sheet.png' the names are 'hero-sheet', 'hero-sheet.png' and 'hero'; for 'pack0.png' also 'pack'.
    """
    shortened = (path.stem[: end.start()] for end in islice(_NAME_ENDS.finditer(path.stem, 1), _MAX_SHORTENED))
    for name in (path.stem, path.name, *shortened):
        for suffix in (".json", ".atlas", ".tres", ".tsx", ".tmx", ".ldtk", ".xml"):
            description = path.with_name(f"{name}{suffix}")
            with contextlib.suppress(OSError):
                status = description.lstat()
                if description != path and stat.S_ISREG(status.st_mode):
                    yield description, status


def _name(root: Root, folders: tuple[str, ...], name: str) -> str:
    return "/".join(part for part in (*root.label, *folders, name) if part) or root.name


class FileRow(NamedTuple):
    """A found file in compact form: the SourceFile fields that differ within a folder."""

    folder: int  # index into FoundFiles.folders
    file_name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, eq=False, slots=True)
class Folder:
    """A folder of found files: the SourceFile fields that its files share."""

    path_str: str  # prefix of the files' `path_str`; in an archive, the archive's path
    name: str  # prefix of the files' `name`
    folders: tuple[str, ...]
    default_class: str
    siblings: frozenset[str]
    members: ArchiveFolder | None  # the archive's entries; None for a folder on the disk
    is_test: bool = False  # SourceFile.in_test_folder
    elsewhere: Mapping[str, SourceFile] = field(default_factory=dict)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all names as one string: a million strings would block other threads."""
        names = "/".join(self.siblings) if self.members is None else self.members
        own = (self.path_str, self.name, self.folders, self.default_class, self.is_test, self.elsewhere)
        return _unpickled, (names, *own)

    def file_for(self, row: FileRow) -> SourceFile:
        """Build the SourceFile for a row of this folder."""
        member = Member(row.file_name, self.members) if self.members is not None else None
        path_str = self.path_str if member else self.path_str + row.file_name
        name = self.name + escape_unprintable(row.file_name)
        own = (row.size, row.mtime_ns, member, self.is_test, self.elsewhere)
        return SourceFile(path_str, name, self.folders, self.default_class, self.siblings, *own)


def _unpickled(
    names: str | ArchiveFolder, path_str: str, name: str, folders: tuple[str, ...], default_class: str, is_test: bool,
    elsewhere: Mapping[str, SourceFile],
) -> Folder:  # fmt: skip
    members = None if isinstance(names, str) else names
    siblings = frozenset(filter(None, names.split("/")) if isinstance(names, str) else names)
    return Folder(path_str, name, folders, default_class, siblings, members, is_test, elsewhere)


def _alone(file: SourceFile) -> SourceFile:
    """Return a file without its siblings, which would be sent to every process."""
    if file.member is None:
        return replace(file, siblings=frozenset({file.file_name}))
    folder = ArchiveFolder()
    folder.add(file.member.name, file.member.entry)
    return replace(file, siblings=frozenset({file.file_name}), member=Member(file.member.name, folder))


class FoundFiles(Sequence[SourceFile]):
    """A compact list of found files; indexing builds each SourceFile anew.

    Fields common to a folder are stored once, the others in columns: a million objects would fill the memory, and each
    garbage collection would freeze the window.
    """

    def __init__(self) -> None:
        self.folders: list[Folder] = []
        self._folder_numbers: dict[int, int] = {}  # by the identity of the sibling set or archive folder
        self._names: list[str] = []  # file names without folders
        self._folder_of = array("I")
        self._sizes, self._mtimes_ns = array("q"), array("q")
        self._order = array("I")
        self._tile_sets: list[SourceFile] = []

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> SourceFile: ...
    @overload
    def __getitem__(self, index: slice) -> list[SourceFile]: ...
    def __getitem__(self, index: int | slice) -> SourceFile | list[SourceFile]:
        rows = self.rows(index) if isinstance(index, slice) else [self._row(self._order[index])]
        files = [self.folders[row.folder].file_for(row) for row in rows]
        return files if isinstance(index, slice) else files[0]

    def rows(self, part: slice) -> list[FileRow]:
        """Return a slice of the files in compact form. Folder.file_for builds a SourceFile from a row."""
        return [self._row(number) for number in self._order[part]]

    def add(self, file: SourceFile) -> None:
        """Append a file to the list."""
        shared = id(file.member.folder if file.member else file.siblings)
        number = self._folder_numbers.get(shared)
        if number is None:
            number = self._folder_numbers[shared] = len(self.folders)
            path_str = file.path_str if file.member else file.path_str.removesuffix(file.file_name)
            name = file.name.removesuffix(escape_unprintable(file.file_name))
            members = file.member.folder if file.member else None
            self.folders.append(Folder(path_str, name, file.folders, file.default_class, file.siblings, members))
        self._order.append(len(self._names))
        self._names.append(file.file_name)
        self._folder_of.append(number)
        self._sizes.append(file.size)
        self._mtimes_ns.append(file.mtime_ns)
        if is_tile_set(file.file_name) and len(self._tile_sets) < MAX_ELSEWHERE:
            self._tile_sets.append(_alone(file))

    def sort(self) -> Generator[int, None, None]:
        """Sort the files by name, then by path, in short steps: yields the number of sorted files."""
        runs = []
        for start in range(0, len(self), _SORT_RUN):
            runs.append(sorted(self._order[start : start + _SORT_RUN], key=self._key))
            yield 0
        order = array("I")
        for number in heapq.merge(*runs, key=self._key):
            order.append(number)
            if not len(order) % _SORT_RUN:
                yield len(order)
        self._order = order
        self._link_tile_sets()

    def _link_tile_sets(self) -> None:
        """Offer the tile sets to the pictures in other folders."""
        tile_sets = sorted(self._tile_sets, key=lambda file: file.name)
        for number, folder in enumerate(self.folders if tile_sets else ()):
            start = f"/{folder.name}"
            paths = {posixpath.relpath(f"/{file.name}", start): file for file in tile_sets}
            self.folders[number] = replace(folder, elsewhere={path: paths[path] for path in paths if "/" in path})

    def _key(self, number: int) -> tuple[str, str]:
        folder, name = self.folders[self._folder_of[number]], self._names[number]
        path = folder.path_str if folder.members is not None else folder.path_str + name
        return folder.name + escape_unprintable(name), path

    def _row(self, number: int) -> FileRow:
        return FileRow(self._folder_of[number], self._names[number], self._sizes[number], self._mtimes_ns[number])
