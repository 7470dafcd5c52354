"""What not every file system has: flushing of folders, locks, hard links. The studio does without, and says so once."""

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
_LOOKING_S = 0.06  # who only looks whether a lock is taken holds it for a moment: another one who looks waits that long
_UNKNOWN = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})  # what lacks locks answers
_LACKS = {
    "flush": "It can't confirm that a folder is written: a power failure may cost the newest checkpoint, and the one "
    "before it is used then.",
    "locks": "It has no locks: a file stands for them, so don't train one run from two computers at once.",
    "links": "It has no links: large sets of sprites are copied into every run.",
}
_reported: set[int] = set()  # device numbers of the file systems whose lacks were reported

warnings.filterwarnings("ignore", message="flock not supported")  # filelock's own words for what is said here


def flush(path: Path) -> None:
    """Wait until a file or a folder is on the disk. Raises OSError.

    Windows has no handle for folders, and needs none.
    """
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def acquire_lock(path: Path, wait_s: float) -> BaseFileLock | None:
    """Acquire the lock of that name; None when another process holds it for `wait_s`. The system frees it at exit.

    On a file system without locks, a file beside it that holds the process id is the lock, so that one left by a crash
    is recognised. Raises OSError.
    """
    try:
        return _taken(FileLock(path), wait_s)
    except NotImplementedError:  # older versions of filelock for ENOSYS
        pass
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
    return _taken(SoftFileLock(path.with_name(f"{path.name}-file")), wait_s)


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of that name, found by trying to take it; False where that can't be tried."""
    try:
        there = path.exists() or path.with_name(f"{path.name}-file").exists()
        if not there or not os.access(path.parent, os.W_OK):
            return False
        lock = acquire_lock(path, _LOOKING_S)
        if lock is not None:
            lock.release()
    except OSError:
        return False
    return lock is None


def new_limitations(folder: Path) -> str:
    """What the file system of a folder lacks, in sentences; empty where it lacks nothing or that was reported before.

    Empty as well for a folder that can't be read: whoever writes to it gets the error.
    """
    try:
        number = folder.stat().st_dev
    except OSError:
        return ""
    if number in _reported:
        return ""
    found = [_LACKS[name] for name in _lacks(folder)]
    if found:
        _reported.add(number)
    return " ".join(found)


def _taken(lock: BaseFileLock, wait_s: float) -> BaseFileLock | None:
    try:
        lock.acquire(timeout=wait_s, poll_interval=_POLL_S)
    except Timeout:
        return None
    return lock


def _lacks(folder: Path) -> Iterator[str]:
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
        return  # what can't be written to is said by what writes
    finally:
        for name in names:
            with contextlib.suppress(OSError):
                name.unlink()
