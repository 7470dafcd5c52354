"""The figures that tell one model from another: how each is called, written, and which is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal

from studio.core.formatting import decimal, percent


@dataclass(frozen=True)
class Metric:
    """A figure that a recipe tells of held-out sprites.

    name: its key in events and on disk. rising, risen: what to say of a run while it gets better, and when it has not
    got better than `value` since `step`; empty where no advice goes by it.
    """

    name: str
    title: str
    write: Callable[[float], str] = decimal
    better: Literal["low", "high"] = "low"
    rising: str = ""
    risen: str = ""

    def is_better(self, value: float, than: float) -> bool:
        """Whether `value` is better than the other one."""
        return self.rank(value) < self.rank(than)

    def rank(self, value: float) -> float:
        """A number that is the lower, the better `value` is."""
        return value if self.better == "low" else -value


def _three_decimals(value: float) -> str:
    return f"{round(value, 3) + 0:.3f}"  # never '-0.000'


LOSS = Metric("loss", "loss")
ACCURACY = Metric(
    "accuracy",
    "accuracy",
    percent,
    "high",
    "More and more held-out sprites are named right.",
    "No more held-out sprites have been named right than the {value} of step {step}.",
)
R2 = Metric(
    "r2",
    "R\u00b2",
    _three_decimals,
    "high",
    "The predictions for held-out sprites still come nearer to their true numbers.",
    "The predictions for held-out sprites have come no nearer to their true numbers since step {step}.",
)
MAE = Metric("mae", "mean error")  # of one number among several: 'mae price'
PIXELS = Metric("pixels", "pixels right", percent, "high")  # of sprites that are given back
METRICS = {metric.name: metric for metric in (LOSS, ACCURACY, R2, MAE, PIXELS)}


def metric_title(key: str) -> str:
    """What a figure on held-out sprites is called: 'mae price' -> 'mean error price'. An unknown one keeps its key."""
    name, blank, number = key.partition(" ")
    return f"{METRICS[name].title}{blank}{number}" if name in METRICS else key


def format_metric(key: str, value: float) -> str:
    """A figure on held-out sprites: ('accuracy', 0.82) -> '82 %', ('r2', 0.8213) -> '0.821'."""
    known = METRICS.get(key.partition(" ")[0])
    return decimal(value) if known is None else known.write(value)


Better = Literal["low", "high", "as real"]
BETTER: Mapping[Better, str] = {
    "low": "lower is better",
    "high": "higher is better",
    "as real": "best as the real ones",
}


@dataclass(frozen=True)
class Figure:
    """A figure of an evaluation of sprites. `unit`: '' for a plain number, '%' for a share."""

    name: str
    title: str
    better: Better
    unit: Literal["", "%"] = ""

    def write(self, figures: Mapping[str, float]) -> str:
        """What it is among these, with its standard error where they hold that; empty where they don't hold it."""
        value = figures.get(self.name)
        if value is None:  # what only a model has
            return ""
        if self.unit == "%":
            return percent(value)
        error = figures.get(f"{self.name}_error")
        return f"{value:.3g}" if error is None else f"{value:.3f} ± {error:.3f}"


FIGURES = (
    Figure("kid_heldout", "KID, held out", "low"),
    Figure("fd_heldout", "Fréchet, held out", "low"),
    Figure("kid_training", "KID, training", "low"),
    Figure("fd_training", "Fréchet, training", "low"),
    Figure("precision", "Precision", "high", "%"),
    Figure("recall", "Recall", "high", "%"),
    Figure("coverage", "Coverage", "high", "%"),
    Figure("kid_fixed", "KID, fixed features", "low"),
    Figure("fd_fixed", "Fréchet, fixed features", "low"),
    Figure("likelihood", "Likelihood divergence", "low"),
    Figure("surprisal", "Patch surprisal", "low"),
    Figure("class_agreement", "Right class", "as real", "%"),
    Figure("copies", "Copies", "low", "%"),
    Figure("nearer", "Nearer than held out", "as real", "%"),
    Figure("loss_gap", "Loss, held out above learnt", "low", "%"),
    Figure("half_transparent", "Half-transparent", "as real", "%"),
    Figure("colours", "Colours a sprite", "as real"),
    Figure("off_palette", "Off palette", "as real", "%"),
)  # of a generator's sprites, as `studio evaluate` tells them


@dataclass(frozen=True)
class Quality:
    """How good new sprites of a generator are, beside real ones. On disk by the names of these fields.

    kid: their distance from real sprites (Kernel Inception Distance), kid_error: its standard error, kid_real: that of
    other real sprites. copies, copies_real: the share of copies of training sprites among them, and among real ones.
    """

    kid: float
    kid_error: float
    kid_real: float
    copies: float
    copies_real: float

    @classmethod
    def among(cls, figures: Mapping[str, float]) -> Quality | None:
        """The quality that these figures hold by name; None where they don't hold all of it."""
        names = [field.name for field in fields(cls)]
        return cls(*(figures[name] for name in names)) if figures.keys() >= set(names) else None
