"""A report of runs: a self-contained HTML page to keep, send and print."""

import base64
import html
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core import files
from studio.core.curves import MAX_CURVES
from studio.core.errors import RunError
from studio.core.events import Event, Events, Notice, Progress, SamplesReady
from studio.core.formatting import count, number
from studio.engine.runs import history
from studio.engine.runs.analysis import comparison
from studio.engine.runs.analysis.comparison import ComparedRun, ComparisonRow
from studio.engine.runs.analysis.timelapse import samples_change
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import MetricCurve, PlottedCurve, RunHistory, RunReader
from studio.engine.runs.listing import data_label, summarise
from studio.engine.runs.samples import samples_picture, thin_steps
from studio.engine.runs.source import provenance_at
from studio.exports.html_page import MEDIA_STYLE, html_page, key_value_table, numeric_table, pixel_image, plot_image
from studio.exports.plot import PlotLine, draw_lines, to_svg

_PAGE_PX, _FRAME_PX = 832, 400  # width of the page; width of a picture in a row with two pictures
_FRAMES = 6  # frames in the timelapse strip
_BESIDE = 3  # steps to show side by side
_MISTAKES = 8  # most common mistakes of a classifier
_ROWS = ". Each row: given, true and drawn cells."


@dataclass(frozen=True)
class ReportSaved(Event):
    """Yielded when a report is written. path: the HTML file."""

    path: Path


def report(runs: Mapping[str, Path], target: Path, *, replace: bool = False) -> Events:
    """Write a report of runs: yields Progress after each run, a Notice for each damaged run, then ReportSaved.

    runs: paths by display name. replace: overwrite an existing file; otherwise the report gets a free name. Raises
    ExportError, and RunError for too many runs, or if no run is readable.
    """
    if len(runs) > MAX_CURVES:
        raise RunError(f"A report compares at most {MAX_CURVES} runs, not {len(runs)}.", "Choose fewer runs.")
    found: list[ComparedRun] = []
    for done, (name, path) in enumerate(runs.items(), 1):
        summary = summarise(path)
        if summary.record is None:
            if len(runs) == 1:
                raise RunError(f"{name} can't be read.", summary.problem)
            yield Notice("warning", f"{name} was skipped: it can't be read.", summary.problem)
        else:
            found.append(ComparedRun(name, summary.record, summary, RunReader().read(path)))
        yield Progress(done, len(runs), "runs read")
    if not found:
        raise RunError("No report was written: no run is readable.", "'studio runs' lists the problem of each run.")
    chosen = files.output_path(target, replace=replace)
    with files.wrap_export_errors(chosen):
        files.write_atomic(chosen, _page_of(found).encode("utf-8", "replace"))
    yield ReportSaved(chosen)


def plot_line(figure: PlottedCurve, curves: RunHistory, label: str) -> PlotLine | None:
    """Return a run's curve as a line; None without values. The training loss includes the validation loss."""
    curve = figure.curve(curves)
    heldout = history.VALIDATION_LOSS.curve(curves) if figure is history.TRAINING_LOSS else None
    if curve is None and heldout is None:
        return None
    return PlotLine(label, *_arrays(curve), *_arrays(heldout))


def _arrays(curve: MetricCurve | None) -> tuple[np.ndarray, np.ndarray]:
    found = curve or MetricCurve()
    return found.steps.astype(np.float64), found.values


def _page_of(runs: Sequence[ComparedRun]) -> str:
    title = runs[0].name if len(runs) == 1 else f"{count(len(runs), 'run')} compared"
    last = ((run.name, run.read.samples[-1]) for run in runs if run.read.samples)
    titles = ((f"{name}, step {number(one.step)}{_ROWS if one.given else ''}", one) for name, one in last)
    newest = [_picture(text, one, _PAGE_PX) for text, one in titles]
    parts = [f"<h1>{html.escape(title)}</h1>", *newest, *_samples_at_same_step(runs), *_plots(runs)]
    parts += ["<h2>Runs</h2>", _table(runs, comparison.side_by_side([dict(_facts(run)) for run in runs]))]
    figures = [(row.title, *row.marked(), row.better) for row in comparison.comparison_rows(runs)]
    parts += ["<h2>Figures</h2>", numeric_table(("", *(run.name for run in runs), ""), figures)]
    if len(runs) > 1:
        parts.append(f"<p>{html.escape(comparison.explain_best(runs))}</p>")
        rows = comparison.differences([run.record for run in runs])
        parts += ["<h2>Differences</h2>", _table(runs, rows) if rows else f"<p>{comparison.NOTHING_DIFFERS}</p>"]
    for run in runs:
        heading = f"<h2>{html.escape(run.name)}</h2>" if len(runs) > 1 else ""
        parts += [heading, *_timelapse_frames(run), *_mistakes(run)]
        parts += ["<h2>Settings</h2>", key_value_table(comparison.settings_texts(run.record).items())]
        parts += ["<h2>Provenance</h2>", key_value_table(_provenance(run))]
    return html_page(f"{title} - Sprite Training Studio", "\n".join(parts), _STYLE, width_rem=52)


