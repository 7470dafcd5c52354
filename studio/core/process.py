"""What the whole process needs for fast training on a CPU, set before torch is imported."""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8  # of malloc.h


def prepare_for_training() -> None:
    """Keep freed memory for the next step, and let idle compute threads wait without spinning for long.

    glibc hands large blocks back to the system when they are freed; a training step then takes 25,000 page faults to
    get them again, a third of its time. One arena, so that this holds in the engine's thread too. Spinning is OpenMP's
    way to wait for the other threads: as long as by default, it stalls training when other programs use the cores;
    none at all costs a quarter of the speed when they do not. What the user has set in the environment is kept.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
        mallopt(_M_TOP_PAD, 64 << 20)
