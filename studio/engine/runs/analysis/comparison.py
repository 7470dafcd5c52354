"""Compare runs: different settings, metrics side by side, and samples at the same step or time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from studio.core.config import TrainingConfig, labelled_text, legacy_defaults, settings_of
from studio.core.events import SamplesReady
from studio.core.formatting import duration, number, percent, rate
from studio.core.metrics import BETTER, FIGURES, LOSS, METRICS, Better, Figure, Quality, format_metric, metric_title
from studio.engine.runs.evaluation import CheckpointEvaluation
from studio.engine.runs.folder import RunRecord
from studio.engine.runs.history import HistoryRead, MetricCurve, elapsed_at
from studio.engine.runs.listing import RunSummary, data_label

TimelineAxis = Literal["step", "time"]

NOTHING_DIFFERS = "No differences: equal settings, sprites and device."

_SETTINGS = {item.name for item in settings_of(TrainingConfig)}  # common to all recipes
_LEGACY = legacy_defaults(TrainingConfig)
_FINGERPRINT = 12  # leading digits to show
_BY_CHANCE = 2.0  # standard errors; chance exceeds them once in twenty times


@dataclass(frozen=True, eq=False)
class SampleTimeline:
    """A run's live samples, oldest first. steps, seconds: float64 [n], training step and time by sample."""

    samples: Sequence[SamplesReady]
    steps: NDArray[np.float64]
    seconds: NDArray[np.float64]

    @classmethod
    def of(cls, read: HistoryRead) -> Self:
        """Create the timeline from a run's history."""
        steps = np.array([sample.step for sample in read.samples], np.int64)
        return cls(read.samples, steps.astype(np.float64), elapsed_at(read.history, steps))

    def positions(self, by: TimelineAxis) -> NDArray[np.float64]:
        """Return the training step or the training seconds by sample, ascending: float64 [n]."""
        return self.steps if by == "step" else self.seconds

    def nearest(self, position: float, by: TimelineAxis) -> int:
        """Return the index of the sample nearest to a step or time. The timeline must not be empty."""
        return int(np.abs(self.positions(by) - position).argmin())


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A run in a comparison of runs, with a unique name."""

    name: str
    record: RunRecord
    summary: RunSummary
    read: HistoryRead

    @cached_property
    def film(self) -> SampleTimeline:
        """The timeline of the run's live samples."""
        return SampleTimeline.of(self.read)

    @property
    def evaluation(self) -> CheckpointEvaluation | None:
        """The newest `studio evaluate` result of the run; None without one."""
        return self.read.evaluations[-1] if self.read.evaluations else None


@dataclass(frozen=True)
class ComparisonRow:
    """A table row with one text per run; '' where a run lacks the value.

    better: 'lower is better' or similar words. best: indices of the runs with the best values.
    """

    title: str
    texts: tuple[str, ...]
    better: str = ""
    best: frozenset[int] = frozenset()

    def marked(self) -> tuple[str, ...]:
        """Return the texts, with 'best' in front of the best values."""
        return tuple(f"best {text}" if index in self.best else text for index, text in enumerate(self.texts))


def settings_texts(record: RunRecord) -> dict[str, str]:
    """Return a run's settings as texts by label. Settings newer than the run show the studio's earlier behaviour."""
    config = {**record.config, **{name: value for name, value in _LEGACY.items() if name not in record.config}}
    known = {item.name: item for item in settings_of(TrainingConfig, record.noun)}
    return dict(labelled_text(name, value, known.get(name)) for name, value in config.items())


def data_texts(record: RunRecord) -> dict[str, str]:
    """Return the recipe, sprites, device and versions of a run as texts by label."""
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return {
        "Recipe": record.recipe, "Sprites": data_label(record), "Canvas": f"{record.size} x {record.size} pixels",
        "Classes": ", ".join(record.class_names), "Target columns": ", ".join(record.target_names),
        "Sprites (fingerprint)": record.data_fingerprint[:_FINGERPRINT], "Device": record.device_name,
        "Precision": record.precision, "Parameters": number(record.parameters), "Versions": versions,
    }  # fmt: skip


def differences(records: Sequence[RunRecord]) -> list[ComparisonRow]:
    """Return rows for settings and properties on which the runs differ."""
    rows = side_by_side([{**data_texts(record), **settings_texts(record)} for record in records])
    return [row for row in rows if len(set(row.texts)) > 1]


