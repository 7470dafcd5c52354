"""Hand freed memory back to the operating system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import psutil

_GROWN_BYTES = 64 << 20  # after less growth, malloc_trim frees too little for the milliseconds that it takes


class MemoryReturn:
    """Hands memory that the process has freed back to the operating system.

    glibc keeps memory that several threads have freed: more than a gigabyte after a job with large arrays. Other C
    libraries hand memory back by themselves or have no call for it; with them, `give_back` does nothing.
    """

    def __init__(self) -> None:
        self._trim = _malloc_trim()
        self._before_bytes = 0  # resident memory after the last call, or less if the process has shrunk

    def give_back(self) -> None:
        """Hand freed memory back if the process has grown since the last call; takes some milliseconds."""
        if self._trim is None:
            return
        used_bytes = _used_bytes()
        if used_bytes - self._before_bytes >= _GROWN_BYTES:
            self._trim(0)
            self._before_bytes = _used_bytes()
        else:
            self._before_bytes = min(self._before_bytes, used_bytes)


def _used_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _malloc_trim() -> Callable[[int], int] | None:
    """Return glibc's `malloc_trim`; None for another C library."""
    if not sys.platform.startswith("linux"):
        return None
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if found is not None:
        found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
