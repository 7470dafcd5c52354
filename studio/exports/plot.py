"""A run's loss as a picture."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from studio.core import files
from studio.core.errors import ExportError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Steps = NDArray[np.int64]
Values = NDArray[np.float64]

_RAW, _INK, _SIGN, _GRID = "#9db7d9", "#1f5fa8", "#d9782d", "#e3e6ea"
_TEXT, _MUTED = "#22262b", "#6a727c"
_MOST_POINTS = 2000  # more than the picture has columns


def save_loss_plot(
    path: Path,
    steps: Steps,
    losses: Values,
    validation_steps: Steps,
    validation_losses: Values,
    title: str,
) -> Path:
    """Draw the losses over the steps, int64 [n] and float64 [n], as a PNG of 1600 x 900 pixels.

    The raw loss is faint, its local mean bold, the loss on held-out sprites a line of its own; either may be empty.
    A file that is there is not replaced: the name used is returned. Raises ExportError.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=200, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)  # draws it, without a window and without pyplot's state
    axes = figure.add_subplot()
    _draw_losses(axes, steps, losses)
    if len(validation_steps):
        label = f"held-out sprites ({validation_losses[-1]:.4g})"
        axes.plot(
            validation_steps, validation_losses, color=_SIGN, linewidth=1.4, marker="o", markersize=3, label=label
        )
    _dress(axes, losses, title)
    target = files.free_path(path)
    try:
        with files.atomic_path(target) as temporary, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # a title in letters that the font does not have
            figure.savefig(temporary, format="png")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(f"Can't write {target}: {reason}.", "Choose another folder or free some space.") from error
    return target


def smoothed(losses: Values, span: int) -> Values:
    """The mean over about `span` values around each: float64 [n].

    Near the start over fewer on both sides, where losses fall too steeply for one side alone; near the end over those
    that there are.
    """
    if not len(losses):
        return losses
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    middle, half = np.arange(len(losses)), span // 2
    starts, ends = np.maximum(middle - half, 0), np.minimum(np.minimum(middle + half, 2 * middle) + 1, len(losses))
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def _draw_losses(axes: Axes, steps: Steps, losses: Values) -> None:
    finite = np.isfinite(losses)
    steps, losses = steps[finite], losses[finite]
    if not len(losses):
        return
    span = max(1, min(500, len(losses) // 40))
    mean = smoothed(losses, span)
    low, high, places = _envelope(losses)
    if places is None:
        axes.plot(steps, losses, color=_RAW, alpha=0.55, linewidth=0.7, label="loss")
        axes.plot(steps, mean, color=_INK, linewidth=1.8, label=f"mean of {span:,} steps ({mean[-1]:.4g})")
        return
    axes.fill_between(steps[places], low, high, color=_RAW, alpha=0.45, linewidth=0, label="loss")
    axes.plot(steps[places], mean[places], color=_INK, linewidth=1.8, label=f"mean of {span:,} steps ({mean[-1]:.4g})")


def _envelope(losses: Values) -> tuple[Values, Values, NDArray[np.int64] | None]:
    """Lowest and highest value in each of many short stretches, and where they end; no places when there are few."""
    if len(losses) <= _MOST_POINTS:
        return losses, losses, None
    starts = np.linspace(0, len(losses), _MOST_POINTS, endpoint=False).astype(np.int64)
    places = np.append(starts[1:], len(losses)) - 1
    return np.minimum.reduceat(losses, starts), np.maximum.reduceat(losses, starts), places


def _dress(axes: Axes, losses: Values, title: str) -> None:
    axes.set_title(title.replace("$", r"\$"), loc="left", color=_TEXT, fontsize=11, pad=10)
    axes.set_xlabel("step", color=_MUTED)
    axes.set_ylabel("loss", color=_MUTED)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.tick_params(colors=_MUTED, length=0, labelsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)
    finite = losses[np.isfinite(losses)]
    if len(finite) > 20:  # the first steps are far above the rest and would flatten it
        low, high = float(finite.min()), float(np.quantile(finite[len(finite) // 10 :], 0.998))
        if high > low:
            axes.set_ylim(max(0.0, low - 0.06 * (high - low)), high + 0.06 * (high - low))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9, labelcolor=_TEXT, loc="upper right")
