"""List the files in a zip archive like the files of a folder. Nothing is unpacked to the disk."""

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
    NOT_A_FILE,
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

_MAX_UNPACKED = 4 << 30  # bytes in total
_BOMB_RATIO = 1000  # refuse members that unpack to more than this many times their size,
_BOMB_BYTES = 1 << 20  # if they unpack to more than this
_MAX_NAME = 4096  # characters
_MAX_SHOWN = 200
_ENCRYPTED, _UTF8 = 1, 0x800  # member flags
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip archive, dropped by the user or found in a dropped folder."""

    path_str: str
    label: tuple[str, ...]  # parts before the names of the members; () for a single dropped archive
    folders: tuple[str, ...]  # parts before the class names of the members; () for a single dropped archive
    default_class: str  # class of a member without a class from its folders or its contents

    @property
    def name(self) -> str:
        return "/".join(self.label) or escape_unprintable(os.path.basename(self.path_str))  # noqa: PTH119 - surrogates


@dataclass(eq=False, slots=True)
class _Contents:
    """The entries of an archive, sorted into usable, left-out and skipped entries."""

    folders: dict[tuple[str, ...], ArchiveFolder] = field(default_factory=dict)  # by folder path and file name
    left_out: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)  # path, quarantine group, reason
    skipped: set[tuple[str, ...]] = field(default_factory=set)  # paths of backup files and other programs' folders

    @property
    def has_top_folder(self) -> bool:
        """Whether a single top folder holds all files; sprite names then omit the folder."""
        tops = {folder[:1] for folder in self.folders} | {path[:-1][:1] for path, _, _ in self.left_out}
        return len(tops) == 1 and () not in tops


def files_in_archive(archive: Archive) -> Iterator[SourceFile | ImportIssue | SkippedItem]:
    """Yield a SourceFile for each usable file in an archive, else an ImportIssue or a SkippedItem. Raises OSError."""
    contents = _Contents()
    path = Path(archive.path_str)
    mtime_ns = 0
    try:
        with open_regular_file(archive.path_str) as stream:
            status = os.fstat(stream.fileno())
            mtime_ns = status.st_mtime_ns
            _read_contents(stream, status.st_size, contents)
    except UnreadableFile as error:
        yield ImportIssue(archive.name, error.reason, error.group, path)
    depth = int(contents.has_top_folder)
    for parts, group, reason in contents.left_out:
        yield ImportIssue(_name(archive, parts[depth:]), reason, group, path)
    for parts in sorted(contents.skipped):
        yield SkippedItem(_name(archive, parts))
    for folder, entries in contents.folders.items():
        inside = tuple(escape_unprintable(part) for part in folder[depth:])
        prefix = "".join(f"{part}/" for part in (*archive.label, *inside))
        shared = ((*archive.folders, *inside), archive.default_class, frozenset(entries))
        for file_name, entry in entries.items():
            name, member = prefix + escape_unprintable(file_name), Member(file_name, entries)
            yield SourceFile(archive.path_str, name, *shared, entry.size, mtime_ns, member)


def _name(archive: Archive, parts: tuple[str, ...]) -> str:
    return "/".join((*archive.label, *map(escape_unprintable, parts)))


def _read_contents(stream: BinaryIO, size: int, contents: _Contents) -> None:
    """Sort the members of a zip archive into `contents`. Raises UnreadableFile for a damaged or too large archive."""
    total = 0
    for record in read_directory(stream, size):
        name = _decoded(record).replace("\\", "/")  # old programs on Windows write backslashes
        if name.endswith("/") or stat.S_ISDIR(record.mode):
            continue
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        unsafe = _unsafe_name(name, parts)
        if unsafe:
            contents.left_out.append(((name[:_MAX_SHOWN],), "refused", unsafe))
            continue
        if any(is_ignored(part) for part in parts):
            continue
        levels = range(len(parts))
        foreign = next((n for n in levels if is_foreign(parts[n], is_folder=n < len(parts) - 1)), None)
        if foreign is not None:
            contents.skipped.add(parts[: foreign + 1])
            continue
        problem = _wrong_kind(record.mode, parts[-1]) or _wrong_packing(record)
        if problem is not None:
            contents.left_out.append((parts, *problem))
            continue
        total += record.entry.size
        if total > _MAX_UNPACKED:
            contents.folders.clear()
            contents.left_out.clear()
            need = f"unpacks to more than {formatting.memory(_MAX_UNPACKED)}"
            raise UnreadableFile("refused", f"{need}: unpack the archive and import a folder of sprites")
        entries = contents.folders.setdefault(parts[:-1], ArchiveFolder())
        if parts[-1] in entries:
            contents.left_out.append((parts, "duplicate", "replaced by a later file with this name in the archive"))
        entries.add(parts[-1], record.entry)


def _decoded(record: DirectoryRecord) -> str:
    """Decode a member's name as UTF-8 if possible, even without the zip flag for UTF-8, else as CP437."""
    try:
        return record.name.decode()
    except UnicodeDecodeError:
        return record.name.decode("utf-8", "surrogateescape") if record.flags & _UTF8 else record.name.decode("cp437")


def _unsafe_name(name: str, parts: tuple[str, ...]) -> str:
    """Return why a member's path is unsafe; '' for a safe path. The path may be used later to export a file."""
    if len(name) > _MAX_NAME:
        return "name too long"
    if not parts or "\0" in name:
        return "invalid file name"
    return "the path leads out of the archive" if name[0] == "/" or ".." in parts or _DRIVE.match(name) else ""


def _wrong_kind(mode: int, name: str) -> tuple[str, str] | None:
    """Return (group, reason) for links, devices and nested archives; None for a regular file."""
    if stat.S_ISLNK(mode):
        return "refused", "a link: links in archives are not followed"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "refused", NOT_A_FILE
    if is_archive(name):
        return "refused", "an archive in an archive: unpack the outer archive first"
    return None


def _wrong_packing(record: DirectoryRecord) -> tuple[str, str] | None:
    """Return (group, reason) for encrypted members, unknown compression and zip bombs; None for a usable member."""
    _, packed_size, size, method, _ = record.entry
    if record.flags & _ENCRYPTED:
        return "unsupported", "protected by a password: unpack the archive first"
    if method not in READ_METHODS:
        return "unsupported", "an unsupported compression method: unpack the archive first"
    if size > _BOMB_BYTES and size > _BOMB_RATIO * packed_size:
        return "refused", f"unpacks to more than {_BOMB_RATIO:,} times its size"
    if packed_size > 2 * size + 1024:
        return "unreadable", "damaged: the archive's list of files gives an impossible size"
    return None
