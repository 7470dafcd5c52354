"""The Lab page: from starting an experiment to applying its suggestion."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.background.worker import JobState
from studio.app.pages.lab.page import _ROLE, LabPage
from studio.app.pages.lab.result_view import PictureStrip
from studio.app.state.feature_training import TITLE
from studio.app.state.session import Session
from studio.core.config import Value
from studio.core.events import Events, Progress
from studio.engine.runs.folder import RunProgress, RunRecord
from studio.engine.runs.listing import RunSummary
from studio.lab import results, running
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Axis, Line, Outcome, Picture, Plot, Table
from studio.lab.results import Result
from studio.lab.running import result_of
from tests.app.conftest import LONG_MS, click, open_sprites, show_alone, start_endless, tiny
from tests.lab.fake_experiments import FakeExperiment
from tests.lab.tools import InProcess, small_context

Start = Callable[[QtBot, Session], None]

PLOT = Plot("Speed", Axis("threads", log=True), Axis("sprites/s"), (Line("measured", (1.0, 2.0), (5.0, 9.0)),))


@pytest.fixture
def page(qtbot: QtBot, session: Session, sprite_folder: Path) -> LabPage:
    """Return the Lab page with sprites, a small network and the threads experiment chosen."""
    page = show_alone(qtbot, session, LabPage)
    open_sprites(qtbot, session, sprite_folder)
    session.setup.choose_recipe("classifier")
    session.setup.set_config(tiny(session, "classifier"))
    choose(page, "threads")
    _wait_for_results(qtbot, page)
    return page


def _wait_for_results(qtbot: QtBot, page: LabPage) -> None:
    """Wait until no job loads results, whose end would replace the shown results."""
    queue = page.session.job_queue
    qtbot.waitUntil(lambda: all(job.title != "Loading results" for job in queue.running()), timeout=LONG_MS)


def choose(page: LabPage, name: str) -> Experiment:
    """Choose an experiment by name, as by click."""
    page.tabs.setCurrentIndex(1)
    (row,) = [row for row in range(page.experiments.count()) if page.experiments.item(row).data(_ROLE) == name]
    page.experiments.setCurrentRow(row)
    experiment = page.experiment()
    assert experiment is not None and experiment.name == name
    return experiment


def result(page: LabPage, sentence: str, created: str = "2026-01-01T12:00:00+00:00", **suggests: Value) -> Result:
    """Return a stored result with another date."""
    table = Table((">threads", "what"), (("1", "one"),))
    outcome = Outcome((PLOT,), (table,), (sentence,), suggests)
    made = result_of(page.session.catalog.experiments["threads"], small_context(), outcome, 3.0)
    return dataclasses.replace(made, created=created)


def _record(recipe: str) -> RunRecord:
    """Return the record of a run that is listed but never read."""
    return RunRecord(
        "trial", recipe, {}, 8, ("a", "b"), "discs", 24, "", "cpu", "CPU", "fp32", 1, "2026-01-01", {}, "group"
    )


def show(page: LabPage, *results: Result) -> None:
    """Store these results before the page opens."""
    page.session.lab.results[:] = results
    page.session.lab.listed.emit()


def test_run_store_and_report_an_experiment(
    qtbot: QtBot, page: LabPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    experiment = choose(page, "batch-size")
    monkeypatch.setattr(type(experiment), "seconds", 0.2)
    monkeypatch.setattr(running, "_Process", InProcess)
    assert page.question.text() == experiment.question and not page.report.isEnabled()
    page.start.setFocus()
    with qtbot.waitSignal(page.session.lab.done, timeout=LONG_MS):
        click(page.start)
        assert page.cancel.isVisible() and page.progress.isVisible() and not page.start.isVisible()
        assert page.window().focusWidget() is page.cancel
    qtbot.waitUntil(page.start.isVisible, timeout=LONG_MS)
    assert page.window().focusWidget() is page.start
    (found,) = page.session.lab.results
    assert found.settings["batch_size"] == 8 and found.data_count == 24
    assert page.findings.sentences.text().splitlines() == list(found.outcome.sentences)
    assert [plot.isVisible() for plot in page.findings.plots] == [True, True]
    assert "batch_size" in page.program.editor.toPlainText()
    assert page.result.count() == 1 and "classifier, discs" in page.result.currentText()
    target = tmp_path / "report.html"
    monkeypatch.setattr(dialogs, "choose_save_file", lambda *_: target)
    with qtbot.waitSignal(page.session.noticed, timeout=LONG_MS):
        click(page.report)
    assert found.outcome.sentences[0] in target.read_text(encoding="utf-8")


def test_a_result_stays_if_the_results_were_read_before(
    qtbot: QtBot, page: LabPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, was_read, may_end, load = page.session.lab, threading.Event(), threading.Event(), results.load_results

    def slow_load() -> tuple[list[Result], list[str]]:
        found = load()
        was_read.set()
        may_end.wait(LONG_MS / 1000)
        return found

    monkeypatch.setattr(results, "load_results", slow_load)
    monkeypatch.setattr(running, "_Process", InProcess)
    lab.list_results()
    qtbot.waitUntil(was_read.is_set, timeout=LONG_MS)
    with qtbot.waitSignal(lab.done, timeout=LONG_MS) as done:
        lab.start(FakeExperiment())
    may_end.set()
    _wait_for_results(qtbot, page)
    assert lab.results == done.args


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start an endless experiment and wait until it runs."""

    def experiment(*_: object) -> Events:
        while True:
            yield Progress(1, 2, "things")

    def start(qtbot: QtBot, session: Session) -> None:
        session.lab.start(FakeExperiment())
        qtbot.waitUntil(lambda: session.lab.progress is not None, timeout=LONG_MS)

    monkeypatch.setattr("studio.lab.running.run_experiment", experiment)
    return start


