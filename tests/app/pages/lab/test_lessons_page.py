"""The lessons of the Lab page: predict, measure, run code, solve an exercise, and hand in."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QRadioButton, QScrollArea
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.lab.code_runner import CodeEditor
from studio.app.pages.lab.lesson_view import PredictionBox
from studio.app.pages.lab.lessons_page import LessonsPage
from studio.app.pages.lab.page import LabPage
from studio.app.state.session import Session
from studio.core.events import Events, Progress
from studio.data.sprites import Sprites
from studio.engine.devices.types import Device
from studio.lab import running
from studio.lab.experiments.base import ExperimentContext
from studio.lab.learn import records
from studio.lab.learn import running as learning
from studio.lab.learn.code_child import CodeDone, CodePrinted, CodeStarted
from studio.lab.learn.records import LessonRecord, load_draft
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
    assert not view.save.isVisible()
    click(view.next)
    assert view.lesson is not None and view.lesson.name == "toy-two" and not view.next.isVisible()
    assert page.window().focusWidget() is view.prediction.findChildren(QRadioButton)[-2]
    target.unlink()
    with qtbot.waitSignal(page.session.noticed, timeout=LONG_MS):
        click(view.save)
    assert target.exists()
    assert not view.verdict.isVisible() and view.prediction.answer() is None
    page.name.setText("Ada")
    page.name.editingFinished.emit()
    qtbot.waitUntil(lambda: page.list.item(0).text() == "1. Toy\nNot started", timeout=LONG_MS)


def test_skip_keeps_a_prediction(qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch) -> None:
    view, toy = page.view, page.session.lessons.known()[0]
    monkeypatch.setattr(Toy, "prediction", Prediction(unit="steps/s"))
    monkeypatch.setattr(Toy, "measured", lambda *_: 40.0)
    view.show_lesson(toy, 1, 2)

    def type_number(text: str) -> None:
        view.prediction.number.setText(text)
        view.prediction.number.textEdited.emit(text)

    type_number("30")
    assert not view.skip.isEnabled() and "prediction is given" in view.skip.toolTip()
    click(view.measure)
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    type_number("")
    assert not view.measure.isEnabled()
    click(view.skip)
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    record = page.session.lessons.record(toy)
    assert record is not None and record.answer == 30 and record.measurements == 2
    assert view.prediction.answer() == 30 and view.verdict.text().startswith("You predicted 30 steps/s.")


def test_run_stop_reset_and_check_code(qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "run_code", _printing)
    exercise = page.view.exercise
    assert not exercise.stop.isEnabled() and not exercise.reset.isEnabled()
    click(exercise.start)
    qtbot.waitUntil(lambda: exercise.state.text() == "Not solved yet. Not yet.", timeout=LONG_MS)
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
    qtbot.waitUntil(lambda: exercise.state.text() == "Solved.", timeout=LONG_MS)
    assert "exercise solved" in page.list.item(0).text()
    click(page.view.solution)
    assert exercise.editor.toPlainText() == "print('answer')\n"


def test_a_check_goes_on_while_another_lesson_is_shown(
    qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    def check(code: str, limit_s: float = 1.0, lesson: Lesson | None = None) -> Events:
        yield CodeStarted()
        while not is_over.is_set():
            yield CodeStarted()
        yield CodePrinted("printed later")
        yield CodeDone(is_checked=True)

    monkeypatch.setattr(learning, "run_code", check)
    exercise = page.view.exercise
    exercise.editor.setPlainText("print('mine')")
    click(exercise.start)
    qtbot.waitUntil(lambda: exercise.state.text() == "Running, for at most 1 min…", timeout=LONG_MS)
    page.list.setCurrentRow(1)
    assert exercise.state.text() == "" and exercise.editor.toPlainText() == "print('start')\n"
    is_over.set()
    qtbot.waitUntil(lambda: "exercise solved" in page.list.item(0).text(), timeout=LONG_MS)
    assert not exercise.output.isVisible() and exercise.state.text() == ""
    page.list.setCurrentRow(0)
    assert exercise.editor.toPlainText() == "print('mine')"
    qtbot.waitUntil(lambda: exercise.state.text() == "Solved.", timeout=LONG_MS)
    assert exercise.output.toPlainText() == "printed later"


def test_edited_code_is_kept(qtbot: QtBot, page: LessonsPage) -> None:
    page.view.exercise.editor.setPlainText("print('half")
    page.save_state()
    learner, toy = page.session.lessons.learner(), page.session.lessons.known()[0]
    assert load_draft(learner, "toy") == "print('half" and load_draft(learner, "toy-two") is None
    page.session.lessons.set_learner("Ada")
    qtbot.waitUntil(lambda: page.view.exercise.editor.toPlainText() == "print('start')\n", timeout=LONG_MS)
    page.session.lessons.set_learner("")
    qtbot.waitUntil(lambda: page.view.exercise.editor.toPlainText() == "print('half", timeout=LONG_MS)
    later = Session(page.session.settings)
    with qtbot.waitSignal(later.lessons.switched, timeout=LONG_MS):
        later.catalog.open()
    assert later.lessons.exercise(toy).code == "print('half"
    assert later.close()


def test_a_class_file_chooses_lessons_sprites_and_the_folder(
    qtbot: QtBot, page: LessonsPage, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "class.toml"
    path.write_text(
        f'title = "Class 10b"\nlessons = ["toy-two"]\nsprites = "{sprite_folder / "class0"}"\n'
        'seconds = 5\nhand_in = "pages"\n'
    )
    monkeypatch.setattr(dialogs, "choose_class_file", lambda *_: path)
    assert not page.leave_class.isVisible()
    click(page.open_class)
    qtbot.waitUntil(lambda: page.list.count() == 1, timeout=LONG_MS)
    assert page.title.text() == "Class 10b" and page.list.item(0).text().startswith("1. Second toy")
    assert "class.toml" in page.about.text() and "5 s" in page.about.text() and "pages" in page.about.text()
    view = page.view
    assert view.lesson is not None and view.lesson.name == "toy-two"
    qtbot.waitUntil(lambda: view.measure.toolTip() == "Measure: type your name first.", timeout=LONG_MS)
    assert not view.exercise.start.isEnabled() and not view.skip.isEnabled()
    page.name.setText("Ada")
    page.name.editingFinished.emit()
    qtbot.waitUntil(view.skip.isEnabled, timeout=LONG_MS)
    used = list[tuple[str, float]]()
    lesson_context = learning.lesson_context

    def record_context(sprites: Sprites, device: Device, seconds: float) -> ExperimentContext:
        used.append((sprites.title, seconds))
        return lesson_context(sprites, device, seconds)

    monkeypatch.setattr(learning, "lesson_context", record_context)
    click(view.skip)
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    qtbot.waitUntil((tmp_path / "pages" / "Ada.html").exists, timeout=LONG_MS)
    assert used == [("class0", 5.0)]
    later = Session(page.session.settings)
    later.catalog.open()
    qtbot.waitUntil(lambda: [each.name for each in later.lessons.known()] == ["toy-two"], timeout=LONG_MS)
    assert later.close()
    click(page.leave_class)
    assert page.list.count() == 2 and page.title.text() == "Lessons" and not page.leave_class.isVisible()


def test_a_wrong_class_file_is_refused_with_a_sentence(
    qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "class.toml"
    path.write_text("code = 'import os'")
    monkeypatch.setattr(dialogs, "choose_class_file", lambda *_: path)
    with qtbot.waitSignal(page.session.failed, timeout=LONG_MS) as failed:
        click(page.open_class)
    assert page.list.count() == 2 and page.session.class_file.path() == ""
    assert failed.args[0].title == f"{path} is not a class file." and "code" in failed.args[0].hint


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
    box.ask(Prediction(unit="steps/s"), None)
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


def test_code_is_as_high_as_its_wrapped_lines(qtbot: QtBot) -> None:
    editor = CodeEditor("Code", "A tip.")
    qtbot.addWidget(editor)
    editor.resize(600, 100)
    editor.show()
    editor.setPlainText("\n".join(["x = 1  # " + "word " * 8] * 15))
    wide = editor.height()
    editor.resize(200, wide)
    qtbot.waitUntil(lambda: editor.height() > 1.8 * wide)
    qtbot.waitUntil(lambda: editor.verticalScrollBar().maximum() == 0)


def test_enter_after_a_colon_and_before_indented_code(qtbot: QtBot) -> None:
    editor: Any = CodeEditor("Code", "A tip.")
    qtbot.addWidget(editor)
    editor.setPlainText("    scores = network(x)")
    QTest.keyClicks(editor, "    with torch.no_grad():")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert editor.toPlainText() == "    with torch.no_grad():\n        scores = network(x)"


def test_a_lesson_by_the_enter_key(qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch) -> None:
    view = page.view
    page.list.setCurrentRow(1)
    page.list.setFocus()
    QTest.keyClick(page.list, Qt.Key.Key_Return)
    choices = [each for each in view.prediction.findChildren(QRadioButton) if each.isVisible()]
    assert page.window().focusWidget() is choices[0]
    choices[1].setFocus()
    QTest.keyClick(choices[1], Qt.Key.Key_Return)
    assert view.prediction.answer() == "the second" and not view.findings.isVisible()
    QTest.keyClick(choices[1], Qt.Key.Key_Return)
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    later = LessonsPage(page.session)
    qtbot.addWidget(later)
    assert later.list.currentRow() == 1  # the lesson that was shown last


@pytest.mark.parametrize("pressed", ["prediction", "measure", "skip"])
def test_a_second_enter_does_not_cancel(qtbot: QtBot, page: LessonsPage, pressed: str) -> None:
    view = page.view
    choice = view.prediction.findChildren(QRadioButton)[0]
    if pressed != "skip":
        choice.click()
    button = {"prediction": choice, "measure": view.measure, "skip": view.skip}[pressed]
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Return)
    assert page.window().focusWidget() is view.cancel
    QTest.keyClick(view.cancel, Qt.Key.Key_Return)
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    assert page.window().focusWidget() is (view.skip if pressed == "skip" else view.measure)


def test_the_focus_stays_with_a_running_program(
    qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "run_code", _printing)
    exercise = page.view.exercise
    exercise.editor.setPlainText("endless")
    exercise.start.setFocus()
    QTest.keyClick(exercise.start, Qt.Key.Key_Return)
    assert page.window().focusWidget() is exercise.stop
    QTest.keyClick(exercise.stop, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: exercise.state.text() == "Stopped.", timeout=LONG_MS)
    assert page.window().focusWidget() is exercise.start


def test_the_page_scrolls_to_the_output_of_a_program(
    qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "run_code", _printing)
    exercise = page.view.exercise
    page.resize(900, 400)
    exercise.editor.setPlainText("print('one')\n" * 30)
    exercise.editor.setFocus()
    QTest.keyClick(exercise.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: exercise.state.text() == "Solved.", timeout=LONG_MS)
    qtbot.waitUntil(lambda: not exercise.output.visibleRegion().isEmpty())


def test_the_page_scrolls_to_a_result(qtbot: QtBot, page: LessonsPage) -> None:
    view = page.view
    page.resize(900, 300)
    view.prediction.findChildren(QRadioButton)[0].click()
    view.measure.setFocus()
    QTest.keyClick(view.measure, Qt.Key.Key_Return)
    assert view.verdict.visibleRegion().isEmpty()
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)
    qtbot.waitUntil(lambda: not view.findings.sentences.visibleRegion().isEmpty())


def test_the_page_stays_when_a_measurement_starts(qtbot: QtBot, page: LessonsPage) -> None:
    view = page.view
    page.resize(900, 300)
    bar = next(area for area in page.findChildren(QScrollArea) if area.widget() is view).verticalScrollBar()
    view.skip.setFocus()
    qtbot.waitUntil(lambda: view.skip.hasFocus() and bar.maximum() > 0)
    before = bar.value()
    QTest.keyClick(view.skip, Qt.Key.Key_Return)
    assert bar.value() == before and page.window().focusWidget() is view.cancel  # not the exercise's code
    qtbot.waitUntil(view.findings.isVisible, timeout=LONG_MS)


def test_a_measurement_stays_if_the_answers_were_read_before(
    qtbot: QtBot, page: LessonsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons, was_read, may_end, load = page.session.lessons, threading.Event(), threading.Event(), records.load_record

    def slow_load(learner: str, lesson: str) -> LessonRecord:
        record = load(learner, lesson)
        was_read.set()
        may_end.wait(LONG_MS / 1000)
        return record

    monkeypatch.setattr(records, "load_record", slow_load)
    lessons.load_records()
    qtbot.waitUntil(was_read.is_set, timeout=LONG_MS)
    click(page.view.skip)
    qtbot.waitUntil(page.view.findings.isVisible, timeout=LONG_MS)
    with qtbot.waitSignal(lessons.changed, timeout=LONG_MS):
        may_end.set()
    assert page.view.findings.isVisible()


def test_the_lesson_is_shown_once_pytorch_is_loaded(qtbot: QtBot, session: Session) -> None:
    page = LessonsPage(session)
    qtbot.addWidget(page)
    page.show()
    assert not page.view.isVisible() and page.progress.text() == "Loading PyTorch…"
    session.catalog.open()
    qtbot.waitUntil(page.view.isVisible, timeout=LONG_MS)
