"""Distillation: a second network learns to draw in few looks what a generator draws in many.

It starts from the generator's weights and learns its paths from noise to sprite, several steps at a time (progressive
distillation, Salimans & Ho 2022), with the guidance that they were drawn with (Meng et al. 2023). Each stride is learnt
from where the one before has led, as in drawing, and not from where the path goes by: errors don't add up. The same
noise leads to nearly the same sprite. It is kept beside the checkpoint that it was taught by, which stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from studio.core.arrays import Rgba
from studio.core.config import Config, setting
from studio.core.errors import UsageError
from studio.core.events import Distilled, Event, Events, Progress
from studio.core.generators import run_to_end
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.devices.types import Device
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.sampling.generate import Labels, draw, proportional_labels, run_in_precision
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.optim import EMA, make_optimizers, set_learning_rate
from studio.recipes.capabilities import Distils, Student

_ROUND_SPRITES = 128  # sprites that are drawn, before their paths are learnt
_PASSES = 4  # over the paths of a round
_BATCH = 64  # paths
_RATE, _WARM_UP = 1e-3, 20  # steps; the rate falls to zero over the second half
_HALFLIFE_SPRITES = 2_000
_COMPARED, _COMPARED_SEED = 64, 2**31 - 1  # sprites, of noise that nothing was learnt from
_MAX_COLOUR_DISTANCE = 16  # levels of 255


@dataclass(frozen=True)
class DistilSettings(Config):
    """How a network is taught to draw in few looks."""

    count: int = setting(
        4096, "How many sprites are drawn to learn from: more take longer and come nearer to the usual ones.",
        unit="sprites",
        low=_ROUND_SPRITES, high=1_000_000,
    )  # fmt: skip
    seed: int = setting(0, "Of the noise that they are drawn from.", low=0, high=2**31 - 2)


def distil(path: Path, checkpoint: str, device: Device, settings: DistilSettings) -> Events:
    """Teach a network to draw in few looks what a run's checkpoint draws: yields Progress, then Distilled.

    Nothing is kept of one that is given up. Raises UsageError for a model that can't be distilled, RunError for a run
    that is being trained, UnwritableError and DeviceError.
    """
    run = RunDir(path)
    run.acquire()  # to learn for minutes and then find the run locked would be a pity
    run.release()
    model = load_model(path, checkpoint, device)
    yield from model.notices
    if not isinstance(model.recipe, Distils):
        raise UsageError(f"A {model.recipe.name} draws nothing that could be drawn faster.", "Choose a generator.")
    with detection.wrap_device_errors(model.device):
        student = yield from _train_student(model, settings)
        checkpoints.check_finite(student.state_dict(), "The distilled network")
        model.distilled = student
        found = _benchmark(model)
    run.acquire()
    try:
        with run.wrap_write_errors():
            checkpoints.add_distilled(run.checkpoints, model.step, student.state_dict())
    finally:
        run.release()
    yield found


def _train_student(model: TrainedModel, settings: DistilSettings) -> Generator[Event, None, Student]:
    """A network in eval mode that follows the model's paths in strides. Yields Progress."""
    rounds = -(-settings.count // _ROUND_SPRITES)
    learner = _StudentTrainer(model, rounds)
    rng = torch.Generator().manual_seed(settings.seed)
    for first in range(0, rounds * _ROUND_SPRITES, _ROUND_SPRITES):
        labels = proportional_labels(model.style.class_counts, _ROUND_SPRITES, first)
        paths = list[Tensor]()
        for part in _teacher_paths(model, labels, settings.seed, first):
            paths.append(part)
            yield Progress(learner.step, learner.steps, "steps")
        path, classes = torch.cat(paths), torch.from_numpy(labels).to(model.device)
        for _ in range(_PASSES):
            for chosen in torch.randperm(_ROUND_SPRITES, generator=rng).to(model.device).split(_BATCH):
                for _ in learner.follow(path[chosen], classes[chosen]):
                    yield Progress(learner.step, learner.steps, "steps")
    average = learner.average.network
    assert isinstance(average, Student)  # a copy of the learner's
    return average


class _StudentTrainer:
    """The network that learns, and how many of all `steps` it has taken. average: of its weights; that is kept."""

    def __init__(self, model: TrainedModel, rounds: int) -> None:
        assert isinstance(model.recipe, Distils)
        self.network = model.recipe.student(model.network).train()
        self.step, self.steps = 0, rounds * _PASSES * (_ROUND_SPRITES // _BATCH) * self.network.steps
        self.average = EMA(self.network, _HALFLIFE_SPRITES)
        self._model = model
        self._precision = "fp32" if model.precision == "fp16" else model.precision  # its loss would have to be scaled
        self._optimizers = make_optimizers(self.network, model.config, self._precision)
        self._batch_size = AutoBatchSize(model.device, _BATCH, model.spec.size)

    def follow(self, paths: Tensor, labels: Tensor) -> Iterator[None]:
        """A step for each stride of these paths, [B, strides + 1, 4, S, S], to sprites of the classes int64 [B]."""
        x = paths[:, 0]
        for number in range(self.network.steps):
            x = self._learn(x, number, paths[:, number], paths[:, number + 1], labels)
            yield

    def _learn(self, x: Tensor, number: int, before: Tensor, after: Tensor, labels: Tensor) -> Tensor:
        """A step for a stride from x to `after`, on a path that leads there from `before`; returns where it led to."""
        way, parts = (after - before).square().mean(), list[Tensor]()

        def add_gradients(at_once: int) -> None:  # of a part at a time where the device has no room for all at once
            parts.clear()
            for start, end, label in zip(x.split(at_once), after.split(at_once), labels.split(at_once), strict=True):
                with autocast(self._model.device.type, self._precision):
                    reached = self.network(start, number, label)
                # As a share of the way, so that all strides count the same, however long they are.
                ((reached - end).square().mean() / way * (len(start) / len(x))).backward()
                parts.append(reached.detach())

        self._batch_size.accumulate_gradients(self.network, add_gradients)
        self._update()
        return torch.cat(parts)

    def _update(self) -> None:
        rate = _RATE * min(1, (self.step + 1) / _WARM_UP) * min(1, 2 * (1 - self.step / self.steps))
        set_learning_rate(self._optimizers, rate)
        learnt = [weight for weight in self.network.parameters() if weight.requires_grad]
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self.average.begin_step(self.step * _BATCH, _BATCH)
        self.average.update()


def _teacher_paths(model: TrainedModel, labels: Labels, seed: int, first: int) -> Iterator[Tensor]:
    """The model's paths of new sprites, part by part: float32 [n, strides + 1, 4, S, S] on its device."""
    assert isinstance(model.recipe, Distils)
    batch_size, guidance = AutoBatchSize(model.device, _BATCH, model.spec.size), GenerateSettings().guidance
    for part in batch_size.slices(len(labels)):
        states = None
        with batch_size.halve_if_full():
            chosen = torch.from_numpy(labels[part]).to(model.device)
            path = model.recipe.trajectory(model.network, chosen, guidance, seed, first + part.start)
            states = torch.stack(list(run_in_precision(model, path)), 1)
        if states is not None:
            yield states


def _benchmark(model: TrainedModel) -> Distilled:
    """How fast the distilled network draws beside the one that taught it, and how like its sprites are."""
    labels = proportional_labels(model.style.class_counts, _COMPARED)
    usual_s, usual = _time_drawing(model, labels, GenerateSettings(seed=_COMPARED_SEED, true_pixels=False))
    quick_s, quick = _time_drawing(model, labels, GenerateSettings(seed=_COMPARED_SEED, true_pixels=False, quick=True))
    alike = np.abs(usual.astype(int) - quick.astype(int)).max(-1) <= _MAX_COLOUR_DISTANCE
    return Distilled(model.step, _COMPARED / quick_s, _COMPARED / usual_s, float(alike.mean()))


def _time_drawing(model: TrainedModel, labels: Labels, how: GenerateSettings) -> tuple[float, Rgba]:
    """Seconds, and what was drawn in them: the second time, when the device is warm."""
    run_to_end(draw(model, labels, how))
    start_s = time.perf_counter()
    drawn = run_to_end(draw(model, labels, how))
    return time.perf_counter() - start_s, drawn
