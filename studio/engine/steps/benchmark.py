"""Measure how fast a recipe trains on a device: real steps in fp32 and mixed precision, and the transfer of a batch."""

import time
from collections.abc import Mapping

import numpy as np
import torch

from studio.core.config import TrainingConfig, Value
from studio.core.events import Events, Progress
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.devices.types import Device, DeviceMeasured
from studio.engine.steps.bench_steps import BenchmarkTrainer
from studio.recipes.base import Recipe, Spec, TrainingBudget

WARM_UP_STEPS = 2
MIN_STEPS = 3
MIN_S = 1.0


def training_budget(
    recipe: Recipe, sprites: Sprites | None, device: Device | None, given: Mapping[str, Value] | None, alike: int = 1
) -> TrainingBudget:
    """Return the budget for these sprites on `alike` equal devices, by the probe's speed; 0 for unknown values."""
    size = sprites.size if sprites else detection.PROBE_SIZE
    probed = device.steps_per_s * detection.PROBE_BATCH if device else 0.0
    speed = probed / recipe.cost(size) if recipe.relative_cost else 0.0
    return TrainingBudget(len(sprites) if sprites else 0, alike * speed, given, alike)


def measure(recipe: Recipe, config: TrainingConfig, spec: Spec, device: Device) -> Events:
    """Time real steps in fp32 and mixed precision; yields Progress, DeviceMeasured for each. Raises DeviceError."""
    if device.kind == "cpu":
        torch.set_num_threads(config.threads or device.threads)
    rng, count, target = np.random.default_rng(0), config.batch_size, device.torch
    rgba = rng.integers(0, 256, (count, spec.size, spec.size, 4), dtype=np.uint8)
    labels = np.arange(count, dtype=np.int64) % len(spec.class_names)  # all classes: int64 [B]
    names = spec.target_names or ("value",)  # the values don't change the time of a step
    targets = rng.standard_normal((count, len(names))).astype(np.float32)
    sprites = Sprites(rgba, labels, spec.class_names, ("",) * count, "measure", targets, names)
    with detection.wrap_device_errors(target):
        moved_ms = transfer_ms(sprites, target)
        for precision in filter(None, ("fp32", device.mixed)):
            training = BenchmarkTrainer(recipe, config, sprites, target, precision, use_graph=True)
            durations_s: list[float] = []
            while len(timed := durations_s[WARM_UP_STEPS:]) < MIN_STEPS or sum(timed) < MIN_S:
                durations_s.append(training.time_steps())
                yield Progress(len(durations_s), 0, f"steps in {precision} on {device.name}")
            compute_s = float(np.median(timed))  # the median ignores steps that the system interrupted
            yield DeviceMeasured(device.id, precision, count / compute_s, moved_ms, 1000 * compute_s)


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