def test_training_pauses_and_resumes(qtbot: QtBot, page: LabPage, endless: Start) -> None:
    session = page.session
    training = start_endless(qtbot, session)
    with qtbot.waitSignal(training.state_changed, timeout=LONG_MS):
        endless(qtbot, session)
    assert training.state == "paused"
    assert session.lab.problem(choose(page, "threads")) == "'Toy' is running."
    with qtbot.waitSignal(session.lab.changed, timeout=LONG_MS):
        session.lab.cancel()
    assert session.lab.running is None and not session.lab.results
    qtbot.waitUntil(lambda: training.state == "training", timeout=LONG_MS)
    training.pause()  # the user resumes the training, which ends the experiment
    endless(qtbot, session)
    with qtbot.waitSignal(session.lab.changed, timeout=LONG_MS):
        training.resume()
    assert session.lab.running is None and training.is_live()


def test_no_other_training_starts_meanwhile(qtbot: QtBot, page: LabPage, endless: Start) -> None:
    session = page.session
    endless(qtbot, session)
    session.feature_training._seen = None  # as if other sprites were open and to be analysed
    session.catalog.ready.emit()
    waiting = [job for job in session.job_queue.running() if job.title == TITLE]
    assert all(job.state in (JobState.PAUSING, JobState.PAUSED) for job in waiting)
    with qtbot.waitSignal(session.lab.changed, timeout=LONG_MS):
        session.lab.cancel()


def test_suggestion_is_applied_once(page: LabPage) -> None:
    show(page, result(page, "Two are best.", threads=2))
    use = page.findings.use
    assert use.isVisible() and use.isEnabled() and page.findings.suggestion.text() == "CPU threads: 2"
    click(use)
    config = page.session.setup.config
    assert config is not None and config.threads == 2
    assert not use.isEnabled() and "already" in use.toolTip()
    page.session.setup.choose_recipe("generator")
    assert not use.isEnabled() and "'classifier'" in use.toolTip()
    show(page, result(page, "As they are."))
    assert not use.isVisible()


def test_wide_table_leaves_the_sentences_in_view(page: LabPage) -> None:
    page.resize(640, 440)
    found = result(page, "A long sentence that wraps. " * 9)
    wide = Table(("layer",) * 20, (("16 x 16 x 3 x 3",) * 20,))
    show(page, dataclasses.replace(found, outcome=dataclasses.replace(found.outcome, tables=(wide,))))
    page.grab()
    assert page.findings.width() <= page.rect().right() - page.findings.mapTo(page, QPoint()).x()


def test_compare_two_results(page: LabPage) -> None:
    newer = result(page, "Newer.", "2026-02-02T12:00:00+00:00")
    show(page, newer, result(page, "Older."))
    assert page.findings.sentences.text() == "Newer."
    page.compared.setCurrentIndex(2)
    (plot,) = [each for each in page.findings.plots if each.isVisible()]
    (line,) = plot._compared
    assert line.name.startswith("measured, 2026-01-01") and line.y == (5.0, 9.0)
    page.result.setCurrentIndex(1)
    assert page.findings.sentences.text() == "Older."
    assert not plot._compared  # with itself there is nothing to compare
    show(page, result(page, "Newest.", "2026-03-03T12:00:00+00:00"), newer, result(page, "Older."))
    assert page.findings.sentences.text() == "Older."  # the shown result stays
    choose(page, "batch-size")
    assert not page.report.isEnabled() and page.result.count() == 0


