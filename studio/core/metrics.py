"""Metrics for models: titles, formatting, and the better direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal

from studio.core.formatting import decimal, percent


@dataclass(frozen=True)
class Metric:
    """A metric that a recipe computes on the validation set."""

    name: str  # key in events and on disk
    title: str
    format: Callable[[float], str] = decimal
    better: Literal["low", "high"] = "low"
    improving_text: str = ""  # advice while the metric improves; '' for metrics without advice
    stalled_text: str = ""  # advice once the metric has stalled at {value} since {step}
    baseline: str = ""  # name of a value to show in brackets, for example 'real' for real sprites; '' for no value

    def is_better(self, value: float, than: float) -> bool:
        """Return whether `value` is better than `than`."""
        return self.rank(value) < self.rank(than)

    def rank(self, value: float) -> float:
        """Return a sort key: lower is better."""
        return value if self.better == "low" else -value


def _three_decimals(value: float) -> str:
    return f"{round(value, 3) + 0:.3f}"  # + 0 avoids '-0.000'


LOSS = Metric("loss", "loss")
ACCURACY = Metric(
    "accuracy", "accuracy", percent, "high", "The accuracy on validation sprites still rises.",
    "The accuracy on validation sprites has not risen above {value} since step {step}.",
)  # fmt: skip
R2 = Metric(
    "r2", "R\u00b2", _three_decimals, "high", "The predictions for validation sprites still improve.",
    "The predictions for validation sprites have not improved since step {step}.",
)  # fmt: skip
MAE = Metric("mae", "mean error")  # by predicted number: 'mae price'
PIXELS = Metric("pixels", "pixels right", percent, "high")  # in reconstructed sprites
EXACT = Metric(
    "exact", "exact pixels", percent, "high", "The drawn cells of validation characters still improve.",
    "The drawn cells of validation characters have not improved beyond {value} since step {step}.", "copied",
)  # fmt: skip
SURPRISAL = Metric("surprisal", "patch surprisal in bits", baseline="real")
COPIES = Metric("copies", "copies of training sprites", percent, baseline="real")
FEET = Metric("feet", "range of the lowest row in px", baseline="real")  # over the frames of a row
CLOSED = Metric("closed", "closed walks", percent, "high", baseline="real")
_ALL = (LOSS, ACCURACY, R2, MAE, PIXELS, EXACT, SURPRISAL, COPIES, FEET, CLOSED)
METRICS = {metric.name: metric for metric in _ALL}


def metric_title(key: str) -> str:
    """Return a validation metric's title: 'mae price' -> 'mean error price'. Returns an unknown key unchanged."""
    name, blank, number = key.partition(" ")
    return f"{METRICS[name].title}{blank}{number}" if name in METRICS else key


def format_metric(key: str, value: float) -> str:
    """Format a validation metric: ('accuracy', 0.82) -> '82 %', ('r2', 0.8213) -> '0.821'."""
    known = METRICS.get(key.partition(" ")[0])
    return decimal(value) if known is None else known.format(value)


Better = Literal["low", "high", "as real"]
BETTER: Mapping[Better, str] = {
    "low": "lower is better", "high": "higher is better", "as real": "should equal real sprites",
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A quality figure of generated sprites: key, title and unit. unit: '' for a plain number, '%' for a share."""

    name: str
    title: str
    better: Better
    unit: Literal["", "%"] = ""

    def format(self, figures: Mapping[str, float]) -> str:
        """Format this figure's value, with its standard error if known. figures: values by name; '' if missing."""
        value = figures.get(self.name)
        if value is None:  # real sprites lack figures about the model, such as loss_gap
            return ""
        if self.unit == "%":
            return percent(value)
        error = figures.get(f"{self.name}_error")
        return f"{value:.3g}" if error is None else f"{value:.3f} ± {error:.3f}"


FIGURES = (
    Figure("kid_heldout", "KID, validation", "low"),
    Figure("fd_heldout", "Fréchet, validation", "low"),
    Figure("kid_training", "KID, training", "low"),
    Figure("fd_training", "Fréchet, training", "low"),
    Figure("precision", "Precision", "high", "%"),
    Figure("recall", "Recall", "high", "%"),
    Figure("coverage", "Coverage", "high", "%"),
    Figure("kid_fixed", "KID, fixed features", "low"),
    Figure("fd_fixed", "Fréchet, fixed features", "low"),
    Figure("likelihood", "Likelihood divergence", "low"),
    Figure("surprisal", "Patch surprisal", "low"),
    Figure("class_agreement", "Class match", "as real", "%"),
    Figure("copies", "Copies", "low", "%"),
    Figure("nearer", "Closer than validation", "as real", "%"),
    Figure("loss_gap", "Loss gap, validation", "low", "%"),
    Figure("half_transparent", "Half-transparent", "as real", "%"),
    Figure("colours", "Colours per sprite", "as real"),
    Figure("off_palette", "Off palette", "as real", "%"),
)  # for a generator, in the order of `studio evaluate`


@dataclass(frozen=True)
class Quality:
    """Quality of generated sprites compared with real sprites. The field names are the keys on disk."""

    kid: float  # distance from real sprites (Kernel Inception Distance)
    kid_error: float  # standard error of `kid`
    kid_real: float  # KID of other real sprites
    copies: float  # share of copies of training sprites among generated sprites
    copies_real: float  # share of copies of training sprites among real sprites

    @classmethod
    def from_figures(cls, figures: Mapping[str, float]) -> Quality | None:
        """Create a Quality from quality figures by name; return None for missing fields."""
        names = [field.name for field in fields(cls)]
        return cls(*(figures[name] for name in names)) if figures.keys() >= set(names) else None
