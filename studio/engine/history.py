"""Reading runs back: their curves, their samples, and the list of all of them. No torch here."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core import pictures, places
from studio.core.errors import RunError
from studio.core.events import Event, Events, SamplesReady, SteppedBack
from studio.engine.rundir import CAPTIONS, CONFUSION, METRICS, Progress, RunDir, RunRecord

MOST_SAMPLES = 300  # pictures that are read back: of more, as many that are evenly spread over the run

Standing = Literal["training", "interrupted", "finished", "stopped", "failed", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """One row of the list of runs. `problem` says why a damaged run can't be read."""

    path: Path
    record: RunRecord | None
    progress: Progress | None
    standing: Standing
    problem: str = ""


@dataclass(frozen=True)
class RunsListed(Event):
    runs: tuple[RunSummary, ...]


@dataclass
class Curve:
    """Values over steps."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass
class History:
    """The curves of a run. 'loss' and 'grad_norm' have a value a step; the others one a tick."""

    series: dict[str, Curve] = field(default_factory=dict)
    validation: dict[str, Curve] = field(default_factory=dict)
    quality: dict[str, Curve] = field(default_factory=dict)
    confusion: NDArray[np.int64] | None = None
    checkpoints: list[int] = field(default_factory=list)
    setbacks: list[SteppedBack] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class HistoryRead(Event):
    """The curves of one run, and its live samples, the oldest first."""

    path: Path
    history: History
    samples: tuple[SamplesReady, ...]


def list_runs(extra: Iterable[Path] = ()) -> Events:
    """Every run in the studio's folder and at the `extra` paths, the newest first; yields one RunsListed."""
    inside = [path.parent for path in places.runs().glob("*/run.json")]
    paths = {path.resolve(): path for path in [*extra, *inside] if (path / "run.json").is_file()}
    runs = [summarise(path) for path in paths.values()]
    runs.sort(key=lambda run: run.record.created if run.record else "", reverse=True)
    yield RunsListed(tuple(runs))


def summarise(path: Path) -> RunSummary:
    """What the list of runs says of one; a damaged run is listed as such."""
    run = RunDir(path)
    try:
        record, progress = run.record(), run.progress()
    except RunError as error:
        return RunSummary(path, None, None, "damaged", str(error))
    standing: Standing = progress.state
    if run.is_busy():
        standing = "training"
    elif progress.state == "training":
        standing = "interrupted"
    return RunSummary(path, record, progress, standing)


def read_run(path: Path) -> Events:
    """Read a run's curves and samples; yields one HistoryRead. Raises RunError."""
    record = RunDir(path).record()
    yield HistoryRead(path, read_history(path), tuple(read_samples(path, record.size)))


def read_samples(path: Path, size: int) -> Iterator[SamplesReady]:
    """The live samples that a run has on disk, the oldest first; unreadable ones are passed over.

    Of very many, the first, the last and some between.
    """
    paths = sorted((path / "samples").glob("[0-9]*.png"))
    spread = np.linspace(0, len(paths) - 1, min(len(paths), MOST_SAMPLES)).round().astype(int)
    for picture_path in (paths[place] for place in spread):
        try:
            with Image.open(picture_path) as picture:
                sprites = pictures.untile(np.asarray(picture.convert("RGBA")), size)
                captions = _captions(picture.info.get(CAPTIONS))
            step = int(picture_path.stem)
        except (OSError, ValueError, SyntaxError):
            continue
        if captions and len(captions) <= len(sprites):  # what is left of the last row is empty
            yield SamplesReady(step, sprites[: len(captions)], captions)
        else:
            yield SamplesReady(step, sprites)


