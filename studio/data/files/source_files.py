"""A file that may hold sprites: where it lies, how it is opened, what comes of it, and why it is left out."""

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
from studio.data.files.naming import escape_unprintable

CUT_OFF = "cut off: the file ends too early"
MOST_FILES = 1_000_000


class ArchiveEntry(NamedTuple):
    """Where a file lies in an archive, as the archive says, which may lie.

    offset: bytes before its header. packed_size, size: bytes. method: of packing, by zip's numbers. crc: CRC-32.
    """

    offset: int
    packed_size: int
    size: int
    method: int
    crc: int


class ArchiveFolder(Mapping[str, ArchiveEntry]):
    """The entries of one folder of an archive by name, in columns: a folder may hold a million of them."""

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
        """For pickle, the names in one text: a million of them one by one would stop every other thread."""
        return _unpickled, ("/".join(self._rows), array("Q", self._rows.values()), self._columns)

    def add(self, name: str, entry: ArchiveEntry) -> None:
        """Put an entry in; a later one of the same name counts."""
        self._rows[name] = len(self._columns[0])
        for column, value in zip(self._columns, entry, strict=True):
            column.append(value)


def _unpickled(names: str, rows: array[int], columns: tuple[array[int], ...]) -> ArchiveFolder:
    entries = ArchiveFolder()
    entries._rows, entries._columns = dict(zip(names.split("/"), rows, strict=False)), columns
    return entries


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. name: without folders. folder: every file of its folder by name, shared between them."""

    name: str
    folder: ArchiveFolder = field(repr=False, compare=False)

    @property
    def entry(self) -> ArchiveEntry:
        return self.folder[self.name]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A plain file under a dropped folder or in an archive, or one that was dropped itself. Not read yet.

    `read_bytes` (studio.data.images.decoding) reads it, wherever it is.

    where: its path; may hold surrogates when a name is not UTF-8. That of the archive for a file in one.
    name: for people, from the dropped folder on, with '/', escaped where it can't be shown ('item/ruby.png').
    folders: what its folder gives to the class name, outermost first; empty directly in the dropped folder.
    home: the class name where `folders` and the source give none: that of the dropped folder.
    beside: the file names in its folder, for inputs that come in two files.
    size: bytes. mtime_ns: when it, or the archive it is in, was last changed.
    member: which file of the archive; None outside of archives.
    in_test_folder: whether a folder above the file is the test set of a data set.
    """

    where: str
    name: str
    folders: tuple[str, ...]
    home: str
    beside: frozenset[str]
    size: int
    mtime_ns: int
    member: Member | None = None
    in_test_folder: bool = False

    @property
    def path(self) -> Path:
        """To show it to people: the archive's for a file in one."""
        return Path(self.where)

    @property
    def file_name(self) -> str:
        """The file's name without its folders, as it is on the disk."""
        return self.member.name if self.member else self.where.rpartition(os.sep)[2]

    @property
    def is_of_test_set(self) -> bool:
        """Whether the sprites belong to the test set, by a folder named test or by an MNIST file name."""
        return self.in_test_folder or self.file_name.lower().startswith("t10k-images")

    @property
    def stem(self) -> str:
        """The file's name without its last suffix, as it is on the disk."""
        return self._split()[0]

    @property
    def suffix(self) -> str:
        """In lower case, with its dot."""
        return self._split()[1].lower()

    def neighbour(self, name: str) -> SourceFile:
        """The file of this name, one of `beside`. Raises OSError, also when there is no such file."""
        if name not in self.beside:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        for_people = f"{self.name[: self.name.rfind('/') + 1]}{escape_unprintable(name)}"
        if self.member is not None:
            member = Member(name, self.member.folder)
            return replace(self, name=for_people, size=member.entry.size, member=member)
        path = self.path.with_name(name)
        about = path.lstat()
        return replace(self, where=str(path), name=for_people, size=about.st_size, mtime_ns=about.st_mtime_ns)

    def _split(self) -> tuple[str, str]:
        """Like Path.stem and Path.suffix, which cost more than all other questions that are asked of a file."""
        name = self.file_name
        stem, dot, suffix = name.rpartition(".")
        return (stem, f".{suffix}") if dot and stem and suffix else (name, "")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped folder or backup file of another program. name: as in Quarantined."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Picture:
    """One sprite as it is in its file.

    rgba: uint8 [H, W, 4], straight alpha, any size.
    part: which one of its file ('potions_003'); empty when the file holds just one.
    folders: class name parts to go after those of the file.
    label: its class, where the input says so itself: folders then don't count.
    tag: of an animation, where it is under one: its class, if that is asked for.
    rest: remark on a picture of the sheet's pixels outside its described sprites, used only if it is cut; else empty.
    """

    rgba: Rgba
    part: str = ""
    folders: tuple[str, ...] = ()
    label: str = ""
    tag: str = ""
    rest: str = ""

    @property
    def may_be_sheet(self) -> bool:
        """Whether nothing says yet what its sprites are."""
        return not (self.part or self.label)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a file, or about a part of it, that the user should see.

    group: one of QUARANTINE_GROUPS where a part had to be left out, else one of NOTE_GROUPS (options.py).
    reason: one plain sentence.
    """

    group: str
    reason: str
    part: str = ""


class UnreadableFile(Exception):  # noqa: N818 - it is an answer of a source, not a fault of the program
    """A whole file that can't be used. `group` is one of QUARANTINE_GROUPS, `reason` one plain sentence."""

    def __init__(self, group: str, reason: str) -> None:
        super().__init__(reason)
        self.group = group
        self.reason = reason


@contextmanager
def opened(where: str) -> Iterator[BinaryIO]:
    """A plain file, to be read. Raises OSError, and Refused for anything else.

    Opened without waiting: a pipe that has taken the file's place since it was found can't hold the reader up.
    """
    handle = os.open(where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnreadableFile("refused", "not a plain file")
        yield stream


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file (or a sprite of a sheet) that was left out, or that was kept and deserves a look.

    name: as in `Sprites.names` ('item/potion/ruby.png', 'potions.png#ruby'), for people.
    reason: one plain sentence without the name ('cut off: the file ends too early').
    group: one of QUARANTINE_GROUPS or NOTE_GROUPS.
    path: the file itself, so that it can be shown; None when there is none.
    twin: the sprite that it is like, where that is the matter.
    """

    name: str
    reason: str
    group: str
    path: Path | None = None
    twin: str = ""
