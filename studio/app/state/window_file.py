"""Files that store the unfinished work of a window for the next session, one for each open window."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from filelock import BaseFileLock

from studio.core import file_systems, files

_MOST_WINDOWS = 9  # further windows do not store their work

T = TypeVar("T")


class WindowFile(Generic[T]):
    """A file that stores the work of a window. Each open window locks its own file.

    A new window locks the first free file with work, else the first free name. stored: the work in the file.
    """

    def __init__(self, first: Path, parse: Callable[[bytes], T], to_bytes: Callable[[T], bytes]) -> None:
        """Lock a file. first: path for the first window. parse: reads the work, or raises ValueError."""
        self._folder, self._to_bytes = first.parent, to_bytes
        self._path: Path | None = None
        self._lock: BaseFileLock | None = None
        stored: T | None = None
        for number in range(1, _MOST_WINDOWS + 1):
            path = first.with_stem(f"{first.stem} {number}") if number > 1 else first
            lock = _lock_file(path) if path.exists() or self._lock is None else None
            if lock is not None:
                self.release()
                self._path, self._lock, stored = path, lock, _read(path, parse)
            if stored is not None:
                break
        self.stored = stored

    def store(self, work: T | None) -> None:
        """Write the work to the file unless the file holds this object; None removes the file. Raises OSError."""
        if work is self.stored:
            return
        if self._path is None:
            reason = "The folder can't be written, or too many windows are open"
            raise OSError(errno.EACCES, reason, str(self._folder))
        if work is None:
            files.remove(self._path)
        else:
            files.write_atomic(self._path, self._to_bytes(work))
        self.stored = work

    def release(self) -> None:
        """Unlock the file for other windows."""
        if self._lock is not None:
            self._lock.release()
        self._lock = self._path = None


def _lock_file(path: Path) -> BaseFileLock | None:
    """Lock the file of a window; return None if the lock is taken or the folder is read-only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return file_systems.acquire_lock(path.with_name(f".{path.stem}.lock"), 0.0)
    except OSError:
        return None


def _read(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """Read the work of a window; return None for a missing or damaged file."""
    try:
        return parse(path.read_bytes())
    except (OSError, ValueError):
        return None
