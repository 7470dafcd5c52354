"""Learning rate: a range test (Smith 2017), which raises the rate step by step until training falls apart."""

from __future__ import annotations

import time
from collections.abc import Generator

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.curves import smooth_curve
from studio.core.events import Events, Progress
from studio.core.formatting import decimal, number
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import Experiment, ExperimentContext, while_finite
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot

_LOWEST, _HIGHEST = 1e-6, 1.0
_FEWEST_STEPS, _MOST_STEPS = 60, 600
_FALLEN_APART = 4.0  # times the lowest loss, smoothed
_SMOOTHED = 1 / 25  # of all steps
_SAFE = 0.1  # of the rate with the lowest loss: at that one itself it is about to rise
_SHOW_EVERY_S = 0.5
_CODE = """\
import torch
from torch import nn

device, steps = "{device}", 100
x = torch.rand({batch_size}, 4, {size}, {size}, device=device)
network = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1))
network.to(device)
optimizer = torch.optim.AdamW(network.parameters())

rates = torch.logspace(-6, 0, steps).tolist()
losses = []
for rate in rates:
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss = nn.functional.mse_loss(network(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())  # .item() would wait for a GPU in each step
losses = torch.stack(losses).cpu()
print(f"lowest loss at a rate of {{rates[losses.argmin()]:.1g}}")
"""


class LearningRate(Experiment):
    """Raises the learning rate from next to nothing to far too much, and watches the loss."""

    name = "learning-rate"
    title = "Learning rate"
    question = "How large may the learning rate be?"
    order = 25
    seconds = 60.0
    read_on = ("Optimizers and their rates", "https://docs.pytorch.org/docs/stable/optim.html")
    plain = _CODE

    def run(self, bench: ExperimentContext) -> Events:
        precision = bench.precision()
        steps = yield from _affordable_steps(bench, precision)
        rates = np.geomspace(_LOWEST, _HIGHEST, steps)
        training, losses = bench.training(precision), list[float]()
        shown_s = time.perf_counter()
        while len(losses) < steps and not _has_fallen_apart(losses, steps):
            waiting: list[torch.Tensor] = []
            tick_s = time.perf_counter()
            while len(losses) + len(waiting) < steps and time.perf_counter() - tick_s < TICK_S:
                training.set_learning_rate(float(rates[len(losses) + len(waiting)]))
                waiting.append(training.train_step())
            losses += torch.stack(waiting).cpu().tolist()  # the tick's one read-back
            yield Progress(len(losses), steps, f"steps, at a rate of {rates[len(losses) - 1]:.1g}")
            if time.perf_counter() - shown_s > _SHOW_EVERY_S:
                shown_s = time.perf_counter()
                yield Outcome((_plot(rates, losses, ()),))
        yield _outcome(rates, losses, bench)


def _affordable_steps(bench: ExperimentContext, precision: str) -> Generator[Progress, None, int]:
    """How many steps there is time for: yields Progress while that is found out."""
    training, start_s = bench.training(precision), time.perf_counter()
    training.time_steps()
    yield Progress(0, 0, "steps to find the time that one takes")
    step_s = min(training.time_steps() for _ in range(3))
    left_s = bench.seconds - (time.perf_counter() - start_s)
    return int(np.clip(left_s / step_s, _FEWEST_STEPS, _MOST_STEPS))


def _smoothed(losses: list[float], steps: int) -> NDArray[np.float64]:
    """The finite losses without their noise: averaged from both ends, as from one alone the curve would lag behind."""
    values = while_finite(losses)
    places = np.arange(len(values), dtype=np.float64)
    forward, backward = (smooth_curve(places, each, steps * _SMOOTHED) for each in (values, values[::-1]))
    return np.asarray((forward + backward[::-1]) / 2)


def _has_fallen_apart(losses: list[float], steps: int) -> bool:
    values = while_finite(losses)
    if len(values) < len(losses):
        return True
    curve = smooth_curve(np.arange(len(values), dtype=np.float64), values, steps * _SMOOTHED)
    return len(curve) > steps // 10 and bool(curve[-1] > _FALLEN_APART * curve.min())


def _plot(rates: NDArray[np.float64], losses: list[float], marks: tuple[Mark, ...]) -> Plot:
    curve = _smoothed(losses, len(rates))
    x = tuple(rates[: len(curve)].tolist())
    lines = (
        Line("each step", x, tuple(losses[: len(curve)]), dots=False),
        Line("smoothed", x, tuple(curve.tolist()), dots=False),
    )
    loss = Axis("loss", log=min(losses[: len(curve)], default=0.0) > 0)  # what falls apart would hide all else
    return Plot("Loss while the rate rises", Axis("learning rate", log=True), loss, lines, marks)


def _outcome(rates: NDArray[np.float64], losses: list[float], bench: ExperimentContext) -> Outcome:
    curve = _smoothed(losses, len(rates))
    lowest = int(curve.argmin())
    if lowest < len(rates) * _SMOOTHED:
        words = "The loss never fell clearly: nothing can be said of a rate that suits. More time may show it."
        return Outcome((_plot(rates, losses, ()),), (), (words,))
    best, used = float(f"{rates[lowest] * _SAFE:.1g}"), bench.config.learning_rate
    has_ended = len(losses) < len(rates)
    end = f"; at {rates[len(curve) - 1]:.1g} training had fallen apart." if has_ended else ", and rose after it."
    sentences = (
        f"While the rate rose from 1e-6 in {number(len(losses))} steps, the loss fell up to a rate of "
        f"{rates[lowest]:.1g}, where it was {decimal(float(curve[lowest]))}{end}",
        f"A tenth of that, {best:g}, is what a range test suggests: its order of magnitude is sound, the best rate "
        "within it only a training shows.",
        f"The settings have {used:g}, {_compared(used / best)}.",
    )
    marks = Mark(best, "suggested"), Mark(float(rates[lowest]), "lowest loss")
    suggests = {} if _is_close(used / best) else {"learning_rate": best}
    return Outcome((_plot(rates, losses, marks),), (), sentences, suggests)


def _is_close(times: float) -> bool:
    return 0.4 <= times <= 2.5


def _compared(times: float) -> str:
    """0.1 -> '10 times less', 1.2 -> 'close to it', 30 -> '30 times as much'."""
    if _is_close(times):
        return "close to it"
    return f"{times:.2g} times as much" if times > 1 else f"{1 / times:.2g} times less"
