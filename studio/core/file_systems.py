"""Features that some file systems lack: flushing folders, locks, hard links. The studio works without them."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

TEMPORARY = ".tmp-"
_POLL_S = 0.02
_PROBE_S = 0.06  # another `is_locked` may hold the lock for a moment
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})  # no locks here
_MISSING = {
    "flush": "This drive can't confirm writes: after a power failure, the newest checkpoint may be lost.",
    "locks": "This drive has no file locks: don't train a run from two computers at once.",
    "links": "This drive has no hard links: every run gets a copy of its sprites.",
}
_reported: set[int] = set()  # device numbers of reported file systems

warnings.filterwarnings("ignore", message="flock not supported")  # new_limitations reports it


def flush(path: Path) -> None:
    """Flush a file or a folder to disk. Raises OSError. On Windows, folders can't be opened and need no flush."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def acquire_lock(path: Path, wait_s: float) -> BaseFileLock | None:
    """Acquire a lock on the file `path`; return None if another process still holds the lock after `wait_s` seconds.

    The lock is released at exit. On a file system without locks, a file with the process id replaces the lock; the id
    reveals a lock left by a crash. Raises OSError.
    """
    try:
        return _acquire(FileLock(path), wait_s)
    except NotImplementedError:  # old versions of filelock, for ENOSYS
        pass
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return _acquire(SoftFileLock(path.with_name(f"{path.name}-file")), wait_s)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock file `path`, by trying to lock. False in an unwritable folder."""
    try:
        exists = path.exists() or path.with_name(f"{path.name}-file").exists()
        if not exists or not os.access(path.parent, os.W_OK):
            return False
        lock = acquire_lock(path, _PROBE_S)
        if lock is not None:
            lock.release()
    except OSError:
        return False
    return lock is None


def new_limitations(folder: Path) -> str:
    """Describe, for users, features that the folder's file system lacks; '' on later calls and if it is unreadable."""
    try:
        number = folder.stat().st_dev
    except OSError:
        return ""
    if number in _reported:
        return ""
    found = limitations(folder)
    if found:
        _reported.add(number)
    return found


def limitations(folder: Path) -> str:
    """Describe, for users, features that the folder's file system lacks; '' if none or if the folder is unwritable."""
    return " ".join(_MISSING[name] for name in _missing_features(folder))


def _acquire(lock: BaseFileLock, wait_s: float) -> BaseFileLock | None:
    """Acquire a lock and return it; return None if the lock is not free within `wait_s` seconds."""
    for timeout_s in (wait_s, 0.0):  # with filelock 4.2.0, the first attempt only deletes the lock of a dead process
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=timeout_s, poll_interval=_POLL_S)
            return lock
    return None


def _missing_features(folder: Path) -> Iterator[str]:
    """Yield the names of the features, keys of _MISSING, that the folder's file system lacks."""
    try:
        flush(folder)
    except OSError:
        yield "flush"
    trial = folder / f"{TEMPORARY}{uuid.uuid4().hex[:12]}"
    names = [trial, trial.with_name(f"{trial.name}-file"), trial.with_name(f"{trial.name}-link")]
    try:
        lock = acquire_lock(trial, 0.0)
        if isinstance(lock, SoftFileLock):
            yield "locks"
        trial.touch()
        try:
            os.link(trial, names[-1])
        except OSError:
            yield "links"
        if lock is not None:
            lock.release()
    except OSError:
        return  # not writable: the next write raises the error
    finally:
        for name in names:
            with contextlib.suppress(OSError):
                name.unlink()
