"""A report of runs: one page of HTML that needs nothing else, to keep, to send and to print. No torch here."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from studio.core import files, pictures
from studio.core.curves import MOST_LINES
from studio.core.errors import RunError
from studio.core.events import Event, Events, Notice, Progress, Rgba, SamplesReady
from studio.core.metrics import title_of, written
from studio.core.wording import count, duration, number, percent
from studio.engine.runs.folder import SAMPLE_COLUMNS, RunDir, RunRecord, spread
from studio.engine.runs.history import (
    FIGURES,
    HELDOUT_LOSS,
    TRAINING_LOSS,
    ComparedFigure,
    Curve,
    History,
    read_history,
    read_samples,
)
from studio.engine.runs.listing import RunSummary, data_of, summarise
from studio.engine.runs.source import source_in
from studio.exports.html_page import MEDIA_STYLE, figures_table, html_page, named_rows, pixel_picture, plot_image
from studio.exports.plot import PlotLine, draw_lines, svg_of

_PAGE_PX, _FRAME_PX = 832, 400  # widths of the page's text, and of one of two pictures beside each other
_FRAMES = 6  # of the filmstrip
_MISTAKES = 8  # of a classifier, at most
_NOTHING = Curve(np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True)
class ReportSaved(Event):
    path: Path


@dataclass(frozen=True, eq=False)
class _Run:
    """What there is to tell of a run."""

    name: str
    record: RunRecord
    summary: RunSummary
    history: History
    samples: tuple[SamplesReady, ...]


def report(runs: Mapping[str, Path], target: Path) -> Events:
    """Write the report of runs, by what they are called: yields Progress after each, Notice for a damaged one, which is
    left out, and last ReportSaved. A file that is there is not replaced.

    Raises RunError where no run can be read or they are too many for one plot, and ExportError.
    """
    if len(runs) > MOST_LINES:
        raise RunError(f"{count(len(runs), 'run')} are too many: colours tell {MOST_LINES} apart.", "Name fewer.")
    found: list[_Run] = []
    for done, (name, path) in enumerate(runs.items(), 1):
        summary = summarise(path)
        if summary.record is None:
            if len(runs) == 1:
                raise RunError(f"{name} can't be read.", summary.problem)
            yield Notice("warning", f"{name} is left out: it can't be read.", summary.problem)
        else:
            found.append(
                _Run(name, summary.record, summary, read_history(path), read_samples(path, summary.record.size))
            )
        yield Progress(done, len(runs), "runs read")
    if not found:
        raise RunError("None of these runs can be read.", "'studio runs' says what is wrong with each.")
    chosen = files.free_path(target)
    with files.exporting(chosen):
        files.write_atomic(chosen, _page_of(found).encode("utf-8", "replace"))
    yield ReportSaved(chosen)


def plot_line(figure: ComparedFigure, history: History, label: str) -> PlotLine | None:
    """A run's curve, the loss with that of the held-out sprites; None where it has neither."""
    curve = figure.curve(history)
    heldout = HELDOUT_LOSS.curve(history) if figure is TRAINING_LOSS else None
    if curve is None and heldout is None:
        return None
    return PlotLine(label, *_arrays(curve), *_arrays(heldout))


def _arrays(curve: Curve | None) -> tuple[np.ndarray, np.ndarray]:
    found = curve or _NOTHING
    return found.steps.astype(np.float64), found.values


def _page_of(runs: Sequence[_Run]) -> str:
    title = runs[0].name if len(runs) == 1 else f"{count(len(runs), 'run')} compared"
    parts = [f"<h1>{html.escape(title)}</h1>", *_last_samples(runs), *_plots(runs)]
    parts += ["<h2>Figures</h2>", _side_by_side(runs, [dict(_facts(run)) for run in runs])]
    settings = [{name.replace("_", " "): str(value) for name, value in run.record.config.items()} for run in runs]
    if len(runs) > 1:
        differing = [name for name in _names(settings) if len({each.get(name) for each in settings}) > 1]
        only = [{name: each.get(name, "") for name in differing} for each in settings]
        parts += ["<h2>Settings that differ</h2>", _side_by_side(runs, only) if differing else "<p>None.</p>"]
    for run, own in zip(runs, settings, strict=True):
        heading = f"<h2>{html.escape(run.name)}</h2>" if len(runs) > 1 else ""
        parts += [heading, *_film(run), *_mistakes(run), "<h2>Settings</h2>", named_rows(own.items())]
        parts += ["<h2>Where it comes from</h2>", named_rows(_provenance(run))]
    return html_page(f"{title} - Sprite Training Studio", "\n".join(parts), _STYLE, width_rem=52)


def _last_samples(runs: Sequence[_Run]) -> Iterator[str]:
    """What each draws of the same noise, or what it says of sprites."""
    for run in runs:
        if run.samples:
            last = run.samples[-1]
            yield _picture(f"{run.name}, step {number(last.step)}", last.sprites, _PAGE_PX)


