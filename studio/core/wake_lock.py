"""Keep an idle computer awake while the studio works.

Linux and macOS have a command that blocks sleep while the command runs; Windows has a flag of the thread. Without such
a command, or if the system refuses, the computer sleeps as usual and no error is raised. Closing a laptop's lid still
suspends the computer.
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
_END_S = 2.0  # time for the command to end before it is killed
_ES_SYSTEM_REQUIRED, _ES_CONTINUOUS = 0x00000001, 0x80000000  # from winbase.h


class WakeLock:
    """Blocks sleep between `acquire` and `release`, or in a `with` block, on one thread. reason: text for the user."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._is_held = False
        self._holder: subprocess.Popen[bytes] | None = None

    def acquire(self) -> None:
        """Block sleep if the system supports it. Does nothing if already acquired."""
        if self._is_held:
            return
        self._is_held = True
        if sys.platform == "win32":
            ctypes.windll.kernel32.SetThreadExecutionState(_ES_CONTINUOUS | _ES_SYSTEM_REQUIRED)
        elif command := _command(self._reason):
            self._holder = _start(command)

    def release(self) -> None:
        """Allow sleep again. Does nothing if not acquired."""
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


def _command(reason: str) -> Sequence[str]:
    """Return a command that blocks sleep until the command or this process ends; () for other systems."""
    who = ("--who=Sprite Training Studio", f"--why={reason}")
    commands = {
        "linux": ("systemd-inhibit", "--what=sleep:idle", "--mode=block", *who, "cat"),  # ends with the pipe
        "darwin": ("caffeinate", "-i", "-w", str(os.getpid())),
    }
    return commands.get(sys.platform, ())


def _start(command: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Start the command in its own session: Ctrl+C must not end the command before the work."""
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)
    except OSError as error:
        _log.debug("Can't block sleep: %s", error)
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
