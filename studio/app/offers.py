"""Messages with a button that continues earlier work: an interrupted run, the queue or a closed sprite."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.notifications import NoticeBar
from studio.app.state.session import Session
from studio.core.events import Notice


class Offers(QObject):
    """Offers to resume an interrupted run, start the queue or reopen a sprite; removes outdated offers.

    resumed: the user resumed the offered run.
    """

    resumed = Signal()

    def __init__(self, session: Session, notices: NoticeBar, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._notices = session, notices
        self._run: tuple[Path, Notice] | None = None  # the offered run and its message
        self._queue: Notice | None = None
        session.run_offered.connect(self._on_run_offered)
        session.queue_offered.connect(self._on_queue_offered)
        session.editing.undo_offered.connect(self._on_sprite_closed)
        session.training.state_changed.connect(self._on_training_changed)
        session.queue.changed.connect(self._on_queue_changed)

    @Slot(object, object)
    def _on_run_offered(self, path: Path, offer: Notice) -> None:
        self._run = path, offer
        self._notices.add("info", offer.title, offer.hint, button="Resume").clicked.connect(self._on_resume_clicked)

    @Slot()
    def _on_resume_clicked(self) -> None:
        if self._run is not None:
            self.resumed.emit()
            self._session.resume_run(self._run[0])

    @Slot()
    def _on_training_changed(self) -> None:
        """Remove the offer when its run trains, however it was resumed."""
        if self._run is not None and self._run[0] == self._session.training.path:
            self._notices.withdraw(self._run[1])
            self._run = None

    @Slot(str)
    def _on_queue_offered(self, title: str) -> None:
        self._queue = Notice("info", title, "Start when you are ready.")
        card = self._notices.add("info", title, self._queue.hint, button="Start queue")
        card.clicked.connect(self._session.queue.start)

    @Slot()
    def _on_queue_changed(self) -> None:
        """Remove the offer when the queue was started or emptied."""
        queue = self._session.queue
        if self._queue is not None and (queue.is_on or not queue.runs):
            self._notices.withdraw(self._queue)
            self._queue = None

    @Slot(object)
    def _on_sprite_closed(self, offer: Notice) -> None:
        card = self._notices.add(offer.level, offer.title, offer.hint, button="Undo", expires=True)
        card.clicked.connect(self._session.editing.undo)
