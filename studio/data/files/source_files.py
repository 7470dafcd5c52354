"""Data classes of the import: source files, images read from source files, and issues with source files."""

from __future__ import annotations

import errno
import os
import stat
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from studio.core.arrays import Rgba
from studio.core.former_names import alias
from studio.core.names import escape_unprintable

CUT_OFF = "cut off: the file ends too early"
NOT_A_FILE = "not a file but a pipe or a device"
MAX_FILES = 1_000_000
MAX_ELSEWHERE = 100  # tile sets offered to pictures in other folders
_SYSTEM_FILES = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini"})
_FOREIGN_FOLDERS = frozenset(
    {
        "@eadir", "#recycle", "#snapshot",  # Synology: thumbnails, trash, snapshots
        "@recycle", "@recently-snapshot",  # QNAP
        "$recycle.bin", "system volume information", "found.000",  # Windows
        "__macosx", "network trash folder", "temporary items",  # macOS
        "lost+found",  # Linux
        "__pycache__", "node_modules",  # editors and build tools
    }
)  # fmt: skip
_TILE_SET_SUFFIXES = (".tsx", ".tmx", ".ldtk")
_BACKUP_SUFFIXES = ("~", ".bak", ".tmp", ".temp", ".orig", ".swp", ".part", ".crdownload")


def is_ignored(name: str) -> bool:
    """Return whether a file or folder is hidden or a system file. The import skips these without a message."""
    return name.startswith(".") or name.lower() in _SYSTEM_FILES


def is_foreign(name: str, *, is_folder: bool) -> bool:
    """Return whether a name is a backup file, or a folder of a NAS, system or editor: skipped with a notice."""
    name = name.lower()
    return name in _FOREIGN_FOLDERS or (not is_folder and name.endswith(_BACKUP_SUFFIXES))


def is_tile_set(name: str) -> bool:
    """Return whether a file name belongs to a tile set or map, whose picture may be in another folder."""
    return name.lower().endswith(_TILE_SET_SUFFIXES)


def is_archive(name: str) -> bool:
    """Return whether the file name has the suffix .zip."""
    return name.lower().endswith(".zip")


class ArchiveEntry(NamedTuple):
    """Position, sizes and checksum of a file in a zip archive, unchecked."""

    offset: int  # of the file's header in the archive, in bytes
    packed_size: int  # bytes
    size: int  # bytes after unpacking
    method: int  # zip's number for the compression method
    crc: int  # CRC-32 of the unpacked bytes


class ArchiveFolder(Mapping[str, ArchiveEntry]):
    """Maps the file names in one folder of an archive to entries. Columns hold a million entries in little memory."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._columns = tuple(array("Q") for _ in ArchiveEntry._fields)

    def __getitem__(self, name: str) -> ArchiveEntry:
        row = self._rows[name]
        return ArchiveEntry(*(column[row] for column in self._columns))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all names as one string: pickling a million strings would block other threads."""
        return _unpickled, ("/".join(self._rows), array("Q", self._rows.values()), self._columns)

    def add(self, name: str, entry: ArchiveEntry) -> None:
        """Add an entry; it replaces an earlier entry with this name."""
        self._rows[name] = len(self._columns[0])
        for column, value in zip(self._columns, entry, strict=True):
            column.append(value)


