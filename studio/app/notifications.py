"""The message line above the page, the session's messages in it, and the handler of uncaught errors."""

import logging
import sys
import threading
import traceback
from collections import deque
from datetime import datetime
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QEvent, QObject, QSize, Signal, Slot
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from studio.app import theme
from studio.app.background.job_events import FilesSaved, StateNotice, UndoOffered
from studio.app.file_manager import show_in_folder
from studio.app.notice_panel import MessageHistory, NoticeCard, NoticeLabel, NoticePanel
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.layout import SteadyWidth
from studio.core.events import Blocked, JobFailed, Notice
from studio.data.doctor.findings import FixOffered

_log = logging.getLogger(__name__)

_MAX_CARDS = 3
_MAX_HISTORY = 50  # messages
_HOLDING = (QEvent.Type.WindowActivate, QEvent.Type.WindowDeactivate, QEvent.Type.Enter, QEvent.Type.Leave)


class NoticeBar(QWidget):
    """A line with the newest message; its button opens the list of all messages over the page.

    The hidden line keeps its space, so that a message never moves the page. With more than _MAX_CARDS messages the
    oldest closes, preferably an expiring message. A message expires only while the line shows the message, the window
    is active and the pointer is outside the line. A message that does not fit into the line stays longer, until the
    list of all messages was opened.
    """

    guide_requested = Signal(str)  # 'topic#section' about an error

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards: list[NoticeCard] = []
        self.history: deque[tuple[datetime, Notice]] = deque(maxlen=_MAX_HISTORY)  # oldest first, closed ones too
        self._frame = QFrame()
        theme.set_role(self._frame, "notice")
        self._icon, self._line = QLabel(), NoticeLabel()
        self._act = factory.button("Act", "Do what this message offers first.", slot=self._on_button_clicked)
        self._other = factory.button("Other", "Run the second action for this message.", slot=self._on_other_clicked)
        tip = "Show all messages in full."
        self._more = factory.button("More", tip, role="flat", slot=self._on_more_clicked)
        SteadyWidth(self._more, "More", "88 messages")
        tip = "Close this message."
        self._close = factory.tool_button("close", "Close message", tip, self._on_close_clicked)
        self._close.setIconSize(QSize(16, 16))
        self._panel = NoticePanel(self)
        parts = (self._icon, self._line, self._act, self._other, self._more, self._close)
        self._frame.setLayout(factory.row(*parts, margin=(factory.GRID, 0, 4, 0), grows=1))
        self._frame.setFixedHeight(self.fontMetrics().height() + 2 * factory.GRID)
        self.setLayout(factory.column(self._frame, margin=(16, 4, 16, 0)))
        self._line.resized.connect(self._update_more_button)
        self._panel.closed.connect(self._count_down)
        factory.retain_size_when_hidden(self)
        self.hide()

    def cards(self) -> list[NoticeCard]:
        """Return all messages, oldest first."""
        return list(self._cards)

    def shown(self) -> NoticeCard | None:
        """Return the message in the line; None without messages."""
        return self._cards[-1] if self._cards else None

    @Slot(object)
    def show_failure(self, failure: JobFailed) -> None:
        notice = Notice("error", failure.title, failure.hint, failure.topic)
        card = self.add(notice, failure.details, button="Guide" if failure.topic else "")
        card.clicked.connect(self._on_guide_clicked)

    @Slot()
    def remove_outdated(self) -> None:
        """Remove each message whose `holds` returns False."""
        for card in [card for card in self._cards if not card.holds()]:
            self._remove(card)

    @Slot(object)
    def withdraw(self, notice: Notice) -> None:
        for card in [card for card in self._cards if card.texts == (notice.title, notice.hint)]:
            self._remove(card)

    def add(
        self, notice: Notice, details: str = "", button: str = "", other: str = "", *, expires: bool | None = None
    ) -> NoticeCard:
        """Show a message and return its card, which emits `clicked` and `other_clicked`; replace an equal message.

        expires: the message closes after a while; by default messages with a button stay.
        """
        self.withdraw(notice)
        self.history.append((datetime.now(), notice))
        card = NoticeCard(notice, details, button, other, expires=not button if expires is None else expires)
        card.closed.connect(self._on_card_closed)
        self._cards.append(card)
        self._panel.add(card)
        self._make_room(card)
        self._refresh()
        return card

    def event(self, event: QEvent) -> bool:
        """Hold expiry timers while the window is inactive or the pointer is over the line; follow the theme."""
        handled = super().event(event)
        if event.type() in _HOLDING:
            self._count_down()
        elif event.type() == QEvent.Type.PaletteChange and self._cards:
            self._icon.setPixmap(self._cards[-1].icon_pixmap())
        return handled

    def _refresh(self) -> None:
        card = self.shown()
        if card is not None:
            title, hint = card.texts
            self._frame.setProperty("level", card.level)
            theme.set_role(self._frame, "notice")
            factory.set_name_and_tip(self._frame, f"{title} {hint}".strip(), f"{title}\n{hint}".strip())
            self._icon.setPixmap(card.icon_pixmap())
            self._line.set_message(title, hint)
            for button, words in ((self._act, card.button), (self._other, card.other)):
                button.setVisible(bool(words))
                if words:
                    factory.set_name_and_tip(button, words, f"{words}.")
                    factory.set_button_text(button, words)
        else:
            self._panel.hide()
        self.setVisible(card is not None)
        self._update_more_button()
        self._count_down()

    @Slot()
    def _count_down(self) -> None:
        held = self.underMouse() or self._panel.isVisible() or not self.isActiveWindow()
        for card in self._cards:
            card.count_down(card is self.shown() and not held)

    @Slot()
    def _update_more_button(self) -> None:
        """Show the More button if the line hides details, other messages or a part of the text."""
        card = self.shown()
        if card is None:
            return
        many, room = len(self._cards), self._line.width()
        if many == 1 and not card.details and not self._more.isHidden():
            room += self._more.width() + factory.GRID  # the line would take this room
        was_cut, card.is_cut = card.is_cut, self._line.message_width() > room
        factory.set_button_text(self._more, f"{many} messages" if many > 1 else "More")
        self._more.setVisible(many > 1 or bool(card.details) or card.is_cut)
        if card.is_cut != was_cut:
            self._count_down()

    @Slot()
    def _on_more_clicked(self) -> None:
        for card in self._cards:
            card.was_read = True
        self._panel.open_below(self)
        self._count_down()

    @Slot()
    def _on_button_clicked(self) -> None:
        self._cards[-1].click()

    @Slot()
    def _on_other_clicked(self) -> None:
        self._cards[-1].click_other()

    @Slot()
    def _on_close_clicked(self) -> None:
        self._remove(self._cards[-1])

    def _make_room(self, new: NoticeCard) -> None:
        """Close messages above the limit, first expiring ones. A lasting message never closes for an expiring `new`."""
        while len(self._cards) > _MAX_CARDS:
            expiring = [card for card in self._cards if card.expires and card is not new]
            if not expiring and new.expires:
                return
            self._remove((expiring or self._cards)[0])

    @Slot()
    def _on_guide_clicked(self) -> None:
        card = self.sender()
        assert isinstance(card, NoticeCard)
        self.guide_requested.emit(card.notice.topic)

    @Slot()
    def _on_card_closed(self) -> None:
        card = self.sender()
        assert isinstance(card, NoticeCard)
        self._remove(card)

    def _remove(self, card: NoticeCard) -> None:
        if card in self._cards:
            self._cards.remove(card)
            self._panel.remove(card)
            self._refresh()


