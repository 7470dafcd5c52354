"""Distillation: train a second network, the student, to draw like a generator in fewer steps.

The student starts from the generator's weights and learns its paths from noise to sprite, several solver steps at a
time (progressive distillation, Salimans & Ho 2022), at a fixed guidance scale (Meng et al. 2023). It learns each stride
from the end of its own previous stride, not from the teacher's path: otherwise errors would add up. The same noise
leads to nearly the same sprite. The student is stored beside its teacher in the checkpoint.
"""

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
from studio.engine.sampling.generate import Labels, draw, model_attributes, proportional_labels, run_in_precision
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.optim import EMA, make_optimizers, set_learning_rate
from studio.exports.base import label_shares
from studio.recipes.capabilities import Distils, Student

_ROUND_SPRITES = 128  # teacher paths per round
_PASSES = 4  # passes over the paths of a round
_BATCH = 64  # paths
_OPEN = 0.2  # share of attributes without a value
_RATE, _WARM_UP = 1e-3, 20  # warm-up in steps; the rate falls to zero over the second half
_HALFLIFE_SPRITES = 2_000
_COMPARED, _COMPARED_SEED = 64, 2**31 - 1  # sprites for the comparison; their seed is above all training seeds
_MAX_COLOUR_DISTANCE = 16  # per channel, of 255 levels


@dataclass(frozen=True)
class DistilSettings(Config):
    """Settings of a distillation, which trains a network to draw in few steps."""

    count: int = setting(
        4096, "Number of sprites to train on. More take longer and match the full model better.",
        unit="sprites", low=_ROUND_SPRITES, high=1_000_000,
    )  # fmt: skip
    seed: int = setting(0, "Random seed of the training noise.", low=0, high=2**31 - 2)


def distil(path: Path, checkpoint: str, device: Device, settings: DistilSettings) -> Events:
    """Distil a checkpoint into a network that draws in few steps: yields Progress, then Distilled.

    Adds the network to the checkpoint; stores no files if cancelled. Raises UsageError for a model that can't be
    distilled, RunError for a run in training, UnwritableError and DeviceError.
    """
    run = RunDir(path)
    with run.held():  # fail now rather than after minutes of training
        pass
    model = load_model(path, checkpoint, device)
    yield from model.notices
    if not isinstance(model.recipe, Distils):
        raise UsageError(f"{model.title} is {model.recipe.kind} and can't be distilled.", "Choose a generator.")
    with detection.wrap_device_errors(model.device):
        student = yield from _train_student(model, settings)
        checkpoints.check_finite(student.state_dict(), "The distilled network")
        model.distilled = student
        found = _benchmark(model)
    with run.held(), run.wrap_write_errors():
        checkpoints.add_distilled(run.checkpoints, model.step, student.state_dict())
    yield found


