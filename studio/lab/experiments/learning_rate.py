"""Learning rate: a range test (Smith 2017), which raises the learning rate step by step until training diverges."""

import time
from collections.abc import Generator

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.curves import smooth_curve
from studio.core.events import Events, Progress
from studio.core.formatting import decimal, number
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import Experiment, ExperimentContext, finite_prefix
from studio.lab.experiments.sweep import SETUP
from studio.lab.outcome import Axis, Line, Mark, Outcome, Plot

_LOWEST, _HIGHEST = 1e-6, 1.0
_FEWEST_STEPS, _MOST_STEPS = 60, 600
_DIVERGED = 4.0  # times the lowest smoothed loss
_SMOOTHING = 1 / 25  # time constant as a share of the test
_SHOW_EVERY_S = 0.5
_SAFE = 0.1  # times the rate with the lowest loss: beyond this rate the loss rises
_CODE = SETUP.replace("import time\n\n", "") + """
steps = 100
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
print(f"lowest loss at a learning rate of {{rates[losses.argmin()]:.1g}}")
"""  # fmt: skip


class LearningRate(Experiment):
    """Raises the learning rate from 1e-6 to 1 in one training, and records the loss of each step."""

    name = "learning-rate"
    title = "Learning rate"
    question = "How large may the learning rate be?"
    order = 25
    sets_obstacle = ""
    seconds = 60.0
    read_on = ("Optimizers and their rates", "https://docs.pytorch.org/docs/stable/optim.html")
    plain = _CODE

    def run(self, context: ExperimentContext) -> Events:
        precision = context.precision()
        steps = yield from _affordable_steps(context, precision)
        rates, losses = np.geomspace(_LOWEST, _HIGHEST, steps), list[float]()
        training, shown_s = context.training(precision), time.perf_counter()
        while len(losses) < steps and not _has_diverged(losses, steps):
            tick, tick_s = list[torch.Tensor](), time.perf_counter()  # losses of a tick, float32 [] on the device
            while not tick or (len(losses) + len(tick) < steps and time.perf_counter() - tick_s < TICK_S):
                training.set_learning_rate(float(rates[len(losses) + len(tick)]))
                tick.append(training.train_step())
            losses += torch.stack(tick).cpu().tolist()  # the tick's only copy from the device
            yield Progress(len(losses), steps, f"steps; learning rate {rates[len(losses) - 1]:.1g}")
            if time.perf_counter() - shown_s > _SHOW_EVERY_S:
                shown_s = time.perf_counter()
                yield Outcome((_plot(rates, losses, ()),))
        yield _conclusion(rates, losses, context)


def _affordable_steps(context: ExperimentContext, precision: str) -> Generator[Progress, None, int]:
    """Time a few training steps; return how many steps fit into the context's time. Yields Progress."""
    training, start_s = context.training(precision), time.perf_counter()
    training.time_steps()
    yield Progress(0, 0, "timing a step")
    step_s = min(training.time_steps() for _ in range(3))
    left_s = context.seconds - (time.perf_counter() - start_s)
    return int(np.clip(left_s / step_s, _FEWEST_STEPS, _MOST_STEPS))


def _smoothed(losses: list[float], steps: int) -> NDArray[np.float64]:
    """Smooth losses up to NaN or infinity, float64 [n]; both ways, because forward smoothing lags behind."""
    values = finite_prefix(losses)
    indices = np.arange(len(values), dtype=np.float64)
    forward, backward = (smooth_curve(indices, each, steps * _SMOOTHING) for each in (values, values[::-1]))
    return np.asarray((forward + backward[::-1]) / 2)


def _has_diverged(losses: list[float], steps: int) -> bool:
    values = finite_prefix(losses)
    if len(values) < len(losses):
        return True
    curve = smooth_curve(np.arange(len(values), dtype=np.float64), values, steps * _SMOOTHING)
    return len(curve) > steps // 10 and bool(curve[-1] > _DIVERGED * curve.min())


def _plot(rates: NDArray[np.float64], losses: list[float], marks: tuple[Mark, ...]) -> Plot:
    curve = _smoothed(losses, len(rates))
    x = tuple(rates[: len(curve)].tolist())
    each = Line("each step", x, tuple(losses[: len(curve)]), dots=False)
    smoothed = Line("smoothed", x, tuple(curve.tolist()), dots=False)
    # On a linear axis, the diverging end would hide the rest.
    loss = Axis("loss", log=min(losses[: len(curve)], default=0.0) > 0)
    return Plot("Loss while the learning rate rises", Axis("learning rate", log=True), loss, (each, smoothed), marks)


def _conclusion(rates: NDArray[np.float64], losses: list[float], context: ExperimentContext) -> Outcome:
    curve = _smoothed(losses, len(rates))
    lowest = int(curve.argmin())
    if lowest < len(rates) * _SMOOTHING:
        words = "The loss never fell clearly, so the test suggests no learning rate. More time may help."
        return Outcome((_plot(rates, losses, ()),), (), (words,))
    best, used = float(f"{rates[lowest] * _SAFE:.1g}"), context.config.learning_rate
    diverged = len(losses) < len(rates)
    end = f". At {rates[len(curve) - 1]:.1g} training diverged." if diverged else ", and rose after that."
    sentences = (
        f"While the learning rate rose from 1e-6 in {number(len(losses))} steps, the loss fell to "
        f"{decimal(float(curve[lowest]))} at a rate of {rates[lowest]:.1g}{end}",
        f"The range test suggests a tenth of this rate, {best:g}. Trust its order of magnitude; only full trainings "
        "show the best rate.",
        f"Your settings use {used:g}, {_compared(used / best)}.",
    )
    marks = Mark(best, "suggested"), Mark(float(rates[lowest]), "lowest loss")
    suggests = {} if _is_close(used / best) else {"learning_rate": best}
    return Outcome((_plot(rates, losses, marks),), (), sentences, suggests)


def _is_close(ratio: float) -> bool:
    return 0.4 <= ratio <= 2.5


def _compared(ratio: float) -> str:
    """Describe a ratio of learning rates: 0.1 -> '10 times lower', 1.2 -> 'close to it', 30 -> '30 times higher'."""
    if _is_close(ratio):
        return "close to it"
    return f"{ratio:.2g} times higher" if ratio > 1 else f"{1 / ratio:.2g} times lower"
