"""The only place where an error is shown: cards above the page, each a sentence, a hint and a way on."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Literal

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QWidget

from studio.app import theme
from studio.app.background.job_events import UndoOffered
from studio.app.widgets import factory
from studio.core.events import Halted, JobFailed, Notice

_log = logging.getLogger(__name__)
Level = Literal["info", "warning", "error"]

_MOST_CARDS = 3
_SHOWN_MS = {"info": 12_000, "warning": 30_000}  # errors, and what can be acted on, stay


class NoticeCard(QFrame):
    """One message. acted: its button was pressed. closed: it is to go."""

    acted = Signal()
    closed = Signal()

    def __init__(
        self, level: Level, title: str, hint: str, details: str = "", button: str = "", *, passes: bool = True
    ) -> None:
        """passes: it goes by itself after a while, unless it is an error."""
        super().__init__()
        self.level = level
        self.words = (title, hint)
        self.passes = level in _SHOWN_MS and passes
        self._details = details
        theme.set_role(self, "card")
        self.setAccessibleName(f"{title} {hint}")
        self._text = QPlainTextEdit(details)
        self._text.setReadOnly(True)
        factory.describe(self._text, "Details of the error", "What a developer needs to find the fault.")
        self._text.setFixedHeight(160)
        self._text.hide()
        self._more = factory.button("Details", "Show what a developer needs to find the fault.")
        self._more.clicked.connect(self._toggle_details)
        self._copy = factory.button("Copy", "Copy the message and its details to the clipboard.")
        self._copy.clicked.connect(self._copy_text)
        self._act = factory.button(button, f"{button}.")
        self._act.clicked.connect(self.acted)
        self._act.clicked.connect(self.closed)
        self._lay_out(title, hint)
        self._more.setVisible(bool(details))
        self._copy.setVisible(False)
        self._act.setVisible(bool(button))
        if self.passes:
            QTimer.singleShot(_SHOWN_MS[level], self, self._expire)

    def _lay_out(self, title: str, hint: str) -> None:
        sign = QLabel()
        sign.setPixmap(theme.icon(self.level, self._colour()).pixmap(20, 20))
        headline, advice = factory.text(title, "heading"), factory.text(hint, "muted")
        for label in (headline, advice):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        close = factory.tool("close", "Close message", "Close this message.")
        close.clicked.connect(self.closed)
        line = factory.row(sign, factory.column(headline, advice, spacing=2), self._act, self._more, self._copy, close)
        line.setStretch(1, 1)
        for widget in (sign, self._act, self._more, self._copy, close):
            line.setAlignment(widget, Qt.AlignmentFlag.AlignTop)
        box = factory.column(line, self._text)
        box.setContentsMargins(16, 8, 8, 8)
        self.setLayout(box)
        advice.setVisible(bool(hint))  # not before it has a parent: it would be a window of its own for a moment

    def _colour(self) -> str:
        colours = theme.colours()
        return {"info": colours.accent, "warning": colours.warn, "error": colours.error}[self.level]

    @Slot()
    def _expire(self) -> None:
        self.closed.emit()

    @Slot()
    def _toggle_details(self) -> None:
        shown = self._text.isHidden()
        self._text.setVisible(shown)
        self._copy.setVisible(shown)
        self._more.setText("Hide details" if shown else "Details")

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText("\n".join([*self.words, self._details]))


class NoticeBar(QWidget):
    """The newest messages, one above the other; when there are too many the oldest goes, one that passes first.

    end_wanted: a job that has halted is to end, whatever is lost. undo_wanted: what was done last is to be taken back.
    """

    end_wanted = Signal()
    undo_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards: list[NoticeCard] = []
        self._box = factory.column()
        self._box.setContentsMargins(16, 12, 16, 0)
        self.setLayout(self._box)
        self.hide()

    def cards(self) -> list[NoticeCard]:
        """The messages on show, the oldest first."""
        return list(self._cards)

    @Slot(object)
    def show_failure(self, failure: JobFailed) -> None:
        """Show that a job has failed."""
        self.add("error", failure.title, failure.hint, failure.details)

    @Slot(object)
    def show_notice(self, notice: Notice) -> None:
        """Show what a job has to say."""
        if isinstance(notice, Halted):
            card = self.add(notice.level, notice.title, notice.hint, button="End without saving")
            card.acted.connect(self.end_wanted)
        elif isinstance(notice, UndoOffered):
            card = self.add(notice.level, notice.title, notice.hint, button="Undo", passes=True)
            card.acted.connect(self.undo_wanted)
        else:
            self.add(notice.level, notice.title, notice.hint)

    @Slot(object)
    def withdraw(self, notice: Notice) -> None:
        """Take back what is no longer true."""
        for card in [card for card in self._cards if card.words == (notice.title, notice.hint)]:
            self._remove(card)

    def add(
        self,
        level: Level,
        title: str,
        hint: str = "",
        details: str = "",
        button: str = "",
        *,
        passes: bool | None = None,
    ) -> NoticeCard:
        """Show a message, with a button that sends the card's `acted`; the same message is not shown twice.

        passes: it goes by itself after a while; by default one with a button does not.
        """
        self.withdraw(Notice(level, title, hint))
        card = NoticeCard(level, title, hint, details, button, passes=not button if passes is None else passes)
        card.closed.connect(self._close_sender)
        self._cards.append(card)
        self._box.addWidget(card)
        self._make_room(card)
        self.show()
        return card

    def _make_room(self, new: NoticeCard) -> None:
        """What stays is not driven out by what passes: beside all that stays there is room for one of those."""
        while len(self._cards) > _MOST_CARDS:
            passing = [card for card in self._cards if card.passes and card is not new]
            if not passing and new.passes:
                return
            self._remove((passing or self._cards)[0])

    @Slot()
    def _close_sender(self) -> None:
        sender = self.sender()
        if isinstance(sender, NoticeCard):
            self._remove(sender)

    def _remove(self, card: NoticeCard) -> None:
        if card in self._cards:
            self._cards.remove(card)
            self._box.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.setVisible(bool(self._cards))


class UncaughtErrors(QObject):
    """Where errors go that nothing caught, from any thread. happened: (JobFailed)."""

    happened = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._before = (sys.excepthook, threading.excepthook)

    def install(self) -> None:
        """Become the place where Python takes such errors."""
        self._before = (sys.excepthook, threading.excepthook)
        sys.excepthook = self._report
        threading.excepthook = self._report_thread

    def uninstall(self) -> None:
        """Give the place back to whoever had it."""
        sys.excepthook, threading.excepthook = self._before

    def _report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(details)
        _log.critical("Nothing caught this.", exc_info=(kind, error, trace))
        title = "Something went wrong inside the studio."
        self.happened.emit(JobFailed(title, f"{kind.__name__}: {error}", details))

    def _report_thread(self, args: threading.ExceptHookArgs) -> None:
        self._report(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
