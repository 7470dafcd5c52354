"""The memory of a training on its device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from studio.engine.devices import detection
from studio.engine.devices.memory import MemoryMeter


@pytest.fixture(autouse=True)
def _first_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the trainings of other tests."""
    monkeypatch.setattr(MemoryMeter, "_earlier", (0, 0))


def test_cpu_memory_counts_from_the_level_before(monkeypatch: pytest.MonkeyPatch) -> None:
    used_bytes = iter([500, 800, 400])
    monkeypatch.setattr(detection, "memory_in_use", lambda _: next(used_bytes))
    meter = MemoryMeter(torch.device("cpu"))
    assert [meter.read(), meter.read()] == [300, 0]


@pytest.mark.parametrize(
    ("before", "during", "own"),
    [(790, 820, 320), (500, 800, 300), (1790, 1820, 330), (400, 700, 300)],
    ids=["kept", "returned", "kept, and sprites imported since", "more returned"],
)
def test_the_next_training_uses_kept_memory_again(
    monkeypatch: pytest.MonkeyPatch, before: int, during: int, own: int
) -> None:
    used_bytes = iter([500, 800, before, during])
    monkeypatch.setattr(detection, "memory_in_use", lambda _: next(used_bytes))
    MemoryMeter(torch.device("cpu")).read()
    assert MemoryMeter(torch.device("cpu")).read() == own


@pytest.mark.parametrize("is_initialized", [True, False])
def test_gpu_memory_is_the_peak_so_far(monkeypatch: pytest.MonkeyPatch, is_initialized: bool) -> None:
    state, resets = SimpleNamespace(used=100, peak=900), list[torch.device]()

    def reset(device: torch.device) -> None:
        state.peak = state.used
        resets.append(device)

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: is_initialized)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: state.used)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: state.peak)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset)
    meter = MemoryMeter(device := torch.device("cuda", 0))
    assert resets == [device] * is_initialized  # the peak of an earlier training does not count
    found = []
    for state.used, state.peak in [(200, 700), (200, 250), (300, 1000)]:  # a step resets the peak
        found.append(meter.read())
    assert found == [600, 600, 900]
