"""Read and write learners' records: a JSON file per learner and lesson."""

import dataclasses
import getpass
import json
from dataclasses import dataclass
from pathlib import Path

from studio.core import files, paths, records
from studio.lab.lessons.base import Answer
from studio.lab.results import Result

FORMAT = 1
LARGEST_CODE_BYTES = 1 << 20  # limit of a learner's program
_LARGEST_BYTES = 16 << 20


@dataclass(frozen=True)
class LessonRecord:
    """A learner's newest measurement and exercise in a lesson."""

    lesson: str
    result: Result | None = None  # newest measurement; None before the first
    answer: Answer | None = None  # the prediction; None if skipped
    measured: Answer | None = None
    is_right: bool = False  # True for a good prediction
    explanation: tuple[str, ...] = ()
    measurements: records.Count = 0  # number of measurements
    passed: bool = False  # True after the learner solved the exercise
    tries: records.Count = 0  # number of checks of the exercise
    code: str = ""  # the newest code that solved the exercise; before a solution, the newest code
    format: int = FORMAT


def default_learner() -> str:
    """Return the user account's name, the default name of a learner."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "learner"


def learner_folder(learner: str) -> Path:
    """Return the folder for a learner's records and code."""
    return paths.lessons() / files.safe_name(learner, "learner")


def load_record(learner: str, lesson: str) -> LessonRecord:
    """Load a learner's record of a lesson; return an empty record for a missing or damaged file."""
    path = learner_folder(learner) / f"{lesson}.json"
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return LessonRecord(lesson)
        found = records.parse(path.read_bytes(), LessonRecord)
    except (OSError, ValueError):
        return LessonRecord(lesson)
    return dataclasses.replace(found, lesson=lesson)


def save_record(learner: str, record: LessonRecord) -> Path:
    """Write a learner's record of a lesson, atomically; return the file's path. Raises OSError."""
    path = learner_folder(learner) / f"{record.lesson}.json"
    files.write_atomic(path, (json.dumps(dataclasses.asdict(record), indent=1) + "\n").encode())
    return path


def load_draft(learner: str, lesson: str) -> str | None:
    """Load the learner's edited code for an exercise; return None without a readable file."""
    path = _draft_path(learner, lesson)
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= LARGEST_CODE_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def save_draft(learner: str, lesson: str, code: str) -> None:
    """Write the learner's edited code for an exercise, atomically. Raises OSError."""
    files.write_atomic(_draft_path(learner, lesson), code.encode("utf-8", "replace"))


def _draft_path(learner: str, lesson: str) -> Path:
    return learner_folder(learner) / f"{lesson}.py"
