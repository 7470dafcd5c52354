"""Loops and timers for experiments that measure training steps at several values of a setting."""

import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor

from studio.core.events import Events, Progress
from studio.core.formatting import rate
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import TIMED_IMPORTS, loss_curve, seconds_in_turns
from studio.lab.outcome import Line, Outcome

V = TypeVar("V")

_SHOW_EVERY_S = 0.5
_SMOOTHING = 1 / 20  # time constant of the loss curve as a share of the training

# Parts of the plain code of several experiments: sprites, a small network and an optimizer; and a timed training step.
SETUP = TIMED_IMPORTS + """\
device = "{device}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())
"""  # fmt: skip
TIMED_STEP = """\
        start = time.perf_counter()
        loss = nn.functional.mse_loss(network(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()  # waits for a GPU: without it the clock stops too early
        seconds = time.perf_counter() - start
"""


def sweep(
    values: Mapping[str, V], noun: str, measure: Callable[[V], Generator[Progress, None, bool]],
    summary: Callable[[], Outcome],
) -> Events:  # fmt: skip
    """Measure one value after the other until `measure` returns False; yields Progress and summaries.

    values: by the name to show in the progress. noun: a plural for the progress, such as 'batch sizes'.
    """
    for done, (name, value) in enumerate(values.items()):
        yield Progress(done, len(values), f"{noun}; now {name}")
        if not (yield from measure(value)):
            return
        yield Progress(done + 1, len(values), f"{noun}; now {name}")
        yield summary()


def sweep_in_turns(
    values: Sequence[V], measure: Callable[[V], object], summary: Callable[[], Outcome], seconds: float, rounds: int
) -> Events:
    """Measure values in turns, for `seconds` and at least `rounds`, so that other programs slow all alike."""
    start_s = told_s = shown_s = time.perf_counter()
    done = 0
    while done < rounds or time.perf_counter() - start_s < seconds:
        for value in values:
            measure(value)
            if (now_s := time.perf_counter()) - told_s > TICK_S:
                told_s = now_s
                yield seconds_in_turns(now_s - start_s, seconds)
        done += 1
        if time.perf_counter() - shown_s > _SHOW_EVERY_S:
            shown_s = time.perf_counter()
            yield summary()
    yield seconds_in_turns(seconds, seconds)


@dataclass(eq=False)
class TimedTraining:
    """A training that records the duration and loss of each step."""

    training: BenchmarkTrainer
    warm_up_s: float = 0.0  # seconds of the first steps, with compiling and allocation
    durations_s: list[float] = field(default_factory=list)  # of the steps after the warm-up
    losses: list[Tensor] = field(default_factory=list)  # float32 [] on the device, for every step

    def warm_up(self, steps: int) -> None:
        """Take the first steps, and record only their total time."""
        for _ in range(steps):
            self.step()
        self.warm_up_s = sum(self.durations_s)
        self.durations_s.clear()

    def step(self) -> None:
        """Take a training step, wait for the device, and record the duration and loss."""
        self.training.wait()
        start_s = time.perf_counter()
        self.losses.append(self.training.train_step().clone())  # a CUDA graph overwrites its output
        self.training.wait()
        self.durations_s.append(time.perf_counter() - start_s)

    @property
    def step_s(self) -> float:
        """The median duration of a step in seconds."""
        return statistics.median(self.durations_s)

    @property
    def sprites_per_s(self) -> float:
        """The training speed in sprites per second."""
        return self.training.config.batch_size / self.step_s

    @property
    def speed(self) -> str:
        """The training speed as text, such as '182 sprites/s'."""
        return rate(self.sprites_per_s, f"{self.training.recipe.noun}s")

    def curve(self, name: str) -> Line:
        """Return the smoothed loss curve, up to the first NaN or infinity."""
        return loss_curve(name, self.losses, _SMOOTHING)


def milliseconds(seconds: float) -> str:
    """Format a duration in milliseconds: 0.0371 -> '37.1 ms', 1.78 -> '1,780 ms'."""
    return f"{1000 * seconds:,.1f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"
