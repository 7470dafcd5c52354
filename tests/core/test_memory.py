"""Freed memory goes back to the system."""

from __future__ import annotations

import pytest

from studio.core import memory
from studio.core.memory import MemoryReturn

MB = 1 << 20


def test_memory_is_handed_back_only_after_the_process_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    used = [900 * MB]

    def trim(keep: int) -> int:
        trims.append(used[0] // MB)
        used[0] = min(used[0], 910 * MB)
        return 1

    monkeypatch.setattr(memory, "_malloc_trim", lambda: trim)
    monkeypatch.setattr(memory, "_used_bytes", lambda: used[0])
    giving = MemoryReturn()
    for now in (900, 950, 2200, 960, 700, 760, 765):
        used[0] = now * MB
        giving.give_back()
    assert trims == [900, 2200, 765]


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    MemoryReturn().give_back()
