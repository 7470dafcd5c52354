"""Bytes that an import needs for a while: in memory while they are few, in a file without a name when they are many."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from studio.core import limits

RESERVED_BYTES = 512 << 20  # bytes of the drive that are left to others
_LOOK_EVERY = 256 << 20  # bytes between two looks at how much is free
_BUFFER = 1 << 20
_FIRST = 1 << 20  # bytes of memory to begin with


def most_in_memory() -> int:
    """Bytes that an import may keep in memory: where that is small, of a container too, a sixteenth of it."""
    return min(256 << 20, limits.usable_memory().total_bytes // 16)


MEMORY_LIMIT = most_in_memory()  # bytes: more go to the disk


class ScratchBuffer:
    """Bytes put one after another, by any thread. The file has no name, so that it is gone however the program ends.

    folder: where the file goes; None, or one that can't be written to, stands for the system's folder of such files.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = writable_folder(folder)
        self.length = 0  # bytes
        # An array and no BytesIO: that holds up every thread while it grows, as large as it may become.
        self._memory = np.empty(_FIRST, np.uint8)
        self._file: IO[bytes] | None = None
        self._look_at = 0
        self._lock = threading.Lock()

    def add(self, data: NDArray[np.uint8]) -> int:
        """Put bytes at the end; where they begin. Raises OSError, also before the drive is quite full."""
        with self._lock:
            place, self.length = self.length, self.length + data.nbytes
            if self.length > MEMORY_LIMIT and self._file is None:
                self._move_to_disk(place)
            if self._file is None:
                self._remember(place, data)
                return place
            if self.length > self._look_at:
                check_free_space(self.folder, _LOOK_EVERY)
                self._look_at = self.length + _LOOK_EVERY
            self._file.write(np.ascontiguousarray(data).data)
        return place

    def array(self) -> NDArray[np.uint8]:
        """All of it, uint8 [length]: writable in memory, read-only on the disk. Nothing can be added afterwards."""
        with self._lock:
            if self._file is None:
                return self._memory[: self.length]
            self._file.flush()
            found = mmap.mmap(self._file.fileno(), self.length, access=mmap.ACCESS_READ)
            # Giving gigabytes back to the drive takes a second, in which closing the map would stop every thread.
            weakref.finalize(found, _let_go, os.dup(self._file.fileno())).atexit = False
            return np.frombuffer(found, np.uint8)

    def close(self) -> None:
        """Let go of it; an array that was handed out stays good."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._memory = np.empty(0, np.uint8)

    def _remember(self, place: int, data: NDArray[np.uint8]) -> None:
        if self.length > len(self._memory):
            larger = np.empty(max(self.length, 2 * len(self._memory)), np.uint8)
            larger[:place] = self._memory[:place]
            self._memory = larger
        self._memory[place : self.length] = np.ascontiguousarray(data).reshape(-1)

    def _move_to_disk(self, length: int) -> None:
        check_free_space(self.folder, self.length)
        self._file = tempfile.TemporaryFile(dir=self.folder, buffering=_BUFFER)  # noqa: SIM115 - closed by `close`
        self._file.write(self._memory[:length].data)
        self._memory = np.empty(0, np.uint8)


def _let_go(handle: int) -> None:
    """Close the last handle of a file without a name, beside everything else: that is when the drive gets it back."""
    threading.Thread(target=os.close, args=(handle,), name="scratch", daemon=True).start()


def copy_rows(pixels: NDArray[np.uint8], chosen: NDArray[np.int64], folder: Path | None) -> NDArray[np.uint8]:
    """A copy of the rows `chosen` of uint8 [N, ...]: in memory, or read-only on the disk when it is large.

    Raises OSError when there is no room.
    """
    row_bytes = pixels[:1].nbytes
    if len(chosen) * row_bytes <= MEMORY_LIMIT:
        return pixels[chosen]
    step = max(1, _BUFFER // row_bytes)
    with contextlib.closing(ScratchBuffer(folder)) as there:
        for start in range(0, len(chosen), step):
            there.add(pixels[chosen[start : start + step]])
        return there.array().reshape(len(chosen), *pixels.shape[1:])


def writable_folder(folder: Path | None) -> Path:
    """`folder` if files can be made there, else the system's folder of temporary files."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return Path(tempfile.gettempdir())
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.gettempdir())


def check_free_space(folder: Path, needed: int) -> None:
    """Raises OSError when so many bytes more would leave the drive of `folder` hardly any room."""
    if shutil.disk_usage(folder).free < needed + RESERVED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def map_bytes(file: IO[Any], start: int, length: int) -> NDArray[np.uint8]:
    """Bytes of an open file as read-only uint8 [length] that takes no memory; good when the file is closed, too."""
    if not length:
        return np.zeros(0, np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), start + length, access=mmap.ACCESS_READ), np.uint8)[start:]
