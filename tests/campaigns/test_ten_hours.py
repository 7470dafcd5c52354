"""Ten hours of training in minutes: nothing grows but the curves, and nothing becomes slower.

A clock that each step moves on, steps most of which are free, all else as it is, in a process of its own.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig, Value
from studio.core.events import CheckpointSaved, Event, LossChunk, RunFinished, SamplesReady, Validated
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.adam import AdamW
from studio.engine.devices.precision import LossScaler
from studio.engine.runs.history import RunReader, read_history
from studio.engine.runs.listing import list_runs
from studio.engine.runs.samples import MAX_SAMPLE_IMAGES
from studio.engine.steps import timing
from studio.engine.steps.batches import RawBatch
from studio.engine.steps.optim import EMA
from studio.engine.training import loop, step
from studio.engine.training.loop import train_new
from studio.recipes.base import Batch, BatchRng, Evaluation, Recipe, Spec
from tests.campaigns import tell
from tests.campaigns.apart import in_own_process
from tests.conftest import make_sprites
from tests.engine.tools import CPU

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process and counts no open files"),
]

_HOURS = 10
_STEP_S, _VALIDATION_S, _TICK_S = 0.018, 0.4, 1.0  # by that clock
_COMPUTED_EVERY = 64  # steps
_LIST_EVERY, _READ_EVERY = 20, 500  # ticks
_PARTS = 10  # of the run; the first is the warm-up

_MOST_GROWN_BYTES = 48 << 20  # the allocator keeps some of what the curves took that were looked at
_MOST_GROWN_OBJECTS = 3000
_MOST_SLOWER = 1.5
_MOST_BYTES_A_STEP = 40  # of metrics.jsonl, which keeps every loss


class _Clock:
    """In place of `time`: steps move it on. is_free: the step that is taken now is to cost nothing."""

    def __init__(self) -> None:
        self.now_s, self.is_free = 0.0, False

    def perf_counter(self) -> float:
        return self.now_s

    def make_steps_free(self) -> None:
        """Of a training's steps, in this process, only every 64th is computed."""
        add_gradients, nothing = step.StepRunner._forward_backward, torch.zeros(())

        def take_step(runner: step.StepRunner, raw: RawBatch) -> Tensor:
            self.now_s += _STEP_S
            self.is_free = runner._training.step % _COMPUTED_EVERY != 0
            return nothing if self.is_free else add_gradients(runner, raw)

        step.StepRunner._forward_backward = take_step  # type: ignore[method-assign,assignment]
        self._spare(torch.nn.utils, "clip_grad_norm_", nothing)
        self._spare(AdamW, "step", None)
        self._spare(LossScaler, "unscale_gradients", None)
        self._spare(LossScaler, "update", None)
        self._spare(EMA, "update", None)

    def _spare(self, owner: Any, name: str, instead: Tensor | None) -> None:
        call = getattr(owner, name)

        def sparing(*arguments: Any, **named: Any) -> Any:
            return instead if self.is_free else call(*arguments, **named)

        sparing.hooked = True  # type: ignore[attr-defined] # torch is not to wrap it
        setattr(owner, name, sparing)


