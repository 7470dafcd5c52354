"""The calls of this process that change files, counted: at one of them it can be killed, or be told that it fails."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

_FLUSH = "campaign.flush"  # Python audits none
_NEED_ROOM = {"os.rename", "os.mkdir", "os.link", _FLUSH}
_CHANGES = {*_NEED_ROOM, "os.truncate", "os.remove", "os.rmdir"}
_TO_WRITE = os.O_WRONLY | os.O_RDWR


class FileCalls:
    """Counts from 1 what opens a file to write, makes, renames, links, flushes or removes one under `root`.

    need_room: only those that a full disk may refuse. It listens to what Python audits, for the rest of the process's
    life: to be used in a process of its own.
    """

    def __init__(self, root: Path, *, need_room: bool = False) -> None:
        self.count = 0
        self.names: list[str] = []
        self._root, self._need_room = str(root.resolve()), need_room
        self._at: Callable[[int, str], None] | None = None
        flush = os.fsync

        def audited(handle: int) -> None:
            if stat.S_ISREG(os.fstat(handle).st_mode):  # what a folder answers is not heeded
                sys.audit(_FLUSH, str(Path(f"/proc/self/fd/{handle}").readlink()))
            flush(handle)

        os.fsync = audited  # type: ignore[assignment]
        sys.addaudithook(self._hear)

    def kill_at(self, number: int, before: Callable[[str], None]) -> None:
        """End the process as `kill -9` does before its call of this number; `before` is told which that is."""

        def end(count: int, name: str) -> None:
            if count == number:
                self._at = None
                before(name)
                os.kill(os.getpid(), signal.SIGKILL)

        self._at = end

    def fail_at(self, numbers: Container[int]) -> None:
        """From here on, counted anew, there is no room at the calls of these numbers."""

        def fail(count: int, name: str) -> None:
            if count in numbers:
                raise OSError(28, "No space left on device", name)

        self.count, self.names, self._at = 0, [], fail

    def _hear(self, event: str, details: tuple[Any, ...]) -> None:
        is_opening = event == "open"
        if not is_opening and event not in (_NEED_ROOM if self._need_room else _CHANGES):
            return
        if not isinstance(details[0], str | bytes | os.PathLike):
            return  # a handle
        path = os.path.abspath(os.fsdecode(details[0]))  # noqa: PTH100 - Path.resolve would look at the disk
        if not path.startswith(self._root) or (is_opening and not self._writes(path, details[2])):
            return
        self.count += 1
        self.names.append(f"{event} {path.removeprefix(self._root)}")
        if self._at is not None:
            self._at(self.count, self.names[-1])

    def _writes(self, path: str, flags: int) -> bool:
        is_held_lock = os.path.basename(path).startswith(".lock") and os.path.exists(path)  # noqa: PTH110, PTH119
        return bool(flags & _TO_WRITE) and not (self._need_room and is_held_lock)
