"""Distillation: a second network learns to draw in few looks what a generator draws in many.

It starts from the generator's weights and learns its paths from noise to sprite, several steps at a time (progressive
distillation, Salimans & Ho 2022), with the guidance that they were drawn with (Meng et al. 2023). The same noise leads
to nearly the same sprite. It is kept beside the checkpoint that it was taught by, which stays as it is.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from studio.core.config import Config, setting
from studio.core.errors import UsageError
from studio.core.events import Distilled, Event, Events, Progress, Rgba
from studio.core.generators import returned
from studio.engine import devices
from studio.engine.batch_size import AutoBatchSize
from studio.engine.generate import Labels, draw, in_precision, in_proportion
from studio.engine.loading import load_model
from studio.engine.model import TrainedModel
from studio.engine.optim import EMA, make_optimizers, set_learning_rate
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.types import Device, GenerateSettings

_A_ROUND = 128  # sprites that are drawn, before their paths are learnt
_PASSES = 3  # over the strides of a round
_BATCH = 64  # strides
_RATE, _WARM_UP = 1e-3, 20  # steps; the rate falls to zero over the second half
_HALFLIFE_SPRITES = 2_000
_COMPARED, _COMPARED_SEED = 64, 2**31 - 1  # sprites, of noise that nothing was learnt from
_ALIKE = 16  # levels of 255


@dataclass(frozen=True)
class DistilSettings(Config):
    """How a network is taught to draw in few looks."""

    count: int = setting(
        2048, "How many sprites are drawn to learn from: more take longer and come nearer to the usual ones.",
        unit="sprites",
        low=_A_ROUND, high=1_000_000,
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
    if not model.recipe.strides:
        raise UsageError(f"A {model.recipe.name} draws nothing that could be drawn faster.", "Choose a generator.")
    with devices.faults(model.device):
        student = yield from _taught(model, settings)
        checkpoints.check_finite(student.state_dict(), "The distilled network")
        model.distilled = student
        found = _compared(model)
    run.acquire()
    try:
        with run.writing():
            checkpoints.add_distilled(run.checkpoints, model.step, student.state_dict())
    finally:
        run.release()
    yield found


def _taught(model: TrainedModel, settings: DistilSettings) -> Generator[Event, None, nn.Module]:
    """A network in eval mode that follows the model's paths in strides. Yields Progress."""
    strides, rounds = model.recipe.strides, -(-settings.count // _A_ROUND)
    steps = rounds * _PASSES * (_A_ROUND * strides // _BATCH)
    student, rng = _Student(model, steps), torch.Generator().manual_seed(settings.seed)
    for first in range(0, rounds * _A_ROUND, _A_ROUND):
        labels = in_proportion(model.style.class_counts, _A_ROUND, first)
        paths = list[Tensor]()
        for part in _paths(model, labels, settings.seed, first):
            paths.append(part)
            yield Progress(student.step, steps, "steps")
        student.give(torch.cat(paths), labels)
        for _ in range(_PASSES):
            for chosen in torch.randperm(_A_ROUND * strides, generator=rng).split(_BATCH):
                student.learn(chosen // strides, chosen % strides)
                yield Progress(student.step, steps, "steps")
    return student.average.network


class _Student:
    """The network that learns, and how far it is. average: of its weights; that is what is kept."""

    def __init__(self, model: TrainedModel, steps: int) -> None:
        self.step = 0
        self._model, self._steps = model, steps
        self._precision = "fp32" if model.precision == "fp16" else model.precision  # its loss would have to be scaled
        self._network = copy.deepcopy(model.network).train().requires_grad_(True)
        self._optimizers: list[torch.optim.Optimizer] = []
        self._batch_size = AutoBatchSize(model.device, _BATCH, model.spec.size)
        self._paths = self._labels = torch.empty(0)
        self.average = EMA(self._network, _HALFLIFE_SPRITES)

    def give(self, paths: Tensor, labels: Labels) -> None:
        """What to learn from: paths [N, strides + 1, 4, S, S] of sprites of these classes."""
        self._paths, self._labels = paths, torch.from_numpy(labels).to(paths.device)

    def learn(self, sprites: Tensor, strides: Tensor) -> None:
        """A step, on these strides of the paths of these sprites: int64 [B] each."""
        device = self._paths.device
        add = functools.partial(self._add_gradients, sprites.to(device), strides.to(device))
        self._batch_size.gradients(self._network, add)
        if not self._optimizers:  # by now it is known which weights strides make use of
            for weight in self._network.parameters():
                weight.requires_grad_(weight.grad is not None)
            self._optimizers = make_optimizers(self._network, self._model.config, self._precision)
        rate = _RATE * min(1, (self.step + 1) / _WARM_UP) * min(1, 2 * (1 - self.step / self._steps))
        set_learning_rate(self._optimizers, rate)
        torch.nn.utils.clip_grad_norm_([weight for weight in self._network.parameters() if weight.requires_grad], 1.0)
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self.average.begin_step(self.step * _BATCH, _BATCH)
        self.average.update()

    def _add_gradients(self, sprites: Tensor, strides: Tensor, at_once: int) -> None:
        """Forward and backward of a batch, in micro-batches where the device has no room for it at once."""
        for sprite, stride in zip(sprites.split(at_once), strides.split(at_once), strict=True):
            before, after = self._paths[sprite, stride], self._paths[sprite, stride + 1]
            with devices.autocast(self._model.device.type, self._precision):
                reached = self._model.recipe.stride(self._network, before, stride, self._labels[sprite])
            (_relative_error(reached, before, after) * (len(sprite) / len(sprites))).backward()


def _paths(model: TrainedModel, labels: Labels, seed: int, first: int) -> Iterator[Tensor]:
    """The model's paths of new sprites, part by part: float32 [n, strides + 1, 4, S, S] on its device."""
    batch_size, guidance = AutoBatchSize(model.device, _BATCH, model.spec.size), GenerateSettings().guidance
    for part in batch_size.slices(len(labels)):
        states = None
        with batch_size.room():
            chosen = torch.from_numpy(labels[part]).to(model.device)
            path = model.recipe.path(model.network, chosen, guidance, seed, first + part.start)
            states = torch.stack(list(in_precision(model, path)), 1)
        if states is not None:
            yield states


def _relative_error(reached: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """How far strides ended from where the path goes, as a share of how far it goes: squared, the mean over strides.

    So all strides count the same, however long they are.
    """
    missed, way = (reached - after).square().mean((1, 2, 3)), (after - before).square().mean((1, 2, 3))
    return (missed / way).mean()


def _compared(model: TrainedModel) -> Distilled:
    """How fast the distilled network draws beside the one that taught it, and how like its sprites are."""
    labels = in_proportion(model.style.class_counts, _COMPARED)
    usual_s, usual = _timed(model, labels, GenerateSettings(seed=_COMPARED_SEED, true_pixels=False))
    quick_s, quick = _timed(model, labels, GenerateSettings(seed=_COMPARED_SEED, true_pixels=False, quick=True))
    alike = np.abs(usual.astype(int) - quick.astype(int)).max(-1) <= _ALIKE
    return Distilled(model.step, _COMPARED / quick_s, _COMPARED / usual_s, float(alike.mean()))


def _timed(model: TrainedModel, labels: Labels, how: GenerateSettings) -> tuple[float, Rgba]:
    """Seconds, and what was drawn in them: the second time, when the device is warm."""
    returned(draw(model, labels, how))
    start_s = time.perf_counter()
    drawn = returned(draw(model, labels, how))
    return time.perf_counter() - start_s, drawn
