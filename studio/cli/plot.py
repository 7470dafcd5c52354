"""`studio plot`: the curves of runs as a picture, as the Runs page draws them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from studio.cli.arguments import find_runs
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


def add_plot_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is drawn, and how."""
    names = [figure.name for figure in PLOTTED_CURVES]
    about = f"which curve: {', '.join(names)} (default: {TRAINING_LOSS.name})"
    parser.add_argument("--curve", choices=names, default=TRAINING_LOSS.name, metavar="NAME", help=about)
    parser.add_argument(
        "--smoothing",
        type=float,
        metavar="STEPS",
        help="average over about so many steps; 0 draws every value "
        f"(default: {TRAINING_LOSS.smoothing_steps:g} for the loss, else 0)",
    )


def plot(args: argparse.Namespace) -> int:
    """Draw one curve of all the runs that were named into one picture."""
    reporter = reporter_for(args)
    figure = next(figure for figure in PLOTTED_CURVES if figure.name == args.curve)
    smoothing = figure.smoothing_steps if args.smoothing is None else args.smoothing
    if not 0 <= smoothing <= _LONGEST_SMOOTHING:
        title = f"--smoothing must be from 0 to {_LONGEST_SMOOTHING:,} steps."
        raise UsageError(title, "0 draws the values as they are.")
    runs = find_runs(args.run_names)
    if len(runs) > MAX_CURVES:
        raise UsageError(f"{count(len(runs), 'run')} are too many: colours tell {MAX_CURVES} apart.", "Name fewer.")
    out = _target(args.out, list(runs), figure)
    lines, histories = [], []
    for name, path in runs.items():
        RunDir(path).record()  # a folder that is no sound run says so
        histories.append(read_history(path))
        line = plot_line(figure, histories[-1], name)
        if line is not None:
            lines.append(line)
        elif len(runs) > 1:
            reporter.show(Notice("warning", f"{name} has no curve {figure.title!r} yet.", "It is left out."))
    if not lines:
        raise RunError(f"There is no curve {figure.title!r} to draw.", _what_there_is(histories))
    title = lines[0].label if len(lines) == 1 else figure.title
    dots = figure.kind != "series"
    written = save_plot(out, lines, title, figure.title, smoothing_steps=smoothing, log=args.log, dots=dots)
    reporter.record({"type": "FilesSaved", "paths": [written]})
    reporter.say(f"{figure.title} of {count(len(lines), 'run')}: {written}")
    return 0


def _target(out: Path | None, names: Sequence[str], figure: PlottedCurve) -> Path:
    """Where the picture goes. Raises UsageError for an ending that is no picture's."""
    name = files.safe_name(f"{names[0] if len(names) == 1 else count(len(names), 'run')} {figure.name}")
    if out is None or out.is_dir():
        return (out or Path()) / f"{name}.png"
    if out.suffix.lower() not in SUFFIXES:
        hint = f"Let --out end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        raise UsageError(f"A plot can't be saved as {out.suffix or out.name!r}.", hint)
    return out


def _what_there_is(histories: Sequence[RunHistory]) -> str:
    names = [
        figure.name for figure in PLOTTED_CURVES if any(figure.curve(history) is not None for history in histories)
    ]
    return f"--curve takes here: {', '.join(names)}." if names else "Let it train for a few steps."
