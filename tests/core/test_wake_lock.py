"""The command that blocks sleep, replaced by a stand-in that records its arguments and waits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from studio.core import wake_lock
from studio.core.wake_lock import WakeLock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")

_STAND_IN = """#!/bin/sh
echo "$0 $@" > '{pipe}'
while read line; do :; done
echo ended > '{pipe}'
"""


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the output of both stand-in commands, waiting for it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for name in ("systemd-inhibit", "caffeinate"):
        (tmp_path / name).write_text(_STAND_IN.format(pipe=path))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Return the started processes, in order."""
    found: list[subprocess.Popen[bytes]] = []

    def noting(command: list[str]) -> subprocess.Popen[bytes] | None:
        process = start(command)
        found.extend([process] if process is not None else [])
        return process

    start = wake_lock._start
    monkeypatch.setattr(wake_lock, "_start", noting)
    return found


@pytest.mark.parametrize(
    ("platform", "asked"),
    [
        ("linux", "systemd-inhibit --what=sleep:idle --mode=block --who=Sprite Training Studio --why=A test runs. cat"),
        ("darwin", "caffeinate -i -w {pid}"),
    ],
)
def test_sleep_is_blocked_until_the_block_ends(
    pipe: Path, started: list[subprocess.Popen[bytes]], platform: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with contextlib.suppress(KeyError), WakeLock("A test runs.") as lock:
        assert pipe.read_text().strip() == str(pipe.with_name(asked.format(pid=os.getpid())))
        lock.acquire()  # it is held already
        assert len(started) == 1 and started[0].poll() is None
        raise KeyError
    assert started[0].returncode is not None
    lock.acquire()
    assert len(started) == 2 and pipe.read_text() and started[1].poll() is None
    lock.release()
    assert started[1].returncode is not None


def test_lock_ends_with_a_killed_process(pipe: Path) -> None:
    lines = "from studio.core.wake_lock import WakeLock", "WakeLock('').acquire()", f"open({str(pipe)!r}).read()"
    command = [sys.executable, "-c", "; ".join([*lines, "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)"])]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.returncode == -signal.SIGKILL and pipe.read_text() == "ended\n"


@pytest.mark.parametrize("platform", ["linux", "darwin", "freebsd14"])
def test_system_without_a_command_is_no_error(tmp_path: Path, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("PATH", str(tmp_path))
    with WakeLock("A test runs."):
        pass
