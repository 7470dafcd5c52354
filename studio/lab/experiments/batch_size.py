"""Batch size: speed and memory by batch size, and where larger batches stop being faster."""

import statistics
import time
from collections.abc import Generator
from dataclasses import dataclass

import torch

from studio.core.errors import DeviceFullError
from studio.core.events import Events, Progress
from studio.core.formatting import count, memory, number, percent, rate
from studio.engine.devices import detection
from studio.lab.experiments.base import TIMED_IMPORTS, Experiment, ExperimentContext
from studio.lab.experiments.sweep import TIMED_STEP, milliseconds, sweep
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table

SIZES = tuple(2**power for power in range(11))
_SLOWER = 0.9  # times the best speed: a smaller drop is noise
_WARM_UP_STEPS, _LEAST_STEPS, _MOST_STEPS = 1, 2, 40
_GROWTH = 2.2  # upper limit for the growth of time and memory when the batch size doubles
_MEMORY_SHARE = 0.8  # usable share of the free memory of a CPU: the system kills processes that exceed the rest
_CODE = TIMED_IMPORTS + """\
device = "{device}"
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())

for batch_size in (1, 4, 16, 64, 256):
    x = torch.rand(batch_size, 4, {size}, {size}, device=device)
    for step in range(4):  # the first step of a size is slower
""" + TIMED_STEP + """\
    print(f"batch size {{batch_size:4}}: {{batch_size / seconds:.0f}} sprites/s")
"""  # fmt: skip


