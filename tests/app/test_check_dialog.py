"""The dialog of the system check: it never waits for a check, copies findings and shows the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QProcess, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from studio.app import check_dialog, qt_check
from studio.app.background.job_queue import JobQueue
from studio.app.check_dialog import BuildDialog, CheckDialog
from studio.app.widgets.tab_order import tab_stops
from studio.app.widgets.wrapping import ScrollArea
from studio.core.events import Event, Events, Progress
from studio.engine.check.findings import BuildChosen, CheckDone, Finding
from tests.app.conftest import click, endless

GOOD = Finding("pytorch", "PyTorch", "good", "2.15.0.")
BAD = Finding("graphics-card", "Graphics card", "problem", "It is not used.", "Change the build.", changes_build=True)


def _checked() -> Events:
    yield Progress(0, 0, "PyTorch")
    yield GOOD
    yield BuildChosen("cpu", "cu132")
    yield BAD
    yield CheckDone(can_train=True, problems=1, notices=0)


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    """A window for the dialogs."""
    made = QWidget()
    qtbot.addWidget(made)
    return made


def shown(job_queue: JobQueue, parent: QWidget) -> CheckDialog:
    """Show the dialog."""
    dialog = CheckDialog(job_queue, parent)
    dialog.show()
    return dialog


def test_findings_are_listed_problems_first_and_copied(
    qtbot: QtBot, job_queue: JobQueue, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_dialog, "check_system", _checked)
    dialog = shown(job_queue, parent)
    qtbot.waitUntil(lambda: dialog.again.text() == "Check again")
    assert dialog.verdict.text() == "Training works, with 1 problem."
    QApplication.processEvents()  # the layout
    heads = [label for label in dialog.findChildren(QLabel) if label.text() in ("PyTorch", "Graphics card")]
    heads.sort(key=lambda label: label.mapTo(dialog, label.rect().topLeft()).y())
    assert [label.text() for label in heads] == ["Graphics card", "PyTorch"]
    click(dialog.copy_button)
    text = QGuiApplication.clipboard().text()
    assert text.startswith("good    PyTorch: 2.15.0.\nPROBLEM Graphics card: It is not used.\n")
    click(dialog.change)
    builds = dialog.findChild(BuildDialog)
    assert builds is not None and builds.build.currentData() == "cpu"
    builds.reject()
    click(dialog.again)
    qtbot.waitUntil(lambda: len(dialog.findings) == 2 and dialog.again.text() == "Check again")
    dialog.reject()


def test_findings_out_of_view_are_reached_by_keys(
    qtbot: QtBot, job_queue: JobQueue, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = [BAD]
    monkeypatch.setattr(check_dialog, "check_system", lambda: iter([*events, CheckDone(True, len(events), 0)]))
    dialog = shown(job_queue, parent)
    area = dialog.findChild(ScrollArea)
    assert area is not None
    qtbot.waitUntil(lambda: dialog.again.text() == "Check again")
    assert area not in tab_stops(dialog)  # all findings are in view
    events *= 20
    click(dialog.again)
    qtbot.waitUntil(lambda: area in tab_stops(dialog))
    area.setFocus()
    QTest.keyClick(area, Qt.Key.Key_PageDown)
    assert area.verticalScrollBar().value() > 0 and area.accessibleName() == "Findings"


def test_a_check_that_hangs_is_cancelled(
    qtbot: QtBot, job_queue: JobQueue, parent: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_dialog, "check_system", endless)
    dialog = shown(job_queue, parent)
    qtbot.waitUntil(lambda: dialog.what.text() == "1 things")
    assert not dialog.copy_button.isEnabled() and "found nothing yet" in dialog.copy_button.toolTip()
    click(dialog.again)
    qtbot.waitUntil(lambda: dialog.verdict.text() == "The check was cancelled.")
    click(dialog.again)
    assert dialog.verdict.text() == "Checking…"
    dialog.reject()
    qtbot.waitUntil(lambda: not job_queue.running())


def test_commands_follow_the_chosen_build(parent: QWidget) -> None:
    dialog = BuildDialog(BuildChosen("cpu", "cu132"), parent)
    dialog.show()
    assert "--torch-backend cpu" in dialog.commands.toPlainText()
    dialog.build.setCurrentIndex(dialog.build.findData("cu126"))
    assert "--torch-backend cu126" in dialog.commands.toPlainText() and "Not tried" in dialog.about.text()
    assert dialog.set_up.isHidden(), "no launcher has installed this studio"
    click(dialog.copy_button)
    assert QGuiApplication.clipboard().text() == dialog.commands.toPlainText()
    dialog.reject()


def test_the_launcher_sets_up_the_chosen_build(
    parent: QWidget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "start").touch()
    monkeypatch.setenv("STUDIO_LAUNCHER", str(tmp_path / "start"))
    dialog = BuildDialog(BuildChosen("cu126", "cu132"), parent)
    dialog.show()
    started: list[list[str]] = []
    answers = [False, True]

    def start(program: str, words: list[str]) -> tuple[bool, int]:
        started.append([program, *words])
        return answers.pop(0), 0

    monkeypatch.setattr(QProcess, "startDetached", start)
    click(dialog.set_up)
    assert "in a terminal" in dialog.about.text() and dialog.isVisible()
    click(dialog.set_up)
    assert started[1][-2:] == ["--torch", "cu126"] and not dialog.isVisible()


@pytest.mark.usefixtures("qapp")
def test_qt_of_this_process() -> None:
    window, fonts = [event for event in qt_check.check_qt() if isinstance(event, Finding)]
    assert (window.check, window.state) == ("window", "notice") and "'offscreen'" in window.text
    assert " %." in window.text  # the scale of the screen
    assert fonts.check == "fonts"


def test_a_missing_display_is_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.app.launch.has_screen", lambda: False)
    (found,) = [event for event in qt_check.check_qt() if isinstance(event, Finding)]
    assert found.state == "notice" and found.text == "No display found." and "studio --help" in found.advice


def test_fonts() -> None:
    assert qt_check.fonts_finding([], "").state == "problem"
    assert qt_check.fonts_finding(["DejaVu Sans"], "monospace").state == "good"
