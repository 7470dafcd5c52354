"""Timing: warm-up, waiting for the device, spread, and what limits a training step."""

import dataclasses
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from studio.core.events import Events, Progress
from studio.core.formatting import percent
from studio.engine.devices import detection
from studio.lab.catalog import experiment
from studio.lab.experiments.base import TIMED_IMPORTS, ExperimentContext
from studio.lab.experiments.sweep import milliseconds
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.lessons.task import make_step, time_each
from studio.lab.outcome import Outcome, Table

_LIMITS = ("compute", "memory", "Python")
_SHARE = 0.3  # share of the time for timing steps; the rest goes to the roofline
_STARTER = """\
import statistics
import time


def time_step(step, synchronize):
    # 1. call step() and synchronize() a few times first
    # 2. then measure at least 5 times, and return the median in seconds
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


print(f"{1000 * time_step(lambda: sum(range(100_000)), lambda: None):.1f} ms")
"""
_ANSWER = _STARTER.replace(
    "    start = time.perf_counter()\n    step()\n    return time.perf_counter() - start\n",
    "    for _ in range(3):\n        step()\n        synchronize()\n    durations = []\n    for _ in range(7):\n"
    "        start = time.perf_counter()\n        step()\n        synchronize()\n"
    "        durations.append(time.perf_counter() - start)\n    return statistics.median(durations)\n",
)
_CODE = f"import statistics\n{TIMED_IMPORTS}" + """\
device = "{device}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())


def step():
    optimizer.zero_grad()
    nn.functional.mse_loss(network(x), x).backward()
    optimizer.step()


def synchronize():
    if device != "cpu":
        torch.accelerator.synchronize()  # waits until the device has finished


durations = []
for _ in range(12):
    synchronize()
    start = time.perf_counter()
    step()
    synchronize()
    durations.append(1000 * (time.perf_counter() - start))
first, later = durations[0], durations[3:]
low, *_, high = statistics.quantiles(later, n=10)
print(f"first step {{first:.1f}} ms, later {{statistics.median(later):.1f}} ms")
print(f"8 of 10 later steps: {{low:.1f}} to {{high:.1f}} ms")
"""  # fmt: skip


class _Fake:
    """A pretended device with its own clock: the first steps are slow, and the work ends only in `synchronize`."""

    def __init__(self) -> None:
        self.now_s, self.waiting_s, self.steps = 0.0, 0.0, 0

    def step(self) -> None:
        self.steps += 1
        self.now_s += 0.001
        self.waiting_s += 2.0 if self.steps <= 2 else 0.02 if self.steps % 4 else 0.5

    def synchronize(self) -> None:
        self.now_s += self.waiting_s
        self.waiting_s = 0.0


def _check(names: Mapping[str, Any]) -> str:
    """Time a pretended device, whose steps take 21 ms, with slow first steps and outliers."""
    fake, real = _Fake(), time.perf_counter
    time.perf_counter = lambda: fake.now_s
    try:
        found = float(names["time_step"](fake.step, fake.synchronize))
    finally:
        time.perf_counter = real
    if fake.steps < 6:
        return f"step() was called {fake.steps} times: warm up first, then measure at least 5 times."
    if abs(found - 0.021) < 1e-6:
        return ""
    if found < 0.02:
        return "The clock was read before the device had finished: call synchronize() after step()."
    return f"On a device whose steps take 21 ms, the function returns {1000 * found:,.0f} ms."


