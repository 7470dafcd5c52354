"""What runs take on the disk, and the kinds of things in them that can go. No torch here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.core.events import Event, Events, Progress

KEPT_SAMPLES = 32  # pictures that stay where a film may be coarser


@dataclass(frozen=True)
class DiskUse:
    """What a folder takes.

    shared: the files in it that have other names elsewhere (a run's sprites are often those of the cache and of other
    runs), each by its device, its number there and its bytes; own_bytes: of all others.
    """

    own_bytes: int = 0
    shared: frozenset[tuple[int, int, int]] = frozenset()

    @property
    def size_bytes(self) -> int:
        """All of it."""
        return self.own_bytes + sum(size for _, _, size in self.shared)


@dataclass(frozen=True)
class UseMeasured(Event):
    """What each run takes on the disk."""

    uses: Mapping[Path, DiskUse]


@dataclass(frozen=True)
class CleanupKind:
    """A kind of thing in runs that can go. `loses` says what goes with it; `is_usual`: it goes unless it is to stay."""

    name: str
    title: str
    loses: str
    is_usual: bool = False


CLEANUP_KINDS = (
    CleanupKind(
        "checkpoints",
        "Checkpoints on the way",
        "The best and the newest stay: resuming, drawing and exporting need no other. From the steps between, nothing "
        "can be drawn or exported any more.",
        is_usual=True,
    ),
    CleanupKind(
        "leftovers", "What crashes have left", "Damaged checkpoints and half-written ones: of no use.", is_usual=True
    ),
    CleanupKind(
        "samples",
        "Most of the live samples",
        f"{KEPT_SAMPLES} of each run stay, evenly over it: the film of how it learnt gets coarser.",
    ),
    CleanupKind(
        "exports", "Exported files in the runs' folders", "The files themselves: export again what you still need."
    ),
    CleanupKind(
        "cache", "Sprites kept for opening them faster", "They take longer to open the next time. Your files stay."
    ),
)


@dataclass(frozen=True)
class Removable:
    """A file or folder that can go, and what that frees. run: whose it is; None for the studio's own."""

    kind: str
    run: Path | None
    path: Path
    size_bytes: int


@dataclass(frozen=True)
class SpaceFound(Event):
    """What can go. busy: the runs that were left alone, since they are being trained."""

    items: tuple[Removable, ...]
    busy: tuple[Path, ...] = ()


@dataclass(frozen=True)
class SpaceFreed(Event):
    """So much was removed."""

    size_bytes: int


def measure_use(runs: Sequence[Path]) -> Events:
    """What these runs take: yields Progress after each, and one UseMeasured."""
    uses: dict[Path, DiskUse] = {}
    for done, run in enumerate(runs, 1):
        uses[run] = disk_use(run)
        yield Progress(done, len(runs), "runs measured")
    yield UseMeasured(uses)


def disk_use(path: Path) -> DiskUse:
    """What a file or a folder takes, as far as it can be read; what it links to is not in it."""
    own_bytes, shared = 0, set()
    for about in _files(path):
        if about.st_nlink > 1 and about.st_ino:  # some drives report 0 for every file
            shared.add((about.st_dev, about.st_ino, about.st_size))
        else:
            own_bytes += about.st_size
    return DiskUse(own_bytes, frozenset(shared))


def total_bytes(uses: Iterable[DiskUse]) -> int:
    """The bytes of several; a file that they share is counted once."""
    found = list(uses)
    shared = frozenset[tuple[int, int, int]]().union(*(use.shared for use in found))
    return DiskUse(sum(use.own_bytes for use in found), shared).size_bytes


def _files(path: Path) -> Iterator[os.stat_result]:
    """Every file at or under `path`, links not followed."""
    with contextlib.suppress(OSError):  # it has just gone, or is not for us to see
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
