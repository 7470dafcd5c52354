"""What `studio evaluate` has found of a run: the latest of each checkpoint, in evaluation.json. No torch here."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from studio.core import files, records
from studio.core.errors import UnwritableError
from studio.core.events import Evaluated, Events, Notice, Validated
from studio.engine.runs.folder import RunDir

_FILE = "evaluation.json"


@dataclass(frozen=True)
class CheckpointEvaluation:
    """The figures of a checkpoint, by name, and what they were measured on.

    beside: the same figures of real sprites, or of always saying the mean; empty where there is nothing to set beside.
    count: new sprites that were judged; 0 for what draws none. settings: how those were drawn.
    """

    step: records.Count
    made: str  # ISO 8601, UTC
    figures: Mapping[str, float]
    beside: Mapping[str, float]
    heldout_count: records.Count
    training_count: records.Count
    count: records.Count = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_generator(cls, found: Evaluated, step: int, settings: Mapping[str, Any]) -> CheckpointEvaluation:
        """Of a generator, by its new sprites."""
        new, real = found.figures["new"], found.figures["real"]
        counts = found.heldout_count, found.training_count, found.count
        return cls(step, _now(), _to_floats(new), _to_floats(real), *counts, settings)

    @classmethod
    def from_validation(cls, found: Validated, heldout_count: int, training_count: int) -> CheckpointEvaluation:
        """Of what draws nothing, by the sprites that were held out."""
        figures, baseline = _to_floats(found.metrics), _to_floats(found.baseline)
        return cls(found.step, _now(), figures, baseline, heldout_count, training_count)


def read_evaluations(run: Path) -> tuple[CheckpointEvaluation, ...]:
    """What is kept of a run, the latest last; nothing where nothing is, or nothing that can be read."""
    try:
        return tuple(records.parse((run / _FILE).read_bytes(), list[CheckpointEvaluation]))
    except (OSError, ValueError):
        return ()


def save_evaluation(run: Path, found: CheckpointEvaluation) -> Events:
    """Keep this with the run, in place of what was found of the same checkpoint; a Notice where that can't be."""
    others = [other for other in read_evaluations(run) if other.step != found.step]
    try:
        _write(RunDir(run), [*others, found])
    except UnwritableError as error:
        yield Notice("warning", f"The figures are not kept with the run. {error.title}", error.hint)


def remove_evaluations_after(run: RunDir, step: int) -> None:
    """Forget what was found of checkpoints after this step, from which training goes on. Raises UnwritableError."""
    known = read_evaluations(run.path)
    kept = [found for found in known if found.step <= step]
    if len(kept) < len(known):
        _write(run, kept)


def _write(run: RunDir, found: Sequence[CheckpointEvaluation]) -> None:
    with run.wrap_write_errors():
        files.write_atomic(run.path / _FILE, json.dumps([asdict(each) for each in found], indent=2).encode())


def _to_floats(figures: Mapping[str, float]) -> dict[str, float]:
    """Numbers that JSON can hold, of those that numpy has."""
    return {name: float(value) for name, value in figures.items()}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
