"""Dropped paths -> the plain files under them and in archives, without opening any but the archives."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from studio.core.errors import BadInputError
from studio.data.archives.zip_archive import Archive, files_in, is_archive
from studio.data.naming import ignored, shown
from studio.data.options import Quarantined
from studio.data.sources.base import PICTURE_SUFFIXES, SourceFile


@dataclass(frozen=True, slots=True)
class Root:
    """One dropped file or folder. `label` is what its names begin with; empty for a folder or an archive by itself."""

    path: Path
    label: tuple[str, ...]
    is_folder: bool

    @property
    def name(self) -> str:
        return shown((self.path.stem if self.is_archive else self.path.name) or str(self.path))

    @property
    def is_archive(self) -> bool:
        return not self.is_folder and is_archive(self.path.name)


def roots_of(paths: Sequence[Path]) -> tuple[Root, ...]:
    """What was dropped, in a fixed order, without what lies inside another one. Raises BadInputError for none."""
    if not paths:
        raise BadInputError("No files or folders were given.", "Name a folder of sprites.")
    chosen: dict[str, bool] = {}
    for path in paths:
        where = os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links, and the name is the link's
        try:
            chosen[where] = stat.S_ISDIR(os.stat(where).st_mode)  # noqa: PTH116 - a dropped link is followed
        except FileNotFoundError:
            raise BadInputError(f"There is no file or folder {shown(str(path))!r}.", "Check its name.") from None
        except OSError as error:
            title = f"{shown(str(path))!r} can't be opened: {error.strerror}."
            raise BadInputError(title, "Check its permissions and its drive.") from None
    folders = [where for where, is_folder in chosen.items() if is_folder]
    kept = sorted(where for where in chosen if not any(_inside(where, folder) for folder in folders))
    names = [os.path.basename(where) for where in kept]  # noqa: PTH119
    found = []
    for where, name in zip(kept, names, strict=True):
        path = Path(where)
        label: tuple[str, ...] = (shown(name or where),)
        if names.count(name) > 1:
            label = (shown(path.parent.name), *label)
        root = Root(path, label, chosen[where])
        alone = len(kept) == 1 and (root.is_folder or root.is_archive)
        found.append(replace(root, label=()) if alone else root)
    return tuple(found)


def _inside(where: str, folder: str) -> bool:
    return where != folder and where.startswith(folder.rstrip(os.sep) + os.sep)


def title_of(roots: Sequence[Root]) -> str:
    """What to call a set of sprites from `roots`: 'dcss', 'items + monsters', 'a + b + 3 more'."""
    names = [root.name for root in roots]
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " + ".join(names)


def find_file(roots: Sequence[Root], name: str) -> SourceFile | None:
    """The file of this name as it is now, looked for only where it can be."""
    items = (item for root in roots for item in files_under(root, wanted=name))
    return next((item for item in items if isinstance(item, SourceFile) and item.name == name), None)


def files_under(root: Root, *, wanted: str = "") -> Iterator[SourceFile | Quarantined]:
    """Every plain file of `root`, in no fixed order, and what could not be looked at. An archive is like a folder.

    With `wanted`, what can't hold a file of that name is passed over.

    Hidden files and folders are passed over. Links inside a folder are not followed: what they point to inside it is
    found by itself, and what is outside was not dropped.
    """
    if not root.is_folder:
        yield from _dropped_file(root)
        return
    waiting: list[tuple[str, tuple[str, ...]]] = [(str(root.path), ())]
    seen: set[tuple[int, int]] = set()
    while waiting:
        where, folders = waiting.pop()
        try:
            about = os.stat(where)  # noqa: PTH116
            if (about.st_dev, about.st_ino) in seen:
                continue  # a mount or a junction that leads back into itself
            seen.add((about.st_dev, about.st_ino))
            with os.scandir(where) as listing:
                entries = list(listing)
            beside = frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except OSError as error:
            yield Quarantined(_name(root, folders, ""), no_access(error, "folder"), "no access", Path(where))
            continue
        if wanted:
            entries = [one for one in entries if f"{wanted}/".startswith(f"{_name(root, folders, shown(one.name))}/")]
        yield from _entries(root, entries, beside, folders, waiting)


def _entries(
    root: Root,
    entries: list[os.DirEntry[str]],
    beside: frozenset[str],
    folders: tuple[str, ...],
    waiting: list[tuple[str, tuple[str, ...]]],
) -> Iterator[SourceFile | Quarantined]:
    """The files among the entries of one folder; its sub-folders go to `waiting`."""
    for entry in entries:
        if ignored(entry.name):
            continue
        name = _name(root, folders, shown(entry.name))
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError as error:
            yield Quarantined(name, no_access(error, "file"), "no access", Path(entry.path))
            continue
        if stat.S_ISDIR(about.st_mode):
            waiting.append((entry.path, (*folders, shown(entry.name))))
        elif stat.S_ISREG(about.st_mode) and is_archive(entry.name):
            outer, stem = (*root.label, *folders), Path(entry.path).stem
            yield from _archived(Archive(entry.path, (*outer, shown(entry.name)), (*outer, shown(stem)), root.name))
        elif stat.S_ISREG(about.st_mode):
            parts = (*root.label, *folders)
            yield SourceFile(entry.path, name, parts, root.name, beside, about.st_size, about.st_mtime_ns)
        elif stat.S_ISLNK(about.st_mode):
            yield Quarantined(name, "a link: links inside a folder are not followed", "refused", Path(entry.path))
        elif os.path.splitext(entry.name)[1].lower() in PICTURE_SUFFIXES:  # noqa: PTH122
            yield Quarantined(name, "not a plain file but a pipe or a device", "refused", Path(entry.path))


def _archived(archive: Archive) -> Iterator[SourceFile | Quarantined]:
    try:
        yield from files_in(archive)
    except OSError as error:
        yield Quarantined(archive.name, no_access(error, "file"), "no access", Path(archive.where))


def _dropped_file(root: Root) -> Iterator[SourceFile | Quarantined]:
    """A file that was dropped by itself belongs to the class that its folder names. What describes it comes with it."""
    name = "/".join(root.label) or shown(root.path.name)
    try:
        about = root.path.stat()
    except OSError as error:
        yield Quarantined(name, no_access(error, "file"), "no access", root.path)
        return
    if not stat.S_ISREG(about.st_mode):
        yield Quarantined(name, "not a plain file but a pipe or a device", "refused", root.path)
        return
    if root.is_archive:
        folders = (*root.label[:-1], root.name) if root.label else ()
        yield from _archived(Archive(str(root.path), root.label, folders, root.name))
        return
    home = shown(root.path.parent.name) or root.name
    companions = dict(_companions(root.path))
    beside = frozenset({root.path.name, *(companion.name for companion in companions)})
    yield SourceFile(str(root.path), name, (), home, beside, about.st_size, about.st_mtime_ns)
    for companion, about in companions.items():
        other = "/".join((*root.label[:-1], shown(companion.name)))
        yield SourceFile(str(companion), other, (), home, beside, about.st_size, about.st_mtime_ns)


def _companions(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files that may describe a dropped picture, told by its name: others of the folder were not dropped."""
    for suffix in (".json", ".atlas", ".tres"):
        companion = path.with_suffix(suffix)
        with contextlib.suppress(OSError):
            about = companion.lstat()
            if companion != path and stat.S_ISREG(about.st_mode):
                yield companion, about


def _name(root: Root, folders: tuple[str, ...], name: str) -> str:
    return "/".join(part for part in (*root.label, *folders, name) if part) or root.name


def no_access(error: OSError, what: str) -> str:
    """Why a file or folder can't be read, in plain words."""
    if isinstance(error, PermissionError):
        return f"you are not allowed to read this {what}"
    if isinstance(error, FileNotFoundError):
        return f"the {what} has gone since it was found"
    return f"the {what} can't be read: {error.strerror or error}"