def test_inspect_a_run_without_sprites(
    qtbot: QtBot, own_run: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_Process", InProcess)
    page = show_alone(qtbot, session, LabPage)
    qtbot.waitUntil(lambda: page.run_choice.checkpoints.count() > 0, timeout=LONG_MS)
    assert not page.run_choice.isVisible()  # the first experiment uses sprites
    choose(page, "layers")
    assert page.run_choice.isVisible() and page.run_choice.models.currentText() == own_run.name
    page.run_choice.checkpoints.setCurrentIndex(page.run_choice.checkpoints.findData("last"))
    assert page.about.text().startswith(f"{own_run.name}, last, on ")
    with qtbot.waitSignal(session.lab.done, timeout=LONG_MS):
        click(page.start)
    qtbot.waitUntil(page.start.isVisible, timeout=LONG_MS)
    (found,) = session.lab.results
    assert found.examined() == f"{own_run.name}, last (step 40)"
    assert found.examined() in page.result.currentText()
    assert page.findings.sentences.text().splitlines() == list(found.outcome.sentences)


def test_unsupported_run_is_reported_before_start(qtbot: QtBot, page: LabPage, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(page, "from-noise")
    assert page.about.text() == "Train a model first." and not page.start.isEnabled()
    made = RunSummary(
        Path("trial"), _record("classifier"), RunProgress("finished", 8, 1.0, {}), "finished", saved_step=8
    )
    page.session.runs.runs = (made,)
    page.session.runs.listed.emit()
    assert "can't draw sprites" in page.about.text() and not page.start.isEnabled()
    choose(page, "hardest")
    assert page.start.isEnabled() and "The run stays unchanged" in page.start.toolTip()


def test_list_heading_is_not_selectable(page: LabPage) -> None:
    names = [page.experiments.item(row).data(_ROLE) for row in range(page.experiments.count())]
    place = names.index(None)
    assert page.experiments.item(place).text() == "Inspect a run" and not page.experiments.item(place).flags()
    page.experiments.setCurrentRow(place - 1)
    QTest.keyClick(page.experiments, Qt.Key.Key_Down)  # the arrow key skips the heading
    assert page.experiments.currentRow() == place + 1
    subjects = [page.session.catalog.experiments[name].subject for name in names if name]
    assert subjects == ["sprites"] * place + ["run"] * (len(names) - place - 1)


def test_a_fixed_recipe_is_named_before_the_start(qtbot: QtBot, page: LabPage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page.about.text().startswith("Classifier, 24 sprites") and "recipe, settings" in page.start.toolTip()
    program = choose(page, "program-generator")
    assert page.about.text().startswith("Generator, 24 sprites") and "of its own" in page.start.toolTip()
    used = list[ExperimentContext]()

    def record_context(_: Experiment, context: ExperimentContext) -> Events:
        used.append(context)
        yield Progress(1, 2, "things")

    monkeypatch.setattr(running, "run_experiment", record_context)
    page.session.lab.start(program)
    qtbot.waitUntil(lambda: bool(used) and page.session.lab.running is None, timeout=LONG_MS)
    assert used[0].recipe.name == "generator" and used[0].config.batch_size == 64


def test_a_second_enter_does_not_cancel(qtbot: QtBot, page: LabPage, endless: Start) -> None:
    lab = page.session.lab
    page.start.setFocus()
    QTest.keyClick(page.start, Qt.Key.Key_Return)
    assert page.window().focusWidget() is page.cancel
    QTest.keyClick(page.cancel, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: lab.progress is not None, timeout=LONG_MS)
    assert lab.running is page.experiment()
    with qtbot.waitSignal(lab.changed, timeout=LONG_MS):
        QTest.keyClick(page.cancel, Qt.Key.Key_Space)
    assert lab.running is None and page.window().focusWidget() is page.start


def test_missing_sprites_are_reported(qtbot: QtBot, session: Session) -> None:
    page = show_alone(qtbot, session, LabPage)
    assert not page.start.isEnabled()
    assert page.about.text() == "Open a folder of sprites first."


def test_images_in_a_result_are_shown(page: LabPage) -> None:
    pixels = np.full((8, 32, 4), (200, 90, 30, 255), np.uint8)
    strip = Picture.of("no zero_grad", pixels, "New sprites of the same noise.")
    found = result(page, "It is broken.")
    show(page, dataclasses.replace(found, outcome=dataclasses.replace(found.outcome, pictures=(strip,))))
    (shown,) = page.findings.findChildren(PictureStrip)
    assert shown.accessibleName() == "no zero_grad" and shown.toolTip() == "New sprites of the same noise."
    for width in (700, 300, 20):  # 20 times the size, 9 times, and shrunk to a half
        shown.resize(width, shown.heightForWidth(width))
        image = shown.grab().toImage()
        drawn = [x for x in range(image.width()) if image.pixelColor(x, 0).getRgb() == (200, 90, 30, 255)]
        assert drawn == list(range(4 * image.height())) and image.height() in (160, 72, 4)
    page.resize(700, 600)
    QApplication.processEvents()
    content = page._scroll.widget()
    assert content is not None and content.minimumSizeHint().width() <= page._scroll.viewport().width()
