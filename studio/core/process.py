"""Settings of the process for fast training on a CPU, made before torch is imported, and the signals that end it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

from studio.core import limits

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8  # of malloc.h

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
    if limits.cpus() < limits.cpus_to_run_on():
        os.environ.setdefault("OMP_NUM_THREADS", str(limits.cpus()))
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
        mallopt(_M_TOP_PAD, 64 << 20)


def end_signals() -> tuple[signal.Signals, ...]:
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
