"""How fast a recipe trains on a device: real steps, in full and in mixed precision, split into transfer and compute."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from studio.core.config import TrainingConfig, Value
from studio.core.events import Events, Progress
from studio.data.sprites import Sprites
from studio.engine import devices
from studio.engine.batch_size import AutoBatchSize
from studio.engine.batches import DeviceSprites
from studio.engine.optim import LossScaler, make_optimizers
from studio.engine.types import Device, DeviceMeasured
from studio.recipes.base import Recipe, Spec, TrainingBudget

WARM_UP_STEPS = 2
LEAST_STEPS = 3
LEAST_S = 1.0


def training_budget(
    recipe: Recipe, sprites: Sprites | None, device: Device | None, given: Mapping[str, Value] | None
) -> TrainingBudget:
    """The number of sprites, and the speed that the device's probe suggests; 0 for what is not known."""
    size = sprites.size if sprites else devices.PROBE_SIZE
    probed = device.steps_per_s * devices.PROBE_BATCH if device else 0.0
    speed = probed / recipe.cost(size) if recipe.relative_cost else 0.0
    return TrainingBudget(len(sprites) if sprites else 0, speed, given)


def measure(recipe: Recipe, config: TrainingConfig, spec: Spec, device: Device) -> Events:
    """Time real steps in fp32 and in mixed precision: yields Progress between steps and a DeviceMeasured for each.

    Raises DeviceError.
    """
    with devices.faults(torch.device(device.id)):
        yield from _measured(recipe, config, spec, device)


def _measured(recipe: Recipe, config: TrainingConfig, spec: Spec, device: Device) -> Events:
    if device.kind == "cpu":
        torch.set_num_threads(config.threads or device.threads)
    target = torch.device(device.id)
    rng = np.random.default_rng(0)
    count = config.batch_size
    rgba = rng.integers(0, 256, (count, spec.size, spec.size, 4), dtype=np.uint8)
    labels = np.arange(count, dtype=np.int64) % len(spec.class_names)
    if not spec.target_names:  # a step takes the same time with any
        spec = replace(spec, target_names=("value",))
    targets = rng.standard_normal((count, len(spec.target_names))).astype(np.float32)
    sprites = Sprites(rgba, labels, spec.class_names, ("",) * count, "measure", targets, spec.target_names)
    transfer_ms = _transfer_ms(sprites, target)
    for precision in filter(None, ("fp32", device.mixed)):
        network = recipe.build(config, spec).to(target).to(memory_format=torch.channels_last).train()
        durations_s: list[float] = []
        for duration_s in _steps(recipe, config, network, sprites, target, precision):
            durations_s.append(duration_s)
            yield Progress(len(durations_s), 0, f"steps in {precision} on {device.name}")
            timed = durations_s[WARM_UP_STEPS:]
            if len(timed) >= LEAST_STEPS and sum(timed) >= LEAST_S:
                break
        compute_s = float(np.median(durations_s[WARM_UP_STEPS:]))
        yield DeviceMeasured(device.id, precision, count / compute_s, transfer_ms, 1000 * compute_s)


def _steps(
    recipe: Recipe, config: TrainingConfig, network: nn.Module, sprites: Sprites, target: torch.device, precision: str
) -> Iterator[float]:
    """Train without end; yields the seconds of each step, synchronised with the device."""
    data, rng = DeviceSprites(sprites, target), torch.Generator(target)
    optimizers, batch_size = make_optimizers(network, config, precision), AutoBatchSize(target, config.batch_size)
    scaler = LossScaler(network, optimizers, precision, target)
    step = 0
    while True:
        start, has_gradients = time.perf_counter(), False
        while not has_gradients:  # as training does: in micro-batches where the device has no room for the batch
            network.zero_grad(set_to_none=True)
            rng.manual_seed(step)
            with batch_size.room():
                batch = data.batch(step, config.batch_size, flip=config.flip, shift_px=config.shift_px, rng=rng)
                for micro_batch, numbers in batch.micro_batches(-(-config.batch_size // batch_size.count), rng):
                    with devices.autocast(target.type, precision):
                        share = recipe.weight(micro_batch) / recipe.weight(batch)
                        loss = recipe.loss(network, micro_batch, config, numbers) * share
                    scaler.scale(loss).backward()
                has_gradients = True
        scaler.unscale_gradients()
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_grad_norm)
        scaler.update(loss.detach(), norm)
        for optimizer in optimizers:
            optimizer.step()
        devices.synchronize(target)
        step += 1
        yield time.perf_counter() - start


def _transfer_ms(sprites: Sprites, target: torch.device) -> float:
    """Milliseconds to bring one float batch to the device."""
    batch = torch.from_numpy(sprites.rgba).float()
    durations_s = []
    for _ in range(5):
        start = time.perf_counter()
        batch.to(target, copy=True)
        devices.synchronize(target)
        durations_s.append(time.perf_counter() - start)
    return 1000 * float(np.median(durations_s))
