"""`studio plot`: a curve of one or more runs as an image, like the plot of the Runs page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from studio.cli.inputs import find_runs
from studio.cli.reporting import reporter_for
from studio.core import files
from studio.core.curves import MAX_CURVES
from studio.core.errors import RunError, UsageError
from studio.core.events import Notice
from studio.core.formatting import count
from studio.engine.runs.analysis.report import plot_line
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import PLOTTED_CURVES, TRAINING_LOSS, PlottedCurve, RunHistory, read_history
from studio.exports.plot import SUFFIXES, save_plot

_LONGEST_SMOOTHING = 1_000_000  # steps


def add_plot_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add the flags that choose the curve and its smoothing."""
    names = [figure.name for figure in PLOTTED_CURVES]
    about = f"curve: {', '.join(names)} (default: {TRAINING_LOSS.name})"
    parser.add_argument("--curve", choices=names, default=TRAINING_LOSS.name, metavar="NAME", help=about)
    usual = f"{TRAINING_LOSS.smoothing_steps:g} for the loss, else 0"
    about = f"smooth over this many steps; 0 draws the raw values (default: {usual})"
    parser.add_argument("--smoothing", type=float, metavar="STEPS", help=about)


def plot(args: argparse.Namespace) -> int:
    """Draw the chosen curve of each named run into one image."""
    reporter = reporter_for(args)
    figure = next(figure for figure in PLOTTED_CURVES if figure.name == args.curve)
    smoothing = figure.smoothing_steps if args.smoothing is None else args.smoothing
    if not 0 <= smoothing <= _LONGEST_SMOOTHING:
        title = f"--smoothing must be from 0 to {_LONGEST_SMOOTHING:,} steps."
        raise UsageError(title, "0 draws the raw values.")
    runs = find_runs(args.run_names)
    if len(runs) > MAX_CURVES:
        raise UsageError(f"A plot has room for {MAX_CURVES} runs, not {len(runs)}.", "Name fewer runs.")
    out = _output_path(args.out, list(runs), figure)
    lines, histories = [], []
    for name, path in runs.items():
        RunDir(path).record()  # raises for a damaged run
        histories.append(read_history(path))
        line = plot_line(figure, histories[-1], name)
        if line is not None:
            lines.append(line)
        elif len(runs) > 1:
            reporter.show(Notice("warning", f"{name} has no curve {figure.title!r} yet.", "The plot omits this run."))
    if not lines:
        raise RunError(f"There is no curve {figure.title!r} to draw.", _available_curves(histories))
    title = lines[0].label if len(lines) == 1 else figure.title
    dots = figure.kind != "series"
    written = save_plot(out, lines, title, figure.title, smoothing_steps=smoothing, log=args.log, dots=dots)
    reporter.write_json({"type": "FilesSaved", "paths": [written]})
    reporter.print(f"{figure.title} of {count(len(lines), 'run')}: {written}")
    return 0


def _output_path(out: Path | None, names: Sequence[str], figure: PlottedCurve) -> Path:
    """Return the image's path. Raises UsageError for an unknown suffix."""
    name = files.output_name(f"{names[0] if len(names) == 1 else count(len(names), 'run')} {figure.name}")
    if out is None or out.is_dir():
        return (out or Path()) / f"{name}.png"
    if out.suffix.lower() not in SUFFIXES:
        hint = f"Use a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        raise UsageError(f"A plot can't be saved as {out.suffix or out.name!r}.", hint)
    return out


def _available_curves(histories: Sequence[RunHistory]) -> str:
    drawn = (each for each in PLOTTED_CURVES if any(each.curve(history) is not None for history in histories))
    names = ", ".join(figure.name for figure in drawn)
    return f"Available curves: {names}." if names else "Train the run for a few steps first."
