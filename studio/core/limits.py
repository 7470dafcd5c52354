"""How many CPUs and how much memory this process may use: what the machine has, or less in a container (cgroup)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

ROOT = Path("/")  # where /proc and /sys are; tests put their own there


@dataclass(frozen=True)
class Memory:
    """Bytes of ordinary memory that this process may use; free is what it can have without others being moved out."""

    total_bytes: int
    free_bytes: int


def usable_cpus() -> int:
    """CPUs that this process may use: those it may run on, and no more than its share of time comes to.

    A share of one and a half is two: their threads then rest a quarter of the time, and more is done than by one.
    """
    return max(1, min([affinity_cpus(), *(math.ceil(share) for share in _cpu_shares())]))


def affinity_cpus() -> int:
    """CPUs that this process may run on, whatever its share of their time is: what other libraries go by."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_memory() -> Memory:
    """Memory that this process may use, and what of it is free."""
    machine = psutil.virtual_memory()
    limits = [Memory(machine.total, machine.available), *_memory_limits()]
    return Memory(min(limit.total_bytes for limit in limits), max(0, min(limit.free_bytes for limit in limits)))


def _cpu_shares() -> Iterator[float]:
    """CPUs' worth of time that each group which this process is in may use."""
    for group in _groups("cpu"):
        quota, _, period = _text(group / "cpu.max").partition(" ")  # 'max 100000' without a limit
        if not quota:  # version 1, where it is -1
            quota, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def _memory_limits() -> Iterator[Memory]:
    """What each group that this process is in may use, and what is left of it; those without a limit have none."""
    for group in _groups("memory"):
        # The kernel takes memory back above 'high', which slows everything down, and ends processes above 'max'.
        names = ("memory.max", "memory.high", "memory.limit_in_bytes")  # the last is version 1's
        limits = [int(text) for name in names if (text := _text(group / name)).isdigit()]
        used = _text(group / "memory.current") or _text(group / "memory.usage_in_bytes")
        if limits and used.isdigit():
            yield Memory(min(limits), min(limits) - int(used) + _unused_cache_bytes(group))


def _unused_cache_bytes(group: Path) -> int:
    """What a group holds of files that nobody has read for a while; the kernel gives it up when memory is asked for."""
    figures = dict(line.partition(" ")[::2] for line in _text(group / "memory.stat").splitlines())
    return int(figures.get("total_inactive_file", figures.get("inactive_file", "0")))


def _groups(controller: str) -> Iterator[Path]:
    """Folders of the groups that this process is in, its own first: a limit of any of them holds.

    Inside a container the path may be that on the host, of which there is only the mount point to be seen.
    """
    mounts = ROOT / "sys/fs/cgroup"
    for line in _text(ROOT / "proc/self/cgroup").splitlines():  # '4:cpu,cpuacct:/a/b', in version 2 '0::/a/b'
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for mount in (mounts / controllers, mounts / controller) if controllers else (mounts, mounts / "unified"):
            own = PurePosixPath(path.lstrip("/"))
            for part in (own, *own.parents):
                yield mount / part


def _text(path: Path) -> str:
    """What a file of the kernel says; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
