"""Run lessons: measure and compare with a prediction, and run a learner's code with a time limit."""

import dataclasses
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

from studio.core import worker_process
from studio.core.errors import StudioError
from studio.core.events import Event, Events, Notice
from studio.core.formatting import duration
from studio.core.worker_process import ChildProcess
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.devices.types import Device
from studio.lab.experiments.base import ExperimentContext
from studio.lab.learn.code_child import CodeDone, CodeStarted
from studio.lab.learn.records import LessonRecord, load_record, save_record
from studio.lab.lessons.base import Answer, Lesson
from studio.lab.outcome import Outcome
from studio.lab.running import measure, result_of

CODE_LIMIT_S = 60.0
_BATCH = 16  # small, for several steps of every model on a slow CPU
_START_LIMIT_S = 120.0  # to load PyTorch


@dataclass(frozen=True)
class LessonDone(Event):
    """Event at the end of a lesson's measurement. record: with result, comparison and explanation."""

    record: LessonRecord
    is_saved: bool


@dataclass(frozen=True)
class ExerciseChecked(Event):
    """Event after the check of an exercise. record: with the code and whether the exercise is solved."""

    record: LessonRecord


def lesson_context(sprites: Sprites, device: Device, seconds: float) -> ExperimentContext:
    """Return the inputs of a lesson: the default kind of model, and sprites. Raises TrainingError if too few suit."""
    recipe = catalog.recipe("")
    config = recipe.Config().replace(batch_size=_BATCH)
    return ExperimentContext.of(recipe, config, sprites, device, seconds)


def run_lesson(lesson: Lesson, context: ExperimentContext, answer: Answer | None, learner: str) -> Events:
    """Measure in a child process, compare with the answer, and keep the record; closing the generator kills it.

    answer: from `lesson.prediction.read`, or None if the learner skipped the prediction; an earlier prediction then
    stays. Yields Progress, an Outcome whenever there are new results, and LessonDone at the end. Raises UsageError and
    StudioError.
    """
    outcome, start_s = Outcome(), time.perf_counter()
    with closing(measure(lesson, context)) as events:
        for event in events:
            outcome = event if isinstance(event, Outcome) else outcome
            yield event
    result = result_of(lesson, context, outcome, time.perf_counter() - start_s)
    measured, before = lesson.measured(outcome.figures), load_record(learner, lesson.name)
    prediction = lesson.prediction
    if answer is None and prediction.allows(before.answer):
        answer = before.answer
    explanation = (prediction.compare(answer, measured), *lesson.explain(outcome.figures, answer))
    record = dataclasses.replace(
        before, result=result, answer=answer, measured=measured, explanation=explanation,
        is_right=answer is not None and prediction.is_right(answer, measured), measurements=before.measurements + 1,
    )  # fmt: skip
    is_saved = yield from _saved(learner, record)
    yield LessonDone(record, is_saved)


def check_exercise(lesson: Lesson, code: str, learner: str, limit_s: float = CODE_LIMIT_S) -> Events:
    """Run a learner's solution in a child process, check it, and keep the record.

    Code that fails the check never replaces code that has solved the exercise.
    Yields CodeStarted, CodePrinted, and at the end ExerciseChecked and CodeDone. Raises StudioError if the process
    can't be started.
    """
    with closing(run_code(code, limit_s, lesson)) as events:
        for event in events:
            if isinstance(event, CodeDone):
                before = load_record(learner, lesson.name)
                kept = before.code if before.passed and not event.passed else code
                passed = before.passed or event.passed
                record = dataclasses.replace(before, passed=passed, tries=before.tries + 1, code=kept)
                yield from _saved(learner, record)
                yield ExerciseChecked(record)
            yield event


def run_code(code: str, limit_s: float = CODE_LIMIT_S, lesson: Lesson | None = None) -> Events:
    """Run code in a child process for at most `limit_s`; with a lesson, check it as a solution of the exercise.

    Yields CodeStarted (repeated while waiting), CodePrinted, and CodeDone at the end. Raises StudioError.
    """
    if not worker_process.can_start():
        raise StudioError("Code needs a Python interpreter that this program can start.")
    try:
        process = ChildProcess("studio.lab.learn.code_child", (code, lesson))
    except OSError as error:
        raise StudioError("The process for the code can't be started.", f"{error}.") from error
    with closing(process):
        yield from _code_events(process, limit_s)


def _code_events(process: ChildProcess, limit_s: float) -> Iterator[Event]:
    last: Event = CodeStarted(False)
    until_s, allowed_s = time.monotonic() + _START_LIMIT_S, _START_LIMIT_S
    for message in process.messages():
        if isinstance(message, CodeStarted):
            until_s, allowed_s = time.monotonic() + limit_s, limit_s
            last = message
        if isinstance(message, Event):
            yield message
        if isinstance(message, CodeDone):
            return
        if time.monotonic() > until_s:
            yield CodeDone(f"Stopped after {duration(allowed_s)}: the time limit.")
            return
        if message is None:
            yield last
    number = process.death_signal()
    reason = f"; the system ended it with signal {number}" if number else ""
    yield CodeDone(f"The process of the code ended unexpectedly{reason}.")


def _saved(learner: str, record: LessonRecord) -> Generator[Event, None, bool]:
    """Save a record; yield a warning and return False if it can't be written."""
    try:
        save_record(learner, record)
    except OSError as error:
        yield Notice("warning", "The answer could not be saved.", f"{error.strerror or error}.")
        return False
    return True