def _film(run: _Run) -> Iterator[str]:
    """Some live samples on the way."""
    steps = {sample.step: sample for sample in run.samples}
    # What draws nothing shows the same held-out sprites throughout.
    if len(steps) > 1 and not np.array_equal(run.samples[0].sprites, run.samples[-1].sprites):
        frames = (
            _picture(f"step {number(step)}", steps[step].sprites, _FRAME_PX) for step in spread([*steps], _FRAMES)
        )
        yield f'<h2>How it learnt</h2><div class="film">{"".join(frames)}</div>'


def _picture(title: str, sprites: Rgba, most_px: int) -> str:
    pixels = pictures.tile(sprites, min(SAMPLE_COLUMNS, len(sprites)))
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return pixel_picture(title, base64.b64encode(data.getvalue()).decode(), pixels.shape[1], most_px)


def _plots(runs: Sequence[_Run]) -> Iterator[str]:
    """A plot of each curve that any has, of all runs over one another; the held-out loss is in that of the loss."""
    for figure in FIGURES:
        lines = [line for run in runs if (line := plot_line(figure, run.history, run.name)) is not None]
        if lines and figure is not HELDOUT_LOSS:
            title = figure.title if len(runs) == 1 or len(lines) > 1 else f"{figure.title}: {lines[0].label}"
            dots = figure.kind != "series"
            drawn = draw_lines(lines, title, figure.title, smoothing_steps=figure.smoothing_steps, dots=dots)
            yield plot_image(title, svg_of(drawn, title))


def _facts(run: _Run) -> Iterator[tuple[str, str]]:
    """The run in figures."""
    record, progress = run.record, run.summary.progress
    yield "State", run.summary.standing
    if progress is not None:
        yield "Steps", number(progress.step)
        yield "Time", duration(progress.elapsed_s)
    yield "Recipe", record.recipe
    yield "Weights", number(record.parameters)
    yield "Device", f"{record.device_name}, {record.precision}"
    yield "Sprites", f"{data_of(record)}, {record.size} x {record.size} pixels"
    for name, curve in run.history.validation.items():
        yield f"Held-out {title_of(name)}", written(name, float(curve.values[-1]))
    quality = run.history.quality
    if quality:
        last = {name: float(curve.values[-1]) for name, curve in quality.items()}
        step = number(int(quality["kid"].steps[-1]))
        yield f"KID at step {step}", f"{last['kid']:.3f} ± {last['kid_error']:.3f}; real sprites {last['kid_real']:.3f}"
        yield f"Copies at step {step}", f"{percent(last['copies'])}; among real sprites {percent(last['copies_real'])}"


def _mistakes(run: _Run) -> Iterator[str]:
    """Which classes are taken for which, the commonest first."""
    confusion, names = run.history.confusion, run.record.class_names
    if confusion is None or len(confusion) != len(names):
        return
    wrong = confusion * (1 - np.eye(len(confusion), dtype=np.int64))
    worst = [place for place in np.argsort(-wrong, axis=None, kind="stable")[:_MISTAKES].tolist() if wrong.flat[place]]
    rows = [
        (names[true], names[said], f"{number(int(wrong[true, said]))} of {number(int(confusion[true].sum()))}")
        for true, said in (divmod(place, len(names)) for place in worst)
    ]
    if rows:
        yield "<h2>Commonest mistakes</h2>"
        yield figures_table(("class", "taken for", ">held-out sprites"), rows)


def _provenance(run: _Run) -> Iterator[tuple[str, str]]:
    record = run.record
    source = source_in(RunDir(run.summary.path), run.summary.progress.step if run.summary.progress else 0)
    yield "Learnt from", f"{record.data_title}, {count(record.data_count, 'sprite')}"
    yield "Licence", source.licence or "not entered"
    yield "Credits", source.credits or "not entered"
    yield "Started from", "; ".join(one.title for one in record.ancestors) or "nothing"
    yield "Trained", f"{record.created} on {record.device_name}"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in record.versions.items())
    yield "Sprites (fingerprint)", record.data_fingerprint
    yield "SHA-256 of run.json", source.run_sha256


def _side_by_side(runs: Sequence[_Run], columns: Sequence[Mapping[str, str]]) -> str:
    """A table with a row for each name and a column for each run."""
    rows = [(name, *(column.get(name, "") for column in columns)) for name in _names(columns)]
    return figures_table(("", *(run.name for run in runs)), rows)


def _names(columns: Iterable[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for column in columns for name in column))


_STYLE = f"""\
{MEDIA_STYLE}td {{ overflow-wrap: anywhere; }}
.film {{ display: flex; flex-wrap: wrap; gap: 0 1rem; }}
figcaption {{ opacity: .75; }}
"""
