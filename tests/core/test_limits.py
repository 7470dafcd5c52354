"""A container's limits, on made files of the kernel's: both versions of cgroups, and groups within groups."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from studio.core import limits

MB = 1 << 20
UNLIMITED_V1 = "9223372036854771712"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate 16 CPUs, 1,000 MB of memory with 900 MB free, and no cgroups."""
    monkeypatch.setattr(limits, "ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=1000 * MB, available=900 * MB))


def kernel(root: Path, groups: str, files: Mapping[str, str | int]) -> None:
    """Write /proc/self/cgroup and files below /sys/fs/cgroup."""
    for path, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": files[name] for name in files}}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")


def test_fault_36_without_a_container_limits_are_the_machines(tmp_path: Path) -> None:
    assert limits.usable_cpus() == 16 and limits.usable_memory() == limits.Memory(1000 * MB, 900 * MB)
    kernel(tmp_path, "0::/", {"cpu.max": "max 100000", "memory.max": "max", "memory.current": 5 * MB})
    assert limits.usable_cpus() == 16 and limits.usable_memory() == limits.Memory(1000 * MB, 900 * MB)
    v1: dict[str, str | int] = {
        "cpu/cpu.cfs_quota_us": -1, "cpu/cpu.cfs_period_us": 100_000, "memory/memory.limit_in_bytes": UNLIMITED_V1,
        "memory/memory.usage_in_bytes": 5 * MB,
    }  # fmt: skip
    kernel(tmp_path, "4:memory:/\n1:cpu:/", v1)
    assert limits.usable_cpus() == 16 and limits.usable_memory() == limits.Memory(1000 * MB, 900 * MB)


@pytest.mark.parametrize(("quota", "cpus"), [("200000", 2), ("150000", 2), ("20000", 1), ("9900000", 16)])
def test_fault_36_cpu_quota_limits_the_cpus(tmp_path: Path, quota: str, cpus: int) -> None:
    kernel(tmp_path, "0::/pod/box", {"pod/box/cpu.max": f"{quota} 100000"})
    assert limits.usable_cpus() == cpus
    kernel(tmp_path, "4:cpu,cpuacct:/", {"cpu,cpuacct/cpu.cfs_quota_us": quota, "cpu,cpuacct/cpu.cfs_period_us": 10**5})
    assert limits.usable_cpus() == cpus


def test_fault_36_memory_is_limited_by_the_tightest_cgroup(tmp_path: Path) -> None:
    files: dict[str, str | int] = {
        "pod/box/memory.max": 400 * MB, "pod/box/memory.high": "max", "pod/box/memory.current": 150 * MB,
        "pod/box/memory.stat": f"anon 7\ninactive_file {50 * MB}\nactive_file 9",
    }  # fmt: skip
    kernel(tmp_path, "0::/pod/box", files)
    assert limits.usable_memory() == limits.Memory(400 * MB, 300 * MB)
    kernel(tmp_path, "0::/pod/box", {"pod/memory.max": 800 * MB, "pod/memory.current": 780 * MB, "pod/memory.stat": ""})
    assert limits.usable_memory() == limits.Memory(400 * MB, 20 * MB)  # its neighbours in the pod have taken the rest
    kernel(tmp_path, "0::/pod/box", {"pod/box/memory.high": 140 * MB})
    assert limits.usable_memory() == limits.Memory(140 * MB, 20 * MB)


def test_fault_36_a_container_that_sees_the_hosts_path_has_its_limits_at_the_mount(tmp_path: Path) -> None:
    files: dict[str, str | int] = {
        "memory/memory.limit_in_bytes": 300 * MB, "memory/memory.usage_in_bytes": 310 * MB,
        "cpu/cpu.cfs_quota_us": 300_000, "cpu/cpu.cfs_period_us": 100_000,
    }  # fmt: skip
    kernel(tmp_path, "11:memory:/docker/6f5e\n4:cpu,cpuacct:/docker/6f5e\n1:name=systemd:/docker/6f5e", files)
    assert limits.usable_cpus() == 3 and limits.usable_memory() == limits.Memory(300 * MB, 0)
