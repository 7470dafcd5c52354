"""Parts of experiments that measure training steps at several values of one setting."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

from studio.core.events import Events, Progress
from studio.engine.steps.bench_steps import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import ExperimentContext, loss_curve, seconds_in_turns
from studio.lab.outcome import Line, Outcome

V = TypeVar("V")

_SHOW_EVERY_S = 0.5
_SMOOTHING = 1 / 20  # of all steps, for the loss curve

# The start of the plain code of several experiments: sprites, a small network and an optimizer.
SETUP = """\
import time

import torch
from torch import nn

device = "{device}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())
"""


class Sweep(ABC, Generic[V]):
    """One run of an experiment that measures the same thing at several values, such as batch sizes."""

    def __init__(self, context: ExperimentContext) -> None:
        self.context, self.seconds = context, context.seconds
        self.start_s = time.perf_counter()

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return the values in the order in which they are measured, perhaps repeatedly."""

    @abstractmethod
    def measure(self, value: V) -> Generator[Progress, None, None]:
        """Measure one value and store the result."""

    @abstractmethod
    def summary(self) -> Outcome:
        """Return the plots and tables of the results so far."""

    @abstractmethod
    def conclusion(self) -> Outcome:
        """Return the final plots, tables and sentences."""

    def run(self) -> Events:
        """Measure all values: yields Progress, an Outcome now and then, and the conclusion."""
        told_s = shown_s = 0.0
        for value in self.values():
            for progress in self.measure(value):
                if time.perf_counter() - told_s > TICK_S:
                    told_s = time.perf_counter()
                    yield progress
            if time.perf_counter() - shown_s > _SHOW_EVERY_S:
                shown_s = time.perf_counter()
                yield self.summary()
        yield self.conclusion()

    @property
    def passed_s(self) -> float:
        """The seconds since the start of the measurement."""
        return time.perf_counter() - self.start_s

    def in_turns(self, values: Sequence[V], least_rounds: int) -> Iterator[V]:
        """Yield the values round after round until the experiment's time is over.

        In turns, because whatever else the computer does then slows down all values alike.
        """
        rounds = 0
        while rounds < least_rounds or self.passed_s < self.seconds:
            yield from values
            rounds += 1

    def progress(self) -> Progress:
        """Return the progress of a measurement in turns."""
        return seconds_in_turns(self.passed_s, self.seconds)


@dataclass(eq=False)
class TimedTraining:
    """A training whose steps are timed one by one."""

    training: BenchmarkTrainer
    warm_up_s: float = 0.0  # seconds of the first steps, which may compile or allocate
    durations_s: list[float] = field(default_factory=list)  # of the steps after the warm-up
    losses: list[Tensor] = field(default_factory=list)  # float32 [] on the device, of all steps

    def warm_up(self, steps: int) -> None:
        """Take the first steps; only their total time is kept."""
        for _ in range(steps):
            self.step()
        self.warm_up_s = sum(self.durations_s)
        self.durations_s.clear()

    def step(self) -> None:
        """Take a step and wait for the device."""
        self.training.wait()
        start_s = time.perf_counter()
        self.losses.append(self.training.train_step().clone())  # a CUDA graph overwrites its output
        self.training.wait()
        self.durations_s.append(time.perf_counter() - start_s)

    @property
    def step_s(self) -> float:
        """The median duration of a step."""
        return statistics.median(self.durations_s)

    @property
    def sprites_per_s(self) -> float:
        """The training speed."""
        return self.training.config.batch_size / self.step_s

    def curve(self, name: str) -> Line:
        """Return the smoothed loss curve, up to the first NaN or infinity."""
        return loss_curve(name, self.losses, _SMOOTHING)


def milliseconds(seconds: float) -> str:
    """Return the duration as text: 0.0371 -> '37.1 ms', 1.78 -> '1,780 ms'."""
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"
