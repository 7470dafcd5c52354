"""Fault 35: file systems without common features."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from studio.core import file_systems
from studio.core.file_systems import acquire_lock, is_locked, new_limitations
from studio.core.files import atomic_path, write_atomic

fcntl = pytest.importorskip("fcntl")  # only POSIX locks can be missing


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_systems, "_reported", set())


def refuse_folders(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Folders can't be flushed here; files can."""
    flush = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        flush(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def refuse(monkeypatch: pytest.MonkeyPatch, module: object, name: str, code: int) -> None:
    """A call of the system that this file system does not know."""

    def unknown(*arguments: object, **named: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(module, name, unknown)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EIO])
def test_fault_35_unflushable_folder_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    refuse_folders(monkeypatch, code)
    write_atomic(tmp_path / "file", b"old")
    write_atomic(tmp_path / "file", b"new")
    with atomic_path(tmp_path / "folder") as temporary:
        (temporary / "inside").mkdir(parents=True)
        (temporary / "inside" / "part").write_bytes(b"whole")
    assert (tmp_path / "file").read_bytes() == b"new" and (tmp_path / "folder/inside/part").read_bytes() == b"whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.filterwarnings("ignore:flock not supported")
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_fault_35_file_replaces_missing_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    refuse(monkeypatch, fcntl, "flock", code)
    path = tmp_path / ".lock"
    lock = acquire_lock(path, 0.0)
    assert lock is not None and is_locked(path) and acquire_lock(path, 0.0) is None
    lock.release()
    assert not is_locked(path)


def test_fault_35_missing_features_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new_limitations(tmp_path) == new_limitations(tmp_path / "unplugged") == ""
    refuse_folders(monkeypatch, errno.EINVAL)
    refuse(monkeypatch, fcntl, "flock", errno.ENOTSUP)
    refuse(monkeypatch, os, "link", errno.EPERM)
    said = new_limitations(tmp_path)
    assert "power failure" in said and "no file locks" in said and "no hard links" in said
    assert new_limitations(tmp_path) == ""
    assert not list(tmp_path.iterdir())


HOLDER = "import sys, filelock; lock = filelock.{kind}(sys.argv[1]); lock.acquire(); print(1, flush=True); input()"


@pytest.mark.parametrize(("kind", "name"), [("FileLock", ".lock"), ("SoftFileLock", ".lock-file")])
def test_fault_27_lock_of_a_killed_process_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    if kind == "SoftFileLock":
        refuse(monkeypatch, fcntl, "flock", errno.ENOTSUP)
    command = [sys.executable, "-c", HOLDER.format(kind=kind), str(tmp_path / name)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline().strip() == b"1"
        assert is_locked(tmp_path / ".lock") and acquire_lock(tmp_path / ".lock", 0.0) is None
        holder.kill()
        holder.wait()
    monkeypatch.setattr(file_systems, "_PROBE_S", 0.0)  # as on a busy computer
    assert not is_locked(tmp_path / ".lock")
    lock = acquire_lock(tmp_path / ".lock", 0.0)
    assert lock is not None
    lock.release()


def test_fault_27_checking_a_lock_does_not_block_others(tmp_path: Path) -> None:
    """A window that lists runs locks each run for a moment."""
    path, ended, refused = tmp_path / ".lock", threading.Event(), 0
    path.touch()

    def look() -> None:
        while not ended.is_set():
            is_locked(path)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(200):
            lock = acquire_lock(path, 1.0)
            refused += lock is None
            if lock is not None:
                lock.release()
    finally:
        ended.set()
        watcher.join()
    assert refused == 0


def test_fault_27_concurrent_checks_of_a_lock_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".lock"
    other = acquire_lock(path, 0.0)
    assert other is not None
    monkeypatch.setattr(time, "sleep", lambda seconds: other.release())  # between two tries
    assert not is_locked(path)


def test_lock_that_can_not_be_tried_counts_as_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lock").touch()
    refuse(monkeypatch, fcntl, "flock", errno.EIO)
    assert not is_locked(tmp_path / ".lock")
    with pytest.raises(OSError, match="Input/output"):
        acquire_lock(tmp_path / ".lock", 0.0)
