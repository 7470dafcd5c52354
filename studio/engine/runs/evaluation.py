"""Results of `studio evaluate`: evaluation.json in the run folder holds the latest result per checkpoint."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from studio.core import records
from studio.core.errors import UnwritableError
from studio.core.events import Evaluated, Events, Notice, Validated
from studio.engine.runs.folder import RunDir

_FILE = "evaluation.json"


@dataclass(frozen=True)
class CheckpointEvaluation:
    """The results of evaluating a checkpoint."""

    step: records.Count
    made: str  # ISO 8601, UTC
    figures: Mapping[str, float]  # metrics by name
    beside: Mapping[str, float]  # metrics of a baseline: real sprites, or predicting the mean; may be empty
    heldout_count: records.Count  # validation sprites
    training_count: records.Count  # training sprites
    count: records.Count = 0  # new sprites; 0 for a classifier or regression
    settings: Mapping[str, Any] = field(default_factory=dict)  # how the new sprites were drawn

    @classmethod
    def from_generator(cls, found: Evaluated, step: int, settings: Mapping[str, Any]) -> Self:
        """Create the evaluation of a generator from its new sprites, with real sprites as the baseline."""
        new, real = found.figures["new"], found.figures["real"]
        counts = found.heldout_count, found.training_count, found.count
        return cls(step, _now(), _to_floats(new), _to_floats(real), *counts, settings)

    @classmethod
    def from_validation(cls, found: Validated, heldout_count: int, training_count: int) -> Self:
        """Create the evaluation of a classifier or regression from metrics on the validation set."""
        figures, baseline = _to_floats(found.metrics), _to_floats(found.baseline)
        return cls(found.step, _now(), figures, baseline, heldout_count, training_count)


def read_evaluations(run: Path) -> tuple[CheckpointEvaluation, ...]:
    """Return the stored evaluations of a run, latest last; an empty tuple for a missing or unreadable file."""
    try:
        return tuple(records.parse((run / _FILE).read_bytes(), list[CheckpointEvaluation]))
    except (OSError, ValueError):
        return ()


def save_evaluation(run: Path, found: CheckpointEvaluation) -> Events:
    """Store an evaluation in the run folder, instead of the checkpoint's earlier one. Yields a Notice on failure."""
    others = [other for other in read_evaluations(run) if other.step != found.step]
    try:
        _write(RunDir(run), [*others, found])
    except UnwritableError as error:
        yield Notice("warning", f"The results were not saved in the run folder. {error.title}", error.hint)


def remove_evaluations_after(run: RunDir, step: int) -> None:
    """Delete the evaluations of checkpoints after `step`, where training resumes. Raises UnwritableError."""
    known = read_evaluations(run.path)
    kept = [found for found in known if found.step <= step]
    if len(kept) < len(known):
        _write(run, kept)


def _write(run: RunDir, found: Sequence[CheckpointEvaluation]) -> None:
    with run.wrap_write_errors():
        run.write_file(_FILE, json.dumps([asdict(each) for each in found], indent=2).encode())


def _to_floats(figures: Mapping[str, float]) -> dict[str, float]:
    """Convert numpy numbers to floats for JSON."""
    return {name: float(value) for name, value in figures.items()}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
