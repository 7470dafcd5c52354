"""Benchmarks: training steps without a run folder, their duration on a device, and the transfer of a batch."""

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from studio.core.config import TrainingConfig, Value
from studio.core.events import Events, Progress
from studio.data.sets.layout import SetLayout
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import LossScaler, autocast
from studio.engine.devices.types import Device, DeviceMeasured
from studio.engine.steps.batches import DeviceSprites, RawBatch, augment, step_seed
from studio.engine.steps.graphed_step import GraphedStep
from studio.engine.steps.optim import EMA, make_optimizers, set_learning_rate
from studio.recipes.base import Recipe, Spec, TrainingBudget

WARM_UP_STEPS = 2
MIN_STEPS = 3
MIN_S = 1.0
_USUAL_ROWS, _USUAL_FRAMES = ("down", "up", "left", "right"), 4  # of a walk
_USUAL_COLOURS = 12  # of a character: a step takes longer with more


@dataclass(frozen=True)
class StepTimes:
    """The seconds by part of a training step, with the device synchronized after every part."""

    batch_s: float = 0.0  # selecting and augmenting sprites
    forward_s: float = 0.0
    backward_s: float = 0.0
    optimizer_s: float = 0.0  # clipping gradients, updating weights and EMA weights

    @property
    def total_s(self) -> float:
        """The seconds for the whole step."""
        return self.batch_s + self.forward_s + self.backward_s + self.optimizer_s


class _PartTimer:
    """Times the parts of a training step. Synchronizing with the device after each part makes the step slower."""

    def __init__(self, device: torch.device) -> None:
        self._device, self.parts = device, dict[str, float]()
        self._since_s = time.perf_counter()

    def lap(self, part: str) -> None:
        detection.synchronize(self._device)  # kernels run asynchronously: without this, only launches are timed
        now_s = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now_s - self._since_s
        self._since_s = now_s


