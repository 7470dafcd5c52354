"""`studio plot`: the curves of runs as a picture, as the Runs page draws them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from studio.cli.arguments import find_run
from studio.cli.reporting import reporter_for
from studio.core import files
from studio.core.errors import RunError, UsageError
from studio.core.events import Notice
from studio.core.wording import count
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import (
    FIGURES,
    HELDOUT_LOSS,
    TRAINING_LOSS,
    ComparedFigure,
    Curve,
    History,
    read_history,
)
from studio.exports.plot import MOST_LINES, SUFFIXES, PlotLine, save_plot

_LONGEST_SMOOTHING = 1_000_000  # steps
_NOTHING = Curve(np.zeros(0, np.int64), np.zeros(0))


def add_plot_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is drawn, and how."""
    names = [figure.name for figure in FIGURES]
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
    figure = next(figure for figure in FIGURES if figure.name == args.curve)
    smoothing = figure.smoothing_steps if args.smoothing is None else args.smoothing
    if not 0 <= smoothing <= _LONGEST_SMOOTHING:
        title = f"--smoothing must be from 0 to {_LONGEST_SMOOTHING:,} steps."
        raise UsageError(title, "0 draws the values as they are.")
    paths = list({path.resolve(): path for path in map(find_run, args.run_names)}.values())
    if len(paths) > MOST_LINES:
        raise UsageError(f"{count(len(paths), 'run')} are too many: colours tell {MOST_LINES} apart.", "Name fewer.")
    out = _target(args.out, paths, figure)
    lines = []
    for path in paths:
        line = run_line(path, figure, _label(path, paths))
        if line is not None:
            lines.append(line)
        elif len(paths) > 1:
            reporter.show(Notice("warning", f"{path.name} has no curve {figure.title!r} yet.", "It is left out."))
    if not lines:
        raise RunError(f"There is no curve {figure.title!r} to draw.", _what_there_is(paths))
    title = lines[0].label if len(lines) == 1 else figure.title
    dots = figure.kind != "series"
    written = save_plot(out, lines, title, figure.title, smoothing_steps=smoothing, log=args.log, dots=dots)
    reporter.record({"type": "FilesSaved", "paths": [written]})
    reporter.say(f"{figure.title} of {count(len(lines), 'run')}: {written}")
    return 0


def run_line(path: Path, figure: ComparedFigure, label: str) -> PlotLine | None:
    """A run's curve, the loss with that of the held-out sprites; None where it has neither. Raises RunError."""
    RunDir(path).record()  # a folder that is no sound run says so
    history = read_history(path)
    curve = figure.curve(history)
    heldout = HELDOUT_LOSS.curve(history) if figure is TRAINING_LOSS else None
    if curve is None and heldout is None:
        return None
    return PlotLine(label, *_arrays(curve), *_arrays(heldout))


def _arrays(curve: Curve | None) -> tuple[np.ndarray, np.ndarray]:
    found = curve or _NOTHING
    return found.steps.astype(np.float64), found.values


def _target(out: Path | None, paths: Sequence[Path], figure: ComparedFigure) -> Path:
    """Where the picture goes. Raises UsageError for an ending that is no picture's."""
    name = files.safe_name(f"{paths[0].resolve().name if len(paths) == 1 else count(len(paths), 'run')} {figure.name}")
    if out is None or out.is_dir():
        return (out or Path()) / f"{name}.png"
    if out.suffix.lower() not in SUFFIXES:
        hint = f"Let --out end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        raise UsageError(f"A plot can't be saved as {out.suffix or out.name!r}.", hint)
    return out


def _label(path: Path, paths: Sequence[Path]) -> str:
    """The folder's name, with that of the folder around it where two runs share it."""
    name = path.resolve().name
    same = [other for other in paths if other.resolve().name == name]
    return name if len(same) == 1 else f"{path.resolve().parent.name}/{name}"


def _what_there_is(paths: Sequence[Path]) -> str:
    histories: list[History] = [read_history(path) for path in paths]
    names = [figure.name for figure in FIGURES if any(figure.curve(history) is not None for history in histories)]
    return f"--curve takes here: {', '.join(names)}." if names else "Let it train for a few steps."
