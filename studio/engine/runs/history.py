"""Reading runs back: their curves, their samples, and the list of all of them. No torch here."""

from __future__ import annotations

import contextlib
import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core import pictures, places, records
from studio.core.errors import RunError
from studio.core.events import Event, Events, SamplesReady, SteppedBack
from studio.engine.runs.folder import (
    CAPTIONS,
    CONFUSION,
    METRICS,
    MOST_SAMPLES,
    RunDir,
    RunProgress,
    RunRecord,
    reading,
    spread,
)
from studio.engine.runs.metrics import Quality, Resumed, Saved, Tick, Validation, parse_line

_Matrix = tuple[int, NDArray[np.int64]]  # the step, and sprites counted by true class and predicted class

_MOST_KNOWN = 8  # runs of which a reader remembers what it has read
_ROOM_BYTES = 96 << 20  # for the live samples of a run: large ones are shown at fewer steps
_A_PICTURE = 16  # sprites

Standing = Literal["training", "interrupted", "finished", "stopped", "failed", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """One row of the list of runs. `problem` says why a damaged run can't be read."""

    path: Path
    record: RunRecord | None
    progress: RunProgress | None
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
    """Every run in the studio's folder and at the `extra` paths, the newest first; yields one RunsListed.

    Raises RunError when the studio's folder can't be read.
    """
    try:
        with reading(places.runs()):
            inside = list(places.runs().iterdir())
    except FileNotFoundError:
        inside = []
    paths = {path.resolve(): path for path in [*extra, *inside] if _may_be_run(path)}
    runs = [summarise(path) for path in paths.values()]
    runs.sort(key=lambda run: run.record.created if run.record else "", reverse=True)
    yield RunsListed(tuple(runs))


def _may_be_run(path: Path) -> bool:
    """Whether there is a run.json, or something that keeps one from knowing."""
    try:
        (path / "run.json").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def summarise(path: Path) -> RunSummary:
    """What the list of runs says of one; a damaged run is listed as such."""
    run = RunDir(path)
    try:
        record, progress, is_empty = run.record(), run.progress(), run.is_empty()
    except RunError as error:
        return RunSummary(path, None, None, "damaged", str(error))
    standing: Standing = progress.state
    if run.is_busy():
        standing = "training"
    elif is_empty:
        return RunSummary(
            path, None, None, "damaged", "Its start has failed: there is nothing in it. It can be removed."
        )
    elif progress.state == "training":
        standing = "interrupted"
    return RunSummary(path, record, progress, standing)


def read_run(path: Path) -> Events:
    """Read a run's curves and samples; yields one HistoryRead. Raises RunError."""
    yield from RunReader().read_run(path)


def read_history(path: Path) -> History:
    """The curves in metrics.jsonl. What a resume has overtaken is left out, and lines that are damaged or cut short.

    Raises RunError.
    """
    return _Curves(path).read()


def read_samples(path: Path, size: int) -> tuple[SamplesReady, ...]:
    """The live samples that a run has on disk, the oldest first; unreadable ones are passed over. Raises RunError.

    Of very many, the first, the last and some between.
    """
    return _Film(path, size).read()


class RunReader:
    """Reads runs over and over: of a run that was read before only what is new. Used in one thread."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[RunRecord, _Curves, _Film]] = {}

    def read_run(self, path: Path) -> Events:
        """Read a run's curves and samples; yields one HistoryRead. Raises RunError."""
        record = RunDir(path).record()
        known = self._known.pop(path, None)
        if known is None or known[0] != record:  # another run in its place: its files may have the same numbers
            known = (record, _Curves(path), _Film(path, record.size))
        self._known[path] = known
        _, curves, film = known
        for oldest in list(self._known)[:-_MOST_KNOWN]:
            del self._known[oldest]
        yield HistoryRead(path, curves.read(), film.read())


class _Film:
    """The live samples of one run, which are sprites of `size` pixels."""

    def __init__(self, path: Path, size: int) -> None:
        self._run, self._size = RunDir(path), size
        self._most = max(2, min(MOST_SAMPLES, _ROOM_BYTES // (_A_PICTURE * size * size * 4)))
        self._known: dict[
            tuple[int, int, int], SamplesReady | None
        ] = {}  # by step, and by when and how much was written

    def read(self) -> tuple[SamplesReady, ...]:
        """Read the pictures that are new, and forget those that are gone. Raises RunError."""
        with reading(self._run.samples):
            paths = self._run.sample_paths()
        found: dict[tuple[int, int, int], SamplesReady | None] = {}
        for step in spread(list(paths), self._most):
            with contextlib.suppress(OSError):  # it was removed in the meantime, or can't be read: others can
                about = paths[step].stat()
                key = (step, about.st_mtime_ns, about.st_size)
                found[key] = self._known[key] if key in self._known else _picture(paths[step], step, self._size)
        self._known = found
        return tuple(samples for samples in found.values() if samples is not None)


def _picture(path: Path, step: int, size: int) -> SamplesReady | None:
    """One picture of live samples; None when it is damaged. Raises OSError, also for some damage."""
    try:
        with Image.open(path) as picture:
            sprites = pictures.untile(np.asarray(picture.convert("RGBA")), size)
            captions = _captions(picture.info.get(CAPTIONS))
    except (ValueError, SyntaxError):
        return None
    if captions and len(captions) <= len(sprites):  # what is left of the last row is empty
        return SamplesReady(step, sprites[: len(captions)], captions)
    return SamplesReady(step, sprites)


def _captions(text: object) -> tuple[str, ...]:
    """The captions that a picture of live samples holds; none when the text is not what the studio writes."""
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


@dataclass(frozen=True)
class _Confusion:
    """confusion.json."""

    step: records.Count
    counts: list[list[int]]


class _Curves:
    """The curves of one run as far as its metrics.jsonl has been read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = (0, 0)  # which one it is, by its device and its number there
        self._read_bytes = 0
        self._seen = _Seen()

    def read(self) -> History:
        """Read what has been added to the file since the last time, or all where it is another. Raises RunError."""
        try:
            with reading(self._path / METRICS), (self._path / METRICS).open("rb") as lines:
                about = os.fstat(lines.fileno())
                file = (about.st_dev, about.st_ino)
                if file != self._file or about.st_size < self._read_bytes:
                    self._file, self._read_bytes, self._seen = file, 0, _Seen()
                lines.seek(self._read_bytes)
                for line in lines:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read_bytes += len(line)
                    self._seen.add(line)
        except FileNotFoundError:
            self._file, self._read_bytes, self._seen = (0, 0), 0, _Seen()
        return self._seen.history(_read_confusion(self._path / CONFUSION))


class _Seen:
    """What the lines of metrics.jsonl have said so far."""

    def __init__(self) -> None:
        self._ticks = _Ticks()
        self._validations: list[tuple[int, Mapping[str, float]]] = []
        self._qualities: list[tuple[int, Mapping[str, float]]] = []
        self._checkpoints: list[int] = []
        self._setbacks: list[SteppedBack] = []
        self._confusion: _Matrix | None = None  # of an older version

    def add(self, text: bytes) -> None:
        """Take in a line; a damaged one says nothing."""
        line = parse_line(text)
        if isinstance(line, Resumed):
            self._cut(line.resumed)
        elif isinstance(line, Tick):
            self._ticks.add(line)
        elif isinstance(line, Validation):
            self._validations.append((line.step, line.metrics))
            if line.confusion is not None and (self._confusion is None or line.step >= self._confusion[0]):
                self._confusion = _matrix(line.step, line.confusion)
        elif isinstance(line, Quality):
            self._qualities.append((line.step, line.quality))
        elif isinstance(line, Saved):
            self._checkpoints.append(line.checkpoint)
        elif isinstance(line, SteppedBack):
            self._setbacks.append(line)

    def history(self, confusion: _Matrix | None) -> History:
        """All of it as curves, and the newer confusion matrix if it is of a validation."""
        history = History(self._ticks.series(), _figures(self._validations), _figures(self._qualities))
        history.checkpoints, history.setbacks = list(self._checkpoints), list(self._setbacks)
        newest = max(filter(None, (self._confusion, confusion)), key=lambda found: found[0], default=None)
        if newest is not None and any(step == newest[0] for step, _ in self._validations):
            history.confusion = newest[1]
        return history

    def _cut(self, step: int) -> None:
        """Leave out what came after this step, which is trained anew."""
        self._ticks.cut(step)
        self._validations = [entry for entry in self._validations if entry[0] <= step]
        self._qualities = [entry for entry in self._qualities if entry[0] <= step]
        self._checkpoints = [saved for saved in self._checkpoints if saved <= step]
        self._setbacks = [setback for setback in self._setbacks if setback.step <= step]


class _Ticks:
    """What a run's ticks say, in eight bytes a number: a run of one night has millions of steps."""

    def __init__(self) -> None:
        self._steps, self._starts, self._ends = array("q"), array("q"), array("q")
        self._a_step = {name: array("d") for name in ("loss", "grad_norm")}
        self._a_tick = {name: array("d") for name in ("lr", "sprites_per_s", "elapsed_s", "memory_bytes")}

    def add(self, tick: Tick) -> None:
        """Take in a line of metrics.jsonl."""
        end = tick.step + len(tick.loss)
        self._steps.extend(range(tick.step, end))
        self._starts.append(tick.step)
        self._ends.append(end)
        for name, values in self._a_step.items():
            values.extend(getattr(tick, name))
        for name, values in self._a_tick.items():
            values.append(getattr(tick, name))

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


def _read_confusion(path: Path) -> _Matrix | None:
    """What `RunDir.save_confusion` wrote: the step and the counts. None where nothing is, or nothing that fits."""
    try:
        found = records.parse(path.read_bytes(), _Confusion)
    except (OSError, ValueError):
        return None
    return _matrix(found.step, found.counts)


def _matrix(step: int, counts: list[list[int]]) -> _Matrix | None:
    """The step with its confusion matrix; None where the counts are none."""
    try:
        found = np.array(counts, dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return (step, found) if found.ndim == 2 and found.shape[0] == found.shape[1] else None


def _figures(entries: Sequence[tuple[int, Mapping[str, float]]]) -> dict[str, Curve]:
    """A curve for each figure that the last of these entries has: steps, and figures by name."""
    curves = {}
    for name in entries[-1][1] if entries else ():
        having = [(step, figures[name]) for step, figures in entries if name in figures]
        steps = np.array([step for step, _ in having], dtype=np.int64)
        curves[name] = Curve(steps, np.array([value for _, value in having], dtype=np.float64))
    return curves
