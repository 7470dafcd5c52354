"""Results of experiments: findings with settings, sprites and device, stored as JSON files."""

import dataclasses
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.core import files, paths, records
from studio.core.events import Event
from studio.core.formatting import number
from studio.lab.outcome import Outcome

FORMAT = 1


@dataclass(frozen=True)
class Result:
    """An experiment's final outcome, with the settings, sprites and device of the measurement."""

    experiment: str
    title: str
    question: str
    outcome: Outcome
    code: str  # plain PyTorch code of the experiment
    read_on: tuple[str, str]  # title and address of a documentation page
    recipe: str
    settings: Mapping[str, Any]
    data_title: str
    data_count: records.Count
    size: records.Positive
    device: str
    device_name: str
    took_s: records.Seconds
    created: str
    versions: Mapping[str, str]
    run: str = ""  # examined; empty for experiments on sprites
    checkpoint: str = ""  # as requested: 'best', 'last' or a step
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid date or an invalid documentation address."""
        datetime.datetime.fromisoformat(self.created)
        if not self.read_on[1].startswith(("https://", "http://")) and self.read_on[1]:
            raise ValueError("the documentation link is not a web address")

    def examined(self) -> str:
        """Return the examined run and checkpoint: 'items generator, best (step 1,200)'. '' without a run."""
        if not self.run:
            return ""
        step = "" if self.outcome.step is None else f"step {number(self.outcome.step)}"
        chosen = f"{self.checkpoint} ({step})" if self.checkpoint in ("best", "last") and step else step
        return f"{self.run}, {chosen or self.checkpoint}"


@dataclass(frozen=True)
class ExperimentDone(Event):
    """Yielded at the end of an experiment. path: file with the stored result; None after a write error."""

    result: Result
    path: Path | None


def save_result(result: Result) -> Path:
    """Write a result to the Lab folder; return the file's path. Raises OSError."""
    name = files.safe_name(f"{result.created[:19].replace('T', ' ').replace(':', '-')} {result.experiment}")
    path = files.free_path(paths.lab() / f"{name}.json")
    files.write_atomic(path, (json.dumps(dataclasses.asdict(result), indent=1) + "\n").encode())
    return path


def load_results() -> tuple[list[Result], list[str]]:
    """Load the stored results, newest first; also return a sentence per unreadable file. Raises OSError."""
    results, problems = [], []
    for path in sorted(paths.lab().glob("*.json"), reverse=True):
        try:
            results.append(records.parse(path.read_bytes(), Result))
        except ValueError as error:
            problems.append(f"{path.name} can't be read: {error}.")
    return results, problems
