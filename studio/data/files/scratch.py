"""Scratch space for the pixels of an import: in memory, or in an unnamed temporary file for larger imports."""

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

RESERVED_BYTES = 512 << 20  # disk space left for other programs
_CHECK_INTERVAL = 256 << 20  # bytes written between two checks of the free disk space
_WRITE_BUFFER = 1 << 20
_INITIAL_BYTES = 1 << 20


def memory_limit() -> int:
    """Return the bytes of pixels that an import may hold in memory: 256 MB, less on small computers."""
    return min(256 << 20, limits.usable_memory().total_bytes // 16)


MEMORY_LIMIT = memory_limit()  # bytes; larger data go to the disk


class ScratchBuffer:
    """An append-only, thread-safe byte buffer. Large contents move from memory to an unnamed temporary file.

    The system deletes the file when the process ends. folder: folder of the file; if None or read-only, the system's
    temporary folder.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = writable_folder(folder)
        self.length = 0  # bytes
        # An array, not a BytesIO: growing a large BytesIO blocks all threads.
        self._memory = np.empty(_INITIAL_BYTES, np.uint8)
        self._file: IO[bytes] | None = None
        self._next_check = 0  # length at which to check the free disk space
        self._lock = threading.Lock()

    def add(self, data: NDArray[np.uint8]) -> int:
        """Append bytes and return their offset in the buffer. Raises OSError if the disk is nearly full."""
        with self._lock:
            offset, self.length = self.length, self.length + data.nbytes
            if self.length > MEMORY_LIMIT and self._file is None:
                self._move_to_disk(offset)
            if self._file is None:
                self._add_in_memory(offset, data)
                return offset
            if self.length > self._next_check:
                check_free_space(self.folder, _CHECK_INTERVAL)
                self._next_check = self.length + _CHECK_INTERVAL
            self._file.write(np.ascontiguousarray(data).data)
        return offset

    def array(self) -> NDArray[np.uint8]:
        """Return all bytes, uint8 [length]: writable in memory, read-only on the disk. Don't call `add` afterwards."""
        with self._lock:
            if self._file is None:
                return self._memory[: self.length]
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), self.length, access=mmap.ACCESS_READ)
            # Freeing gigabytes on the disk takes a second; closing the map would block all threads meanwhile.
            weakref.finalize(mapped, _close_in_thread, os.dup(self._file.fileno())).atexit = False
            return np.frombuffer(mapped, np.uint8)

    def close(self) -> None:
        """Free the memory, or close the file; arrays returned by `array` stay valid."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._memory = np.empty(0, np.uint8)

    def _add_in_memory(self, offset: int, data: NDArray[np.uint8]) -> None:
        if self.length > len(self._memory):
            larger = np.empty(max(self.length, 2 * len(self._memory)), np.uint8)
            larger[:offset] = self._memory[:offset]
            self._memory = larger
        self._memory[offset : self.length] = np.ascontiguousarray(data).reshape(-1)

    def _move_to_disk(self, length: int) -> None:
        check_free_space(self.folder, self.length)
        self._file = tempfile.TemporaryFile(dir=self.folder, buffering=_WRITE_BUFFER)  # noqa: SIM115 - closed in `close`
        self._file.write(self._memory[:length].data)
        self._memory = np.empty(0, np.uint8)


def _close_in_thread(handle: int) -> None:
    """Close a file handle on a new thread, because freeing the disk space of a large file takes long."""
    threading.Thread(target=os.close, args=(handle,), name="scratch", daemon=True).start()


def copy_rows(pixels: NDArray[np.uint8], chosen: NDArray[np.int64], folder: Path | None) -> NDArray[np.uint8]:
    """Return a copy of the rows `chosen` of uint8 [N, ...]; a large copy is a read-only scratch file in `folder`.

    Raises OSError if the disk is full.
    """
    row_bytes = pixels[:1].nbytes
    if len(chosen) * row_bytes <= MEMORY_LIMIT:
        return pixels[chosen]
    step = max(1, _WRITE_BUFFER // row_bytes)
    with contextlib.closing(ScratchBuffer(folder)) as buffer:
        for start in range(0, len(chosen), step):
            buffer.add(pixels[chosen[start : start + step]])
        return buffer.array().reshape(len(chosen), *pixels.shape[1:])


def writable_folder(folder: Path | None) -> Path:
    """Return `folder`, created if missing, or the system's temporary folder if `folder` is not writable."""
    if folder is not None:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.gettempdir())


def check_free_space(folder: Path, needed: int) -> None:
    """Raise OSError if writing `needed` bytes would leave less than RESERVED_BYTES on the drive of `folder`."""
    if shutil.disk_usage(folder).free < needed + RESERVED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def map_bytes(file: IO[Any], start: int, length: int) -> NDArray[np.uint8]:
    """Memory-map `length` bytes of an open file from `start`: read-only uint8 [length]; survives closing the file."""
    if not length:
        return np.zeros(0, np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), start + length, access=mmap.ACCESS_READ), np.uint8)[start:]
