"""Read a run's metrics.jsonl into curves, with the live samples and evaluations."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from studio.core import records
from studio.core.config import TrainingConfig
from studio.core.curves import SMOOTHING_STEPS
from studio.core.errors import UsageError
from studio.core.events import ClassPredictions, Event, RolledBack, SamplesReady, ValueConfusion
from studio.core.metrics import ACCURACY, EXACT, LOSS, R2
from studio.engine.runs import metrics
from studio.engine.runs.evaluation import CheckpointEvaluation, read_evaluations
from studio.engine.runs.folder import CONFUSION_FILE, METRICS_FILE, RunDir, RunRecord, wrap_read_errors
from studio.engine.runs.metrics import CheckpointLine, LayerStats, MetricsLine, QualityLine, ValidationLine
from studio.engine.runs.samples import SampleReader

_MOST_KNOWN = 8  # maximum number of runs in a RunReader's memory


@dataclass
class MetricCurve:
    """A metric over training steps; by default without values. steps: int64 [n]. values: float64 [n]."""

    steps: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class ConfusionAtStep:
    """A run's newest confusion matrices: of the classes, and of each attribute's values."""

    step: int
    counts: NDArray[np.int64]  # [K, K], by true and predicted class
    predictions: ClassPredictions | None = None  # counted in `counts`; None in runs of older versions
    attributes: Mapping[str, ValueConfusion] = field(default_factory=dict)  # by attribute


@dataclass
class RunHistory:
    """A run's curves by metric name, confusion matrix, checkpoints and rollbacks."""

    series: dict[str, MetricCurve] = field(default_factory=dict)  # loss, grad_norm per step; others per tick
    validation: dict[str, MetricCurve] = field(default_factory=dict)  # on the validation set
    quality: dict[str, MetricCurve] = field(default_factory=dict)  # KID, copies, ... of new sprites
    layers: dict[str, dict[str, MetricCurve]] = field(default_factory=dict)  # by LAYER_FIGURES, layer
    confusion: ConfusionAtStep | None = None  # of the last validation; None if not recorded
    checkpoints: list[int] = field(default_factory=list)  # steps
    rollbacks: list[RolledBack] = field(default_factory=list)


@dataclass(frozen=True)
class PlottedCurve:
    """A curve for the window and the command line to plot, for example the training loss."""

    name: str  # for the option --curve
    title: str  # for users
    kind: Literal["series", "validation", "quality"]  # attribute of RunHistory
    key: str  # key in the attribute's dict
    smoothing_steps: float = 0.0  # default smoothing

    def curve(self, history: RunHistory) -> MetricCurve | None:
        """Return this curve from a run's history; None without values."""
        curves: dict[str, MetricCurve] = getattr(history, self.kind)
        found = curves.get(self.key)
        return found if found is not None and len(found.steps) else None


TRAINING_LOSS = PlottedCurve("loss", "Loss", "series", "loss", SMOOTHING_STEPS)
VALIDATION_LOSS = PlottedCurve("held-out-loss", "Validation loss", "validation", LOSS.name)
PLOTTED_CURVES = (
    TRAINING_LOSS,
    VALIDATION_LOSS,
    *(PlottedCurve(one.name, f"Validation {one.title}", "validation", one.name) for one in (ACCURACY, R2, EXACT)),
    PlottedCurve("kid", "Quality (KID)", "quality", "kid"),
    PlottedCurve("copies", "Copies", "quality", "copies"),
)


def compared_curves(history: RunHistory) -> dict[str, MetricCurve]:
    """Return a run's curves to plot, by title."""
    found = {figure.title: figure.curve(history) for figure in PLOTTED_CURVES}
    return {title: curve for title, curve in found.items() if curve is not None}


