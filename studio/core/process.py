"""Settings of the process for fast training on a CPU, made before torch is imported, and the signals that end it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from studio.core import limits

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8  # of malloc.h

_GROWN_BYTES = 64 << 20  # after less growth, malloc_trim frees too little for the milliseconds that it takes

_HANGUP = getattr(signal, "SIGHUP", None)  # of the terminal; Windows has none


def prepare_for_training() -> None:
    """Keep freed memory for the next step, and let idle compute threads wait without spinning for long.

    glibc hands large blocks back to the system when they are freed; a training step then takes 25,000 page faults to
    get them again, a third of its time. One arena, so that this holds in the engine's thread too. Spinning is OpenMP's
    way to wait for the other threads: as long as by default, it stalls training when other programs use the cores;
    none at all costs a quarter of the speed when they do not. A container's share of the CPUs is told to OpenMP, which
    looks at their number alone. What the user has set in the environment is kept.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if limits.usable_cpus() < limits.affinity_cpus():
        os.environ.setdefault("OMP_NUM_THREADS", str(limits.usable_cpus()))
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
        mallopt(_M_TOP_PAD, 64 << 20)


def termination_signals() -> tuple[signal.Signals, ...]:
    """The signals that ask this process to end: Ctrl+C, `kill` or a system that shuts down, a terminal that is closed.

    The last one is left out where `nohup` has the process outlive its terminal.
    """
    asking = [signal.SIGINT, signal.SIGTERM]
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        asking.append(_HANGUP)
    return tuple(asking)


def detach_lost_terminal() -> None:
    """Redirect output for a closed terminal to the null device: an error there must not end what is being saved."""
    for handle in (1, 2):
        try:
            os.write(handle, b"")
        except OSError:
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                if nowhere != handle:  # a handle that was closed is the first that is free
                    os.dup2(nowhere, handle)
                    os.close(nowhere)


class HeapTrimmer:
    """Hands memory that the process has freed back to the operating system.

    glibc keeps memory that several threads have freed: more than a gigabyte after a job with large arrays. Other C
    libraries hand memory back by themselves or have no call for it; with them, `trim` does nothing.
    """

    def __init__(self) -> None:
        self._malloc_trim = _malloc_trim()
        self._before_bytes = 0  # resident memory after the last call, or less if the process has shrunk

    def trim(self) -> None:
        """Hand freed memory back if the process has grown since the last call; takes some milliseconds."""
        if self._malloc_trim is None:
            return
        used_bytes = _used_bytes()
        if used_bytes - self._before_bytes >= _GROWN_BYTES:
            self._malloc_trim(0)
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
