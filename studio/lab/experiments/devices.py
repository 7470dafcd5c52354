"""Devices: training, evaluation and drawing on each device, and where the time of a training step goes."""

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
from studio.engine.steps.batches import device_examples
from studio.engine.steps.benchmark import BenchmarkTrainer, StepTimes, transfer_ms
from studio.lab.experiments.base import TIMED_IMPORTS, Experiment, ExperimentContext
from studio.lab.experiments.sweep import TIMED_STEP, sweep
from studio.lab.outcome import Outcome, Table
from studio.recipes.base import Spec

_WARM_UP_STEPS, _LEAST_STEPS = 2, 3
_DRAWN, _DRAWING = 16, GenerateSettings(seed=0)
_EVALUATED = 256  # sprites
_PARTS = {"batch_s": "batch", "forward_s": "forward", "backward_s": "backward", "optimizer_s": "optimizer"}
_CODE = TIMED_IMPORTS + """\
devices = ["cpu", *(f"cuda:{{number}}" for number in range(torch.cuda.device_count()))]
devices += ["mps"] if torch.backends.mps.is_available() else []

for device in devices:
    layers = nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1)
    network = nn.Sequential(*layers).to(device)  # the model and its batches are on one device
    optimizer = torch.optim.AdamW(network.parameters())
    x = torch.rand({batch_size}, 4, {size}, {size}).to(device)
    for step in range(5):
""" + TIMED_STEP + """\
    print(f"{{device}}: {{len(x) / seconds:.0f}} sprites/s")
"""  # fmt: skip


@dataclass(frozen=True)
class DeviceTiming:
    """Measurements of a device in one precision."""

    device: Device
    precision: str
    times: StepTimes  # medians
    transfer_ms: float  # to copy a batch to the device
    evaluated_per_s: float  # sprites per second
    drawn_per_s: float | None  # None if the model draws no sprites