class BatchSize(Experiment):
    """Measures the speed and memory of training steps with 1, 2, 4 ... 1,024 sprites."""

    name = "batch-size"
    title = "Batch size"
    question = "What is the largest useful batch size?"
    order = 20
    sets_obstacle = ""
    seconds = 60.0
    read_on = ("Performance tuning guide", "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        timings, stop_reason, precision, noun = list[BatchTiming](), "", context.precision(), context.recipe.noun
        start_s = time.perf_counter()

        def measure(size: int) -> Generator[Progress, None, bool]:
            nonlocal stop_reason, start_s
            left_s = context.seconds - (time.perf_counter() - start_s)
            if stop_reason := _stop_reason(timings, left_s, context.target):
                return False
            try:
                timing = yield from _measure(context, precision, size)
            except DeviceFullError:
                if not timings:
                    raise
                timing = None
            if timing is None:
                stop_reason = f"{number(size)} {noun}s don't fit into the memory of {context.device.name}."
                return False
            if not timings:
                start_s = time.perf_counter()  # the first size pays for the start-up of the device
            timings.append(timing)
            return True

        sizes = {count(size, noun): size for size in SIZES}
        yield from sweep(
            sizes, "batch sizes", measure, lambda: Outcome(_plots(timings, noun), (_table(timings, noun),))
        )
        yield _conclusion(timings, stop_reason, context)


@dataclass(frozen=True)
class BatchTiming:
    """Measurements of one batch size: the median time of a step, and the peak memory in use."""

    size: int
    step_s: float
    memory_bytes: int

    @property
    def speed(self) -> float:
        """The training speed in sprites per second."""
        return self.size / self.step_s


def _stop_reason(timings: list[BatchTiming], left_s: float, target: torch.device) -> str:
    if not timings:
        return ""
    last = timings[-1]
    if (_WARM_UP_STEPS + _LEAST_STEPS) * _GROWTH * last.step_s > left_s:
        return f"Batches above {number(last.size)} were not tried: a step already takes {last.step_s:.1f} s."
    more_bytes = _GROWTH * (last.memory_bytes - timings[0].memory_bytes)
    if target.type == "cpu" and more_bytes > _MEMORY_SHARE * detection.memory_free(target):
        return f"Batches above {number(last.size)} were not tried: the memory could run out."
    return ""


def _measure(context: ExperimentContext, precision: str, size: int) -> Generator[Progress, None, BatchTiming | None]:
    """Time steps of one batch size; None if it fits only in parts. Yields Progress. Raises DeviceFullError."""
    backend, seconds = torch.get_device_module(context.target), context.seconds / 2 / len(SIZES)
    has_peak = hasattr(backend, "reset_peak_memory_stats")
    detection.empty_cache(context.target)
    if has_peak:
        backend.reset_peak_memory_stats(context.target)
    training = context.training(precision, use_graph=True, batch_size=size)  # with CUDA graphs, like a run
    durations_s: list[float] = []
    timed: list[float] = []
    while len(timed) < _LEAST_STEPS or (sum(timed) < seconds and len(timed) < _MOST_STEPS):
        durations_s.append(training.time_steps())
        timed = durations_s[_WARM_UP_STEPS:]
        yield Progress(SIZES.index(size), len(SIZES), f"batch sizes; now {count(size, context.recipe.noun)}")
    if training.micro_batch_size < size:
        return None
    in_use = backend.max_memory_allocated(context.target) if has_peak else detection.memory_in_use(context.target)
    return BatchTiming(size, statistics.median(timed), in_use)


def _knee(rising: list[BatchTiming]) -> BatchTiming:
    """Return the size where speed over log2(size) is farthest above a line: the knee (Satopaa et al. 2011)."""
    first, last = rising[0].speed, rising[-1].speed
    if len(rising) < 3 or last <= first:
        return rising[-1]
    above = [(item.speed - first) / (last - first) - index / (len(rising) - 1) for index, item in enumerate(rising)]
    return rising[above.index(max(above))] if max(above) > 0 else rising[-1]


def _plots(timings: list[BatchTiming], noun: str, marks: tuple[Mark, ...] = ()) -> tuple[Plot, ...]:
    sizes, axis = tuple(float(item.size) for item in timings), Axis("batch size", log=True)
    speed = Line("training", sizes, tuple(item.speed for item in timings))
    megabytes = Line("memory", sizes, tuple(item.memory_bytes / 2**20 for item in timings))
    speeds = Plot("Speed by batch size", axis, Axis(f"{noun}s/s"), (speed,), marks)
    return speeds, Plot("Memory by batch size", axis, Axis("MB"), (megabytes,), marks)


def _table(timings: list[BatchTiming], noun: str) -> Table:
    rows = []
    for item in timings:
        speed = rate(item.speed, f"{noun}s")
        rows.append((number(item.size), milliseconds(item.step_s), speed, memory(item.memory_bytes)))
    return Table((">batch size", ">time per step", ">speed", ">memory"), tuple(rows))


def _conclusion(timings: list[BatchTiming], stop_reason: str, context: ExperimentContext) -> Outcome:
    best, first, last = max(timings, key=lambda item: item.speed), timings[0], timings[-1]
    noun = context.recipe.noun
    knee = _knee(timings[: timings.index(best) + 1])
    speed = rate(knee.speed, f"{noun}s")
    if knee is best:
        sentences = [f"Speed rises up to a batch size of {number(knee.size)}: {speed}."]
    else:
        share = f"{percent(knee.speed / best.speed)} of the best speed, at {number(best.size)}"
        sentences = [f"Above a batch size of {number(knee.size)} speed hardly rises: {speed}, {share}."]
    if knee is not first:
        times = knee.speed / first.speed
        sentences.append(f"That is {times:.2g} times as fast as one {noun} per step: each step has fixed costs.")
    if best is not last and last.speed < _SLOWER * best.speed:
        sentences.append(f"A batch size of {number(last.size)} is slower again: {rate(last.speed, f'{noun}s')}.")
    sentences += [
        stop_reason or f"A batch size of {number(last.size)} still fits, in {memory(last.memory_bytes)}.",
        "Larger batches also mean fewer, less noisy updates in the same time. Compare loss curves to see the effect on "
        "learning.",
    ]
    suggests = {} if knee.size == context.config.batch_size else {"batch_size": knee.size}
    marks = (Mark(knee.size, "largest useful size"),)
    return Outcome(_plots(timings, noun, marks), (_table(timings, noun),), tuple(sentences), suggests)
