"""A zip archive -> the files in it, found as if it were a folder. Nothing is ever unpacked onto the disk."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from studio.core import formatting
from studio.core.names import escape_unprintable
from studio.data.archives.directory import DirectoryRecord, read_directory
from studio.data.archives.unpacking import READ_METHODS
from studio.data.files.source_files import (
    ArchiveFolder,
    ImportIssue,
    Member,
    SkippedItem,
    SourceFile,
    UnreadableFile,
    is_archive,
    is_foreign,
    is_ignored,
    open_regular_file,
)

_MOST_UNPACKED = 4 << 30  # bytes of all members together
_BOMB_RATIO = 1000  # times that a member may grow when it is unpacked, from
_BOMB_BYTES = 1 << 20  # on
_LONGEST_NAME = 4096  # letters
_LONGEST_SHOWN = 200
_ENCRYPTED, _UTF8 = 1, 0x800  # flags of a member
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was dropped, or lies in a dropped folder.

    label, folders: what the names and the class names of its members begin with; empty when it is all that was dropped.
    home: as in SourceFile.
    """

    path_str: str
    label: tuple[str, ...]
    folders: tuple[str, ...]
    default_class: str

    @property
    def name(self) -> str:
        return "/".join(self.label) or escape_unprintable(os.path.basename(self.path_str))  # noqa: PTH119 - as it is, with surrogates


@dataclass(eq=False, slots=True)
class _Contents:
    """The directory of an archive.

    folders: for each folder path, the entries by file name. left_out: path, quarantine group and reason of each
    unusable entry. skipped: paths of folders and files of other programs.
    """

    folders: dict[tuple[str, ...], ArchiveFolder] = field(default_factory=dict)
    left_out: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)
    skipped: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def wrapped(self) -> bool:
        """Whether everything lies in one folder, as in most packs: it says no more than the archive's own name."""
        tops = {folder[:1] for folder in self.folders} | {path[:-1][:1] for path, _, _ in self.left_out}
        return len(tops) == 1 and () not in tops


def files_in_archive(archive: Archive) -> Iterator[SourceFile | ImportIssue | SkippedItem]:
    """Yield the files of an archive, its unusable entries and its skipped entries. Raises OSError if it can't open."""
    contents = _Contents()
    path = Path(archive.path_str)
    mtime_ns = 0
    try:
        with open_regular_file(archive.path_str) as stream:
            about = os.fstat(stream.fileno())
            mtime_ns = about.st_mtime_ns
            _look_through(stream, about.st_size, contents)
    except UnreadableFile as refused:
        yield ImportIssue(archive.name, refused.reason, refused.group, path)
    depth = int(contents.wrapped)
    for parts, group, reason in contents.left_out:
        name = "/".join((*archive.label, *map(escape_unprintable, parts[depth:])))
        yield ImportIssue(name, reason, group, path)
    for parts in sorted(contents.skipped):
        yield SkippedItem("/".join((*archive.label, *map(escape_unprintable, parts))))
    for folder, entries in contents.folders.items():
        inside = tuple(escape_unprintable(part) for part in folder[depth:])
        before = "".join(f"{part}/" for part in (*archive.label, *inside))
        folders, siblings = (*archive.folders, *inside), frozenset(entries)
        for name, entry in entries.items():
            member = Member(name, entries)
            yield SourceFile(
                archive.path_str,
                before + escape_unprintable(name),
                folders,
                archive.default_class,
                siblings,
                entry.size,
                mtime_ns,
                member,
            )


def _look_through(stream: BinaryIO, size: int, contents: _Contents) -> None:
    """Put every member into `contents`. Raises Refused where the directory ends too early or asks for too much."""
    total = 0
    for record in read_directory(stream, size):
        name = _decoded(record).replace("\\", "/")  # which old programs on Windows write between folders
        if name.endswith("/") or stat.S_ISDIR(record.mode):
            continue
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        unsafe = _unsafe(name, parts)
        if unsafe:
            contents.left_out.append(((name[:_LONGEST_SHOWN],), "refused", unsafe))
            continue
        if any(is_ignored(part) for part in parts):
            continue
        places = range(len(parts))
        skipped = next((n for n in places if is_foreign(parts[n], is_folder=n < len(parts) - 1)), None)
        if skipped is not None:
            contents.skipped.add(parts[: skipped + 1])
            continue
        problem = _wrong_kind(record.mode, parts[-1]) or _wrong_packing(record)
        if problem is not None:
            contents.left_out.append((parts, *problem))
            continue
        total += record.entry.size
        if total > _MOST_UNPACKED:
            contents.folders.clear()
            contents.left_out.clear()
            need = f"its files take more than {formatting.memory(_MOST_UNPACKED)}"
            raise UnreadableFile("refused", f"{need}: unpack it and import the folder of sprites")
        entries = contents.folders.setdefault(parts[:-1], ArchiveFolder())
        if parts[-1] in entries:
            reason = "the archive holds a later file of this name, which is the one that is used"
            contents.left_out.append((parts, "duplicate", reason))
        entries.add(parts[-1], record.entry)


def _decoded(record: DirectoryRecord) -> str:
    """Its name: UTF-8 where that is possible, as some programs write it without saying so, else as zip has it."""
    try:
        return record.name.decode()
    except UnicodeDecodeError:
        return record.name.decode("utf-8", "surrogateescape") if record.flags & _UTF8 else record.name.decode("cp437")


def _unsafe(name: str, parts: tuple[str, ...]) -> str:
    """Why no file may have this name; empty when it may. Nothing is written, but others may take it for a path."""
    if len(name) > _LONGEST_NAME:
        return "its name is too long"
    if not parts or "\0" in name:
        return "its name is no file's name"
    return "its name leads out of the archive" if name[0] == "/" or ".." in parts or _DRIVE.match(name) else ""


def _wrong_kind(mode: int, name: str) -> tuple[str, str] | None:
    """Group and reason when a member is nothing that is read, whatever is in it."""
    if stat.S_ISLNK(mode):
        return "refused", "a link: links inside an archive are not followed"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "refused", "not a plain file but a pipe or a device"
    if is_archive(name):
        return "refused", "an archive inside an archive: unpack it first"
    return None


def _wrong_packing(record: DirectoryRecord) -> tuple[str, str] | None:
    """Group and reason when a member can't or must not be unpacked, from the directory alone."""
    _, packed_size, size, method, _ = record.entry
    if record.flags & _ENCRYPTED:
        return "unsupported", "protected by a password: unpack the archive first"
    if method not in READ_METHODS:
        return "unsupported", "packed in a way that is not read: unpack the archive first"
    if size > _BOMB_BYTES and size > _BOMB_RATIO * packed_size:
        return "refused", f"grows to more than {_BOMB_RATIO:,} times its size when it is unpacked"
    if packed_size > 2 * size + 1024:
        return "unreadable", "damaged: the archive's list of files gives an impossible size"
    return None
