"""Set up the process for fast training on a CPU, before numpy and torch are imported, and handle its end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from studio.core import limits

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8  # from malloc.h

_GROWN_BYTES = 64 << 20  # after less growth, malloc_trim frees too little for the milliseconds that it takes

_HANGUP = getattr(signal, "SIGHUP", None)  # the terminal was closed; not on Windows


def prepare_for_training() -> None:
    """Keep freed memory for the next step, and limit the spinning of idle compute threads.

    glibc returns large freed blocks to the system; each training step then takes 25,000 page faults to get them back, a
    third of its time. With a single arena this also holds in the engine's thread. OpenMP threads spin while they wait:
    the default spin time slows training while other programs use the cores, and no spinning costs a quarter of the
    speed on a quiet machine. OpenMP ignores CPU quotas, so a container's quota is passed in OMP_NUM_THREADS.
    numpy gets a single thread for its matrices: they are small, and threads beside torch's wait for busy cores.
    Environment variables set by the user are kept.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if limits.usable_cpus() < limits.affinity_cpus():
        os.environ.setdefault("OMP_NUM_THREADS", str(limits.usable_cpus()))
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries lack mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
        mallopt(_M_TOP_PAD, 64 << 20)


def termination_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask this process to end: Ctrl+C, SIGTERM, and a closed terminal unless under `nohup`."""
    asking = [signal.SIGINT, signal.SIGTERM]
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        asking.append(_HANGUP)
    return tuple(asking)


def detach_lost_terminal() -> None:
    """Redirect the output of a closed terminal to the null device: print must not fail while work is saved."""
    for handle in (1, 2):
        try:
            os.write(handle, b"")
        except OSError:
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                if nowhere != handle:  # os.open reuses the number of a closed handle
                    os.dup2(nowhere, handle)
                    os.close(nowhere)


class HeapTrimmer:
    """Hands freed memory back to the operating system.

    glibc keeps memory that several threads have freed: more than a gigabyte after a job with large arrays. For other C
    libraries `trim` does nothing.
    """

    def __init__(self) -> None:
        self._malloc_trim = _malloc_trim()
        self._before_bytes = 0  # lowest resident memory since the last call

    def trim(self) -> None:
        """Hand freed memory back if the process has grown since the last call. Takes some milliseconds."""
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
    """Return glibc's `malloc_trim`; None for other C libraries."""
    if not sys.platform.startswith("linux"):
        return None
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if found is not None:
        found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