class Timing(Lesson):
    """Times a step in right and wrong ways, and runs the Lab's roofline experiment."""

    name = "timing"
    title = "Timing and the roofline"
    question = "What limits a training step of the studio's model on your device?"
    order = 80
    minutes = 12
    seconds = 15.0
    intro = (
        "Three things spoil a measured time. First, PyTorch prepares itself in the first steps; take some warm-up "
        "steps before you measure. Second, Python goes on while a GPU still computes; wait with "
        "torch.accelerator.synchronize() before you read the clock. Third, other programs disturb; measure often, and "
        "take the median, the value in the middle.",
        "What decides how long a step takes? A device computes a certain number of operations per second (compute) and "
        "moves a certain number of bytes per second (memory). Python needs some microseconds to start each operation. "
        "Computing, moving and starting each take time; the longest of the three limits the step.",
        "The roofline is a plot of the limits: operations per byte from left to right, operations per second upwards. "
        "A step that computes much with each byte lies at the right. "
        "Memory limits steps below the sloped part of the roof, compute limits steps below the flat part. Which of "
        "the three limits your step?",
    )
    prediction = Prediction(choices=_LIMITS)
    read_on = ("PyTorch Benchmark", "https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html")
    plain = _CODE
    gpu = (
        "On a GPU, Python limits the steps of small networks and batches; memory or compute limits the steps of large "
        "networks. Without synchronize() a GPU seems faster than it is: the clock then measures only how long "
        "Python takes to start the operations."
    )
    exercise = Exercise(
        task="time_step() measures only the first step, and does not wait for the device. Follow the comments to "
        "complete time_step().",
        starter=_STARTER,
        answer=_ANSWER,
        check=_check,
    )

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(0, 0, "timing steps of the small network")
        times, table = _timing(context, _SHARE * context.seconds)
        rest = dataclasses.replace(context, seconds=(1 - _SHARE) * context.seconds)
        for event in experiment("roofline").run(rest):
            if isinstance(event, Outcome):
                figures = {**times, **event.figures}
                tables, sentences = (table, *event.tables), event.sentences[:1]  # `explain` says the rest
                yield dataclasses.replace(event, tables=tables, sentences=sentences, figures=figures)
            else:
                yield event

    def measured(self, figures: Figures) -> Answer:
        return str(figures["limit"])

    def explain(self, figures: Figures, answer: Answer | None) -> Sequence[str]:
        first_s, later_s, handed_s = (float(figures[name]) for name in ("first_s", "median_s", "unsynchronized_s"))
        low_s, high_s = float(figures["low_s"]), float(figures["high_s"])
        waited = (
            "On a CPU, waiting for the device changes nothing: a CPU has finished when the line returns. Other "
            "programs can make the last time of the table differ from the median."
            if figures["device_kind"] == "cpu"
            else f"Without waiting for the device the step seems to take {milliseconds(handed_s)}, "
            f"{percent(handed_s / later_s)} of its real time."
        )
        return [
            f"The first step of the small network took {milliseconds(first_s)}, later ones {milliseconds(later_s)}: "
            f"the first took {first_s / later_s:,.3g} times as long. Eight of ten later steps took from "
            f"{milliseconds(low_s)} to {milliseconds(high_s)}; a smaller difference between two "
            "measurements proves nothing.",
            waited,
            *_limit_sentences(figures, answer),
        ]

    def card_text(self, figures: Figures) -> str:
        handed, real = milliseconds(float(figures["unsynchronized_s"])), milliseconds(float(figures["median_s"]))
        return f"{figures['limit']} limited the step; the small network's step took {real}, without waiting {handed}."


def _timing(context: ExperimentContext, seconds: float) -> tuple[dict[str, float | str], Table]:
    """Time the small network's step in several ways; return the figures and a table."""
    target = context.target
    step = make_step(context, target)
    first_s = time_each(step, target, 0.0, least=1)[0]
    time_each(step, target, seconds / 4)  # warm-up
    later_s = time_each(step, target, seconds / 2)
    handed_s = list[float]()
    for _ in later_s[:50]:
        start_s = time.perf_counter()
        step()
        handed_s.append(time.perf_counter() - start_s)
        detection.synchronize(target)
    low_s, *_, high_s = statistics.quantiles(later_s, n=10)
    figures: dict[str, float | str] = {
        "first_s": first_s, "median_s": statistics.median(later_s), "low_s": low_s, "high_s": high_s,
        "unsynchronized_s": statistics.median(handed_s), "device_kind": context.device.kind,
    }  # fmt: skip
    names = {
        "the first step": "first_s", "median after a warm-up": "median_s", "9 of 10 steps take longer than": "low_s",
        "9 of 10 steps take less than": "high_s", "median, not waiting for the device": "unsynchronized_s",
    }  # fmt: skip
    rows = tuple((name, milliseconds(float(figures[key]))) for name, key in names.items())
    return figures, Table(("a step of the small network", ">time"), rows)


def _limit_sentences(figures: Figures, answer: Answer | None) -> Iterator[str]:
    alone_s = {limit: float(figures[f"{limit.lower()}_s"]) for limit in _LIMITS}
    limit = str(figures["limit"])
    told = ", ".join(f"{name} {milliseconds(seconds)}" for name, seconds in alone_s.items())
    yield (
        f"A step of the studio's model takes {milliseconds(float(figures['step_s']))}. Each part alone would take: "
        f"{told}. The largest is {limit}."
    )
    if figures["unexplained"] == "yes":
        explained = percent(sum(alone_s.values()) / float(figures["step_s"]))
        yield (
            f"The three together are only {explained} of the step. The rest is small or uneven operations, or "
            "other programs that compute at the same time; close the programs and measure again."
        )
    else:
        yield str(figures["advice"])
    if second := str(figures["close"]):
        yield f"{second[:1].upper()}{second[1:]} is close behind: another measurement may name it instead."
    elif isinstance(answer, str) and answer != limit:
        share = alone_s[answer] / alone_s[limit]
        yield f"{answer[:1].upper()}{answer[1:]} alone would take only {percent(share)} of the time of {limit}."
