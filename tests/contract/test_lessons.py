"""What every lesson must do, whatever it is: ask, measure, compare with a prediction, and check an exercise."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from studio.core import records
from studio.core.events import Progress
from studio.lab.learn.catalog import lesson as lesson_called
from studio.lab.learn.catalog import lessons, number_of
from studio.lab.learn.code_child import run
from studio.lab.lessons.base import Lesson
from studio.lab.outcome import Outcome
from tests.environment import THREADS
from tests.lab.tools import small_context

_SECONDS = 0.05
SLOW = {"loading", "mixed-precision", "timing"}  # they start processes, or measure for longer
LESSONS = [
    pytest.param(lesson, marks=[pytest.mark.slow] * (name in SLOW), id=name) for name, lesson in lessons().items()
]

pytestmark = pytest.mark.parametrize("lesson", LESSONS)


@pytest.fixture(scope="module")
def outcome_of() -> Callable[[Lesson], Outcome]:
    """The last outcome of a short measurement, which is made once."""

    @functools.cache
    def once(lesson: Lesson) -> Outcome:
        try:
            events = list(lesson.run(small_context(_SECONDS)))
        finally:
            torch.set_num_threads(THREADS)
        assert any(isinstance(event, Progress) for event in events)
        assert isinstance(events[-1], Outcome)
        return events[-1]

    return once


def test_it_introduces_itself(lesson: Lesson) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", lesson.name) and lesson.title and lesson.intro and lesson.gpu
    assert lesson.question.endswith("?") and 0 < lesson.minutes <= 15 and 0 < lesson.seconds <= 30
    texts = (*lesson.intro, lesson.question, lesson.gpu, lesson.exercise.task, lesson.exercise.starter, lesson.plain)
    assert len(" ".join(texts).split()) / 200 < lesson.minutes / 2  # time to read, at 200 words a minute
    assert re.match(r"https://(docs\.)?pytorch\.org/", lesson.read_on[1]) and lesson.read_on[0]
    assert lesson_called(lesson.name) is lesson is lesson_called(str(number_of(lesson)))
    assert all(text.endswith((".", "?")) for text in (*lesson.intro, lesson.gpu, lesson.exercise.task))
    assert bool(lesson.prediction.choices) != bool(lesson.prediction.unit)


def test_it_measures_what_was_predicted(lesson: Lesson, outcome_of: Callable[[Lesson], Outcome]) -> None:
    outcome, prediction = outcome_of(lesson), lesson.prediction
    assert outcome.sentences and outcome.tables and all(table.rows for table in outcome.tables)
    measured = lesson.measured(outcome.figures)
    assert prediction.read(str(measured)) == measured  # a learner can predict it
    wrong = next((choice for choice in prediction.choices if choice != measured), prediction.low)
    for answer in (*prediction.choices, wrong, measured, None):
        said = (prediction.compare(answer, measured), *lesson.explain(outcome.figures, answer))
        assert len(said) > 1 and all(sentence.endswith(".") for sentence in said), said
        assert any(re.search(r"\d", sentence) for sentence in said), said
    assert prediction.is_right(measured, measured) and not prediction.is_right(wrong, measured)
    assert lesson.card_text(outcome.figures).endswith(".")
    assert records.parse(json.dumps(dataclasses.asdict(outcome)), Outcome) == outcome  # as it is kept


def test_its_exercise_is_checked(lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # programs may write files
    solved, unedited = (run(code, lesson, io.StringIO()) for code in (lesson.exercise.answer, lesson.exercise.starter))
    assert solved.passed, solved
    assert not unedited.passed and not unedited.error and unedited.problem.endswith((".", "?")), unedited
    empty = run("pass", lesson, io.StringIO())
    assert empty.problem.startswith("The program does not define"), empty


def test_its_plain_code_runs(lesson: Lesson) -> None:
    code, printed = lesson.code(small_context()), io.StringIO()
    assert "import torch\n" in code and "studio" not in code and max(map(len, code.splitlines())) <= 120
    done = run(code, None, printed)
    assert not done.error and printed.getvalue(), done
