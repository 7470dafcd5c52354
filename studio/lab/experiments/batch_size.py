"""Batch size: how fast, how much memory, and where larger batches stop paying."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator
from dataclasses import dataclass

import torch

from studio.core.errors import DeviceFullError
from studio.core.events import Events, Progress
from studio.core.formatting import count, memory, number, percent, rate
from studio.engine.devices import detection
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table

SIZES = tuple(2**power for power in range(11))
_SLOWER = 0.9  # times the best speed is slower again, beyond what is noise
_WARM_UP_STEPS, _LEAST_STEPS, _MOST_STEPS = 1, 2, 40
_GROWTH = 2.2  # times as long takes a step of twice as many, at most
_MEMORY_SHARE = 0.8  # of what is free may be taken where too much of it would end the process
_CODE = """\
import time

import torch
from torch import nn

device = "{device}"
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())

for batch_size in (1, 4, 16, 64, 256):
    x = torch.rand(batch_size, 4, {size}, {size}, device=device)
    for step in range(4):  # the first step of a size is slower
        start = time.perf_counter()
        loss = nn.functional.mse_loss(network(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()  # waits until a GPU has done all that: only then the clock tells the truth
        seconds = time.perf_counter() - start
    print(f"{{batch_size:4}} sprites a step: {{batch_size / seconds:.0f}} sprites/s")
"""


@dataclass(frozen=True)
class _Measured:
    """A size of batch: the median of its steps, and the most memory that was in use."""

    size: int
    step_s: float
    memory_bytes: int

    @property
    def speed(self) -> float:
        return self.size / self.step_s


class BatchSize(Experiment):
    """Times training steps of 1, 2, 4 ... 1,024 sprites."""

    name = "batch-size"
    title = "Batch size"
    question = "Where do larger batches stop paying?"
    order = 20
    seconds = 60.0
    read_on = ("Performance tuning guide", "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html")
    plain = _CODE

    def run(self, bench: ExperimentContext) -> Events:
        precision, found, why = bench.precision(), list[_Measured](), ""
        start_s = time.perf_counter()
        for size in SIZES:
            left_s = bench.seconds - (time.perf_counter() - start_s)
            if why := _reason_to_stop(found, left_s, bench.target):
                break
            try:
                measured = yield from _measure(bench, precision, size, bench.seconds / 2 / len(SIZES))
            except DeviceFullError:
                if not found:
                    raise
                measured = None
            if measured is None:
                why = f"{number(size)} sprites don't fit into the memory of {bench.device.name}."
                break
            if not found:
                start_s = time.perf_counter()  # the first one pays for the start of everything
            found.append(measured)
            yield Outcome(_plots(found), (_table(found),))
        yield _outcome(found, why, bench)


def _reason_to_stop(found: list[_Measured], left_s: float, target: torch.device) -> str:
    """Why larger batches are not tried, in a sentence; empty where they are."""
    if not found:
        return ""
    step_s = _GROWTH * found[-1].step_s
    if (_WARM_UP_STEPS + _LEAST_STEPS) * step_s > left_s:
        return f"Larger batches than {number(found[-1].size)} were not tried: a step takes {found[-1].step_s:.1f} s."
    more_bytes = _GROWTH * (found[-1].memory_bytes - found[0].memory_bytes)
    if target.type == "cpu" and more_bytes > _MEMORY_SHARE * detection.memory_free(target):
        return f"Larger batches than {number(found[-1].size)} were not tried: the memory could run out."
    return ""


def _measure(
    bench: ExperimentContext, precision: str, size: int, seconds: float
) -> Generator[Progress, None, _Measured | None]:
    """Time steps of a size; yields Progress, returns None where it doesn't fit. Raises DeviceFullError."""
    torchs = torch.get_device_module(bench.target)
    has_peak = hasattr(torchs, "reset_peak_memory_stats")
    detection.empty_cache(bench.target)
    if has_peak:
        torchs.reset_peak_memory_stats(bench.target)
    training = bench.training(precision, use_graph=True, batch_size=size)  # as long as a run's steps
    durations_s: list[float] = []
    while len(timed := durations_s[_WARM_UP_STEPS:]) < _LEAST_STEPS or (
        sum(timed) < seconds and len(timed) < _MOST_STEPS
    ):
        durations_s.append(training.time_steps())
        yield Progress(SIZES.index(size), len(SIZES), f"sizes; {count(size, 'sprite')} a step")
    if training.micro_batch_size < size:
        return None
    in_use = torchs.max_memory_allocated(bench.target) if has_peak else detection.memory_in_use(bench.target)
    return _Measured(size, statistics.median(timed), in_use)


def _knee(rising: list[_Measured]) -> _Measured:
    """Where the speed, over the doublings of the size, is farthest above a straight line (Satopaa et al. 2011)."""
    first, last = rising[0].speed, rising[-1].speed
    if len(rising) < 3 or last <= first:
        return rising[-1]
    above = [(item.speed - first) / (last - first) - place / (len(rising) - 1) for place, item in enumerate(rising)]
    return rising[above.index(max(above))] if max(above) > 0 else rising[-1]


def _plots(found: list[_Measured], marks: tuple[Mark, ...] = ()) -> tuple[Plot, ...]:
    sizes, axis = tuple(float(item.size) for item in found), Axis("sprites a step", log=True)
    speed = Line("training", sizes, tuple(item.speed for item in found))
    megabytes = Line("memory", sizes, tuple(item.memory_bytes / 2**20 for item in found))
    return (
        Plot("Speed by batch size", axis, Axis("sprites/s"), (speed,), marks),
        Plot("Memory by batch size", axis, Axis("MB"), (megabytes,), marks),
    )


def _table(found: list[_Measured]) -> Table:
    rows = tuple(
        (number(item.size), _milliseconds(item.step_s), rate(item.speed), memory(item.memory_bytes)) for item in found
    )
    return Table((">sprites a step", ">time a step", ">speed", ">memory"), rows)


def _milliseconds(seconds: float) -> str:
    """0.0371 -> '37.1 ms', 1.78 -> '1,780 ms'."""
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


def _outcome(found: list[_Measured], why: str, bench: ExperimentContext) -> Outcome:
    best = max(found, key=lambda item: item.speed)
    knee = _knee(found[: found.index(best) + 1])
    sprites, speed = count(knee.size, "sprite"), rate(knee.speed)
    if knee is best:
        sentences = [f"Larger batches pay up to {sprites} a step, the best here: {speed}."]
    else:
        share = f"{percent(knee.speed / best.speed)} of the best speed here, that of {number(best.size)}"
        sentences = [f"At {sprites} a step larger batches stop paying: {speed}, {share}."]
    if knee is not found[0]:
        times = knee.speed / found[0].speed
        sentences.append(
            f"That is {times:.2g} times as many as one at a time, which costs each step's fixed work anew."
        )
    if best is not found[-1] and found[-1].speed < _SLOWER * best.speed:
        sentences.append(f"{number(found[-1].size)} are slower again: {rate(found[-1].speed)}.")
    fits = f"{number(found[-1].size)} still fit, in {memory(found[-1].memory_bytes)}."
    sentences += [why] if why else [fits]
    sentences.append(
        "A larger batch also takes fewer, smoother steps in the same time: what that does to learning, the curves show."
    )
    suggests = {} if knee.size == bench.config.batch_size else {"batch_size": knee.size}
    return Outcome(_plots(found, (Mark(knee.size, "stops paying"),)), (_table(found),), tuple(sentences), suggests)
