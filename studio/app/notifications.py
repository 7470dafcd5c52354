"""The message line above the page, which shows all errors and notices, and the handler of uncaught errors."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from types import TracebackType

from PySide6.QtCore import QEvent, QObject, QSize, Signal, Slot
from PySide6.QtGui import QEnterEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from studio.app import theme
from studio.app.background.job_events import StateNotice, UndoOffered
from studio.app.notice_panel import Level, NoticeCard, NoticeLabel, NoticePanel
from studio.app.widgets import factory
from studio.core.events import Blocked, JobFailed, Notice
from studio.data.doctor.findings import FixOffered

_log = logging.getLogger(__name__)

_MAX_CARDS = 3


class NoticeBar(QWidget):
    """A line with the newest message; its button opens the list of all messages over the page.

    The hidden line keeps its space, so that a message never moves the page. With more than _MAX_CARDS messages the
    oldest closes, preferably an expiring message. A message expires only while the line shows the message, the window
    is active and the pointer is outside the line.
    retry_requested, end_requested: resume a blocked training, or end it without saving. undo_requested: undo the last
    action. fix_requested: (Fix) import the open files again with this fix.
    """

    retry_requested = Signal()
    end_requested = Signal()
    undo_requested = Signal()
    fix_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards: list[NoticeCard] = []
        self._frame = QFrame()
        theme.set_role(self._frame, "notice")
        self._icon, self._line = QLabel(), NoticeLabel()
        self._act = factory.button("Act", "Run the first action for this message.")
        self._other = factory.button("Other", "Run the second action for this message.")
        self._more = factory.button("More", "Show all messages in full.", role="flat")
        self._close = factory.tool_button("close", "Close message", "Close this message.")
        self._close.setIconSize(QSize(16, 16))
        self._panel = NoticePanel(self)
        self._lay_out()
        self._act.clicked.connect(self._on_button_clicked)
        self._other.clicked.connect(self._on_other_clicked)
        self._more.clicked.connect(self._on_more_clicked)
        self._close.clicked.connect(self._on_close_clicked)
        self._panel.closed.connect(self._count_down)
        factory.retain_size_when_hidden(self)
        self.hide()

    def _lay_out(self) -> None:
        line = factory.row(self._icon, self._line, self._act, self._other, self._more, self._close)
        line.setContentsMargins(factory.GRID, 0, 4, 0)
        line.setStretch(1, 1)
        self._frame.setLayout(line)
        self._frame.setFixedHeight(self.fontMetrics().height() + 2 * factory.GRID)
        box = factory.column(self._frame)
        box.setContentsMargins(16, 4, 16, 0)
        self.setLayout(box)

    def cards(self) -> list[NoticeCard]:
        """Return all messages, oldest first."""
        return list(self._cards)

    def shown(self) -> NoticeCard | None:
        """Return the message in the line; None without messages."""
        return self._cards[-1] if self._cards else None

    @Slot(object)
    def show_failure(self, failure: JobFailed) -> None:
        """Show the error of a failed job."""
        self.add("error", failure.title, failure.hint, failure.details)

    @Slot(object)
    def show_notice(self, notice: Notice) -> None:
        """Show a message with the buttons for its class, such as Undo for `UndoOffered`."""
        if isinstance(notice, Blocked):
            card = self.add(notice.level, notice.title, notice.hint, button="Try again", other="End without saving")
            card.clicked.connect(self.retry_requested)
            card.other_clicked.connect(self.end_requested)
        elif isinstance(notice, StateNotice):
            self.add(notice.level, notice.title, notice.hint).holds = notice.holds
        elif isinstance(notice, UndoOffered):
            card = self.add(notice.level, notice.title, notice.hint, button="Undo", expires=True)
            card.clicked.connect(self.undo_requested)
        elif isinstance(notice, FixOffered):
            card = self.add(notice.level, notice.title, notice.hint, button=notice.fix.title, expires=True)
            card.fix = notice.fix
            card.clicked.connect(self._on_fix_clicked)
        else:
            self.add(notice.level, notice.title, notice.hint)

    @Slot()
    def remove_outdated(self) -> None:
        """Remove each message whose `holds` returns False."""
        for card in [card for card in self._cards if not card.holds()]:
            self._remove(card)

    @Slot(object)
    def withdraw(self, notice: Notice) -> None:
        """Remove a message."""
        for card in [card for card in self._cards if card.texts == (notice.title, notice.hint)]:
            self._remove(card)

    def add(
        self,
        level: Level,
        title: str,
        hint: str = "",
        details: str = "",
        button: str = "",
        *,
        other: str = "",
        expires: bool | None = None,
    ) -> NoticeCard:
        """Show a message and return its card, which emits `clicked` and `other_clicked`; replace an equal message.

        expires: the message closes after a while; by default messages with a button stay.
        """
        self.withdraw(Notice(level, title, hint))
        card = NoticeCard(
            level, title, hint, details, button, other, expires=not button if expires is None else expires
        )
        card.closed.connect(self._on_card_closed)
        self._cards.append(card)
        self._panel.add(card)
        self._make_room(card)
        self._refresh()
        return card

    def event(self, event: QEvent) -> bool:
        """Stop the expiry timer while the window is inactive."""
        handled = super().event(event)
        if event.type() in (QEvent.Type.WindowActivate, QEvent.Type.WindowDeactivate):
            self._count_down()
        return handled

    def enterEvent(self, event: QEnterEvent) -> None:
        """Stop the expiry timer while the pointer is over the message line."""
        super().enterEvent(event)
        self._count_down()

    def leaveEvent(self, event: QEvent) -> None:
        """Restart the expiry timer when the pointer leaves the message line."""
        super().leaveEvent(event)
        self._count_down()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the More button if the message does not fit."""
        super().resizeEvent(event)
        self._update_more_button()

    def changeEvent(self, event: QEvent) -> None:
        """Draw the icon in the colours of the new theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._cards:
            self._icon.setPixmap(self._cards[-1].icon_pixmap())

    def _refresh(self) -> None:
        card = self.shown()
        if card is not None:
            title, hint = card.texts
            self._frame.setProperty("level", card.level)
            theme.set_role(self._frame, "notice")
            self._frame.setAccessibleName(f"{title} {hint}".strip())
            self._frame.setToolTip(f"{title}\n{hint}".strip())
            self._icon.setPixmap(card.icon_pixmap())
            self._line.set_message(title, hint)
            for button, words in ((self._act, card.button), (self._other, card.other)):
                button.setVisible(bool(words))
                if words:
                    factory.set_name_and_tip(button, words, f"{words}.")
                    factory.set_button_text(button, words)
            self._update_more_button()
        else:
            self._panel.hide()
        self.setVisible(card is not None)
        self._count_down()

    @Slot()
    def _count_down(self) -> None:
        held = self.underMouse() or self._panel.isVisible() or not self.isActiveWindow()
        for card in self._cards:
            card.count_down(card is self.shown() and not held)

    def _update_more_button(self) -> None:
        """Show the More button if the line hides details, other messages or a part of the text."""
        card = self.shown()
        if card is None:
            return
        room = self._line.width() + (self._more.width() if self._more.isVisible() else 0)
        many = len(self._cards)
        factory.set_button_text(self._more, f"{many} messages" if many > 1 else "More")
        self._more.setVisible(many > 1 or bool(card.details) or self._line.message_width() > room)

    @Slot()
    def _on_more_clicked(self) -> None:
        self._panel.open_below(self)
        self._count_down()

    @Slot()
    def _on_button_clicked(self) -> None:
        if self._cards:
            self._cards[-1].click()

    @Slot()
    def _on_fix_clicked(self) -> None:
        sender = self.sender()
        if isinstance(sender, NoticeCard):
            self.fix_requested.emit(sender.fix)

    @Slot()
    def _on_other_clicked(self) -> None:
        if self._cards:
            self._cards[-1].click_other()

    @Slot()
    def _on_close_clicked(self) -> None:
        if self._cards:
            self._remove(self._cards[-1])

    def _make_room(self, new: NoticeCard) -> None:
        """Close messages above the limit to make room for `new`: expiring messages first, then the oldest.

        A lasting message never closes for an expiring message.
        """
        while len(self._cards) > _MAX_CARDS:
            expiring = [card for card in self._cards if card.expires and card is not new]
            if not expiring and new.expires:
                return
            self._remove((expiring or self._cards)[0])

    @Slot()
    def _on_card_closed(self) -> None:
        sender = self.sender()
        if isinstance(sender, NoticeCard):
            self._remove(sender)

    def _remove(self, card: NoticeCard) -> None:
        if card in self._cards:
            self._cards.remove(card)
            self._panel.remove(card)
            self._refresh()


class UncaughtErrors(QObject):
    """Logs uncaught exceptions of all threads and reports them. happened: (JobFailed) an exception was reported."""

    happened = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._before = (sys.excepthook, threading.excepthook)

    def install(self) -> None:
        """Install the exception hooks."""
        self._before = (sys.excepthook, threading.excepthook)
        sys.excepthook = self._report
        threading.excepthook = self._report_thread

    def uninstall(self) -> None:
        """Restore the previous exception hooks."""
        sys.excepthook, threading.excepthook = self._before

    def _report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(details)
        _log.critical("Uncaught exception", exc_info=(kind, error, trace))
        title = "Unexpected error in the studio."
        self.happened.emit(JobFailed(title, f"{kind.__name__}: {error}", details))

    def _report_thread(self, args: threading.ExceptHookArgs) -> None:
        self._report(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