class Devices(Experiment):
    """Measures training, evaluation and drawing on every device, in every suitable precision."""

    name = "devices"
    title = "Devices"
    question = "Which device is fastest, and where does the time of a step go?"
    order = 10
    sets_obstacle = "The evaluation is timed on single sprites; a model of sets needs whole characters."
    seconds = 40.0
    read_on = ("torch.accelerator", "https://docs.pytorch.org/docs/stable/accelerator.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        all_devices = (device for device in detection.list_devices() if not device.problem)
        every = [(device, precision) for device in all_devices for precision in ("fp32", "bf16", "fp16")]
        pairs = [pair for pair in every if (pair[0].kind, pair[1]) != ("cpu", "fp16")]  # a CPU's slowest precision
        timings, failures = list[DeviceTiming](), list[str]()

        def measure(pair: tuple[Device, str]) -> Generator[Progress, None, bool]:
            device, precision = pair
            try:
                with detection.wrap_device_errors(device.torch):
                    timings.append((yield from _measure(context, device, precision, context.seconds / len(pairs))))
            except DeviceError as error:
                failures.append(f"{device.name} in {precision}: {error.title}")
            return True

        values = {f"{device.name} in {precision}": (device, precision) for device, precision in pairs}
        yield from sweep(values, "devices and precisions", measure, lambda: Outcome((), _tables(timings, context)))
        yield _conclusion(timings, failures, context)


def _measure(
    context: ExperimentContext, device: Device, precision: str, seconds: float
) -> Generator[Progress, None, DeviceTiming]:
    if device.kind == "cpu":
        torch.set_num_threads(context.config.threads or device.threads or torch.get_num_threads())
    target, start_s = device.torch, time.perf_counter()
    training = BenchmarkTrainer(context.recipe, context.config, context.sprites, target, precision)
    steps: list[StepTimes] = []
    while len(steps) < _WARM_UP_STEPS + _LEAST_STEPS or time.perf_counter() - start_s < seconds / 2:
        steps.append(training.step_timed()[1])
        yield Progress(len(steps), 0, f"steps on {device.name} in {precision}")
    timed = steps[_WARM_UP_STEPS:]
    medians = StepTimes(**{part: float(np.median([getattr(step, part) for step in timed])) for part in _PARTS})
    indices = np.arange(context.config.batch_size) % len(context.sprites)
    moved_ms = transfer_ms(context.sprites.take(indices), target)
    yield Progress(len(steps), 0, f"evaluation and drawing on {device.name} in {precision}")
    drawn_per_s = _drawn_per_s(training) if context.recipe.makes == "sprites" else None
    return DeviceTiming(device, precision, medians, moved_ms, _evaluated_per_s(context, training), drawn_per_s)


@torch.no_grad()
def _evaluated_per_s(context: ExperimentContext, training: BenchmarkTrainer) -> float:
    data = device_examples(context.recipe, context.sprites, training.device)
    number = min(_EVALUATED, len(context.sprites))
    durations_s = []
    for _ in range(2):  # the first is the warm-up
        start_s = time.perf_counter()
        with autocast(training.device.type, training.precision):
            batches = data.plain_batches(context.config.batch_size, number)
            context.recipe.evaluate(training.ema.network, batches, context.config, Spec.of(context.sprites))
        training.wait()
        durations_s.append(time.perf_counter() - start_s)
    return number / durations_s[-1]


@torch.no_grad()
def _drawn_per_s(training: BenchmarkTrainer) -> float:
    labels, start_s = torch.zeros(_DRAWN, dtype=torch.int64, device=training.device), time.perf_counter()
    with autocast(training.device.type, training.precision):
        for _ in training.recipe.draw(training.ema.network, labels, _DRAWING.guidance, _DRAWING.steps, _DRAWING.seed):
            pass
    training.wait()
    return _DRAWN / (time.perf_counter() - start_s)


def _tables(timings: list[DeviceTiming], context: ExperimentContext) -> tuple[Table, ...]:
    size = context.config.batch_size
    speeds, parts = [], []
    for item in timings:
        name, drawn = f"{item.device.id}, {item.precision}", item.drawn_per_s
        drawing = () if drawn is None else (rate(drawn),)
        speeds.append((name, rate(size / item.times.total_s), rate(item.evaluated_per_s), *drawing))
        spent = (f"{1000 * getattr(item.times, part):,.1f} ms" for part in _PARTS)
        parts.append((name, *spent, f"{item.transfer_ms:.2f} ms"))
    if not timings:
        return ()
    columns = ("device", ">training", ">evaluation", ">drawing")[: len(speeds[0])]
    spent_on = (f">{part}" for part in _PARTS.values())
    return Table(columns, tuple(speeds)), Table(("time per step", *spent_on, ">transfer of a batch"), tuple(parts))


def _conclusion(timings: list[DeviceTiming], failures: list[str], context: ExperimentContext) -> Outcome:
    if not timings:
        raise DeviceError("The measurement failed on every device.", " ".join(failures))
    best, *slower = sorted(timings, key=lambda item: item.times.total_s)
    size, total_s = context.config.batch_size, best.times.total_s
    sentences = [f"{best.device.name} in {best.precision} trains fastest: {rate(size / total_s)}."]
    fastest = {item.device.id: item for item in reversed(slower) if item.device.id != best.device.id}
    for other in (fastest[name] for name in dict.fromkeys(item.device.id for item in timings) if name in fastest):
        times = other.times.total_s / total_s
        sentences.append(f"That is {times:.2g} times as fast as {other.device.name} in {other.precision}.")
    if not fastest:
        sentences.append("This computer has no other device for a comparison, for example a GPU.")
    shares = ", ".join(f"{name} {percent(getattr(best.times, part) / total_s)}" for part, name in _PARTS.items())
    sentences.append(f"A step takes {1000 * total_s:,.1f} ms: {shares}.")
    transfer = "No transfer is needed: the CPU reads the sprites from the same memory."
    if best.device.kind != "cpu":
        transfer = f"A data loader would add {best.transfer_ms:.2f} ms to each step to copy {count(size, 'sprite')} to "
        transfer += "the device. The studio copies all sprites once, before training."
    sentences.append(transfer)
    return Outcome((), _tables(timings, context), (*sentences, *failures))
