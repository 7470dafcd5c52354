"""Errors in the window: one road, plain words, details behind a button."""

from __future__ import annotations

import sys
import threading

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from studio.app.notifications import NoticeBar, NoticeCard, UncaughtErrors
from studio.app.state.session import Session
from studio.app.status_bar import StatusLine
from studio.core.events import Event, JobFailed, Notice
from tests.ui.conftest import LONG_MS, click, endless


def button(card: NoticeCard, name: str) -> QPushButton:
    return next(found for found in card.findChildren(QPushButton) if found.accessibleName() == name)


@pytest.fixture
def bar(qtbot: QtBot) -> NoticeBar:
    made = NoticeBar()
    qtbot.addWidget(made)
    return made


def titles(bar: NoticeBar) -> list[str]:
    return [card.words[0] for card in bar.cards()]


def test_a_failure_is_a_sentence_and_a_hint_with_details_on_demand(bar: NoticeBar) -> None:
    assert bar.isHidden()
    bar.show_failure(JobFailed("It broke.", "Mend it.", "Traceback: line 7"))
    assert bar.isVisible()
    card = bar.cards()[0]
    text = card.findChild(QPlainTextEdit)
    assert isinstance(text, QPlainTextEdit) and text.isHidden()
    click(button(card, "Details"))
    assert text.isVisible()
    click(button(card, "Copy"))
    assert QGuiApplication.clipboard().text() == "It broke.\nMend it.\nTraceback: line 7"


def test_a_message_is_closed_by_its_cross_or_its_own_button_and_the_last_one_hides_the_bar(
    qtbot: QtBot, bar: NoticeBar
) -> None:
    bar.show_failure(JobFailed("No such class.", "Choose another."))
    assert button(bar.cards()[0], "Details").isHidden()  # there are none
    close = bar.cards()[0].findChild(QToolButton)
    assert isinstance(close, QToolButton)
    click(close)
    assert bar.cards() == [] and bar.isHidden()
    card = bar.add("info", "A run stopped.", button="Resume")
    with qtbot.waitSignal(card.acted):
        click(button(card, "Resume"))
    assert bar.cards() == []
    bar.show_notice(Notice("warning", "Careful."))
    assert titles(bar) == ["Careful."] and bar.isVisible()


def test_the_same_message_comes_once_and_old_ones_make_room(bar: NoticeBar) -> None:
    for number in (1, 2, 2, 3, 4):
        bar.add("error", f"Fault {number}.")
    assert titles(bar) == ["Fault 2.", "Fault 3.", "Fault 4."]


def test_what_passes_makes_room_before_what_stays(bar: NoticeBar) -> None:
    bar.add("info", "A run stopped.", button="Resume")
    bar.add("error", "Fault 1.")
    for number in range(3):
        bar.add("warning" if number else "info", f"News {number}.")
    assert titles(bar) == ["A run stopped.", "Fault 1.", "News 2."]
    bar.add("error", "Fault 2.")
    for number in range(2):
        bar.add("info", f"More {number}.")
    assert titles(bar) == ["A run stopped.", "Fault 1.", "Fault 2.", "More 1."]
    bar.add("error", "Fault 3.")
    assert titles(bar) == ["Fault 1.", "Fault 2.", "Fault 3."]


def test_what_nobody_caught_is_shown_from_every_thread(
    qtbot: QtBot, bar: NoticeBar, caplog: pytest.LogCaptureFixture
) -> None:
    errors, before = UncaughtErrors(), (sys.excepthook, threading.excepthook)
    errors.happened.connect(bar.show_failure)
    errors.install()
    try:
        error = ValueError("odd")
        sys.excepthook(ValueError, error, None)
        thread = threading.Thread(target=int, args=("x",))
        thread.start()
        thread.join()
        qtbot.waitUntil(lambda: len(bar.cards()) == 2)
    finally:
        errors.uninstall()
    assert [card.words[1].partition(":")[0] for card in bar.cards()] == ["ValueError", "ValueError"]
    assert (sys.excepthook, threading.excepthook) == before
    assert [line for line in caplog.messages if "Nothing caught" in line] == ["Nothing caught this."] * 2


def test_the_status_bar_offers_to_cancel_what_the_window_can_do_without(qtbot: QtBot, session: Session) -> None:
    line, got = StatusLine(session), list[Event]()
    qtbot.addWidget(line)
    for cancellable in (False, True):
        job = session.job_queue.start("files", "Looking for things", endless(), got.append, cancellable=cancellable)
        line._show_job()
        assert line._cancel.isVisibleTo(line) == cancellable
        session.job_queue.cancel(job)
        qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)