class BenchmarkTrainer:
    """Trains a new network on sprites as in a run, with a constant learning rate, but without a run folder.

    use_graph: replay steps from a CUDA graph where a training does so; otherwise every step runs eagerly.
    """

    def __init__(
        self, recipe: Recipe, config: TrainingConfig, sprites: Sprites, device: torch.device, precision: str = "fp32",
        *, use_graph: bool = False,
    ) -> None:  # fmt: skip
        torch.manual_seed(config.seed)
        self.sprites, self.spec = sprites, Spec.of(sprites)
        config = recipe.resolve(config, sprites)
        network = recipe.build(config, self.spec)
        for name, value in recipe.statistics(sprites, config).items():
            network.get_buffer(name).copy_(value)  # data statistics, e.g. mean colours
        self.network = network.to(device).to(memory_format=torch.channels_last).train()  # as a training does
        self.ema = EMA(self.network, config.ema_halflife_sprites)
        self.recipe, self.config, self.device, self.precision = recipe, config, device, precision
        self.loss = recipe.loss_of(self.spec)  # experiments replace it with a compiled version
        self.set_sprites(sprites)
        self._optimizers = make_optimizers(self.network, config, precision)
        self._scaler = LossScaler(self.network, self._optimizers, precision, device)
        self._micro_batch = AutoBatchSize(device, config.batch_size)  # halves the batch size on a full device
        self._graphed_step = GraphedStep(device, self.network, [], enabled=use_graph)
        self.step = 0

    @property
    def micro_batch_size(self) -> int:
        """The number of sprites per forward pass: the batch size, or less after the device was full."""
        return self._micro_batch.count

    def set_sprites(self, sprites: Sprites) -> None:
        """Train on other sprites from now on. The data statistics in the network's buffers don't change."""
        examples, indices = self.recipe.examples(sprites, np.arange(len(sprites)))
        self._data = DeviceSprites(examples, self.device, self.config.seed, indices)

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        set_learning_rate(self._optimizers, rate)

    def train_step(self) -> Tensor:
        """Train one step; returns the loss, float32 [] on the device, without waiting. Raises DeviceFullError."""
        return self._train_step(lambda part: None)

    def step_timed(self) -> tuple[Tensor, StepTimes]:
        """Train one step; return the loss, float32 [] on the device, and the durations by part."""
        self.wait()
        timer = _PartTimer(self.device)
        return self._train_step(timer.lap), StepTimes(**timer.parts)

    def wait(self) -> None:
        """Wait until the device has finished all queued work."""
        detection.synchronize(self.device)

    def time_steps(self, steps: int = 1) -> float:
        """Train `steps` steps and return the mean seconds per step."""
        self.wait()
        start_s = time.perf_counter()
        for _ in range(steps):
            self.train_step()
        self.wait()
        return (time.perf_counter() - start_s) / steps

    def _train_step(self, lap: Callable[[str], None]) -> Tensor:
        """Train one step. After a part of the step, call `lap` with the part's name."""
        size = self.config.batch_size
        seed = step_seed(self.config.seed, self.step)
        self.ema.begin_step((self.step + 1) * size, size)
        raw = self._data.raw_batch(self.step, size, slice(0, size))
        total = self._graphed_step.run(functools.partial(self._step, lap), raw, seed, stage=0)
        self.step += 1
        return total

    def _step(self, lap: Callable[[str], None], raw: RawBatch) -> Tensor:
        total = torch.zeros((), device=self.device)

        def add_gradients(most: int) -> None:
            total.zero_()
            self._add_gradients(raw, most, total, lap)

        self._micro_batch.accumulate_gradients(self.network, add_gradients)
        self._scaler.unscale_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip_grad_norm)
        self._scaler.update(total, norm)
        for optimizer in self._optimizers:
            optimizer.step()
        self.ema.update()
        lap("optimizer_s")
        return total

    def _add_gradients(self, raw: RawBatch, most: int, total: Tensor, lap: Callable[[str], None]) -> None:
        """Add a batch's loss to `total` and its gradients, in micro-batches of at most `most` sprites."""
        config, recipe = self.config, self.recipe
        batch = augment(raw, config.batch_size, flip=config.flip, shift_px=config.shift_px, rng=self._graphed_step.rng)
        lap("batch_s")
        for micro_batch, numbers in batch.micro_batches(-(-config.batch_size // most), self._graphed_step.rng):
            with autocast(self.device.type, self.precision):
                share = recipe.weight(micro_batch) / recipe.weight(batch)  # micro-batches of unequal weight
                loss = self.loss(self.network, micro_batch, config, numbers) * share
            lap("forward_s")
            self._scaler.scale(loss).backward()
            total += loss.detach()
            lap("backward_s")


def training_budget(
    recipe: Recipe, sprites: Sprites | None, device: Device | None, given: Mapping[str, Value] | None, alike: int = 1
) -> TrainingBudget:
    """Return the budget for these sprites on `alike` equal devices, by the probe's speed; 0 for unknown values."""
    size = sprites.size if sprites else detection.PROBE_SIZE
    probed = device.steps_per_s * detection.PROBE_BATCH if device else 0.0
    speed = probed / recipe.cost(size) if recipe.relative_cost else 0.0
    return TrainingBudget(recipe.count_examples(sprites) if sprites else 0, alike * speed, given, alike)


def measure(recipe: Recipe, config: TrainingConfig, spec: Spec, device: Device) -> Events:
    """Time real steps in fp32 and mixed precision; yields Progress, DeviceMeasured for each. Raises DeviceError."""
    if device.kind == "cpu":
        torch.set_num_threads(config.threads or device.threads)
    count, target = config.batch_size, device.torch
    sprites = _random_sets(spec, count) if recipe.makes == "sets" else _random_sprites(spec, count)
    with detection.wrap_device_errors(target):
        moved_ms = transfer_ms(sprites, target)
        for precision in filter(None, ("fp32", device.mixed)):
            training = BenchmarkTrainer(recipe, config, sprites, target, precision, use_graph=True)
            durations_s: list[float] = []
            while len(timed := durations_s[WARM_UP_STEPS:]) < MIN_STEPS or sum(timed) < MIN_S:
                durations_s.append(training.time_steps())
                yield Progress(len(durations_s), 0, f"steps in {precision} on {device.name}")
            compute_s = float(np.median(timed))  # the median ignores steps that the system interrupted
            yield DeviceMeasured(device.id, precision, count / compute_s, moved_ms, 1000 * compute_s, recipe.noun)


def _random_sprites(spec: Spec, count: int) -> Sprites:
    """Return `count` random sprites with classes and numbers to predict."""
    rng = np.random.default_rng(0)
    rgba = rng.integers(0, 256, (count, spec.size, spec.size, 4), dtype=np.uint8)
    labels = np.arange(count, dtype=np.int64) % len(spec.class_names)  # all classes: int64 [B]
    names = spec.target_names or ("value",)  # the values don't change the time of a step
    targets = rng.standard_normal((count, len(names))).astype(np.float32)
    return Sprites(rgba, labels, spec.class_names, ("",) * count, "measure", targets, names)


def _random_sets(spec: Spec, count: int) -> Sprites:
    """Return random sprites in `count` sets, with the spec's cells, or with a usual walk's cells."""
    cells = spec.cells or tuple(f"{row}/{number}" for row in _USUAL_ROWS for number in range(_USUAL_FRAMES))
    table = np.arange(count * len(cells), dtype=np.int32).reshape(count, len(cells))
    layout = SetLayout(cells, tuple(map(str, range(count))), table, "names")
    sprites = _random_sprites(spec, table.size)
    colours = sprites.rgba[0].reshape(-1, 4)[:_USUAL_COLOURS] | np.array([0, 0, 0, 255], np.uint8)  # [n, 4], opaque
    return replace(sprites, rgba=colours[sprites.rgba[..., 0] % len(colours)], sets=layout)


def transfer_ms(sprites: Sprites, target: torch.device) -> float:
    """Return the milliseconds for copying the sprites to the device as one float32 batch."""
    batch = torch.from_numpy(sprites.rgba).float()
    durations_s = []
    for _ in range(5):
        start = time.perf_counter()
        batch.to(target, copy=True)
        detection.synchronize(target)  # the copy is asynchronous
        durations_s.append(time.perf_counter() - start)
    return 1000 * float(np.median(durations_s))
