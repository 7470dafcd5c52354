"""Small trainings for tests."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

from studio.core.arrays import Indices, Rgba
from studio.core.config import TrainingConfig
from studio.core.events import Event, Events, LossChunk, RunFinished
from studio.core.generators import run_to_end
from studio.data.colour.pixel_art import measure_style
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.adam import AdamW
from studio.engine.devices.types import Device
from studio.engine.distributed.ranks import ALONE, Ranks
from studio.engine.models.model import TrainedModel
from studio.engine.quality.copies import Nearest, find_copies
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RECORD_FILE, RunDir
from studio.engine.steps import timing
from studio.engine.training import live_samples, loop
from studio.engine.training.loop import train_new, train_resumed
from studio.recipes.autoencoder import Autoencoder
from studio.recipes.base import Recipe, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from studio.recipes.sets import Sets
from tests.environment import THREADS

CPU = Device("cpu", "cpu", "test CPU", 1 << 30, 1 << 30, cores=2, threads=THREADS)
HALF = replace(CPU, precision="fp16", mixed="fp16")  # as if it were a card that is faster in fp16
E = TypeVar("E", bound=Event)
C = TypeVar("C", bound=TrainingConfig)


TOY = catalog.recipe("vae")  # the plug-in of the tests: draws sprites like the generator, in a sixth of its time
_SMALL: dict[str, Any] = {
    "steps": 8, "batch_size": 4, "precision": "fp32", "holdout": 0.2, "lr_warmup_steps": 2, "shift_px": 0,
    "sample_every_s": 1000.0, "checkpoint_every_s": 1000.0,
}  # fmt: skip


def _small(recipe: Recipe[C], **changes: Any) -> C:
    """Return settings with which a step takes a few milliseconds."""
    return recipe.small.replace(**{**_SMALL, **changes})


small_generator = partial(_small, Generator())
small_classifier = partial(_small, Classifier())
small_regression = partial(_small, Regression())
small_toy = partial(_small, TOY)


def _train(
    recipe: Recipe, path: Path, sprites: Sprites, control: Control | None = None, ranks: Ranks = ALONE, **changes: Any
) -> Events:
    """The events of a training with such settings."""
    device = HALF if changes.get("precision") == "fp16" else CPU
    config = _small(recipe, **changes)
    return train_new(path, sprites, recipe, config, device, control or Control(), ranks=ranks)


train_toy = partial(_train, TOY)
train_generator = partial(_train, Generator())
train_classifier = partial(_train, Classifier())
train_autoencoder = partial(_train, Autoencoder())
train_regression = partial(_train, Regression())
train_sets = partial(_train, Sets())


def untrained_model(recipe: Recipe, sprites: Sprites) -> TrainedModel:
    """A model of random weights, made for these sprites."""
    config, spec = recipe.small, Spec.of(sprites)
    torch.manual_seed(0)
    network = recipe.build(config, spec).eval().requires_grad_(False)
    for name, values in recipe.statistics(sprites, config).items():
        network.get_buffer(name).copy_(values)
    style = measure_style(sprites)
    return TrainedModel(recipe, config, spec, network, torch.device("cpu"), "fp32", 0, "trial", style)


class SavingAlways(Control):
    """Asks for a checkpoint after every tick."""

    checkpoint_now = property(lambda self: True, lambda self, wanted: None)


def bare_run(path: Path) -> RunDir:
    """Make a run folder whose run.json is empty, for tests that read no record."""
    path.mkdir(exist_ok=True)
    (path / RECORD_FILE).touch()
    return RunDir(path)


def bomb_png() -> bytes:
    """Return a PNG file of few bytes whose header says 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(bytes(1000))), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def kept_run(
    factory: pytest.TempPathFactory, sprites: Sprites, train: Callable[..., Events] = train_generator, **changes: Any
) -> Path:
    """The run of a small model, trained once for tests that only read it."""
    path = factory.mktemp("runs") / "trial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(factory.mktemp("home")))
        patch.setattr(live_samples, "SAMPLE_STEPS", 2)
        list(train(path, sprites, **changes))
    return path


def train_in_two_pieces(train: Any, path: Path, sprites: Sprites, **changes: Any) -> list[Event]:
    """The events of a training that is stopped after some steps and resumed."""
    control, events = Control(), list[Event]()
    for event in train(path, sprites, control, **changes):
        events.append(event)
        control.stop = control.stop or (isinstance(event, LossChunk) and event.first_step + len(event.losses) >= 4)
    events += train_resumed(path, CPU, Control())
    stopped, finished = of_kind(events, RunFinished)
    assert 4 <= stopped.step < finished.step
    return events


def learnt(run: Path) -> dict[str, torch.Tensor]:
    """All tensors of a run's newest checkpoint."""
    path, info = checkpoints.list_checkpoints(run / "checkpoints")[-1]
    parts = {part: checkpoints.load_tensors(path, info, part) for part in checkpoints.PARTS}
    return {f"{part} {name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def full_in_optimizer(monkeypatch: pytest.MonkeyPatch, is_full: Callable[[int], bool]) -> None:
    """The device has no memory left in these calls of AdamW's step, counted from 0."""
    step, calls = AdamW.step, itertools.count()

    def full_at_times(*arguments: Any) -> Any:
        if is_full(next(calls)):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(*arguments)

    monkeypatch.setattr(AdamW, "step", full_at_times)


def nearest_training_sprites(
    sprites: Rgba, training: Sprites, indices: Indices | None, device: torch.device
) -> Nearest:
    """What `find_copies` returns, in one go."""
    return run_to_end(find_copies(sprites, training, indices, device))


class Clock:
    """In place of `time`: goes on by `look_s` whenever it is looked at, however fast the machine is."""

    def __init__(self, look_s: float = 0.05) -> None:
        self.now_s, self._look_s = 0.0, look_s

    def perf_counter(self) -> float:
        self.now_s += self._look_s
        return self.now_s


def own_clock(monkeypatch: pytest.MonkeyPatch, look_s: float = 0.05) -> Clock:
    """A training's minutes pass by such a clock, and a tick is a step."""
    clock = Clock(look_s)
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(loop, "TICK_S", 0.0)
    return clock


def agreeing(one: Rgba, other: Rgba) -> float:
    """The share of pixels that hardly differ: what a model draws, another kernel may round to the next level, or to
    another colour where two are as near.
    """
    return float((np.abs(one.astype(int) - other.astype(int)).max(-1) <= 1).mean())


def of_kind(events: list[Event], kind: type[E]) -> list[E]:
    """The events of one class."""
    return [event for event in events if isinstance(event, kind)]
