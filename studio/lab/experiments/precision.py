"""Precision: fp32 against 16 bits, in speed, in memory and in what is learnt."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator

from torch import Tensor

from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal, memory, percent, rate
from studio.engine.steps.bench_steps import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import Experiment, ExperimentContext, kept_bytes, loss_curve, loss_plot
from studio.lab.outcome import Line, Outcome, Plot, Table

_WARM_UP_STEPS, _LEAST_STEPS = 2, 6
_SMOOTHED = 1 / 20  # of all steps
_SHOW_EVERY_S = 1.0
_FASTER = 1.05  # times as fast has to be what is to be called faster
_SAME = 0.03  # losses that differ by less are those of the same training with other roundings
_CODE = """\
import time

import torch
from torch import nn

device = "{kind}"
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)

for dtype in (torch.float32, torch.bfloat16):  # torch.float16 needs a torch.amp.GradScaler
    torch.manual_seed(0)
    layers = nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1)
    network = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(network.parameters())
    for step in range(5):
        start = time.perf_counter()
        # The weights stay float32.
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            error = nn.functional.mse_loss(network(x).float(), x)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        loss = error.item()  # waits for a GPU
        seconds = time.perf_counter() - start
    print(f"{{dtype}}: {{1000 * seconds:.1f}} ms a step, loss {{loss:.4f}}")
"""


class Precision(Experiment):
    """Trains the same network from the same seed in each precision, in turns."""

    name = "precision"
    title = "Precision"
    question = "Is 16 bits faster here, and does it learn the same?"
    order = 40
    seconds = 60.0
    read_on = ("Automatic mixed precision", "https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html")
    plain = _CODE

    def run(self, bench: ExperimentContext) -> Events:
        names = ("fp32", "bf16") if bench.device.kind == "cpu" else ("fp32", "bf16", "fp16")
        runs = {name: _Run(bench.training(name)) for name in names}
        yield Progress(0, 0, "warm-up")
        step_s = sum(run.warm_up() for run in runs.values())
        steps = max(_LEAST_STEPS, int(bench.seconds / step_s))
        shown_s = time.perf_counter()
        for done in range(1, steps + 1):
            for run in runs.values():  # in turns: what else the computer does meets all of them alike
                run.take()
            if done == steps or time.perf_counter() - shown_s > TICK_S:
                yield Progress(done, steps, f"steps in {', '.join(names[:-1])} and {names[-1]}")
            if time.perf_counter() - shown_s > _SHOW_EVERY_S:
                shown_s = time.perf_counter()
                yield Outcome((_plot(runs),), (_table(runs, bench),))
        yield _outcome(runs, bench)

    def template_values(self, bench: ExperimentContext) -> dict[str, object]:
        return {"kind": bench.target.type}


class _Run:
    """A training in one precision. kept_bytes: what a step's forward pass keeps for the backward pass."""

    def __init__(self, training: BenchmarkTrainer) -> None:
        self.training, self.durations_s, self.kept_bytes = training, list[float](), 0
        self._losses = list[Tensor]()  # on the device

    def warm_up(self) -> float:
        """Take the first steps; returns the seconds of the last."""
        self.kept_bytes = kept_bytes(self._first)
        durations_s = []
        for _ in range(_WARM_UP_STEPS):
            durations_s.append(self.take())
        self.durations_s.clear()
        return durations_s[-1]

    def _first(self) -> None:
        self._losses.append(self.training.train_step())

    def take(self) -> float:
        """One step; returns its seconds."""
        start_s = time.perf_counter()
        loss = self.training.train_step()
        self._losses.append(loss.clone())
        self.training.wait()
        self.durations_s.append(time.perf_counter() - start_s)
        return self.durations_s[-1]

    def taken(self) -> int:
        """How many steps, those that warm up among them."""
        return len(self._losses)

    def step_s(self) -> float:
        """The median."""
        return statistics.median(self.durations_s)

    def curve(self) -> Line:
        """The smoothed losses up to the first that is no number."""
        return loss_curve(self.training.precision, self._losses, _SMOOTHED)


def _plot(runs: dict[str, _Run]) -> Plot:
    return loss_plot("Loss by precision, from the same seed", tuple(run.curve() for run in runs.values()))


def _table(runs: dict[str, _Run], bench: ExperimentContext) -> Table:
    rows = tuple(
        (name, rate(bench.config.batch_size / run.step_s()), f"{1000 * run.step_s():,.1f} ms", memory(run.kept_bytes))
        for name, run in runs.items()
    )
    return Table(("precision", ">speed", ">time a step", ">kept for the backward pass"), rows)


def _outcome(runs: dict[str, _Run], bench: ExperimentContext) -> Outcome:
    plot = _plot(runs)
    ends = {line.name: line.y[-1] if line.y else math.nan for line in plot.lines}
    step_s = {name: run.step_s() for name, run in runs.items()}
    sentences = [sentence for name in runs if name != "fp32" for sentence in _compared(name, runs, ends, bench)]
    alike = [name for name in runs if abs(ends[name] / ends["fp32"] - 1) <= _SAME]
    best = min(alike, key=lambda name: step_s[name], default="fp32")
    best = best if step_s["fp32"] >= _FASTER * step_s[best] else "fp32"
    used = bench.precision()
    sentences.append(f"The settings train in {used}." if best == used else f"The settings train in {used}, not {best}.")
    # fp16 is the settings' own choice alone, where a GPU is no good at bf16.
    suggests = {} if best in (used, "fp16") else {"precision": best}
    return Outcome((plot,), (_table(runs, bench),), tuple(sentences), suggests)


def _compared(name: str, runs: dict[str, _Run], ends: dict[str, float], bench: ExperimentContext) -> Iterator[str]:
    """How fast it is, what it keeps and what it has learnt, beside fp32."""
    run, base, size = runs[name], runs["fp32"], bench.config.batch_size
    times = base.step_s() / run.step_s()
    pace = "as fast as" if 1 / _FASTER < times < _FASTER else f"{times:.2g} times as fast as"
    yield (
        f"{name} is {pace} fp32 here: {rate(size / run.step_s())} against {rate(size / base.step_s())}. It keeps "
        f"{memory(run.kept_bytes)} for the backward pass; fp32 keeps {memory(base.kept_bytes)}."
    )
    if not math.isfinite(ends[name]):
        yield f"In {name} the loss stopped being a number."
        return
    apart = abs(ends[name] / ends["fp32"] - 1)
    yield (
        f"After {count(run.taken(), 'step')} from the same seed the losses are {decimal(ends[name])} and "
        f"{decimal(ends['fp32'])}, {'less than 0.1 %' if apart < 0.001 else percent(apart)} apart"
        f"{': both learn the same' if apart <= _SAME else ''}."
    )
