"""Fixtures shared by the tests of the engine."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from studio.engine.devices import detection
from studio.engine.training import live_samples, maintenance, meter
from tests.conftest import make_sprites
from tests.engine.tools import kept_run


@pytest.fixture(autouse=True)
def _saved_when_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save no checkpoint because of the time that has passed: the time depends on the machine."""
    monkeypatch.setattr(maintenance, "MIN_BEST_SPACING", math.inf)
    monkeypatch.setattr(maintenance, "FIRST_CHECKPOINT_S", math.inf)


@pytest.fixture(autouse=True)
def _little_beside_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw few live samples and measure no quality: tests of either set these constants themselves."""
    monkeypatch.setattr(live_samples, "SAMPLE_COUNT", 4)
    monkeypatch.setattr(meter, "MIN_SPRITES", 1_000_000)


class Memory:
    """What was held when the device was full, and whether all of it was gone each time that memory was given back."""

    def __init__(self) -> None:
        self.was_free: list[bool] = []
        self._held: list[weakref.ref[object]] = []

    def hold(self, *held: object) -> None:
        self._held += map(weakref.ref, held)

    def is_free(self) -> bool:
        return bool(self._held) and not any(one() for one in self._held)

    def full(self, *_: object) -> None:
        """Stands for work that needs more than there is."""
        held = torch.zeros(4)
        self.hold(held)
        raise torch.OutOfMemoryError("CUDA out of memory.")


@pytest.fixture(scope="session")
def generator_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the generator that has learnt a little in 60 steps, for tests that only read or copy it."""
    return kept_run(tmp_path_factory, make_sprites(), steps=60, learning_rate=0.01)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """It is freed without the help of Python's garbage collector, which comes when it likes."""
    memory = Memory()
    monkeypatch.setattr(detection, "empty_cache", lambda _: memory.was_free.append(memory.is_free()))
    gc.collect()
    gc.freeze()  # modules that came in since the last time stay, and to walk them each time takes half a second
    gc.disable()
    yield memory
    gc.enable()
