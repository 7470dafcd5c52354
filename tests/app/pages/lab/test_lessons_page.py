"""The lessons of the Lab page: predict, measure, run code, solve an exercise, and hand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QRadioButton
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.lab.code_runner import CodeEditor
from studio.app.pages.lab.lesson_view import PredictionBox
from studio.app.pages.lab.lessons_page import LessonsPage
from studio.app.pages.lab.page import LabPage
from studio.app.state.session import Session
from studio.core.events import Events, Progress
from studio.lab import running
from studio.lab.experiments.base import ExperimentContext
from studio.lab.learn import running as learning
from studio.lab.learn.code_child import CodeDone, CodePrinted, CodeStarted
from studio.lab.lessons.base import Answer, Exercise, Figures, Lesson, Prediction
from studio.lab.outcome import Outcome, Table
from tests.app.conftest import LONG_MS, click, open_sprites, show_alone
from tests.lab.tools import InProcess


class Toy(Lesson):
    """A lesson that measures nothing."""

    name, title, question = "toy", "Toy", "Which is faster?"
    intro = ("Two ways lead there.",)
    prediction = Prediction(choices=("the first", "the second"))
    plain = "print({batch_size})\n"
    read_on = ("PyTorch", "https://pytorch.org/docs")
    exercise = Exercise("Print a word.", "print('start')\n", "print('answer')\n", lambda _: "")

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(1, 2, "things")
        table = Table(("sprites",), ((str(len(context.sprites)),),))
        yield Outcome((), (table,), ("It was fast.",), figures={"best": "the second"})

    def measured(self, figures: Figures) -> Answer:
        return figures["best"]

    def explain(self, figures: Mapping[str, float | str], answer: Answer | None) -> Sequence[str]:
        return ("The second way is shorter.",)


class Toy2(Toy):
    """The lesson after it."""

    name, title = "toy-two", "Second toy"


@pytest.fixture
def lab(qtbot: QtBot, session: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch) -> LabPage:
    """The Lab page with two toy lessons and open sprites."""
    monkeypatch.setattr(running, "_Process", InProcess)
    for module in ("catalog", "hand_in"):
        monkeypatch.setattr(f"studio.lab.learn.{module}.lessons", lambda: {each.name: each for each in (Toy(), Toy2())})
    lab = show_alone(qtbot, session, LabPage)
    open_sprites(qtbot, session, sprite_folder)
    qtbot.waitUntil(lambda: session.lessons.record(session.lessons.known()[0]) is not None, timeout=LONG_MS)
    return lab


@pytest.fixture
def page(lab: LabPage) -> LessonsPage:
    """The lessons of the Lab page."""
    return lab.lessons


def _printing(code: str, limit_s: float = 1.0, lesson: Lesson | None = None) -> Events:
    """Print the code instead of running it; endlessly if it says so."""
    yield CodeStarted()
    while code == "endless":
        yield CodeStarted()
    yield CodePrinted(code)
    yield CodeDone(problem="Not yet." if "start" in code else "", is_checked=lesson is not None)


def test_predict_measure_and_go_on(
    qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    view = page.view
    assert not page.save.isEnabled() and not view.measure.isEnabled() and "predict first" in view.measure.toolTip()
    view.prediction.findChildren(QRadioButton)[0].click()
    click(view.measure)
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    assert view.measure.text().strip() == "Measure again"
    assert view.verdict.text() == "You predicted 'the first'. Measured: 'the second'."
    assert view.explanation.text() == "The second way is shorter."
    assert view.program.editor.toPlainText() == "print(16)\n"
    assert page.list.item(0).text() == "1. Toy\nMeasured, exercise open"
    assert page.progress.text() == "Of 2 lessons, 1 measured and 0 solved"
    target = tmp_path / "page.html"
    monkeypatch.setattr(dialogs, "choose_save_file", lambda *_: target)
    with qtbot.waitSignal(page.session.noticed, timeout=LONG_MS):
        click(page.save)
    assert target.exists()
    click(view.next)
    assert view.lesson is not None and view.lesson.name == "toy-two" and not view.next.isEnabled()
    assert not view.verdict.isVisible() and view.prediction.answer() is None
    page.name.setText("Ada")
    page.name.editingFinished.emit()
    qtbot.waitUntil(lambda: page.list.item(0).text() == "1. Toy\nNot started", timeout=LONG_MS)


def test_run_stop_reset_and_check_code(qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "run_code", _printing)
    exercise = page.view.exercise
    assert not exercise.stop.isEnabled() and not exercise.reset.isEnabled()
    click(exercise.start)
    qtbot.waitUntil(lambda: exercise.state.text() == "Not yet.", timeout=LONG_MS)
    assert exercise.output.toPlainText() == "print('start')\n" and not page.view.solution.isEnabled()
    exercise.editor.setPlainText("endless")
    click(exercise.start)
    qtbot.waitUntil(exercise.stop.isEnabled, timeout=LONG_MS)
    assert not exercise.start.isEnabled()
    click(exercise.stop)
    qtbot.waitUntil(lambda: exercise.state.text() == "Stopped.", timeout=LONG_MS)
    click(exercise.reset)
    assert exercise.editor.toPlainText() == "print('start')\n"
    exercise.replace_code("print('done')")
    click(exercise.start)
    qtbot.waitUntil(lambda: "exercise solved" in page.list.item(0).text(), timeout=LONG_MS)
    assert exercise.state.text() == "Solved."
    click(page.view.solution)
    assert exercise.editor.toPlainText() == "print('answer')\n"


def test_prediction_of_a_number(qtbot: QtBot) -> None:
    box = PredictionBox()
    qtbot.addWidget(box)
    box.ask(Prediction(unit="steps/s", low=1), None)
    typed = (("12", 12.0, False), ("many", None, True), ("", None, False), ("1,200", 1200.0, False))
    for text, answer, has_error in typed:
        box.number.setText(text)
        box.number.textEdited.emit(text)
        assert box.answer() == answer and bool(box.error.text()) == has_error
    box.ask(Prediction(unit="steps/s"), 30.0)
    assert box.answer() == 30
    box.clear()
    assert box.answer() is None


def test_enter_keeps_the_indentation_and_backspace_removes_a_level(qtbot: QtBot) -> None:
    editor: Any = CodeEditor("Code", "A tip.")
    qtbot.addWidget(editor)
    for text in ("for x in y:", "if x:", "work()"):
        QTest.keyClicks(editor, text)
        QTest.keyClick(editor, Qt.Key.Key_Return)
    assert editor.toPlainText() == "for x in y:\n    if x:\n        work()\n        "
    QTest.keyClick(editor, Qt.Key.Key_Backspace)  # removes a level
    assert editor.toPlainText().endswith("work()\n    ")
