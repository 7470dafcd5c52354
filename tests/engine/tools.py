"""Small trainings for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

from studio.core.events import Event, Events, Rgba
from studio.core.generators import returned
from studio.data.sprites import Sprites
from studio.engine import pace, train
from studio.engine.control import Control
from studio.engine.quality.copies import Nearest, look_for_copies
from studio.engine.runs.split import Indices
from studio.engine.train import train_new
from studio.engine.types import Device
from studio.recipes.classifier import Classifier, ClassifierConfig
from studio.recipes.generator import Generator, GeneratorConfig
from studio.recipes.regression import Regression, RegressionConfig
from tests.conftest import THREADS

CPU = Device("cpu", "cpu", "test CPU", 1 << 30, 1 << 30, cores=2, threads=THREADS)
HALF = replace(CPU, precision="fp16", mixed="fp16")  # as if it were a card that is faster in fp16
E = TypeVar("E", bound=Event)


_SMALL: dict[str, Any] = {
    "steps": 8, "batch_size": 4, "width": 16, "precision": "fp32", "holdout": 0.2, "lr_warmup_steps": 2, "shift_px": 0,
    "sample_every_s": 1000.0, "checkpoint_every_s": 1000.0,
}  # fmt: skip


def small_generator(**changes: Any) -> GeneratorConfig:
    """A generator that takes a few milliseconds a step."""
    return GeneratorConfig(**{**_SMALL, **changes})


def small_classifier(**changes: Any) -> ClassifierConfig:
    """A classifier that takes a few milliseconds a step."""
    return ClassifierConfig(**{**_SMALL, **changes})


def small_regression(**changes: Any) -> RegressionConfig:
    """A regression that takes a few milliseconds a step."""
    return RegressionConfig(**{**_SMALL, **changes})


def train_generator(path: Path, sprites: Sprites, control: Control | None = None, **changes: Any) -> Events:
    """The events of a small generator's training."""
    device = HALF if changes.get("precision") == "fp16" else CPU
    return train_new(path, sprites, Generator(), small_generator(**changes), device, control or Control())


def train_classifier(path: Path, sprites: Sprites, control: Control | None = None, **changes: Any) -> Events:
    """The events of a small classifier's training."""
    return train_new(path, sprites, Classifier(), small_classifier(**changes), CPU, control or Control())


def train_regression(path: Path, sprites: Sprites, control: Control | None = None, **changes: Any) -> Events:
    """The events of a small regression's training."""
    return train_new(path, sprites, Regression(), small_regression(**changes), CPU, control or Control())


def kept_run(factory: pytest.TempPathFactory, sprites: Sprites, **changes: Any) -> Path:
    """The run of a small generator, trained once for tests that only read it."""
    path = factory.mktemp("runs") / "trial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(factory.mktemp("home")))
        list(train_generator(path, sprites, **changes))
    return path


def nearest_training_sprites(
    sprites: Rgba, training: Sprites, indices: Indices | None, device: torch.device
) -> Nearest:
    """What `look_for_copies` returns, in one go."""
    return returned(look_for_copies(sprites, training, indices, device))


class Clock:
    """In place of `time`: goes on by 50 ms whenever it is looked at, however fast the machine is."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        self.now_s += 0.05
        return self.now_s


def own_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A training's minutes pass by such a clock, and a tick is a step."""
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    monkeypatch.setattr(train, "TICK_S", 0.0)
    return clock


def agreeing(one: Rgba, other: Rgba) -> float:
    """The share of pixels that hardly differ: what a model draws, another kernel may round to the next level, or to
    another colour where two are as near.
    """
    return float((np.abs(one.astype(int) - other.astype(int)).max(-1) <= 1).mean())


def of_kind(events: list[Event], kind: type[E]) -> list[E]:
    """The events of one class."""
    return [event for event in events if isinstance(event, kind)]
