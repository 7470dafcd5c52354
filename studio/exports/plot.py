"""Plot curves of runs as PNG, SVG or PDF with matplotlib."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studio.core import curves, files, formatting
from studio.core.curves import CURVE_COLOURS, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")

_TEXT, _MUTED, _GRID = "#22262b", "#6a727c", "#e3e6ea"
_COLUMNS = 1600  # width in pixels
_FAINT = 0.42  # opacity of the raw curve
_MOST_DOTS = 200
_HELDOUT: Mapping[str, Any] = {"linestyle": "--", "linewidth": 1.2, "marker": "o", "markersize": 3}
_LONGEST_LABEL = 48  # letters
_NO_GLYPH = "Glyph .* missing"  # warning for characters missing in the font
_NARROW = 8.0  # logarithmic axes with a smaller ratio get ticks at round numbers


@dataclass(frozen=True, eq=False)
class PlotLine:
    """A training curve of a run and its validation curve. Either may be empty."""

    label: str
    steps: Values  # [n]
    values: Values
    heldout_steps: Values  # [m]
    heldout_values: Values


def save_plot(
    path: Path, lines: Sequence[PlotLine], title: str, axis: str, *, smoothing_steps: float, log: bool = False,
    dots: bool = False,
) -> Path:  # fmt: skip
    """Save a plot as PNG (1600 x 900 pixels), SVG or PDF, depending on the suffix; return the file's path.

    A single run shows its raw curve faintly behind the smoothed curve; several runs show smoothed curves only.
    axis: label of the Y axis. dots: mark each value. If the file exists, a free name is used. Raises ExportError.
    """
    figure = draw_lines(lines, title, axis, smoothing_steps=smoothing_steps, log=log, dots=dots)
    target = files.free_path(path)
    with files.wrap_export_errors(target), files.atomic_path(target) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", _NO_GLYPH)
        figure.savefig(temporary, format=path.suffix.lower().removeprefix("."))
    return target


def draw_lines(
    lines: Sequence[PlotLine], title: str, axis: str, *, smoothing_steps: float, log: bool = False, dots: bool = False
) -> Figure:
    """Draw curves of runs over training steps into a new figure. axis: label of the Y axis. dots: mark each value."""
    figure, axes = new_axes()
    named = [replace(line, label=axis) for line in lines] if len(lines) == 1 else lines  # the title names the run
    painter = _CurvePainter(axes, named, smoothing_steps, log=log, dots=dots)
    painter.draw()
    style_axes(axes, title, painter.step_label, axis)
    return figure


def to_svg(figure: Figure, salt: str) -> bytes:
    """Return a figure as SVG, with reproducible bytes. salt: text that makes element ids unique within a page."""
    import matplotlib

    target = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _NO_GLYPH)
        figure.savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()


def new_axes(height: float = 4.5) -> tuple[Figure, Axes]:
    """Create a white figure with empty axes, 8 inches wide. height: in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height), dpi=_COLUMNS / 8, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)  # renders without a window and without pyplot's global state
    return figure, figure.add_subplot()


def style_axes(axes: Axes, title: str, x: str, y: str) -> None:
    """Set title, axis labels, grid and colours in the studio's plot style."""
    axes.set_title(title, loc="left", color=_TEXT, fontsize=11, pad=10, parse_math=False)
    axes.set_xlabel(x, color=_MUTED)
    axes.set_ylabel(y, color=_MUTED)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=_MUTED, length=0, labelsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)