def elapsed_at(history: RunHistory, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the training time in seconds by step, float64 [n]; 0 without recorded times."""
    elapsed = history.series.get("elapsed_s")
    if elapsed is None:
        return np.zeros(len(steps))
    # Interpolates between the ends of ticks, from 0 s at step 0.
    return np.asarray(np.interp(steps, np.append(0, elapsed.steps), np.append(0.0, elapsed.values)))


def trained_so_far(history: RunHistory) -> tuple[int, float]:
    """Return the run's trained steps and training seconds."""
    ticks = history.series.get("elapsed_s")
    return (int(ticks.steps[-1]), float(ticks.values[-1])) if ticks is not None and len(ticks.steps) else (0, 0.0)


def budget_used(record: RunRecord, steps: int, elapsed_s: float) -> float:
    """Return the used share, 0 to 1, of the budget in a run's settings; 1 if the settings are damaged."""
    names = ("minutes", "steps", "epochs", "batch_size")
    try:
        config = TrainingConfig(**{name: record.config[name] for name in names if name in record.config})
    except UsageError:  # a damaged setting must not hide the curves
        return 1.0
    return config.budget_share(steps, elapsed_s, record.example_count)


@dataclass(frozen=True, eq=False)
class HistoryRead(Event):
    """Yielded after reading a run: curves, live samples and evaluations."""

    path: Path
    history: RunHistory
    samples: tuple[SamplesReady, ...]  # oldest first
    evaluations: tuple[CheckpointEvaluation, ...] = ()
    used_up: float = 1.0  # share of the training budget, 0 to 1


def read_history(path: Path) -> RunHistory:
    """Read a run's curves. Skips damaged lines, and steps before a resume that trained them again. Raises RunError."""
    return CurveReader(path).read()


class RunReader:
    """Reads runs repeatedly; parses only new lines and new samples. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[RunRecord, CurveReader, SampleReader]] = {}

    def read(self, path: Path) -> HistoryRead:
        """Read the curves and samples of a run. Raises RunError."""
        record = RunDir(path).record()
        known = self._known.pop(path, None)
        if known is None or known[0] != record:  # a new run in the same folder may have equal inode numbers
            known = (record, CurveReader(path), SampleReader(path, record.size))
        self._known[path] = known
        _, curves, samples = known
        for oldest in list(self._known)[:-_MOST_KNOWN]:  # a dict keeps insertion order: least recently used first
            del self._known[oldest]
        history = curves.read()
        used_up = budget_used(record, *trained_so_far(history))
        return HistoryRead(path, history, samples.read(), read_evaluations(path), used_up)


@dataclass(frozen=True)
class _Values:
    """An attribute's confusion matrix in confusion.json. predicted: value by sprite, as in `_Confusion.sprites`."""

    counts: list[list[int]]
    predicted: list[records.Count] = field(default_factory=list)


@dataclass(frozen=True)
class _Confusion:
    """The content of confusion.json. Older versions wrote no `sprites` and `predicted`."""

    step: records.Count
    counts: list[list[int]]
    sprites: list[records.Count] = field(default_factory=list)
    predicted: list[records.Count] = field(default_factory=list)
    attributes: dict[str, _Values] = field(default_factory=dict)


class CurveReader:
    """Reads a run's curves repeatedly; parses only new lines of metrics.jsonl."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.tail = MetricsTail(path)
        self._lines = _HistoryBuilder()

    def read(self) -> RunHistory:
        """Parse new lines, or the whole file after a replacement; return the curves. Raises RunError."""
        is_another, added = self.tail.read()
        if is_another:
            self._lines = _HistoryBuilder()
        for line in added:
            self._lines.add(line)
        return self._lines.history(read_confusion(self._path / CONFUSION_FILE))


class MetricsTail:
    """Follows a run's metrics.jsonl and returns added lines, like `tail -F`."""

    def __init__(self, path: Path) -> None:
        self._path = path / METRICS_FILE
        self._file = (0, 0)  # device and inode, to notice a replaced file
        self._read_bytes = 0

    def read(self) -> tuple[bool, Iterator[MetricsLine]]:
        """Return whether the file was replaced, and an iterator over new lines. Raises RunError.

        Use up the iterator before the next call.
        """
        try:
            with wrap_read_errors(self._path):
                about = self._path.stat()
        except FileNotFoundError:
            is_another = self._file != (0, 0)
            self._file, self._read_bytes = (0, 0), 0
            return is_another, iter(())
        file = (about.st_dev, about.st_ino)
        is_another = file != self._file or about.st_size < self._read_bytes  # replaced, or truncated
        if is_another:
            self._file, self._read_bytes = file, 0
        return is_another, self._added()

    def _added(self) -> Iterator[MetricsLine]:
        with wrap_read_errors(self._path), self._path.open("rb") as lines:
            lines.seek(self._read_bytes)  # continue behind the last complete line
            for text in lines:
                if not text.endswith(b"\n"):
                    break  # incomplete: the training still writes the line
                self._read_bytes += len(text)
                if (line := metrics.parse_line(text)) is not None:
                    yield line


_OtherLine = ValidationLine | QualityLine | LayerStats | CheckpointLine | RolledBack


class _HistoryBuilder:
    """Collects the lines of metrics.jsonl and turns them into a RunHistory."""

    def __init__(self) -> None:
        self._losses = _LossColumns()
        self._others: list[_OtherLine] = []

    def add(self, line: MetricsLine) -> None:
        """Add a parsed line of metrics.jsonl. A ResumeLine removes the later steps, because training repeats them."""
        if isinstance(line, metrics.ResumeLine):
            self._losses.cut(line.resumed)
            self._others = [other for other in self._others if _step_of(other) <= line.resumed]
        elif isinstance(line, metrics.LossLine):
            self._losses.add(line)
        else:
            self._others.append(line)

    def history(self, confusion: ConfusionAtStep | None) -> RunHistory:
        """Return the run's history. Ignores a confusion matrix without a validation at its step."""
        validations = [(line.step, line.metrics) for line in self._others if isinstance(line, ValidationLine)]
        qualities = [(line.step, asdict(line.quality)) for line in self._others if isinstance(line, QualityLine)]
        is_current = confusion is not None and any(step == confusion.step for step, _ in validations)
        layers = [line for line in self._others if isinstance(line, LayerStats)]
        checkpoints = [line.checkpoint for line in self._others if isinstance(line, CheckpointLine)]
        return RunHistory(
            self._losses.series(), _curves_by_name(validations), _curves_by_name(qualities), _layer_curves(layers),
            confusion if is_current else None, checkpoints,
            [line for line in self._others if isinstance(line, RolledBack)],
        )  # fmt: skip


def _step_of(line: _OtherLine) -> int:
    return line.checkpoint if isinstance(line, CheckpointLine) else line.step


class _LossColumns:
    """Losses per step and other values per tick. Takes 8 bytes per number: a night's training has millions of steps."""

    def __init__(self) -> None:
        # _steps: by loss. _starts, _ends: first step and last step + 1, by tick. "q" is int64, "d" is float64.
        self._steps, self._starts, self._ends = array("q"), array("q"), array("q")
        self._a_step = {name: array("d") for name in ("loss", "grad_norm")}
        self._a_tick = {name: array("d") for name in ("lr", "sprites_per_s", "elapsed_s", "memory_bytes")}

    def add(self, tick: metrics.LossLine) -> None:
        """Append the losses and other values of a tick."""
        end = tick.step + len(tick.loss)
        self._steps.extend(range(tick.step, end))
        self._starts.append(tick.step)
        self._ends.append(end)
        for name, values in self._a_step.items():
            values.extend(getattr(tick, name))
        for name, values in self._a_tick.items():
            values.append(getattr(tick, name))

    def cut(self, step: int) -> None:
        """Remove the values from `step` on, because training resumes at `step`."""
        steps, ticks = bisect_left(self._steps, step), bisect_left(self._starts, step)
        a_step: list[array[Any]] = [self._steps, *self._a_step.values()]
        a_tick: list[array[Any]] = [self._starts, self._ends, *self._a_tick.values()]
        for column in a_step:
            del column[steps:]
        for column in a_tick:
            del column[ticks:]
        if ticks:
            self._ends[-1] = min(self._ends[-1], step)

    def series(self) -> dict[str, MetricCurve]:
        """Return the curves by metric name; empty before the first tick."""
        if not self._starts:
            return {}
        steps, ends = np.array(self._steps, dtype=np.int64), np.array(self._ends, dtype=np.int64)
        columns = [(steps, self._a_step), (ends, self._a_tick)]
        return {name: MetricCurve(at, np.array(kept)) for at, values in columns for name, kept in values.items()}


def read_confusion(path: Path) -> ConfusionAtStep | None:
    """Read the confusion matrix from confusion.json; return None if the file is missing or invalid."""
    try:
        found = records.parse(path.read_bytes(), _Confusion)
        counts = _square(found.counts)
        sprites, predicted = (np.array(each, dtype=np.int64) for each in (found.sprites, found.predicted))
        attributes = {}
        for name, values in found.attributes.items():
            guesses = np.array(values.predicted, dtype=np.int64)
            of_values = ClassPredictions(sprites, guesses) if len(guesses) == len(sprites) > 0 else None
            attributes[name] = ValueConfusion(_square(values.counts), of_values)
    except (OSError, ValueError, OverflowError):
        return None
    is_recorded = len(sprites) == len(predicted) == counts.sum()
    predictions = ClassPredictions(sprites, predicted) if is_recorded else None
    return ConfusionAtStep(found.step, counts, predictions, attributes)


def _square(rows: list[list[int]]) -> NDArray[np.int64]:
    """Return a matrix int64 [K, K]. Raises ValueError unless square, OverflowError for numbers beyond 64 bits."""
    counts = np.array(rows, dtype=np.int64)  # rows of different lengths raise ValueError
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError("not a square matrix")
    return counts


def _curves_by_name(entries: Sequence[tuple[int, Mapping[str, float]]]) -> dict[str, MetricCurve]:
    """Return the curves of the last entry's metrics, by name. entries: (step, metrics), oldest first."""
    curves = {}
    for name in entries[-1][1] if entries else ():
        having = [(step, figures[name]) for step, figures in entries if name in figures]
        steps = np.array([step for step, _ in having], dtype=np.int64)
        curves[name] = MetricCurve(steps, np.array([value for _, value in having], dtype=np.float64))
    return curves


def _layer_curves(lines: Sequence[LayerStats]) -> dict[str, dict[str, MetricCurve]]:
    """Return {statistic: {layer: curve}} for the layers of the newest line."""
    found: dict[str, dict[str, MetricCurve]] = {}
    for index, figure in enumerate(metrics.LAYER_FIGURES if lines else ()):
        rows = [(line.step, {name: row[index] for name, row in line.layers.items()}) for line in lines]
        known = [(step, {name: value for name, value in row.items() if value is not None}) for step, row in rows]
        found[figure] = _curves_by_name(known)
    return found