def _unpickled(names: str, rows: array[int], columns: tuple[array[int], ...]) -> ArchiveFolder:
    entries = ArchiveFolder()
    entries._rows, entries._columns = dict(zip(names.split("/"), rows, strict=False)), columns
    return entries


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. name: file name without folders. folder: entries of all files in its folder."""

    name: str
    folder: ArchiveFolder = field(repr=False, compare=False)

    @property
    def entry(self) -> ArchiveEntry:
        return self.folder[self.name]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A dropped file, or a file in a dropped folder or archive; not opened yet. `decoding.read_bytes` reads it."""

    path_str: str  # path of the file, or of its archive; may hold surrogates if the path is not UTF-8
    name: str  # printable path from the dropped folder on, with '/' ('item/ruby.png')
    folders: tuple[str, ...]  # class name parts from the file's folders, outermost first; () in the dropped folder
    default_class: str  # class if neither `folders` nor the contents name one: the name of the dropped folder
    siblings: frozenset[str]  # names of all files in the same folder, for formats that use two files
    size: int  # bytes
    mtime_ns: int  # modification time of the file or of its archive
    member: Member | None = None  # the file in the archive; None outside of archives
    in_test_folder: bool = False  # whether a folder above the file holds the test set of a data set
    # Tile sets in other folders of the import, by path from this file's folder: '../maps/land.tsx'.
    elsewhere: Mapping[str, SourceFile] = field(default_factory=dict, repr=False, compare=False)

    @property
    def path(self) -> Path:
        """Path to the file, or to its archive."""
        return Path(self.path_str)

    @property
    def file_name(self) -> str:
        """The file name without folders, not escaped."""
        return self.member.name if self.member else self.path_str.rpartition(os.sep)[2]

    @property
    def is_of_test_set(self) -> bool:
        """Whether the file's sprites are test data: the file is in a folder named test, or is MNIST's test set."""
        return self.in_test_folder or self.file_name.lower().startswith("t10k-images")

    @property
    def stem(self) -> str:
        """The file name without the last suffix."""
        return self._split()[0]

    @property
    def suffix(self) -> str:
        """The last suffix in lower case, with its dot."""
        return self._split()[1].lower()

    def sibling(self, name: str) -> SourceFile:
        """Return another file in this folder, or a file of `elsewhere`. Raises FileNotFoundError or another OSError."""
        if name in self.elsewhere:
            return self.elsewhere[name]
        if name not in self.siblings:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        printable = f"{self.name[: self.name.rfind('/') + 1]}{escape_unprintable(name)}"
        if self.member is not None:
            member = Member(name, self.member.folder)
            return replace(self, name=printable, size=member.entry.size, member=member)
        path = self.path.with_name(name)
        status = path.lstat()
        return replace(self, path_str=str(path), name=printable, size=status.st_size, mtime_ns=status.st_mtime_ns)

    def _split(self) -> tuple[str, str]:
        """Split the file name into stem and suffix like pathlib, without the cost of a million Path objects."""
        name = self.file_name
        stem, dot, suffix = name.rpartition(".")
        return (stem, f".{suffix}") if dot and stem and suffix else (name, "")

    beside = alias("SourceFile.beside", "siblings")
    home = alias("SourceFile.home", "default_class")
    neighbour = alias("SourceFile.neighbour", "sibling")
    where = alias("SourceFile.where", "path_str")


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """A skipped backup file, or a skipped folder made by a NAS, system or editor. name: printable, with folders."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class SourceImage:
    """An image that a source read from a file: a sprite, or a sheet that the import may slice.

    rest: '' for a whole image. If the image shows only the pixels of a sheet outside its described sprites: the remark
    for the user, unless the import slices the image.
    """

    rgba: Rgba  # uint8 [H, W, 4], straight alpha, any size
    part: str = ""  # name of the image within its file ('potions_003'); '' in a file with a single image
    folders: tuple[str, ...] = ()  # class name parts to append to `SourceFile.folders`
    label: str = ""  # class given by the file; overrides the folders
    tag: str = ""  # animation tag of the frame; becomes the class if the user chose tags as classes
    rest: str = ""
    attributes: tuple[tuple[str, str], ...] = ()  # attributes given by the file, with their values
    layers: tuple[tuple[str, str], ...] = ()  # group and visible layer; attributes if the user chose layers

    @property
    def may_be_sheet(self) -> bool:
        """Whether the image may be a sheet of several sprites: the source gave neither a part name nor a class."""
        return not (self.part or self.label)


@dataclass(frozen=True, slots=True)
class SourceIssue:
    """An issue that a source reports while reading a file."""

    group: str  # from QUARANTINE_GROUPS if a part was left out, else from NOTE_GROUPS (import_result.py)
    reason: str  # a plain sentence for the user
    part: str = ""  # name of the affected image in the file; '' for the whole file


class UnreadableFile(Exception):  # noqa: N818 - an answer of a source, not a fault of the program
    """Raised by a source for an unusable file. group: from QUARANTINE_GROUPS. reason: a plain sentence for the user."""

    def __init__(self, group: str, reason: str) -> None:
        super().__init__(reason)
        self.group = group
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ImportIssue:
    """A file or sprite that the import left out, or kept with a remark."""

    name: str  # printable, as in `Sprites.names` ('item/potion/ruby.png', 'potions.png#ruby')
    reason: str  # a plain sentence without the name ('cut off: the file ends too early')
    group: str  # one of QUARANTINE_GROUPS or NOTE_GROUPS
    path: Path | None = None  # path of the file, to show it to the user
    twin: str = ""  # name of the similar sprite, for near-duplicates and wrong classes


@contextmanager
def open_regular_file(path: str) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Raises OSError, and UnreadableFile for a pipe, a device or a folder.

    Opening never blocks, even if a pipe has replaced the file in the meantime.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnreadableFile("refused", NOT_A_FILE)
        yield stream


def os_error_reason(error: OSError, what: str) -> str:
    """Return why a file or folder can't be read, as a plain sentence. what: 'file' or 'folder'."""
    if isinstance(error, PermissionError):
        return f"no permission to read this {what}"
    if isinstance(error, FileNotFoundError):
        return f"the {what} was moved or deleted"
    return f"the {what} can't be read: {error.strerror or error}"
