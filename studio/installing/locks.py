"""Lock files between processes. The system releases a lock at the process's end, even after a crash."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


class LockedError(Exception):
    """Raised while another process has the lock."""


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Hold a lock file during a `with` block; yield its handle. Raises LockedError if another process holds the lock.

    A child process that inherits the handle has the lock too, even if this process is killed.
    """
    with path.open("a+b") as file:
        if not _lock(file.fileno(), shared=False):
            raise LockedError(path)
        yield file.fileno()


def hold(path: Path) -> None:
    """Mark a folder's lock file as in use until this process, or a program executed in its place, ends."""
    handle = os.open(path, os.O_RDONLY | os.O_CREAT)
    os.set_inheritable(handle, True)
    _lock(handle, shared=True)


def is_held(path: Path) -> bool:
    """Return whether a living process called `hold` with this path."""
    if not path.exists():
        return False
    if sys.platform == "win32":  # an open file can't be renamed
        try:
            path.replace(path.with_suffix(".free")).replace(path)
        except OSError:
            return True
        return False
    with path.open("rb") as file:
        return not _lock(file.fileno(), shared=False)


def _lock(handle: int, *, shared: bool) -> bool:
    """Lock an open file; return False if another process has the lock. Closing the last handle releases the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            if not shared:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