class _Scalar(nn.Module):
    """One weight that is to become 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.zeros(()))


class _Scalars(Recipe[TrainingConfig, _Scalar]):
    name = "scalar"
    title = "One weight"
    makes = "sprites"
    Config, Network = TrainingConfig, _Scalar

    def __init__(self, clock: _Clock) -> None:
        self._clock = clock

    def arguments(self, config: TrainingConfig, spec: Spec) -> dict[str, Value]:
        return {"size": spec.size}

    def loss(self, network: _Scalar, batch: Batch, config: TrainingConfig, rng: BatchRng) -> Tensor:
        return (network.weight - 1).square()

    def evaluate(self, network: _Scalar, batches: Iterable[Batch], config: TrainingConfig, spec: Spec) -> Evaluation:
        self._clock.now_s += _VALIDATION_S
        return Evaluation({"loss": float(sum(batch.x.mean() for batch in batches))})

    @staticmethod
    def draw(
        network: _Scalar, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        for _ in range(steps):
            yield torch.zeros(len(labels), 4, network.size, network.size)


def _look() -> tuple[int, int, int]:
    """How much the process holds: bytes of memory, objects, open files."""
    gc.collect()
    process = psutil.Process()
    return process.memory_info().rss, len(gc.get_objects()), process.num_fds()


def train_for_ten_hours(place: Path) -> str:
    """One run, which is listed and looked at all the while: what it takes stays as it was in its second hour."""
    os.environ["STUDIO_HOME"] = str(place)
    torch.set_num_threads(1)
    clock = _Clock()
    clock.make_steps_free()
    recipe = _Scalars(clock)
    catalog.recipes()[recipe.name] = recipe
    timing.time, loop.TICK_S = clock, _TICK_S  # type: ignore[assignment,attr-defined]
    config = TrainingConfig(
        minutes=60 * _HOURS, batch_size=4, holdout=0.2, optimizer="adamw", precision="fp32", checkpoint_every_s=20.0
    )
    run = place / "runs" / "long"
    events = train_new(run, make_sprites(per_class=8), recipe, config, CPU, Control())

    counts = dict.fromkeys((LossChunk, SamplesReady, Validated, CheckpointSaved), 0)
    reader: RunReader | None = RunReader()
    work_s, step, list_s, lists = (np.zeros(_PARTS) for _ in range(4))
    looks: list[tuple[int, int, int]] = []
    steps, longest_read_s = 0, 0.0
    last: Event | None = None
    read: Event | None = None
    while True:
        begun_s = time.thread_time()
        event = next(events, None)
        part = min(_PARTS - 1, int(_PARTS * clock.now_s / (3600 * _HOURS)))
        work_s[part] += time.thread_time() - begun_s
        if event is None:
            break
        last = event
        if type(event) in counts:
            counts[type(event)] += 1
        if not isinstance(event, LossChunk):
            continue
        step[part] += 1
        steps = event.first_step + len(event.losses)
        if not counts[LossChunk] % _LIST_EVERY:
            begun_s = time.thread_time()
            ((listed,),) = (event.runs for event in list_runs())  # type: ignore[attr-defined]
            assert listed.standing == "training"
            list_s[part] += time.thread_time() - begun_s
            lists[part] += 1
        if not counts[LossChunk] % _READ_EVERY:
            begun_s = time.thread_time()
            assert reader is not None
            read = reader.read(run)
            assert len(read.history.series["loss"].steps) == steps
            longest_read_s = max(longest_read_s, time.thread_time() - begun_s)
        if part >= 1 and not looks:
            reader, read = None, None  # they hold the curves, 24 bytes a step
            looks.append(_look())
            reader = RunReader()
    reader, read = None, None
    looks.append(_look())
    assert isinstance(last, RunFinished) and last.reason == "finished"

    (early_bytes, early_objects, early_files), (late_bytes, late_objects, late_files) = looks
    tick_ms, list_ms = 1000 * work_s / step, 1000 * list_s / lists
    metrics_bytes = (run / "metrics.jsonl").stat().st_size
    pictures, saved = list((run / "samples").iterdir()), list((run / "checkpoints").iterdir())
    others_bytes = sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) - metrics_bytes
    report = (
        f"{clock.now_s / 3600:.1f} h of {steps:,} steps, {counts[LossChunk]:,} ticks, {counts[SamplesReady]:,} samples,"
        f" {counts[Validated]:,} validations, {counts[CheckpointSaved]:,} checkpoints, {lists.sum():.0f} listings: "
        f"memory {early_bytes >> 20} -> {late_bytes >> 20} MB, {early_objects:,} -> {late_objects:,} "
        f"objects, {early_files} -> {late_files} open files; a tick with all that belongs to it {tick_ms[1]:.2f} "
        f"-> {tick_ms[-1]:.2f} ms of CPU, a listing {list_ms[1]:.2f} -> {list_ms[-1]:.2f} ms, the longest look at the "
        f"curves {1000 * longest_read_s:.0f} ms; on the disk {len(pictures)} pictures, {len(saved)} checkpoints, "
        f"{metrics_bytes / steps:.1f} bytes a step of curves and {others_bytes >> 10} KB of all else"
    )
    assert steps > 1_000_000 and all(count > 1000 for count in counts.values()), report
    assert late_bytes - early_bytes < _MOST_GROWN_BYTES and late_objects - early_objects < _MOST_GROWN_OBJECTS, report
    assert late_files <= early_files, report
    assert tick_ms[-1] < _MOST_SLOWER * tick_ms[1] and list_ms[-1] < _MOST_SLOWER * list_ms[1], report
    assert len(pictures) <= MAX_SAMPLE_IMAGES and len(saved) < 20, report
    assert metrics_bytes < _MOST_BYTES_A_STEP * steps and others_bytes < 4 << 20, report
    assert read_history(run).series["loss"].steps.tolist() == list(range(steps)), report
    return report


def test_a_training_of_ten_hours_takes_at_its_end_what_it_took_at_its_beginning(tmp_path: Path) -> None:
    tell(in_own_process(train_for_ten_hours, tmp_path))