def _captions(text: object) -> tuple[str, ...]:
    """The captions that a picture of live samples holds; none when the text is not what the studio writes."""
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def read_history(path: Path) -> History:
    """The curves in metrics.jsonl. What a resume has overtaken is left out, and a last line cut short by a crash."""
    ticks, confusion = _Ticks(), _read_confusion(path / CONFUSION)
    validations: list[dict[str, Any]] = []
    qualities: list[dict[str, Any]] = []
    checkpoints: list[int] = []
    setbacks: list[SteppedBack] = []
    for line in _lines(path / METRICS):
        if "resumed" in line:
            step = line["resumed"]
            ticks.cut(step)
            validations = [entry for entry in validations if entry["step"] <= step]
            qualities = [entry for entry in qualities if entry["step"] <= step]
            checkpoints = [saved for saved in checkpoints if saved <= step]
            setbacks = [setback for setback in setbacks if setback.step <= step]
        elif "loss" in line:
            ticks.add(line)
        elif "metrics" in line:
            validations.append(line)
            counts = line.pop("confusion", None)  # older versions kept them here
            if counts is not None and (confusion is None or line["step"] >= confusion[0]):
                confusion = line["step"], np.array(counts, dtype=np.int64)
        elif "quality" in line:
            qualities.append(line)
        elif "checkpoint" in line:
            checkpoints.append(line["checkpoint"])
        elif "failed_step" in line:
            setbacks.append(SteppedBack(**line))
    history = History(ticks.series(), _figures(validations, "metrics"), _figures(qualities, "quality"))
    history.checkpoints, history.setbacks = checkpoints, setbacks
    if confusion is not None and confusion[0] in {entry["step"] for entry in validations}:
        history.confusion = confusion[1]
    return history


class _Ticks:
    """What a run's ticks say, in eight bytes a number: a run of one night has millions of steps."""

    def __init__(self) -> None:
        self._steps, self._starts, self._ends = array("q"), array("q"), array("q")
        self._a_step = {name: array("d") for name in ("loss", "grad_norm")}
        self._a_tick = {name: array("d") for name in ("lr", "sprites_per_s", "elapsed_s", "memory_bytes")}

    def add(self, tick: dict[str, Any]) -> None:
        """Take in a line of metrics.jsonl."""
        start, end = tick["step"], tick["step"] + len(tick["loss"])
        self._steps.extend(range(start, end))
        self._starts.append(start)
        self._ends.append(end)
        for name, values in self._a_step.items():
            values.extend(tick[name])
        for name, values in self._a_tick.items():
            values.append(tick[name])

    def cut(self, step: int) -> None:
        """Leave out `step`, the first that is trained anew, and all that came after it."""
        steps, ticks = bisect_left(self._steps, step), bisect_left(self._starts, step)
        a_step: list[array[Any]] = [self._steps, *self._a_step.values()]
        a_tick: list[array[Any]] = [self._starts, self._ends, *self._a_tick.values()]
        for column in a_step:
            del column[steps:]
        for column in a_tick:
            del column[ticks:]
        if ticks:
            self._ends[-1] = min(self._ends[-1], step)

    def series(self) -> dict[str, Curve]:
        """The curves by name; none where there is no tick."""
        if not self._starts:
            return {}
        steps, ends = np.array(self._steps, dtype=np.int64), np.array(self._ends, dtype=np.int64)
        return {
            **{name: Curve(steps, np.array(values, dtype=np.float64)) for name, values in self._a_step.items()},
            **{name: Curve(ends, np.array(values, dtype=np.float64)) for name, values in self._a_tick.items()},
        }


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with lines:
        for line in lines:
            try:
                values = json.loads(line)
            except ValueError:
                continue
            if isinstance(values, dict):
                yield values


def _read_confusion(path: Path) -> tuple[int, NDArray[np.int64]] | None:
    """What `RunDir.save_confusion` wrote: the step and the counts. None where nothing is, or nothing that fits."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return int(values["step"]), np.array(values["counts"], dtype=np.int64)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _figures(entries: list[dict[str, Any]], kind: str) -> dict[str, Curve]:
    """A curve for each figure that the last of these lines of the `kind` has."""
    curves = {}
    for name in entries[-1][kind] if entries else ():
        having = [entry for entry in entries if name in entry[kind]]
        steps = np.array([entry["step"] for entry in having], dtype=np.int64)
        curves[name] = Curve(steps, np.array([entry[kind][name] for entry in having], dtype=np.float64))
    return curves
