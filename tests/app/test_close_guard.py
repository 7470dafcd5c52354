"""Leaving while a run trains: asked, saved, resumable."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.state.training.training import CurrentTraining
from studio.app.window import Window
from studio.core.events import Events, Notice
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import summarise
from studio.engine.training.saving import save
from tests.app.conftest import LONG_MS, click, start_endless, tiny, wait_for_steps, wait_idle


def answer(window: Window, words: str) -> None:
    click(next(button for button in question(window).findChildren(QPushButton) if button.text() == words))


def question(window: Window) -> QMessageBox:
    box = window.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    return box


@pytest.fixture
def training(qtbot: QtBot, opened: Window) -> CurrentTraining:
    """A run without end that trains in the window."""
    return start_endless(qtbot, opened.session)


def saved(training: CurrentTraining) -> bool:
    """Return whether the run was stopped and can be resumed."""
    assert training.path is not None
    summary = summarise(training.path)
    return summary.standing == "stopped" and summary.progress is not None and summary.progress.step > 0


def test_an_idle_window_closes_at_once(qtbot: QtBot, window: Window) -> None:
    with qtbot.waitSignal(window.closed):
        window.close()
    assert not window.isVisible()


def test_fault_28_keep_training_keeps_the_window_and_stop_and_save_leaves_a_run_to_resume(
    qtbot: QtBot, opened: Window, training: CurrentTraining
) -> None:
    opened.close()
    assert opened.isVisible()
    answer(opened, "Keep training")
    assert opened.isVisible() and training.state == "training"
    opened.close()
    with qtbot.waitSignal(opened.closed, timeout=LONG_MS):
        answer(opened, "Save and close")
    assert not opened.isVisible() and saved(training) and training.path is not None
    opened.session.run_offered.emit(training.path, Notice("info", "It stopped."))
    assert "It stopped." in [card.texts[0] for card in opened.notices.cards()]
    opened.session.resume_run(training.path)
    wait_for_steps(qtbot, opened.session)
    assert "It stopped." not in [card.texts[0] for card in opened.notices.cards()]


def test_fault_28_ctrl_c_saves_without_asking(qtbot: QtBot, opened: Window, training: CurrentTraining) -> None:
    with qtbot.waitSignal(opened.closed, timeout=LONG_MS):
        opened.close_guard.force_close()
    assert saved(training)


def test_fault_28_closing_does_not_wait_forever_for_a_hanging_device(
    qtbot: QtBot, opened: Window, training: CurrentTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers_again = threading.Event()

    def hang(*arguments: Any) -> Events:
        answers_again.wait(60)
        yield from save(*arguments)

    monkeypatch.setattr("studio.engine.training.maintenance.save", hang)
    opened.close_guard._deadline.setInterval(50)
    with qtbot.waitSignal(opened.closed, timeout=LONG_MS):
        opened.close_guard.force_close()
    assert training.is_busy()
    answers_again.set()
    wait_idle(qtbot, opened.session)


def no_space(*arguments: object) -> None:
    raise OSError(28, "No space left on device", "/runs/trial")


def no_space_for_lines(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


class Disk:
    """The simulated disk of the runs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def fill(self) -> None:
        self._patch.setattr("studio.core.files.append_line", no_space_for_lines)

    def free(self) -> None:
        self._patch.undo()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    with monkeypatch.context() as patch:
        yield Disk(patch)


