"""Measure the disk space of runs, and define the kinds of deletable files in a run folder."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.core.events import Event, Events, Progress

KEPT_SAMPLES = 32  # live samples to keep per run


@dataclass(frozen=True)
class DiskUse:
    """The disk space of a file or folder. Runs share sprite files by hard links."""

    own_bytes: int = 0  # size of the files without hard links
    shared: frozenset[tuple[int, int, int]] = frozenset()  # hard-linked files: (device, inode, bytes)

    @property
    def size_bytes(self) -> int:
        """The total size, including hard-linked files."""
        return self.own_bytes + sum(size for _, _, size in self.shared)


@dataclass(frozen=True)
class UseMeasured(Event):
    """Yielded by `measure_use`: the disk space by run folder."""

    uses: Mapping[Path, DiskUse]


@dataclass(frozen=True)
class CleanupKind:
    """A kind of deletable files, for example old checkpoints."""

    name: str
    title: str  # for users
    loses: str  # what the user loses, in words
    is_usual: bool = False  # selected by default


_CHECKPOINTS_LOSE = (
    "Keeps the best and the newest checkpoint, enough to resume, draw and export. You can no longer draw or export "
    "from other steps."
)
_SAMPLES_LOSE = f"Keeps {KEPT_SAMPLES} per run, evenly spaced. The timelapse gets coarser."
CLEANUP_KINDS = (
    CleanupKind("checkpoints", "Intermediate checkpoints", _CHECKPOINTS_LOSE, is_usual=True),
    CleanupKind("leftovers", "Leftovers of crashes", "Damaged and half-written checkpoints.", is_usual=True),
    CleanupKind("samples", "Most live samples", _SAMPLES_LOSE),
    CleanupKind("exports", "Exports in run folders", "Deletes the exported files. You can export again."),
    CleanupKind("cache", "Import cache", "Opening sprites takes longer next time. Your files stay."),
)


@dataclass(frozen=True)
class Removable:
    """A deletable file or folder, with the size. run: the run folder; None for the import cache."""

    kind: str
    run: Path | None
    path: Path
    size_bytes: int


@dataclass(frozen=True)
class SpaceFound(Event):
    """Yielded by `find_space`: deletable files. busy: runs in training, not searched."""

    items: tuple[Removable, ...]
    busy: tuple[Path, ...] = ()


@dataclass(frozen=True)
class SpaceFreed(Event):
    """Yielded by `free_space`: the freed bytes."""

    size_bytes: int


def measure_use(runs: Sequence[Path]) -> Events:
    """Measure the disk space of runs: yields Progress per run, then UseMeasured."""
    uses: dict[Path, DiskUse] = {}
    for done, run in enumerate(runs, 1):
        uses[run] = disk_use(run)
        yield Progress(done, len(runs), "runs measured")
    yield UseMeasured(uses)


def disk_use(path: Path) -> DiskUse:
    """Return the disk space of a file or folder. Skips unreadable files and doesn't follow links."""
    own_bytes, shared = 0, set()
    for about in _files(path):
        if about.st_nlink > 1 and about.st_ino:  # some drives report inode 0 for every file
            shared.add((about.st_dev, about.st_ino, about.st_size))
        else:
            own_bytes += about.st_size
    return DiskUse(own_bytes, frozenset(shared))


def total_bytes(uses: Iterable[DiskUse]) -> int:
    """Return the total size of files and folders; hard-linked files count once."""
    found = list(uses)
    shared = frozenset[tuple[int, int, int]]().union(*(use.shared for use in found))
    return DiskUse(sum(use.own_bytes for use in found), shared).size_bytes


def _files(path: Path) -> Iterator[os.stat_result]:
    """Yield os.stat_result per file at or under `path`, without following links."""
    with contextlib.suppress(OSError):  # deleted meanwhile, or access denied
        if not path.is_dir() or path.is_symlink():
            yield path.lstat()
            return
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path))
                else:
                    with contextlib.suppress(OSError):
                        yield entry.stat(follow_symlinks=False)