def _train_student(model: TrainedModel, settings: DistilSettings) -> Generator[Event, None, Student]:
    """Train the student and return its EMA weights as a network in eval mode; yields Progress."""
    rounds = -(-settings.count // _ROUND_SPRITES)  # rounded up
    learner = _StudentTrainer(model, rounds)
    rng = torch.Generator().manual_seed(settings.seed)
    for first in range(0, rounds * _ROUND_SPRITES, _ROUND_SPRITES):
        labels = path_labels(model, first, rng)
        paths = list[Tensor]()
        for part in _teacher_paths(model, labels, settings.seed, first):
            paths.append(part)
            yield Progress(learner.step, learner.steps, "steps")
        path, labels = torch.cat(paths), labels.to(model.device)  # path: [n, strides + 1, 4, S, S]
        for _ in range(_PASSES):
            for chosen in torch.randperm(_ROUND_SPRITES, generator=rng).to(model.device).split(_BATCH):
                for _ in learner.follow(path[chosen], labels[chosen]):
                    yield Progress(learner.step, learner.steps, "steps")
    average = learner.average.network
    assert isinstance(average, Student)  # a copy of `learner.network`
    return average


def path_labels(model: TrainedModel, first: int, rng: torch.Generator) -> Tensor:
    """Choose the labels of the paths of a round: classes, int64 [N]; with attributes, shares, float32 [N, K].

    With attributes, a third of the paths show a class alone, a third attributes alone, a third both. Every attribute
    gets a random value, so that the student also learns combinations of values that no sprite has. A fifth of the
    attributes stay open.
    """
    classes = torch.from_numpy(proportional_labels(model.style.class_counts, _ROUND_SPRITES, first))
    attributes = model_attributes(model)
    if not attributes:
        return classes
    kind = torch.randint(3, (_ROUND_SPRITES,), generator=rng)
    parts = [torch.where(kind == 1, -1, classes)]
    for values in attributes.values():
        value = torch.randint(len(values), (_ROUND_SPRITES,), generator=rng)
        is_open = torch.rand(_ROUND_SPRITES, generator=rng) < _OPEN
        parts.append(torch.where((kind == 0) | is_open, -1, value))
    return label_shares(parts, [len(model.spec.class_names), *map(len, attributes.values())])


class _StudentTrainer:
    """Trains the student, the few-step network. step: steps done, of `steps`. average: EMA weights of the student."""

    def __init__(self, model: TrainedModel, rounds: int) -> None:
        assert isinstance(model.recipe, Distils)
        self.network = model.recipe.student(model.network).train()
        self.step, self.steps = 0, rounds * _PASSES * (_ROUND_SPRITES // _BATCH) * self.network.steps
        self.average = EMA(self.network, _HALFLIFE_SPRITES)
        self._model = model
        self._precision = "fp32" if model.precision == "fp16" else model.precision  # fp16 would need loss scaling
        self._optimizers = make_optimizers(self.network, model.config, self._precision)
        self._batch_size = AutoBatchSize(model.device, _BATCH, model.spec.size)

    def follow(self, paths: Tensor, labels: Tensor) -> Iterator[None]:
        """Train along teacher paths, float32 [B, strides + 1, 4, S, S], and labels as for `draw`; yields per stride."""
        x = paths[:, 0]  # [B, 4, S, S], pure noise
        for number in range(self.network.steps):
            x = self._learn(x, number, paths[:, number], paths[:, number + 1], labels)
            yield

    def _learn(self, x: Tensor, number: int, before: Tensor, after: Tensor, labels: Tensor) -> Tensor:
        """Train the student's stride `number` from noisy sprites x; return the student's sprites after the stride.

        before, after: the teacher's sprites at the start and end of the stride. All sprites: float32 [B, 4, S, S].
        """
        way, parts = (after - before).square().mean(), list[Tensor]()  # way: squared length of the stride, []

        def add_gradients(at_once: int) -> None:  # at_once: sprites in a micro-batch, fewer if memory is short
            parts.clear()
            for start, end, label in zip(x.split(at_once), after.split(at_once), labels.split(at_once), strict=True):
                with autocast(self._model.device.type, self._precision):
                    reached = self.network(start, number, label)
                # Division by the length of the stride gives long and short strides equal weight.
                ((reached - end).square().mean() / way * (len(start) / len(x))).backward()
                parts.append(reached.detach())  # no gradients across strides

        self._batch_size.accumulate_gradients(self.network, add_gradients)
        self._update()
        return torch.cat(parts)  # [B, 4, S, S], where the next stride starts

    def _update(self) -> None:
        """Take an optimizer step with the learning-rate schedule, then update the EMA weights."""
        # Linear warm-up, constant, then linear decay to 0 over the second half.
        rate = _RATE * min(1, (self.step + 1) / _WARM_UP) * min(1, 2 * (1 - self.step / self.steps))
        set_learning_rate(self._optimizers, rate)
        trainable = [weight for weight in self.network.parameters() if weight.requires_grad]
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)  # a rare bad batch must not undo the training
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self.average.begin_step(self.step * _BATCH, _BATCH)
        self.average.update()


def _teacher_paths(model: TrainedModel, labels: Tensor, seed: int, first: int) -> Iterator[Tensor]:
    """Yield the teacher's paths from noise to sprite, in batches: float32 [n, strides + 1, 4, S, S] on its device.

    labels: a label per path, as in `draw`. first: index of the first path, which selects the noise.
    """
    assert isinstance(model.recipe, Distils)
    batch_size, guidance = AutoBatchSize(model.device, _BATCH, model.spec.size), GenerateSettings().guidance
    for part in batch_size.slices(len(labels)):
        states = None
        with batch_size.halve_if_full():
            chosen = labels[part].to(model.device)
            path = model.recipe.trajectory(model.network, chosen, guidance, seed, first + part.start)
            states = torch.stack(list(run_in_precision(model, path)), 1)  # [n, strides + 1, 4, S, S]
        if states is not None:
            yield states


def _benchmark(model: TrainedModel) -> Distilled:
    """Compare the student with the teacher: drawing speed, and share of pixels with nearly equal colours."""
    labels = proportional_labels(model.style.class_counts, _COMPARED)
    settings = GenerateSettings(seed=_COMPARED_SEED, true_pixels=False)
    usual_s, usual = _time_drawing(model, labels, settings)
    quick_s, quick = _time_drawing(model, labels, settings.replace(quick=True))
    alike = np.abs(usual.astype(int) - quick.astype(int)).max(-1) <= _MAX_COLOUR_DISTANCE
    return Distilled(model.step, _COMPARED / quick_s, _COMPARED / usual_s, float(alike.mean()))


def _time_drawing(model: TrainedModel, labels: Labels, settings: GenerateSettings) -> tuple[float, Rgba]:
    """Draw sprites twice; return seconds and sprites of the second drawing. The first drawing warms up the device."""
    run_to_end(draw(model, labels, settings))
    start_s = time.perf_counter()
    drawn = run_to_end(draw(model, labels, settings))
    return time.perf_counter() - start_s, drawn