class _CurvePainter:
    """Draws the curves of one or more runs into matplotlib axes."""

    def __init__(self, axes: Axes, lines: Sequence[PlotLine], smoothing_steps: float, *, log: bool, dots: bool) -> None:
        self._axes, self._lines, self._smoothing = axes, lines, smoothing_steps
        self._log, self._dots = log, dots
        self._drawn: list[tuple[Values, Values]] = []  # curves that the Y axis must show
        self._legend: list[tuple[Any, str]] = []
        ends = [steps[[0, -1]] for line in lines for steps in (line.steps, line.heldout_steps) if len(steps)]
        first, last = (float(min(ends, key=min)[0]), float(max(ends, key=max)[1])) if ends else (0.0, 100.0)
        self._run = first, last
        self._steps = curves.steps_range(first, last, (math.inf, math.inf))
        self.step_label = "step"  # label of the x axis, with the values beyond the axis; set by `draw`

    def draw(self) -> None:
        """Draw each run in its own colour, validation curves dashed, and a legend."""
        alone = len(self._lines) == 1
        for line, tint in zip(self._lines, CURVE_COLOURS, strict=False):
            if alone and self._smoothing > 0:
                self._draw_single_run(line, tint)
            elif len(line.steps):
                values = curves.smooth_curve(line.steps, line.values, self._smoothing)
                thin, width = (curves.decimate, 1.6) if self._smoothing > 0 else (curves.envelope, 1.0)
                points, label = self._downsample(thin, line.steps, values), _legend_label(line.label, values)
                marker = "o" if self._dots and len(values) <= _MOST_DOTS else ""
                self._line(*points, label, color=tint, linewidth=width, marker=marker, markersize=3)
        for line, tint in zip(self._lines, CURVE_COLOURS, strict=False):
            if len(line.heldout_steps):
                points = self._downsample(curves.envelope, line.heldout_steps, line.heldout_values)
                colour = CURVE_COLOURS[1] if alone else tint
                label = _legend_label("validation", line.heldout_values) if alone else ""
                self._line(*points, label, color=colour, **_HELDOUT)
        if not alone and any(len(line.heldout_steps) for line in self._lines):
            (dashed,) = self._axes.plot([], [], color=_MUTED, **_HELDOUT)
            self._legend.append((dashed, "validation"))
        self._set_limits()
        self._draw_legend()

    def _draw_legend(self) -> None:
        if not self._legend:
            return
        handles, labels = zip(*self._legend, strict=True)
        legend = self._axes.legend(handles, labels, fontsize=9, labelcolor=_TEXT, loc="upper right", edgecolor="none")
        for text in legend.get_texts():
            text.set_parse_math(False)

    def _draw_single_run(self, line: PlotLine, tint: str) -> None:
        if not len(line.steps):
            return
        mean = curves.smooth_curve(line.steps, line.values, self._smoothing)
        raw = self._downsample(curves.envelope, line.steps, line.values)
        self._line(*raw, line.label, color=tint, alpha=_FAINT, linewidth=0.7)
        self._axes.plot(*self._downsample(curves.decimate, line.steps, mean), color=tint, linewidth=1.8)
        label = f"smoothed over {formatting.count(round(self._smoothing), 'step')}"
        self._legend.append((self._axes.lines[-1], _legend_label(label, mean)))

    def _line(self, steps: Values, values: Values, label: str, **look: Any) -> None:
        (line,) = self._axes.plot(steps, values, **look)
        self._drawn.append((steps, np.log10(values) if self._log else values))
        if label:
            self._legend.append((line, label))

    def _downsample(self, thin: Any, steps: Values, values: Values) -> tuple[Values, Values]:
        steps, values = thin(steps, values, *self._steps, _COLUMNS)
        if self._log:  # values up to 0 have no logarithm
            values = np.where(values > 0, values, np.nan)
        return steps, np.where(np.isfinite(values), values, np.nan)

    def _set_limits(self) -> None:
        """Set the axis limits that the plot on the Runs page uses for these curves."""
        from matplotlib import ticker

        self._axes.set_xlim(*self._steps)
        few = all(len(line.steps) <= 1 for line in self._lines)
        smooth = self._smoothing > 0 and len(self._lines) > 1  # a single run also shows its raw curve
        run = None if self._log or few or smooth else self._run
        low, high = curves.values_range(self._drawn, (math.nan, math.nan), run)
        if note := curves.describe_off_range(self._drawn, (low, high)):
            self.step_label = f"step ({note})"
        if self._log:
            self._axes.set_yscale("log")
            narrow = high - low < math.log10(_NARROW)
            locator = ticker.MaxNLocator(8, steps=[1, 2, 5, 10]) if narrow else ticker.LogLocator(subs=(1, 2, 5))
            self._axes.yaxis.set_major_locator(locator)
            self._axes.yaxis.set_minor_locator(ticker.NullLocator())
            low, high = 10**low, 10**high
        self._axes.xaxis.set_major_locator(ticker.MaxNLocator(8, steps=[1, 2, 5, 10], integer=True))
        self._axes.xaxis.set_major_formatter(ticker.FuncFormatter(_step))
        self._axes.yaxis.set_major_formatter(ticker.FuncFormatter(_value))
        if math.isfinite(low) and math.isfinite(high):
            self._axes.set_ylim(low, high)


def _legend_label(label: str, values: Values) -> str:
    """Return a curve's label, shortened to fit, with its latest value."""
    known = values[np.isfinite(values)]
    half = _LONGEST_LABEL // 2
    short = label if len(label) <= _LONGEST_LABEL else f"{label[: half - 1]}…{label[-half:]}"
    return f"{short} ({formatting.decimal(float(known[-1]))})" if len(known) else short


def _step(value: float, position: int) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else ""


def _value(value: float, position: int) -> str:
    return formatting.axis_label(value)
