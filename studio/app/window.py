"""The window: pages, menus, notices, what may be dropped. Wiring only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QPaintEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMainWindow, QStackedWidget

from studio.app.actions import Commands, Menus, NavigationRail
from studio.app.background.job_events import StateNotice
from studio.app.close_guard import CloseGuard
from studio.app.notifications import NoticeBar
from studio.app.pages.base import Page
from studio.app.pages.generate.page import GeneratePage
from studio.app.pages.lab.page import LabPage
from studio.app.pages.runs.page import RunsPage
from studio.app.pages.sprites.page import SpritesPage
from studio.app.pages.train.page import TrainPage
from studio.app.state.session import Session
from studio.app.status_bar import StatusBar
from studio.app.theme import Theme
from studio.app.widgets import factory
from studio.core.events import Notice

_KEEP_MS = 500
_FRAME = QSize(8, 40)  # logical pixels of a usual window frame


class Window(QMainWindow):
    """The main window. painted: its first picture is on the screen. closed: it is gone for good."""

    painted = Signal()
    closed = Signal()

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self.session = session
        self._theme = theme
        self._painted = False
        self._may_close = False
        self._offered: tuple[Path, Notice] | None = None  # a run, and the message that offers it
        self._queue_offer: Notice | None = None
        self.setWindowTitle("Sprite Training Studio")
        self.setAcceptDrops(True)
        self.notices = NoticeBar()
        self.rail = NavigationRail()
        self.sprites = SpritesPage(session)
        self.train = TrainPage(session)
        self.generate = GeneratePage(session)
        self.runs = RunsPage(session)
        self.lab = LabPage(session)
        self.pages: dict[str, Page] = {
            "sprites": self.sprites,
            "train": self.train,
            "generate": self.generate,
            "runs": self.runs,
            "lab": self.lab,
        }
        self._stack = QStackedWidget()
        for page in self.pages.values():
            self._stack.addWidget(page)
            page.page_requested.connect(self.show_page)
        body = factory.row(self.rail, factory.column(self.notices, self._stack, spacing=0), spacing=0)
        body.setStretch(1, 1)
        self.setCentralWidget(factory.panel(body))
        self._stack.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._stack.setFocus()
        self.status = StatusBar(session)
        self.setStatusBar(self.status)
        self.menus = Menus(self.menuBar(), session)
        self._commands = Commands(self, self.menus, session, theme)
        self.close_guard = CloseGuard(session.training, self)
        self._connect()
        self._dress()
        self.show_page("sprites")
        self.resize(1280, 800)
        self.restoreGeometry(session.settings.layout("window"))
        self._fit_screen()
        self._unstored = ""  # the last error of storing; empty after a success
        self._was_warned = False  # on closing, about the error
        self._keeper = QTimer(self)
        self._keeper.setInterval(_KEEP_MS)
        self._keeper.timeout.connect(self.store)
        self._keeper.timeout.connect(self.notices.remove_outdated)
        self._keeper.start()

    def _connect(self) -> None:
        session, menus = self.session, self.menus
        self._theme.changed.connect(self._dress)
        self._commands.open_requested.connect(self.open_paths)
        menus.page_requested.connect(self.show_page)
        menus.save.triggered.connect(self._save)
        menus.export.triggered.connect(self._export)
        menus.start.triggered.connect(self._start)
        menus.quit.triggered.connect(self.close)
        session.failed.connect(self.notices.show_failure)
        session.noticed.connect(self.notices.show_notice)
        session.training.unblocked.connect(self.notices.withdraw)
        self.notices.retry_requested.connect(session.training.resume)
        self.notices.end_requested.connect(session.training.give_up)
        session.runs.withdrawn.connect(self.notices.withdraw)
        session.job_queue.withdrawn.connect(self.notices.withdraw)
        self.notices.undo_requested.connect(session.runs.undo)
        self.notices.fix_requested.connect(session.doctor.apply)
        session.editing.undo_offered.connect(self._offer_sprite)
        session.editing.withdrawn.connect(self.notices.withdraw)
        session.run_offered.connect(self._offer_run)
        session.queue_offered.connect(self._offer_queue)
        session.queue.changed.connect(self._withdraw_queue_offer)
        session.training.state_changed.connect(self._withdraw_offer)
        self.close_guard.ready.connect(self._close_now)
        self.close_guard.cancelled.connect(self.notices.show_notice)
        self.rail.chosen.connect(self.show_page)
        self.runs.model_requested.connect(self._use_run)
        self.train.model_requested.connect(self._use_model)
        self._commands.watched.connect(self._show_training)
        for page in self.pages.values():
            page.undo_changed.connect(menus.refresh)

    @Slot()
    def _dress(self) -> None:
        self.setStyleSheet(self._theme.stylesheet())

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show the page of that name."""
        page = self.pages[name]
        page.before_show()
        self.rail.show_page(name)
        self._stack.setCurrentWidget(page)
        self.menus.follow(page)

    @Slot(object)
    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open dropped files and folders as sprites."""
        self.show_page("sprites")
        self.session.open_sprites.open_paths(paths)

    def page(self) -> Page:
        """The page on show."""
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        return page

    @Slot(object, object)
    def _offer_run(self, path: Path, offer: Notice) -> None:
        self._offered = path, offer
        self.notices.add("info", offer.title, offer.hint, button="Resume").clicked.connect(self._resume_offered)

    @Slot()
    def _resume_offered(self) -> None:
        if self._offered is not None:
            self.show_page("train")
            self.session.resume_run(self._offered[0])

    @Slot()
    def _withdraw_offer(self) -> None:
        """The run that was offered goes on, from wherever that was asked for."""
        if self._offered is not None and self._offered[0] == self.session.training.path:
            self.notices.withdraw(self._offered[1])
            self._offered = None

    @Slot(str)
    def _offer_queue(self, sentence: str) -> None:
        offer = self._queue_offer = Notice("info", sentence, "They are trained one after the other when you say so.")
        self.notices.add("info", offer.title, offer.hint, button="Start queue").clicked.connect(
            self.session.queue.start
        )

    @Slot()
    def _withdraw_queue_offer(self) -> None:
        """The queue was started, from wherever that was asked for, or has been emptied."""
        queue = self.session.queue
        if self._queue_offer is not None and (queue.is_on or not queue.runs):
            self.notices.withdraw(self._queue_offer)
            self._queue_offer = None

    @Slot(object)
    def _offer_sprite(self, offer: Notice) -> None:
        card = self.notices.add(offer.level, offer.title, offer.hint, button="Undo", expires=True)
        card.clicked.connect(self.session.editing.undo)

    @Slot(object)
    def _use_run(self, path: Path) -> None:
        self.generate.show_run(path)
        self.show_page("generate")

    @Slot(object, str)
    def _use_model(self, path: Path, checkpoint: str) -> None:
        self.generate.show_run(path, checkpoint)
        self.show_page("generate")

    @Slot()
    def _show_training(self) -> None:
        self.show_page("train")

    @Slot()
    def _close_now(self) -> None:
        self._may_close = True
        self.close()

    @Slot()
    def _start(self) -> None:
        self.show_page("train")
        self.train.start()

    @Slot()
    def _save(self) -> None:
        pages = (self.page(), self.generate, self.train)
        if not any(page.save_samples() for page in pages):
            self._say_missing("No samples to save yet.", "Train a model or generate sprites first.")

    @Slot()
    def _export(self) -> None:
        pages = (self.page(), self.train, self.runs)
        if not any(page.export_model() for page in pages):
            self._say_missing("No model to export yet.", "Train one, or choose a run on the Runs page.")

    def _say_missing(self, title: str, hint: str) -> None:
        """Say what is missing; the message leaves when the page, the samples or the model change."""
        before = self._exportable_state()
        self.session.notify(title, hint, holds=lambda: self._exportable_state() == before)

    def _exportable_state(self) -> tuple[object, ...]:
        """Return the state that decides whether the window has samples to save and a model to export."""
        training, chosen = self.session.training, [run.path for run in self.runs.selected()]
        made = self.generate.results.result()
        return self.page(), made, chosen, training.path, training.samples is None, training.has_checkpoint

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close, or ask first."""
        if not self._may_close and not self.close_guard.may_close():
            event.ignore()
            return
        self._store(leaving=True)
        if self._unstored and not (self._may_close or self._was_warned):
            self._was_warned = True
            title, hint = "The window stays open: your last changes are not saved.", "Close again to discard them."
            self.session.noticed.emit(StateNotice("error", title, hint, holds=lambda: bool(self._unstored)))
            event.ignore()
            return
        self._keeper.stop()
        event.accept()
        self.closed.emit()

    @Slot()
    def store(self) -> None:
        """Store changes before a crash can lose them; report an error once until storing works again."""
        self._store(leaving=False)

    def _store(self, *, leaving: bool) -> None:
        self.session.settings.set_layout("window", self.saveGeometry())
        failed: OSError | None = None
        for page in self.pages.values():
            try:
                if leaving:
                    page.save_before_close()
                else:
                    page.save_state()
            except OSError as error:
                failed = error
        before, self._unstored = self._unstored, str(failed or "")
        self._was_warned = self._was_warned and bool(failed)
        if failed is not None and self._unstored != before:
            title, reason = f"Can't write {failed.filename or 'the file'}.", failed.strerror or str(failed)
            self.session.noticed.emit(StateNotice("error", title, reason, holds=lambda: bool(self._unstored)))

    def showEvent(self, event: QShowEvent) -> None:
        """Fit the screen again once the system's frame is around the window."""
        super().showEvent(event)
        QTimer.singleShot(0, self, self._fit_screen)

    def changeEvent(self, event: QEvent) -> None:
        """Fit the screen again when the window is no longer maximised."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            QTimer.singleShot(0, self, self._fit_screen)

    @Slot()
    def _fit_screen(self) -> None:
        """Shrink and move the window until its frame lies inside the screen."""
        if self.isMaximized() or self.isFullScreen() or self.isMinimized():
            return
        screen = QGuiApplication.screenAt(self.geometry().center()) or self.screen()
        room, size, place = screen.availableGeometry(), self.size(), self.pos()
        around = self.frameGeometry().size() - size
        if around.height() == 0:  # the window manager has not reported the frame yet
            around = _FRAME
        fitted = size.boundedTo(room.size() - around)
        right, low = (room.bottomRight() + QPoint(1, 1) - QPoint(*(fitted + around).toTuple())).toTuple()
        moved = QPoint(max(room.x(), min(place.x(), right)), max(room.y(), min(place.y(), low)))
        if fitted != size or moved != place:
            self.resize(fitted)
            self.move(moved)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint; the first time, say so as soon as the picture is out."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self, self._say_painted)

    @Slot()
    def _say_painted(self) -> None:
        self.painted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space that no control wanted pauses the training; held down it does so once."""
        if event.key() == Qt.Key.Key_Space and self.menus.pause.isEnabled():
            if not event.isAutoRepeat():
                self._commands.toggle_pause()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files can be dropped everywhere, but for sprites of this window."""
        if event.source() is None and any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped."""
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.open_paths(paths)
