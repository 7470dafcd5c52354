"""Compile: steps by torch.compile beside the usual ones, what compiling costs, and when that is earned back."""

from __future__ import annotations

import math
import shutil
import statistics
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from studio.core.errors import StudioError
from studio.core.events import Events, Progress
from studio.core.formatting import describe_agreement, duration, number, percent, rate
from studio.engine.devices.types import Device
from studio.engine.steps.bench_steps import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import Experiment, ExperimentContext, seconds_in_turns
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table

_COMPILERS = ("c++", "g++", "clang++", "cl")
_WARM_UP_STEPS = 3  # what changes between two steps may be compiled anew
_LEAST_STEPS, _LEAST_S = 5, 10.0  # of both in turns, once all is compiled
_FASTER = 1.03  # times as fast: less is noise
_LONGEST_S = 3600.0  # of training: what pays back later pays back too late
_ALIKE = 0.05  # losses that differ by less
_PLOTTED_S = 600.0  # of training, where nothing is paid back
_CODE = """\
import time

import torch
from torch import nn

device = "{device}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())

for title, model in (("eager", network), ("compiled", torch.compile(network))):
    for step in range(4):  # the first step of the second compiles
        start = time.perf_counter()
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()  # waits for a GPU
        print(f"{{title}}, step {{step}}: {{1000 * (time.perf_counter() - start):.1f}} ms")
"""


class Compile(Experiment):
    """Trains the same network from the same seed with and without torch.compile, in turns."""

    name = "compile"
    title = "Compile"
    question = "Does torch.compile pay here, and when?"
    order = 60
    seconds = 90.0
    read_on = (
        "Introduction to torch.compile",
        "https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html",
    )
    plain = _CODE

    def obstacle(self, device: Device) -> str:
        if device.kind != "cpu":
            return ""  # what cards need comes with PyTorch
        if not any(map(shutil.which, _COMPILERS)):
            return "For a CPU, torch.compile needs a C++ compiler, such as g++."
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            return "For a CPU, torch.compile needs Python's headers: on Debian, the package python3-dev."
        return ""

    def run(self, bench: ExperimentContext) -> Events:
        precision, start_s = bench.precision(), time.perf_counter()
        eager, compiled = (_Steps(bench.training(precision)) for _ in range(2))
        compiled.training.loss = torch.compile(compiled.training.loss)
        yield Progress(0, 0, "the usual steps")
        eager.warm_up()
        yield Progress(0, 0, "a network is being compiled, which can take a minute")
        try:
            compiled.warm_up()
        except RuntimeError as error:
            why = " ".join(str(error).partition("\n\n")[0].split())  # more than the first line: that names the compiler
            raise StudioError("torch.compile has failed here.", why) from error
        seconds = max(_LEAST_S, bench.seconds - (time.perf_counter() - start_s))
        start_s = said_s = time.perf_counter()
        while (passed_s := time.perf_counter() - start_s) < seconds or len(eager.durations_s) < _LEAST_STEPS:
            for steps in (eager, compiled):  # in turns: what else the computer does meets both alike
                steps.take()
            if time.perf_counter() - said_s > TICK_S:
                said_s = time.perf_counter()
                yield seconds_in_turns(passed_s, seconds)
        yield _outcome(eager, compiled, bench)


@dataclass(eq=False)
class _Steps:
    """Steps of a training. first_s: seconds of those that warm up, in which what is compiled is compiled."""

    training: BenchmarkTrainer
    first_s: float = 0.0
    durations_s: list[float] = field(default_factory=list)
    loss: float = 0.0  # of the last step

    def warm_up(self) -> None:
        """Take the first steps."""
        self.first_s = sum(self.training.time_steps() for _ in range(_WARM_UP_STEPS))

    def take(self) -> None:
        """One more."""
        start_s = time.perf_counter()
        self.loss = float(self.training.train_step())  # waits for the device
        self.durations_s.append(time.perf_counter() - start_s)

    @property
    def step_s(self) -> float:
        """The median."""
        return statistics.median(self.durations_s)


def _outcome(eager: _Steps, compiled: _Steps, bench: ExperimentContext) -> Outcome:
    cost_s = max(0.0, compiled.first_s - _WARM_UP_STEPS * compiled.step_s)
    times = eager.step_s / compiled.step_s
    steps = math.ceil(cost_s / (eager.step_s - compiled.step_s)) if times > _FASTER else 0  # that pay it back
    sentences = tuple(_sentences(eager, compiled, cost_s, steps))
    return Outcome((_plot(eager, compiled, cost_s, steps),), (_table(eager, compiled, bench),), sentences)


def _plot(eager: _Steps, compiled: _Steps, cost_s: float, steps: int) -> Plot:
    """The minutes that so many steps take, what is compiled first included."""
    ends = (0.0, float(2 * steps or math.ceil(_PLOTTED_S / eager.step_s)))
    lines = (
        Line("eager", ends, tuple(step * eager.step_s / 60 for step in ends), dots=False),
        Line("compiled", ends, tuple((cost_s + step * compiled.step_s) / 60 for step in ends), dots=False),
    )
    marks = (Mark(float(steps), "pays from here on"),) if steps else ()
    return Plot("Time by steps, compiling included", Axis("steps"), Axis("minutes"), lines, marks)


def _table(eager: _Steps, compiled: _Steps, bench: ExperimentContext) -> Table:
    rows = tuple(
        (name, duration(steps.first_s), f"{1000 * steps.step_s:,.1f} ms", rate(bench.config.batch_size / steps.step_s))
        for name, steps in (("eager", eager), ("compiled", compiled))
    )
    return Table(("", f">first {_WARM_UP_STEPS} steps", ">a step after that", ">speed"), rows)


def _sentences(eager: _Steps, compiled: _Steps, cost_s: float, steps: int) -> Iterator[str]:
    times = eager.step_s / compiled.step_s
    slower = f"{1 / times:.3g} times as long" if times < 1 / _FASTER else "no faster"
    how = f"{times:.3g} times as fast" if steps else slower
    yield (
        f"Compiled, a step takes {1000 * compiled.step_s:,.1f} ms instead of {1000 * eager.step_s:,.1f} ms: {how}. To "
        f"compile it took {duration(cost_s)}."
    )
    if not steps:
        yield "So it never pays here: PyTorch's own kernels are as good for this network on this device."
    else:
        paid_s = steps * eager.step_s
        late = ", longer than most trainings are" if paid_s > _LONGEST_S else ""
        yield f"It pays from step {number(steps)} on, after {duration(paid_s)} of training{late}."
    apart = abs(compiled.loss - eager.loss) / abs(eager.loss) if eager.loss else 0.0
    taken = len(eager.durations_s) + _WARM_UP_STEPS
    yield f"After {number(taken)} steps from the same seed the losses of both are {_alike(apart)}."
    yield "The studio trains without it: nobody has to wait for the first step, or to have a compiler."


def _alike(apart: float) -> str:
    """How near two losses are that differ by this share."""
    return describe_agreement(apart) if apart < _ALIKE else f"{percent(apart)} apart: roundings that differ have grown"