class Messages(QObject):
    """Shows the session's messages in the notice bar, with their buttons, and removes outdated messages."""

    page_requested = Signal(str)  # name of the page to show

    def __init__(self, session: Session, bar: NoticeBar, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._bar = session, bar
        self._run: tuple[Path, Notice] | None = None  # the interrupted run on offer and its message
        self._queue: Notice | None = None  # the offer to start the queue
        session.failed.connect(bar.show_failure)
        session.noticed.connect(self.show_notice)
        session.job_queue.withdrawn.connect(bar.withdraw)
        for history in (session.run_history, session.generate_history):
            history.changed.connect(bar.remove_outdated)
        session.training.unblocked.connect(bar.withdraw)
        session.run_offered.connect(self._on_run_offered)
        session.queue_offered.connect(self._on_queue_offered)
        session.training.state_changed.connect(self._on_training_changed)
        session.queue.changed.connect(self._on_queue_changed)

    @Slot()
    def show_history(self) -> None:
        """List the past messages."""
        MessageHistory(self._bar.history, self._bar.window()).open()

    @Slot(object)
    def show_notice(self, notice: Notice) -> None:
        """Show a message with the buttons for its class, such as Undo for `UndoOffered`."""
        training = self._session.training
        if isinstance(notice, Blocked):
            card = self._bar.add(notice, button="Try again", other="End without saving")
            card.clicked.connect(training.resume)
            card.other_clicked.connect(training.stop_without_saving)
        elif isinstance(notice, UndoOffered):
            card = self._bar.add(notice, button="Undo", expires=True)
            card.holds = notice.holds
            card.clicked.connect(self._on_undo_clicked)
        elif isinstance(notice, StateNotice):
            self._bar.add(notice).holds = notice.holds
        elif isinstance(notice, FilesSaved):
            self._bar.add(notice, button="Show in folder", expires=True).clicked.connect(self._on_show_clicked)
        elif isinstance(notice, FixOffered):
            self._bar.add(notice, button=notice.fix.title, expires=True).clicked.connect(self._on_fix_clicked)
        else:
            self._bar.add(notice)

    @Slot()
    def _on_undo_clicked(self) -> None:
        card = self.sender()
        assert isinstance(card, NoticeCard) and isinstance(card.notice, UndoOffered)
        card.notice.undo()

    @Slot()
    def _on_show_clicked(self) -> None:
        card = self.sender()
        assert isinstance(card, NoticeCard) and isinstance(card.notice, FilesSaved)
        show_in_folder(card.notice.paths)

    @Slot()
    def _on_fix_clicked(self) -> None:
        card = self.sender()
        assert isinstance(card, NoticeCard) and isinstance(card.notice, FixOffered)
        self._session.doctor.apply(card.notice.fix)

    @Slot(object, object)
    def _on_run_offered(self, path: Path, offer: Notice) -> None:
        self._run = path, offer
        self._bar.add(offer, button="Resume").clicked.connect(self._on_resume_clicked)

    @Slot()
    def _on_resume_clicked(self) -> None:
        if self._run is not None:
            self.page_requested.emit("train")
            self._session.resume_run(self._run[0])

    @Slot()
    def _on_training_changed(self) -> None:
        """Remove the offer when its run trains, however it was resumed."""
        if self._run is not None and self._run[0] == self._session.training.path:
            self._bar.withdraw(self._run[1])
            self._run = None

    @Slot(str)
    def _on_queue_offered(self, title: str) -> None:
        self._queue = Notice("info", title, "Start when you are ready.")
        self._bar.add(self._queue, button="Start queue").clicked.connect(self._session.queue.start)

    @Slot()
    def _on_queue_changed(self) -> None:
        """Remove the offer when the queue was started, or no more runs wait."""
        queue = self._session.queue
        if self._queue is not None and (queue.is_on or not queue.waiting()):
            self._bar.withdraw(self._queue)
            self._queue = None


class UncaughtErrors(QObject):
    """Logs uncaught exceptions of all threads and reports them."""

    happened = Signal(object)  # JobFailed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._before = (sys.excepthook, threading.excepthook)

    def install(self) -> None:
        """Install the exception hooks."""
        sys.excepthook = self._report
        threading.excepthook = self._report_thread

    def uninstall(self) -> None:
        sys.excepthook, threading.excepthook = self._before

    def _report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(details)
        _log.critical("Uncaught exception", exc_info=(kind, error, trace))
        self.happened.emit(JobFailed("Unexpected error in the studio.", f"{kind.__name__}: {error}", details))

    def _report_thread(self, args: threading.ExceptHookArgs) -> None:
        self._report(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