def test_a_window_whose_run_can_not_be_saved_stays_open_once(
    qtbot: QtBot, opened: Window, training: CurrentTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.training.maintenance.save", no_space)
    opened.close()
    answer(opened, "Save and close")
    wait_idle(qtbot, opened.session)
    assert opened.isVisible()
    said = [card.texts[0] for card in opened.notices.cards()][:2]
    assert said == ["Can't use /runs/trial.", "'discs generator' ended with an error."]
    with qtbot.waitSignal(opened.closed):
        opened.close()


@pytest.mark.slow
@pytest.mark.usefixtures("training")
def test_ctrl_c_closes_even_if_saving_fails(
    qtbot: QtBot, opened: Window, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("studio.engine.training.maintenance.save", no_space)
    with qtbot.waitSignal(opened.closed, timeout=LONG_MS):
        opened.close_guard.force_close()
    assert capsys.readouterr().err == "Can't use /runs/trial. No space left on device.\n"


@pytest.mark.slow
def test_ctrl_c_closes_a_run_blocked_by_a_full_disk(
    qtbot: QtBot, opened: Window, training: CurrentTraining, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.fill()
    with qtbot.waitSignal(opened.closed, timeout=LONG_MS):
        opened.close_guard.force_close()
    assert f"Can't write to {training.path}." in capsys.readouterr().err


def test_the_window_and_the_settings_of_a_training_come_back_as_they_were(
    qtbot: QtBot, qapp: QApplication, opened: Window
) -> None:
    opened.resize(790, 640)
    size, config = opened.size(), tiny(opened.session, minutes=3.5)
    opened.session.setup.choose_parent(None)
    opened.session.setup.set_config(config)
    opened.close()
    assert type(config).from_json(opened.session.settings.values("generator")) == config
    again = Window(opened.session, theme.apply(qapp))
    qtbot.addWidget(again)
    assert again.size() == size


@pytest.mark.slow
def test_a_full_disk_blocks_the_run_without_losses(
    qtbot: QtBot, opened: Window, training: CurrentTraining, disk: Disk
) -> None:
    controls = opened.train.controls
    disk.fill()
    qtbot.waitUntil(lambda: training.state == "paused", timeout=LONG_MS)
    hint = "No space left on device. Training waits and nothing is lost. Fix the cause, then resume."
    assert [card.texts for card in opened.notices.cards()] == [(f"Can't write to {training.path}.", hint)]
    assert controls.pause.text().strip() == "Resume"
    qtbot.waitUntil(training.is_live, timeout=LONG_MS)
    chunk = training.chunk
    click(controls.pause)
    qtbot.waitUntil(lambda: training.state == "paused", timeout=LONG_MS)
    assert training.chunk is chunk
    disk.free()
    click(controls.pause)
    assert opened.notices.cards() == []
    qtbot.waitUntil(lambda: training.chunk is not chunk, timeout=LONG_MS)
    assert training.state == "training"
    disk.fill()
    for _ in range(2):
        click(controls.stop)
        qtbot.waitUntil(lambda: training.blocked is not None, timeout=LONG_MS)
    disk.free()
    click(controls.stop)
    wait_idle(qtbot, opened.session)
    assert saved(training) and training.path is not None and training.failure is None
    steps = read_history(training.path).series["loss"].steps.tolist()
    assert steps == list(range(len(steps)))


def test_closing_with_a_blocked_run_warns_about_lost_progress(
    qtbot: QtBot, opened: Window, training: CurrentTraining, disk: Disk
) -> None:
    disk.fill()
    opened.close()
    answer(opened, "Save and close")
    qtbot.waitUntil(lambda: training.blocked is not None, timeout=LONG_MS)
    assert opened.isVisible()
    opened.close()
    answer(opened, "Cancel")
    assert opened.isVisible() and training.state == "paused"
    opened.close()
    with qtbot.waitSignal(opened.closed, timeout=LONG_MS):
        answer(opened, "Close without saving")


def test_a_blocked_run_can_be_ended_from_its_notice(
    qtbot: QtBot, opened: Window, training: CurrentTraining, disk: Disk
) -> None:
    disk.fill()
    qtbot.waitUntil(lambda: training.blocked is not None, timeout=LONG_MS)
    (card,) = opened.notices.cards()
    click(next(button for button in card.findChildren(QPushButton) if button.text().strip() == "End without saving"))
    wait_idle(qtbot, opened.session)
    (card,) = opened.notices.cards()
    assert card.texts[1] == "No space left on device. Free some space or choose another folder."


@pytest.mark.slow
def test_the_close_question_follows_the_state_of_the_disk(
    qtbot: QtBot, opened: Window, training: CurrentTraining, disk: Disk
) -> None:
    opened.close()
    asked = question(opened)
    assert "You can resume the run later" in asked.informativeText()
    disk.fill()
    with qtbot.waitSignal(asked.destroyed, timeout=LONG_MS):
        qtbot.waitUntil(lambda: training.blocked is not None, timeout=LONG_MS)
    assert "Closing now loses all progress" in question(opened).informativeText()
    answer(opened, "Cancel")
    disk.free()
    training.stop()
    wait_idle(qtbot, opened.session)
    assert training.failure is None and opened.notices.cards() == []
