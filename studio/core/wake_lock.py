"""Holding off the sleep of an idle machine while it works.

Linux and macOS have a command that holds it off for as long as it runs; Windows has a flag of the thread. A system that
has no such way, or refuses, sleeps when it likes: that is no error. A laptop that is closed sleeps all the same.
"""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Self

_log = logging.getLogger(__name__)
_END_S = 2.0  # for a command that is asked to end
_ES_SYSTEM_REQUIRED, _ES_CONTINUOUS = 0x00000001, 0x80000000  # of Windows' winbase.h


class WakeLock:
    """Holds off sleep between `acquire` and `release`, or inside a `with`: both in the same thread.

    why: what the machine is busy with, as the system may tell its user.
    """

    def __init__(self, why: str) -> None:
        self._why = why
        self._is_held = False
        self._holder: subprocess.Popen[bytes] | None = None

    def acquire(self) -> None:
        """Hold off sleep, where the system lets one; nothing happens while it is held."""
        if self._is_held:
            return
        self._is_held = True
        if sys.platform == "win32":
            ctypes.windll.kernel32.SetThreadExecutionState(_ES_CONTINUOUS | _ES_SYSTEM_REQUIRED)
        elif command := _command(self._why):
            self._holder = _start(command)

    def release(self) -> None:
        """Let the system sleep again; nothing happens when it may."""
        if not self._is_held:
            return
        self._is_held = False
        if sys.platform == "win32":
            ctypes.windll.kernel32.SetThreadExecutionState(_ES_CONTINUOUS)
        elif self._holder is not None:
            _end(self._holder)
            self._holder = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def _command(why: str) -> Sequence[str]:
    """What holds off sleep until it ends, or until this process does; empty where nothing is known."""
    who = ("--who=Sprite Training Studio", f"--why={why}")
    commands = {
        "linux": ("systemd-inhibit", "--what=sleep:idle", "--mode=block", *who, "cat"),  # which ends with its pipe
        "darwin": ("caffeinate", "-i", "-w", str(os.getpid())),
    }
    return commands.get(sys.platform, ())


def _start(command: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Run a command beside this process. In a session of its own: Ctrl+C ends it only with the work."""
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)
    except OSError as error:
        _log.debug("Sleep is not held off: %s", error)
        return None


def _end(holder: subprocess.Popen[bytes]) -> None:
    assert holder.stdin is not None
    holder.stdin.close()
    holder.terminate()
    try:
        holder.wait(_END_S)
    except subprocess.TimeoutExpired:
        holder.kill()
        holder.wait()
