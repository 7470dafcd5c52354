"""The main window: connects pages, menus, notices and the session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QKeyEvent, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QMainWindow, QStackedWidget

from studio.app.actions import Commands, Menus, NavigationRail
from studio.app.background.job_events import StateNotice
from studio.app.close_guard import CloseGuard
from studio.app.notifications import NoticeBar
from studio.app.offers import Offers
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

_STORE_MS = 500
_FRAME = QSize(8, 40)  # assumed size of the window frame in logical pixels


class Window(QMainWindow):
    """The main window. painted: the first paint is done. closed: the window was closed."""

    painted = Signal()
    closed = Signal()

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self.session = session
        self._theme = theme
        self._painted = False
        self._may_close = False
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
        self._offers = Offers(session, self.notices, self)
        self._connect()
        self._apply_stylesheet()
        self.show_page("sprites")
        self.resize(1280, 800)
        self.restoreGeometry(session.settings.layout("window"))
        self._fit_screen()
        self._store_error = ""  # of the last try to store changes; empty after a success
        self._was_warned = False  # whether closing has shown the error
        self._store_timer = QTimer(self)
        self._store_timer.setInterval(_STORE_MS)
        self._store_timer.timeout.connect(self.store)
        self._store_timer.timeout.connect(self.notices.remove_outdated)
        self._store_timer.start()

    def _connect(self) -> None:
        session, menus = self.session, self.menus
        self._theme.changed.connect(self._apply_stylesheet)
        self._commands.open_requested.connect(self.open_paths)
        menus.page_requested.connect(self.show_page)
        menus.save.triggered.connect(self._on_save)
        menus.export.triggered.connect(self._on_export)
        menus.start.triggered.connect(self._on_start)
        menus.quit.triggered.connect(self.close)
        session.failed.connect(self.notices.show_failure)
        session.noticed.connect(self.notices.show_notice)
        session.training.unblocked.connect(self.notices.withdraw)
        self.notices.retry_requested.connect(session.training.resume)
        self.notices.end_requested.connect(session.training.stop_without_saving)
        session.runs.withdrawn.connect(self.notices.withdraw)
        session.job_queue.withdrawn.connect(self.notices.withdraw)
        self.notices.undo_requested.connect(session.runs.undo)
        self.notices.fix_requested.connect(session.doctor.apply)
        session.editing.withdrawn.connect(self.notices.withdraw)
        self._offers.resumed.connect(self._on_training_requested)
        self.close_guard.ready.connect(self._on_ready_to_close)
        self.close_guard.cancelled.connect(self.notices.show_notice)
        self.rail.chosen.connect(self.show_page)
        self.runs.model_requested.connect(self._on_run_requested)
        self.train.model_requested.connect(self._on_model_requested)
        self._commands.watched.connect(self._on_training_requested)
        for page in self.pages.values():
            page.undo_changed.connect(menus.refresh)

    @Slot()
    def _apply_stylesheet(self) -> None:
        self.setStyleSheet(self._theme.stylesheet())

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show a page by its name."""
        page = self.pages[name]
        page.before_show()
        self.rail.show_page(name)
        self._stack.setCurrentWidget(page)
        self.menus.set_page(page)

    @Slot(object)
    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open files and folders as sprites."""
        self.show_page("sprites")
        self.session.open_sprites.open_paths(paths)

    def page(self) -> Page:
        """Return the shown page."""
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        return page

    @Slot(object)
    def _on_run_requested(self, path: Path) -> None:
        self.generate.show_run(path)
        self.show_page("generate")

    @Slot(object, str)
    def _on_model_requested(self, path: Path, checkpoint: str) -> None:
        self.generate.show_run(path, checkpoint)
        self.show_page("generate")

    @Slot()
    def _on_training_requested(self) -> None:
        self.show_page("train")

    @Slot()
    def _on_ready_to_close(self) -> None:
        self._may_close = True
        self.close()

    @Slot()
    def _on_start(self) -> None:
        self.show_page("train")
        self.train.start()

    @Slot()
    def _on_save(self) -> None:
        pages = (self.page(), self.generate, self.train)
        if not any(page.save_samples() for page in pages):
            self._notify_missing("No samples to save yet.", "Train a model or generate sprites first.")

    @Slot()
    def _on_export(self) -> None:
        pages = (self.page(), self.train, self.runs)
        if not any(page.export_model() for page in pages):
            self._notify_missing("No model to export yet.", "Train a model, or choose a run on the Runs page.")

    def _notify_missing(self, title: str, hint: str) -> None:
        """Show a message about missing samples or a missing model; remove it when the page or the choice changes."""
        before = self._exportable_state()
        self.session.notify(title, hint, holds=lambda: self._exportable_state() == before)

    def _exportable_state(self) -> tuple[object, ...]:
        """Return a value that changes when samples to save or a model to export may have become available."""
        training, chosen = self.session.training, [run.path for run in self.runs.selected()]
        made = self.generate.results.result()
        return self.page(), made, chosen, training.path, training.samples is None, training.has_checkpoint

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close the window, unless a run trains in it or changes can't be stored."""
        if not self._may_close and not self.close_guard.may_close():
            event.ignore()
            return
        self._store(leaving=True)
        if self._store_error and not (self._may_close or self._was_warned):
            self._was_warned = True
            title, hint = "Your last changes could not be saved.", "Close again to discard them."
            self.session.noticed.emit(StateNotice("error", title, hint, holds=lambda: bool(self._store_error)))
            event.ignore()
            return
        self._store_timer.stop()
        event.accept()
        self.closed.emit()

    @Slot()
    def store(self) -> None:
        """Store unsaved changes, in case of a crash. Show an error once, until storing works again."""
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
        before, self._store_error = self._store_error, str(failed or "")
        self._was_warned = self._was_warned and bool(failed)
        if failed is not None and self._store_error != before:
            title, reason = f"Can't write {failed.filename or 'the file'}.", failed.strerror or str(failed)
            self.session.noticed.emit(StateNotice("error", title, reason, holds=lambda: bool(self._store_error)))

    def showEvent(self, event: QShowEvent) -> None:
        """Fit the window to the screen when its frame is known."""
        super().showEvent(event)
        QTimer.singleShot(0, self, self._fit_screen)

    def changeEvent(self, event: QEvent) -> None:
        """Fit the window to the screen when it is no longer maximised."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            QTimer.singleShot(0, self, self._fit_screen)

    @Slot()
    def _fit_screen(self) -> None:
        """Shrink and move the window until its frame is inside the screen."""
        if self.isMaximized() or self.isFullScreen() or self.isMinimized():
            return
        screen = QGuiApplication.screenAt(self.geometry().center()) or self.screen()
        available, size, position = screen.availableGeometry(), self.size(), self.pos()
        frame = self.frameGeometry().size() - size
        if frame.height() == 0:  # the window manager has not reported the frame yet
            frame = _FRAME
        fitted = size.boundedTo(available.size() - frame)
        right, low = (available.bottomRight() + QPoint(1, 1) - QPoint(*(fitted + frame).toTuple())).toTuple()
        moved = QPoint(max(available.x(), min(position.x(), right)), max(available.y(), min(position.y(), low)))
        if fitted != size or moved != position:
            self.resize(fitted)
            self.move(moved)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Emit `painted` after the first paint."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self, self._on_painted)

    @Slot()
    def _on_painted(self) -> None:
        self.painted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pause or resume with Space, if no control has handled the key; ignore auto-repeat."""
        if event.key() == Qt.Key.Key_Space and self.menus.pause.isEnabled():
            if not event.isAutoRepeat():
                self._commands.toggle_pause()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept dropped files, except sprites dragged from this window."""
        if event.source() is None and any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the dropped files."""
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.open_paths(paths)
