"""Compile: training steps with torch.compile and without, the cost of compiling, and when it pays back."""

import math
import shutil
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from studio.core.errors import StudioError
from studio.core.events import Events, Progress
from studio.core.formatting import describe_agreement, duration, number, percent
from studio.engine.devices.types import Device
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.experiments.sweep import SETUP, TimedTraining, milliseconds, sweep_in_turns
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot, Table

_COMPILERS = ("c++", "g++", "clang++", "cl")
_WARM_UP_STEPS = 3  # the second and third step may compile again
_LEAST_ROUNDS = 5
_LEAST_S = 10.0  # for the steps after compiling
_FASTER = 1.03  # a smaller speed-up is noise
_LONGEST_S = 3600.0  # of training: few trainings last longer
_CLOSE = 0.05  # rounding explains a smaller relative difference of losses
_PLOTTED_S = 600.0  # of training, if compiling never pays back
_CODE = SETUP + """
for title, model in (("eager", network), ("compiled", torch.compile(network))):
    for step in range(4):  # the first compiled step compiles
        start = time.perf_counter()
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()  # waits for a GPU
        print(f"{{title}}, step {{step}}: {{1000 * (time.perf_counter() - start):.1f}} ms")
"""  # fmt: skip


class Compile(Experiment):
    """Trains the same network from the same seed with and without torch.compile, in turns."""

    name = "compile"
    title = "Compile"
    question = "Does torch.compile pay off here, and when?"
    order = 60
    sets_obstacle = "Compiled steps on single sprites are timed; a model of sets trains on whole characters."
    seconds = 90.0
    _page = "https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html"
    read_on = ("Introduction to torch.compile", _page)
    plain = _CODE

    def obstacle(self, device: Device) -> str:
        if device.kind != "cpu":
            return ""  # PyTorch ships the compiler for GPUs
        if not any(map(shutil.which, _COMPILERS)):
            return "For a CPU, torch.compile needs a C++ compiler, for example g++."
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            return "For a CPU, torch.compile needs Python's headers: on Debian, the package python3-dev."
        return ""

    def run(self, context: ExperimentContext) -> Events:
        precision, start_s = context.precision(), time.perf_counter()
        eager, compiled = (TimedTraining(context.training(precision)) for _ in range(2))
        compiled.training.loss = torch.compile(compiled.training.loss)
        yield Progress(0, 0, "eager steps")
        eager.warm_up(_WARM_UP_STEPS)
        yield Progress(0, 0, "compiling, which can take a minute")
        try:
            compiled.warm_up(_WARM_UP_STEPS)
        except RuntimeError as error:
            reason = " ".join(str(error).partition("\n\n")[0].split())  # the first line only names the compiler
            raise StudioError("torch.compile failed.", reason) from error
        seconds = max(_LEAST_S, context.seconds - (time.perf_counter() - start_s))
        yield from sweep_in_turns((eager, compiled), TimedTraining.step, Outcome, seconds, _LEAST_ROUNDS)
        yield _conclusion(eager, compiled)


def _conclusion(eager: TimedTraining, compiled: TimedTraining) -> Outcome:
    cost_s = max(0.0, compiled.warm_up_s - _WARM_UP_STEPS * compiled.step_s)
    is_faster = eager.step_s / compiled.step_s > _FASTER
    steps = math.ceil(cost_s / (eager.step_s - compiled.step_s)) if is_faster else 0  # until it pays back
    sentences = tuple(_sentences(eager, compiled, cost_s, steps))
    return Outcome((_plot(eager, compiled, cost_s, steps),), (_table(eager, compiled),), sentences)


def _plot(eager: TimedTraining, compiled: TimedTraining, cost_s: float, steps: int) -> Plot:
    """Plot the training time in minutes by number of steps, including the time to compile."""
    ends = (0.0, float(2 * steps or math.ceil(_PLOTTED_S / eager.step_s)))
    plain = Line("eager", ends, tuple(step * eager.step_s / 60 for step in ends), dots=False)
    fused = Line("compiled", ends, tuple((cost_s + step * compiled.step_s) / 60 for step in ends), dots=False)
    marks = (Mark(float(steps), "pays back"),) if steps else ()
    return Plot("Training time, including compiling", Axis("steps"), Axis("minutes"), (plain, fused), marks)


def _table(eager: TimedTraining, compiled: TimedTraining) -> Table:
    named = (("eager", eager), ("compiled", compiled))
    rows = ((name, duration(one.warm_up_s), milliseconds(one.step_s), one.speed) for name, one in named)
    return Table(("", f">first {_WARM_UP_STEPS} steps", ">each later step", ">speed"), tuple(rows))


def _sentences(eager: TimedTraining, compiled: TimedTraining, cost_s: float, steps: int) -> Iterator[str]:
    times = eager.step_s / compiled.step_s
    slower = f"{1 / times:.3g} times as long" if times < 1 / _FASTER else "no faster"
    speed = f"{times:.3g} times as fast" if steps else slower
    took, plain = milliseconds(compiled.step_s), milliseconds(eager.step_s)
    yield f"A compiled step takes {took} instead of {plain}: {speed}. Compiling took {duration(cost_s)}."
    if not steps:
        yield "Compiling never pays off here: PyTorch's eager kernels already run this network at full speed."
    else:
        paid_s = steps * eager.step_s
        late = ", longer than most trainings" if paid_s > _LONGEST_S else ""
        yield f"Compiling pays off from step {number(steps)} on, after {duration(paid_s)} of training{late}."
    last, base = (float(training.losses[-1]) for training in (compiled, eager))
    difference = abs(last - base) / abs(base) if base else 0.0
    grown = f"{percent(difference)} apart: rounding errors have grown"
    agreement = describe_agreement(difference) if difference < _CLOSE else grown
    yield f"After {number(len(eager.losses))} steps from the same seed both losses are {agreement}."
    yield "The studio trains without torch.compile: training starts at once, and no compiler is needed."