def side_by_side(columns: Sequence[Mapping[str, str]]) -> list[ComparisonRow]:
    """Return a table with a column per run and a row per label. columns: a run's texts by label."""
    names = dict.fromkeys(name for column in columns for name in column)
    return [ComparisonRow(name, tuple(column.get(name, "") for column in columns)) for name in names]


def comparison_rows(runs: Sequence[ComparedRun]) -> list[ComparisonRow]:
    """Return rows for progress, training metrics and evaluations. Mark the best values if the runs are comparable."""
    return [row for row in (*_speed_rows(runs), *_training_rows(runs), *_evaluation_rows(runs)) if any(row.texts)]


def explain_best(runs: Sequence[ComparedRun]) -> str:
    """Return a sentence for users: what 'best' means in the table, or why only few values are marked as best."""
    if not _have_same_sprites(runs):
        return "Only the best speed is marked: the runs use different sprites or hold out different ones."
    marks = "'best': no other run is better by more than chance."
    if _have_same_recipe(runs):
        return marks
    return f"{marks} Losses of different recipes or recipe settings are not comparable."


def shared_positions(films: Sequence[SampleTimeline], by: TimelineAxis) -> list[float]:
    """Return the steps or times with a sample in some run, up to the last sample of the shortest run."""
    found = [film.positions(by) for film in films if len(film.samples)]
    if not found:
        return []
    every = np.unique(np.concatenate(found))  # float64 [n], sorted
    return [float(position) for position in every[every <= min(positions[-1] for positions in found)]]


def _speed_rows(runs: Sequence[ComparedRun]) -> Iterator[ComparisonRow]:
    progresses = [run.summary.progress for run in runs]
    yield ComparisonRow("Steps", tuple(number(each.step) if each else "" for each in progresses))
    yield ComparisonRow("Time", tuple(duration(each.elapsed_s) if each else "" for each in progresses))
    curves = [run.read.history.series.get("sprites_per_s") for run in runs]
    # The median ignores warm-up and pauses.
    speeds = [None if curve is None else float(np.median(curve.values)) for curve in curves]
    yield _ranked_row(
        "Speed",
        ["" if speed is None else rate(speed, f"{run.record.noun}s") for run, speed in zip(runs, speeds, strict=True)],
        "high",
        speeds,
    )


def _training_rows(runs: Sequence[ComparedRun]) -> Iterator[ComparisonRow]:
    """Yield a row per metric measured during training, with the newest value by run."""
    compared = _have_same_sprites(runs)
    yield from _validation_rows([_latest(run.read.history.validation) for run in runs], "Validation {}", runs)
    last = [run.read.history.quality.get("kid") for run in runs]
    steps = tuple("" if curve is None else number(int(curve.steps[-1])) for curve in last)
    yield ComparisonRow("Last measured at step", steps)
    found = [Quality.from_figures(_latest(run.read.history.quality)) for run in runs]
    texts = [f"{each.kid:.3f} ± {each.kid_error:.3f}" if each else "" for each in found]
    kids, errors = [each.kid if each else None for each in found], [each.kid_error if each else 0.0 for each in found]
    yield _ranked_row("KID while training", texts, "low", kids, errors, compared=compared)
    yield ComparisonRow("KID of real sprites", tuple(f"{each.kid_real:.3f}" if each else "" for each in found))
    texts = [percent(each.copies) if each else "" for each in found]
    copies = [each.copies if each else None for each in found]
    yield _ranked_row("Copies while training", texts, "low", copies, compared=compared)
    yield ComparisonRow("Copies among real sprites", tuple(percent(each.copies_real) if each else "" for each in found))


def _latest(curves: Mapping[str, MetricCurve]) -> dict[str, float]:
    return {name: float(curve.values[-1]) for name, curve in curves.items()}


