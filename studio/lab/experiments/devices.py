"""Devices: the same training, evaluation and drawing on each, and where the time of a step goes."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch

from studio.core.errors import DeviceError
from studio.core.events import Events, Progress
from studio.core.formatting import count, percent, rate
from studio.engine.devices import detection
from studio.engine.devices.precision import autocast
from studio.engine.devices.types import Device
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import DeviceSprites
from studio.engine.steps.bench_steps import BenchmarkTrainer, StepTimes
from studio.engine.steps.benchmark import transfer_ms
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome, Table
from studio.recipes.base import Spec

_WARM_UP_STEPS, _LEAST_STEPS = 2, 3
_DRAWN, _DRAWING = 16, GenerateSettings(seed=0)
_EVALUATED = 256  # sprites
_PARTS = {"batch_s": "batch", "forward_s": "forward", "backward_s": "backward", "optimizer_s": "optimizer"}
_CODE = """\
import time

import torch
from torch import nn

devices = ["cpu", *(f"cuda:{{number}}" for number in range(torch.cuda.device_count()))]
devices += ["mps"] if torch.backends.mps.is_available() else []

for device in devices:
    layers = nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1)
    network = nn.Sequential(*layers).to(device)  # the model and its batches are on one device
    optimizer = torch.optim.AdamW(network.parameters())
    x = torch.rand({batch_size}, 4, {size}, {size}).to(device)
    for step in range(5):
        start = time.perf_counter()
        loss = nn.functional.mse_loss(network(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()  # waits until a GPU has done all that
        seconds = time.perf_counter() - start
    print(f"{{device}}: {{len(x) / seconds:.0f}} sprites/s")
"""


@dataclass(frozen=True)
class _Measured:
    """A device in one precision. times: the median of each part. drawn_per_s: None for a recipe that draws nothing."""

    device: Device
    precision: str
    times: StepTimes
    transfer_ms: float
    evaluated_per_s: float
    drawn_per_s: float | None


class Devices(Experiment):
    """Does the same work on every device, in every precision that it may be used in."""

    name = "devices"
    title = "Devices"
    question = "Which device is fastest, and where does the time of a step go?"
    order = 10
    seconds = 40.0
    read_on = ("torch.accelerator", "https://docs.pytorch.org/docs/stable/accelerator.html")
    plain = _CODE

    def run(self, bench: ExperimentContext) -> Events:
        kinds = [
            (device, precision)
            for device in detection.list_devices()
            if not device.problem
            for precision in _of(device)
        ]
        found, failed = list[_Measured](), list[str]()
        for place, (device, precision) in enumerate(kinds):
            yield Progress(place, len(kinds), f"devices and precisions; {device.name} in {precision}")
            try:
                with detection.wrap_device_errors(device.torch):
                    found.append((yield from _measure(bench, device, precision, bench.seconds / len(kinds))))
            except DeviceError as error:
                failed.append(f"{device.name} in {precision}: {error.title}")
            yield Progress(place + 1, len(kinds), f"devices and precisions; {device.name} in {precision}")
            yield Outcome((), _tables(found, bench))
        yield _outcome(found, failed, bench)


def _of(device: Device) -> tuple[str, ...]:
    """The precisions to try: on a CPU fp16 is slower than all others."""
    return ("fp32", "bf16") if device.kind == "cpu" else ("fp32", "bf16", "fp16")


def _measure(
    bench: ExperimentContext, device: Device, precision: str, seconds: float
) -> Generator[Progress, None, _Measured]:
    if device.kind == "cpu":
        torch.set_num_threads(bench.config.threads or device.threads or torch.get_num_threads())
    target, start_s = device.torch, time.perf_counter()
    training = BenchmarkTrainer(bench.recipe, bench.config, bench.sprites, target, precision)
    steps: list[StepTimes] = []
    while len(steps) < _WARM_UP_STEPS + _LEAST_STEPS or time.perf_counter() - start_s < seconds / 2:
        steps.append(training.step_timed()[1])
        yield Progress(len(steps), 0, f"steps on {device.name} in {precision}")
    timed = steps[_WARM_UP_STEPS:]
    medians = StepTimes(**{part: float(np.median([getattr(step, part) for step in timed])) for part in _PARTS})
    moved_ms = transfer_ms(bench.sprites.take(np.arange(bench.config.batch_size) % len(bench.sprites)), target)
    yield Progress(len(steps), 0, f"evaluation and drawing on {device.name} in {precision}")
    drawn_per_s = _drawn_per_s(training) if bench.recipe.makes == "sprites" else None
    return _Measured(device, precision, medians, moved_ms, _evaluated_per_s(bench, training), drawn_per_s)


@torch.no_grad()
def _evaluated_per_s(bench: ExperimentContext, training: BenchmarkTrainer) -> float:
    """Sprites a second, without gradients."""
    data, number = DeviceSprites(bench.sprites, training.device), min(_EVALUATED, len(bench.sprites))
    durations_s = []
    for _ in range(2):  # the first one pays for the start
        start_s = time.perf_counter()
        with autocast(training.device.type, training.precision):
            batches = data.plain_batches(bench.config.batch_size, number)
            bench.recipe.evaluate(training.ema.network, batches, bench.config, Spec.of(bench.sprites))
        training.wait()
        durations_s.append(time.perf_counter() - start_s)
    return number / durations_s[-1]


@torch.no_grad()
def _drawn_per_s(training: BenchmarkTrainer) -> float:
    """Sprites a second."""
    labels, start_s = torch.zeros(_DRAWN, dtype=torch.int64, device=training.device), time.perf_counter()
    with autocast(training.device.type, training.precision):
        for _ in training.recipe.draw(training.ema.network, labels, _DRAWING.guidance, _DRAWING.steps, _DRAWING.seed):
            pass
    training.wait()
    return _DRAWN / (time.perf_counter() - start_s)


def _tables(found: list[_Measured], bench: ExperimentContext) -> tuple[Table, ...]:
    """How fast each is, and the parts of its step."""
    size = bench.config.batch_size
    speeds, parts = [], []
    for item in found:
        name, drawn = f"{item.device.id}, {item.precision}", item.drawn_per_s
        drawing = () if drawn is None else (rate(drawn),)
        speeds.append((name, rate(size / item.times.total_s), rate(item.evaluated_per_s), *drawing))
        spent = (f"{1000 * getattr(item.times, part):,.1f} ms" for part in _PARTS)
        parts.append((name, *spent, f"{item.transfer_ms:.2f} ms"))
    if not found:
        return ()
    columns = ("device", ">training", ">evaluation", ">drawing")[: len(speeds[0])]
    spent_on = (f">{part}" for part in _PARTS.values())
    return Table(columns, tuple(speeds)), Table(("a step", *spent_on, ">transfer of a batch"), tuple(parts))


def _outcome(found: list[_Measured], failed: list[str], bench: ExperimentContext) -> Outcome:
    if not found:
        raise DeviceError("No device could do it.", " ".join(failed))
    best = min(found, key=lambda item: item.times.total_s)
    size = bench.config.batch_size
    sentences = [f"{best.device.name} in {best.precision} trains fastest: {rate(size / best.times.total_s)}."]
    others = {item.device.id: item for item in found if item.device.id != best.device.id}
    for number in others:
        other = min((item for item in found if item.device.id == number), key=lambda item: item.times.total_s)
        times = other.times.total_s / best.times.total_s
        sentences.append(f"That is {times:.2g} times as fast as {other.device.name} in {other.precision}.")
    if not others:
        sentences.append("It is the only device here: a graphics card would stand beside it.")
    total_s = best.times.total_s
    shares = ", ".join(f"{name} {percent(getattr(best.times, part) / total_s)}" for part, name in _PARTS.items())
    sentences.append(f"Where its step of {1000 * total_s:,.1f} ms goes: {shares}.")
    if best.device.kind == "cpu":
        sentences.append("Nothing must be moved to it: its memory is where the sprites are.")
    else:
        sentences.append(
            f"To bring a batch of {count(size, 'sprite')} there in each step, as a loader does, would cost "
            f"{best.transfer_ms:.2f} ms more; the studio brings all sprites there once."
        )
    return Outcome((), _tables(found, bench), (*sentences, *failed))
