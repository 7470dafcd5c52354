"""Export the history of a run to TensorBoard: curves, samples and settings."""

import datetime
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.core import files
from studio.core.events import Event, Events, Progress
from studio.engine.runs.analysis.comparison import data_texts, settings_texts
from studio.engine.runs.folder import RunDir, RunRecord
from studio.engine.runs.history import HistoryRead, MetricCurve, RunReader, elapsed_at
from studio.engine.runs.samples import samples_picture
from studio.exports.tensorboard_log import TensorBoardLog, check_installed

FORMAT = "tensorboard"  # name for `studio export --format`


@dataclass(frozen=True)
class EventLogSaved(Event):
    """Yielded when a TensorBoard log is written. path: its folder."""

    path: Path


def save_event_log(run: Path, folder: Path) -> Events:
    """Write a TensorBoard log into a new folder; yields Progress, EventLogSaved. Raises RunError, ExportError."""
    check_installed()
    record = RunDir(run).record()
    read = RunReader().read(run)
    target = files.free_path(folder / files.safe_name(run.resolve().name))
    with files.wrap_export_errors(target), files.atomic_path(target) as temporary:
        temporary.mkdir()
        yield from _write(temporary, record, read)
    yield EventLogSaved(target)


def _write(folder: Path, record: RunRecord, read: HistoryRead) -> Events:
    curves, begun_s, written = _curves(read), _start_time_s(record), 0
    total = sum(len(curve.steps) for curve in curves.values())
    with closing(TensorBoardLog(folder, begun_s)) as log:
        log.add_text("settings", _table({**data_texts(record), **settings_texts(record)}), begun_s)
        plain = {name: value for name, value in record.config.items() if isinstance(value, bool | int | float | str)}
        log.add_settings(plain, read.path.name, begun_s)
        for tag, curve in curves.items():
            times_s = begun_s + elapsed_at(read.history, curve.steps)
            for count in log.add_curve(tag, curve.steps, curve.values, times_s):
                written += count
                yield Progress(written, total, "values written")
        for sample in read.samples:
            time_s = begun_s + float(elapsed_at(read.history, np.array([sample.step]))[0])
            log.add_picture("samples", sample.step, samples_picture(sample), time_s)
            yield Progress(written, total, "values written")


def _curves(read: HistoryRead) -> dict[str, MetricCurve]:
    """Return a run's curves by TensorBoard tag: 'training/loss' stands in the group 'training'."""
    history = read.history
    kinds = {"training": history.series, "held-out": history.validation, "quality": history.quality}
    kinds |= {f"layers-{figure}": curves for figure, curves in history.layers.items()}
    found = {f"{kind}/{name}": curve for kind, curves in kinds.items() for name, curve in curves.items()}
    found.pop("training/elapsed_s", None)  # becomes the wall time of the other curves
    for evaluation in sorted(read.evaluations, key=lambda one: one.step):
        for name, value in evaluation.figures.items():
            tag = f"evaluation/{name}"
            before = found.get(tag, MetricCurve())
            found[tag] = MetricCurve(np.append(before.steps, evaluation.step), np.append(before.values, value))
    return found


def _table(rows: Mapping[str, str]) -> str:
    cells = [f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in rows.items() if text]
    return "\n".join(["| | |", "|---|---|", *cells])


def _start_time_s(record: RunRecord) -> float:
    """Return the creation time of the run in seconds since 1970, UTC; 0 for an invalid date."""
    try:
        return datetime.datetime.fromisoformat(record.created).timestamp()
    except (ValueError, OverflowError):
        return 0.0