def _evaluation_rows(runs: Sequence[ComparedRun]) -> Iterator[ComparisonRow]:
    """Yield a row per metric from the runs' newest `studio evaluate` results."""
    found = [run.evaluation for run in runs]
    yield ComparisonRow("Evaluated at step", tuple("" if each is None else number(each.step) for each in found))
    judged = tuple(number(each.count) if each is not None and each.count else "" for each in found)
    yield ComparisonRow("New sprites judged", judged)
    heldout = tuple("" if each is None else number(each.heldout_count) for each in found)
    yield ComparisonRow("Validation sprites", heldout)
    counts = {each.count for each in found if each is not None and each.count}
    compared = _have_same_sprites(runs) and len(counts) == 1  # comparable only for equal numbers of new sprites
    new = [each.figures if each is not None and each.count else {} for each in found]
    pairs = [(own, {} if each is None else each.beside) for own, each in zip(new, found, strict=True)]
    for figure in FIGURES:
        texts, ranks = [_value_with_real(figure, *pair) for pair in pairs], [_rank(figure, *pair) for pair in pairs]
        errors = [each.get(f"{figure.name}_error", 0.0) for each in new]
        yield _ranked_row(figure.title, texts, figure.better, ranks, errors, compared=compared)
    validated = [each if each is not None and not each.count else None for each in found]
    figures, beside = ([getattr(each, name) if each else {} for each in validated] for name in ("figures", "beside"))
    yield from _validation_rows(figures, "Validation {}, evaluated", runs, beside)


def _validation_rows(
    columns: Sequence[Mapping[str, float]], title: str, runs: Sequence[ComparedRun],
    beside: Sequence[Mapping[str, float]] = (),
) -> Iterator[ComparisonRow]:  # fmt: skip
    """Yield a row per validation metric. columns: a run's metrics by name. beside: the baseline's metrics, by run."""
    for name in dict.fromkeys(name for column in columns for name in column):
        metric, values = METRICS.get(name.partition(" ")[0]), [column.get(name) for column in columns]
        texts, full = ["" if value is None else format_metric(name, value) for value in values], metric_title(name)
        if metric is None:
            yield ComparisonRow(title.format(full), tuple(texts))
        else:
            if metric.baseline and beside:
                texts = [
                    f"{text} ({metric.baseline} {format_metric(name, baseline[name])})" if name in baseline else text
                    for text, baseline in zip(texts, beside, strict=True)
                ]
            compared = _have_same_sprites(runs) and (metric is not LOSS or _have_same_recipe(runs))
            yield _ranked_row(title.format(full), texts, metric.better, values, compared=compared)


def _value_with_real(figure: Figure, new: Mapping[str, float], real: Mapping[str, float]) -> str:
    """Return a metric as text. Metrics that should match real sprites state the real value too: '0.12 (real 0.10)'."""
    text, aim = figure.format(new), figure.format(real) if figure.better == "as real" else ""
    return f"{text} (real {aim})" if text and aim else text


def _rank(figure: Figure, new: Mapping[str, float], real: Mapping[str, float]) -> float | None:
    """Return the value to rank by. Metrics that should match real sprites rank by the distance from the real value."""
    if figure.name not in new or figure.better != "as real":
        return new.get(figure.name)
    return abs(new[figure.name] - real[figure.name]) if figure.name in real else None


def _ranked_row(
    title: str, texts: Sequence[str], better: Better, values: Sequence[float | None], errors: Sequence[float] = (), *,
    compared: bool = True,
) -> ComparisonRow:  # fmt: skip
    """Return a row of numbers. errors: standard errors. compared: mark the best values."""
    ranks = [None if value is None else -value if better == "high" else value for value in values]  # lowest is best
    best = _best_positions(ranks, errors or [0.0] * len(ranks)) if compared else frozenset[int]()
    return ComparisonRow(title, tuple(texts), BETTER[better], best)


def _best_positions(ranks: Sequence[float | None], errors: Sequence[float]) -> frozenset[int]:
    """Return the indices of the lowest rank and of ranks within chance of the lowest; an empty set if all ranks are."""
    known = {index: rank for index, rank in enumerate(ranks) if rank is not None and math.isfinite(rank)}
    if not known:
        return frozenset()
    least = min(known, key=known.__getitem__)  # index of the best value
    chance = [_BY_CHANCE * math.hypot(error, errors[least]) for error in errors]  # of a difference of two values
    near = {index for index, rank in known.items() if rank - known[least] <= chance[index]}
    return frozenset() if len(near) == len(known) else frozenset(near)


def _have_same_sprites(runs: Sequence[ComparedRun]) -> bool:
    """Return whether all runs share their sprites and their validation set."""
    records = [run.record for run in runs]
    held_out = {tuple(record.config.get(name) for name in ("holdout", "seed")) for record in records}
    return len({(record.data_fingerprint, record.size, record.split) for record in records}) == len(held_out) == 1


def _have_same_recipe(runs: Sequence[ComparedRun]) -> bool:
    own = [{name: value for name, value in run.record.config.items() if name not in _SETTINGS} for run in runs]
    return len({run.record.recipe for run in runs}) == 1 and all(each == own[0] for each in own)
