"""Errors in the window: one road, plain words, details behind a button."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from studio.app.notice_panel import MessageHistory, NoticePanel
from studio.app.notifications import NoticeBar, UncaughtErrors
from studio.app.state.session import Session
from studio.app.status_bar import StatusBar
from studio.app.window import Window
from studio.core.events import Event, JobFailed, Notice
from tests.app.conftest import LONG_MS, click, endless, open_sprites


def button(part: QWidget, name: str) -> QPushButton:
    return next(found for found in part.findChildren(QPushButton) if found.accessibleName() == name)


def panel_of(bar: NoticeBar) -> NoticePanel:
    found = bar.findChild(NoticePanel)
    assert isinstance(found, NoticePanel)
    return found


@pytest.fixture
def bar(qtbot: QtBot) -> NoticeBar:
    made = NoticeBar()
    qtbot.addWidget(made)
    return made


def titles(bar: NoticeBar) -> list[str]:
    return [card.texts[0] for card in bar.cards()]


def test_a_failure_is_a_sentence_and_a_hint_with_details_on_demand(bar: NoticeBar) -> None:
    assert bar.isHidden()
    bar.show_failure(JobFailed("It broke.", "Mend it.", "Traceback: line 7"))
    assert bar.isVisible()
    card = bar.cards()[0]
    click(button(bar, "More"))
    assert card.isVisible()
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
    assert button(bar.cards()[0], "Details").isHidden()  # no details
    close = bar.cards()[0].findChild(QToolButton)
    assert isinstance(close, QToolButton)
    click(close)
    assert bar.cards() == [] and bar.isHidden()
    card = bar.add(Notice("info", "A run stopped."), button="Resume")
    with qtbot.waitSignal(card.clicked):
        click(button(card, "Resume"))
    assert bar.cards() == []
    bar.add(Notice("warning", "Careful."))
    assert titles(bar) == ["Careful."] and bar.isVisible()


def point(bar: NoticeBar, *, there: bool) -> None:
    """Move the mouse onto the bar, or away from it."""
    here = QPointF(5, 5)
    bar.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, there)
    QApplication.sendEvent(bar, QEnterEvent(here, here, here) if there else QEvent(QEvent.Type.Leave))


def test_the_line_shows_the_newest_message_and_the_list_all_of_them(bar: NoticeBar, qapp: QApplication) -> None:
    bar.resize(900, bar.sizeHint().height())
    bar.add(Notice("error", "Fault.", "Mend it."))
    assert not button(bar, "More").isVisible()  # the line shows the whole message
    bar.add(Notice("info", "Saved."))
    shown = bar.shown()
    assert shown is not None and shown.texts == ("Saved.", "")
    click(button(bar, "2 messages"))
    panel = panel_of(bar)
    qapp.processEvents()
    news, fault = bar.cards()[1], bar.cards()[0]
    assert news.isVisible() and fault.isVisible() and news.y() < fault.y()
    assert panel.height() >= fault.geometry().bottom() and panel.width() == bar.width()
    for _ in range(2):
        click(next(tool for tool in bar.findChildren(QToolButton) if tool.parent() is not None and tool.isVisible()))
    assert bar.cards() == [] and panel.isHidden()


def test_a_message_that_is_too_long_for_the_line_can_be_read_in_full(bar: NoticeBar, qapp: QApplication) -> None:
    bar.add(Notice("info", "A short title.", "A hint that goes on. " * 5))
    offered = []
    for width in (1600, 500, 1600):
        bar.resize(width, bar.sizeHint().height())
        qapp.processEvents()
        offered.append(button(bar, "More").isVisible())
    assert offered == [False, True, False]


def test_a_message_that_is_cut_stays_longer_until_it_was_read(qtbot: QtBot, bar: NoticeBar, qapp: QApplication) -> None:
    bar.resize(1600, bar.sizeHint().height())
    card = bar.add(Notice("info", "A short title.", "A hint that goes on. " * 5))
    qtbot.waitUntil(bar.isActiveWindow)
    point(bar, there=False)
    whole_ms = card.timer.interval()
    bar.resize(500, bar.height())
    qapp.processEvents()
    assert card.timer.isActive() and card.timer.interval() >= whole_ms + 30_000
    click(button(bar, "More"))
    panel_of(bar).hide()
    point(bar, there=False)
    assert card.timer.isActive() and card.timer.interval() == whole_ms


def test_past_messages_can_be_read_later(window: Window) -> None:
    window.notices.add(Notice("info", "Saved <12> sprites."))
    window.notices.add(Notice("warning", "Careful.", "A hint."))
    for card in window.notices.cards():
        card.closed.emit()
    assert not window.notices.cards()
    window.menus.messages.trigger()
    history = window.findChild(MessageHistory)
    assert isinstance(history, MessageHistory)
    careful, saved = (line for line in history.text.toPlainText().splitlines() if "." in line)
    assert careful == "Careful. A hint." and saved.strip() == "Saved <12> sprites."
    history.reject()


def test_a_message_expires_after_its_reading_time(qtbot: QtBot, bar: NoticeBar) -> None:
    short = bar.add(Notice("info", "Saved."))
    long = bar.add(Notice("info", "Saved.", "One file for each shown sprite."))
    qtbot.waitUntil(bar.isActiveWindow)
    point(bar, there=False)
    assert long.timer.interval() > short.timer.interval() >= 4000  # ms
    assert long.timer.isActive() and not short.timer.isActive()  # this message is hidden
    point(bar, there=True)
    assert not long.timer.isActive()
    point(bar, there=False)
    assert long.timer.isActive()
    click(button(bar, "2 messages"))
    assert not long.timer.isActive()
    panel_of(bar).hide()
    point(bar, there=False)
    assert long.timer.isActive()
    long.timer.timeout.emit()
    assert bar.cards() == [short] and short.timer.isActive()
    bar.add(Notice("error", "Fault."))
    assert not short.timer.isActive() and not bar.cards()[-1].timer.isActive()  # an error stays


def test_no_message_moves_the_page(window: Window, qapp: QApplication) -> None:
    page = window.page()
    before = page.mapTo(window, QPoint(0, 0)), page.size()
    for number in range(3):
        window.notices.add(Notice("error", f"Fault {number}.", "Mend it. " * 40))
        qapp.processEvents()
        assert (page.mapTo(window, QPoint(0, 0)), page.size()) == before
    assert window.notices.isVisible()


def test_a_successful_import_withdraws_the_failure_of_the_last(
    qtbot: QtBot, window: Window, sprite_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "void").mkdir()
    window.session.open_sprites.open_paths([tmp_path / "void"])
    qtbot.waitUntil(lambda: titles(window.notices) == ["No images found in 'void'."], timeout=LONG_MS)
    window.notices.add(Notice("error", "Another fault."))
    open_sprites(qtbot, window.session, sprite_folder)
    qtbot.waitUntil(lambda: titles(window.notices) == ["Another fault."], timeout=LONG_MS)


def test_equal_messages_are_shown_once_and_old_messages_close(bar: NoticeBar) -> None:
    for number in (1, 2, 2, 3, 4):
        bar.add(Notice("error", f"Fault {number}."))
    assert titles(bar) == ["Fault 2.", "Fault 3.", "Fault 4."]


def test_expiring_messages_close_before_lasting_messages(bar: NoticeBar) -> None:
    bar.add(Notice("info", "A run stopped."), button="Resume")
    bar.add(Notice("error", "Fault 1."))
    for number in range(3):
        bar.add(Notice("warning" if number else "info", f"News {number}."))
    assert titles(bar) == ["A run stopped.", "Fault 1.", "News 2."]
    bar.add(Notice("error", "Fault 2."))
    for number in range(2):
        bar.add(Notice("info", f"More {number}."))
    assert titles(bar) == ["A run stopped.", "Fault 1.", "Fault 2.", "More 1."]
    bar.add(Notice("error", "Fault 3."))
    assert titles(bar) == ["Fault 1.", "Fault 2.", "Fault 3."]


def test_uncaught_errors_of_all_threads_are_shown(
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
    assert [card.texts[1].partition(":")[0] for card in bar.cards()] == ["ValueError", "ValueError"]
    assert (sys.excepthook, threading.excepthook) == before
    assert [line for line in caplog.messages if "Uncaught" in line] == ["Uncaught exception"] * 2


def test_the_status_bar_offers_to_cancel_optional_jobs(qtbot: QtBot, session: Session) -> None:
    line, got = StatusBar(session), list[Event]()
    qtbot.addWidget(line)
    for cancellable in (False, True):
        job = session.job_queue.start("files", "Looking for things", endless(), got.append, cancellable=cancellable)
        line._show_job()
        assert line._cancel.isVisibleTo(line) == cancellable
        session.job_queue.cancel(job)
        qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)


def test_the_status_bar_shows_a_training_rather_than_jobs_that_the_studio_started(
    qtbot: QtBot, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, got, seen = StatusBar(session), list[Event](), []
    qtbot.addWidget(line)
    for state, quiet in (("idle", True), ("training", True), ("training", False)):
        monkeypatch.setattr(session.training, "state", state)
        job = session.job_queue.start("files", "Looking for things", endless(), got.append, quiet=quiet)
        line._show_job()
        seen.append((line._text.text().split()[0], line._cancel.isVisibleTo(line)))
        session.job_queue.cancel(job)
        qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)
    assert seen == [("Looking", True), ("Training", False), ("Looking", True)]
