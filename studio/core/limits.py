"""CPUs and memory that this process may use: the machine's, or less in a container (cgroup)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

ROOT = Path("/")  # parent of /proc and /sys; tests replace it


@dataclass(frozen=True)
class Memory:
    """Bytes of main memory that this process may use. free_bytes: available without swapping."""

    total_bytes: int
    free_bytes: int


def usable_cpus() -> int:
    """Return the number of CPUs for this process: its affinity, limited by its quota. 1.5 count as 2: threads pause."""
    return max(1, min([affinity_cpus(), *(math.ceil(share) for share in _cpu_quotas())]))


def affinity_cpus() -> int:
    """Return the number of CPUs in this process's affinity mask, without the quota. OpenMP uses this number."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_memory() -> Memory:
    """Return the total and the free memory that this process may use."""
    machine = psutil.virtual_memory()
    limits = [Memory(machine.total, machine.available), *_memory_limits()]
    return Memory(min(limit.total_bytes for limit in limits), max(0, min(limit.free_bytes for limit in limits)))


def _cpu_quotas() -> Iterator[float]:
    """Yield the CPU quotas from this process's cgroups, in CPUs."""
    for group in _groups("cpu"):
        quota, _, period = _read(group / "cpu.max").partition(" ")  # 'max 100000' without a limit
        if not quota:  # cgroup version 1; -1 means no quota
            quota, period = _read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def _memory_limits() -> Iterator[Memory]:
    """Yield the memory limits from this process's cgroups."""
    for group in _groups("memory"):
        # Above 'high' the kernel reclaims memory, which slows the process down; above 'max' it kills processes.
        names = ("memory.max", "memory.high", "memory.limit_in_bytes")  # the last file name belongs to cgroup version 1
        limits = [int(text) for name in names if (text := _read(group / name)).isdigit()]
        used = _read(group / "memory.current") or _read(group / "memory.usage_in_bytes")
        if limits and used.isdigit():
            yield Memory(min(limits), min(limits) - int(used) + _inactive_file_bytes(group))


def _inactive_file_bytes(group: Path) -> int:
    """Return the bytes of inactive page cache in a cgroup; the kernel frees them on demand."""
    figures = dict(line.partition(" ")[::2] for line in _read(group / "memory.stat").splitlines())
    return int(figures.get("total_inactive_file", figures.get("inactive_file", "0")))


def _groups(controller: str) -> Iterator[Path]:
    """Yield the cgroup folders of this process, from its own group up to the root: every limit applies.

    Inside a container the path may be the path on the host; only the mount point exists then.
    """
    mounts = ROOT / "sys/fs/cgroup"
    for line in _read(ROOT / "proc/self/cgroup").splitlines():  # '4:cpu,cpuacct:/a/b', in version 2 '0::/a/b'
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for mount in (mounts / controllers, mounts / controller) if controllers else (mounts, mounts / "unified"):
            own = PurePosixPath(path.lstrip("/"))
            for part in (own, *own.parents):
                yield mount / part


def _read(path: Path) -> str:
    """Return the text of a kernel file; '' for a missing file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