def _samples_at_same_step(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield the live samples of several runs side by side, at a few common steps, as HTML."""
    drawing = [run for run in runs if _has_timelapse(run)]
    if len(drawing) < 2:
        return
    end = comparison.shared_positions([run.film for run in drawing], "step")[-1]
    fewest = min((run.read.samples for run in drawing), key=len)
    shared = thin_steps([sample.step for sample in fewest if sample.step <= end], _BESIDE + 1)
    yield "<h2>Samples at the same step</h2>"
    for step in shared[1:] or shared:
        nearest = [(run, run.film.samples[run.film.nearest(step, "step")]) for run in drawing]
        frames = (_picture(f"{run.name}, step {number(one.step)}", one, _FRAME_PX) for run, one in nearest)
        yield f'<h3>Nearest to step {number(step)}</h3><div class="film">{"".join(frames)}</div>'


def _has_timelapse(run: ComparedRun) -> bool:
    return len(run.read.samples) > 1 and samples_change(run.read.samples)


def _timelapse_frames(run: ComparedRun) -> Iterator[str]:
    if _has_timelapse(run):
        steps = {sample.step: sample for sample in run.read.samples}
        shown = thin_steps([*steps], _FRAMES)
        frames = (_picture(f"step {number(step)}", steps[step], _FRAME_PX) for step in shown)
        yield f'<h2>Timelapse</h2><div class="film">{"".join(frames)}</div>'


def _picture(title: str, samples: SamplesReady, most_px: int) -> str:
    pixels = samples_picture(samples)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return pixel_image(title, base64.b64encode(data.getvalue()).decode(), pixels.shape[1], most_px)


def _plots(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield an HTML plot for each curve, with one line per run. Training and validation loss share a plot."""
    for figure in history.PLOTTED_CURVES:
        lines = [line for run in runs if (line := plot_line(figure, run.read.history, run.name)) is not None]
        if lines and figure is not history.VALIDATION_LOSS:
            title = figure.title if len(runs) == 1 or len(lines) > 1 else f"{figure.title}: {lines[0].label}"
            dots = figure.kind != "series"
            drawn = draw_lines(lines, title, figure.title, smoothing_steps=figure.smoothing_steps, dots=dots)
            yield plot_image(title, to_svg(drawn, title))


def _facts(run: ComparedRun) -> Iterator[tuple[str, str]]:
    record = run.record
    yield "State", run.summary.standing
    yield "Recipe", record.recipe
    yield "Parameters", number(record.parameters)
    yield "Device", f"{record.device_name}, {record.precision}"
    yield "Sprites", f"{data_label(record)}, {record.size} x {record.size} pixels"
    if record.set_count:
        yield "Views and frames", ", ".join(record.cells)


def _mistakes(run: ComparedRun) -> Iterator[str]:
    confusion, record = run.read.history.confusion, run.record
    if confusion is not None:
        yield from _mistakes_in("Most common mistakes", "class", confusion.counts, record.class_names)
        for name, found in confusion.attributes.items():
            title = f"Most common mistakes: {html.escape(name)}"
            yield from _mistakes_in(title, name, found.counts, record.attributes.get(name, ()))


def _mistakes_in(title: str, what: str, confusion: NDArray[np.int64], names: Sequence[str]) -> Iterator[str]:
    """Yield a heading and the most frequent mistakes as HTML; nothing if the number of names is not K.

    confusion: int64 [K, K], sprites by true and predicted class.
    """
    if len(confusion) != len(names):
        return
    wrong = confusion * (1 - np.eye(len(confusion), dtype=np.int64))  # [K, K] without the diagonal
    cells = np.argsort(-wrong, axis=None, kind="stable")[:_MISTAKES].tolist()  # flat indices, most common first
    rows = [
        (names[true], names[guess], f"{number(int(wrong[true, guess]))} of {number(int(confusion[true].sum()))}")
        for true, guess in (divmod(cell, len(names)) for cell in cells if wrong.flat[cell])
    ]
    if rows:
        yield f"<h2>{title}</h2>"
        yield numeric_table((what, "predicted", ">validation sprites"), rows)


def _provenance(run: ComparedRun) -> Iterator[tuple[str, str]]:
    record = run.record
    source = provenance_at(RunDir(run.summary.path), run.summary.progress.step if run.summary.progress else 0)
    characters = f"{count(record.set_count, record.noun)} of " if record.set_count else ""
    yield "Training sprites", f"{record.data_title}, {characters}{count(record.data_count, 'sprite')}"
    yield "Licence", source.licence or "not entered"
    yield "Credits", source.credits or "not entered"
    yield "Started from", "; ".join(ancestor.title for ancestor in record.ancestors) or "scratch"
    yield "Trained", f"{record.created} on {record.device_name}"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in record.versions.items())
    yield "Sprites (fingerprint)", record.data_fingerprint
    yield "SHA-256 of run.json", source.run_sha256


def _table(runs: Sequence[ComparedRun], rows: Iterable[ComparisonRow]) -> str:
    return numeric_table(("", *(run.name for run in runs)), [(row.title, *row.texts) for row in rows])


_STYLE = f"""\
{MEDIA_STYLE}td {{ overflow-wrap: anywhere; }}
.figures td:first-child, .figures td:last-child {{ overflow-wrap: normal; }}
h3 {{ font-size: 1rem; margin-bottom: 0; }}
.film {{ display: flex; flex-wrap: wrap; gap: 0 1rem; }}
figcaption {{ opacity: .75; }}
"""
