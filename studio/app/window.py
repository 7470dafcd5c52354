"""The main window: connects pages, menus, notices and the session."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QMainWindow

from studio.app import keys
from studio.app.actions import PAGES, Commands, Menus, NavigationRail
from studio.app.background.job_events import StateNotice
from studio.app.close_guard import CloseGuard
from studio.app.first_steps import FirstSteps
from studio.app.notifications import Messages, NoticeBar
from studio.app.pages.base import Page
from studio.app.pages.generate.page import GeneratePage
from studio.app.pages.lab.page import LabPage
from studio.app.pages.runs.page import RunsPage
from studio.app.pages.sprites.page import SpritesPage
from studio.app.pages.train.page import TrainPage
from studio.app.state.session import Session
from studio.app.status_bar import StatusBar
from studio.app.theme import Theme
from studio.app.widgets import factory, pasted
from studio.app.widgets.input import PastedImages, paste_text
from studio.app.widgets.tab_order import PaneKeys, focus_part, move_focus

_STORE_MS = 500
_FRAME = QSize(8, 40)  # assumed size of the window frame in logical pixels


class Window(QMainWindow):
    """The main window."""

    painted = Signal()  # the first paint is done
    closed = Signal()  # the window was closed

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self.session = session
        keys.table().load(session.settings)
        self._theme = theme
        self._painted = self._may_close = False
        self.setWindowTitle("Sprite Training Studio")
        self.setAcceptDrops(True)
        self.notices = NoticeBar()
        self.rail = NavigationRail()
        self.sprites = SpritesPage(session)
        self.train = TrainPage(session)
        self.generate = GeneratePage(session)
        self.runs = RunsPage(session)
        self.lab = LabPage(session)
        pages = (self.sprites, self.train, self.generate, self.runs, self.lab)
        self.pages: dict[str, Page] = dict(zip(PAGES, pages, strict=True))
        for page in pages:  # a page that was never shown has no parent to delete it
            self.destroyed.connect(page.deleteLater)
        self._stack = factory.stack()
        self.first_steps = FirstSteps(session)
        body = factory.column(self.notices, self._stack, self.first_steps, spacing=0)
        self.setCentralWidget(factory.panel(factory.row(self.rail, body, spacing=0, grows=1)))
        self._stack.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._stack.setFocus()
        self.status = StatusBar(session)
        self.setStatusBar(self.status)
        self._commands = Commands(self, session, theme)
        self.menus = Menus(self.menuBar(), session, self._commands)
        self._page_commands = PageCommands(self)
        self.close_guard = CloseGuard(session.training, self)
        self.messages = Messages(session, self.notices, self)
        self._connect()
        self._apply_stylesheet()
        self.show_page("sprites")
        self.resize(1280, 800)
        self.restoreGeometry(session.settings.layout("window"))
        self._fit_screen()
        self.auto_save = AutoSave(session, self)
        self._timer = QTimer(self, interval=_STORE_MS)
        self._timer.timeout.connect(self.auto_save.store)
        self._timer.timeout.connect(self.notices.remove_outdated)
        self._timer.start()

    def _connect(self) -> None:
        menus = self.menus
        self._theme.changed.connect(self._apply_stylesheet)
        self._commands.open_requested.connect(self.open_paths)
        menus.paste.triggered.connect(self._on_paste)
        PaneKeys(self)
        PastedImages(self, pasted.can_open)
        menus.quit.triggered.connect(self.close)
        menus.messages.triggered.connect(self.messages.show_history)
        self.close_guard.ready.connect(self._on_ready_to_close)
        self.close_guard.cancelled.connect(self.messages.show_notice)
        self.runs.model_requested.connect(self._on_model_requested)
        self.train.model_requested.connect(self._on_model_requested)
        for asker in (menus, self._commands, self.messages, self.first_steps):
            asker.page_requested.connect(self.show_page)
        self.notices.guide_requested.connect(self._commands.show_guide)
        self.sprites.grid.selection_changed.connect(self._on_looked)
        self.sprites.tabs.currentChanged.connect(self._on_looked)
        self.rail.chosen.connect(self.show_page)
        for page in self.pages.values():
            page.page_requested.connect(self.show_page)
            page.history.changed.connect(menus.refresh)

    @Slot()
    def _apply_stylesheet(self) -> None:
        self.setStyleSheet(self._theme.stylesheet())

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show a page by its name."""
        page = self.pages[name]
        page.before_show()
        self.rail.show_page(name)
        self.attach(page)
        self._stack.setCurrentWidget(page)
        self.menus.set_page(page)
        if self.rail.focuses_other(name):
            focus_part(page)

    def attach(self, page: Page) -> None:
        """Make the window the parent of a page, before the page is shown or opens a dialog."""
        if self._stack.indexOf(page) < 0:  # styling all pages at the start would double its time
            self._stack.addWidget(page)

    @Slot(object)
    def open_paths(self, paths: Sequence[Path]) -> None:
        self.show_page("sprites")
        self.session.open_sprites.open_paths(paths)

    def page(self) -> Page:
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        return page

    @Slot(object)
    @Slot(object, str)
    def _on_model_requested(self, path: Path, checkpoint: str = "") -> None:
        self.generate.show_run(path, checkpoint)
        self.show_page("generate")

    @Slot()
    def _on_ready_to_close(self) -> None:
        self._may_close = True
        self.close()

    @Slot()
    def _on_looked(self) -> None:
        """Tick the step of looking at the sprites once a sprite is selected or the Doctor is open."""
        if self.sprites.grid.selected_count() or self.sprites.tabs.currentIndex():
            self.first_steps.tick("look")

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close the window, unless a run trains in it or changes can't be stored."""
        may_close = self._may_close or self.close_guard.may_close()
        if not may_close or not self.auto_save.store_before_close(asks=not self._may_close):
            event.ignore()
            return
        self._timer.stop()
        event.accept()
        self.closed.emit()

    def event(self, event: QEvent) -> bool:
        """Fit the window to the screen when shown or no longer maximised; emit `painted` after the first paint."""
        handled, kind = super().event(event), event.type()
        if kind in (QEvent.Type.Show, QEvent.Type.WindowStateChange):
            QTimer.singleShot(0, self, self._fit_screen)  # once the frame is known
        elif kind == QEvent.Type.Paint and not self._painted:
            self._painted = True
            QTimer.singleShot(0, self, self._on_painted)
        return handled

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

    @Slot()
    def _on_painted(self) -> None:
        self.painted.emit()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus on Tab, or back on Shift+Tab, in the order of the layouts."""
        return move_focus(self, forward=forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pause or resume by key, if no control has handled the key; ignore auto-repeat."""
        if keys.table().matches("pause", event) and self.menus.pause.isEnabled():
            if not event.isAutoRepeat():
                self._commands.toggle_pause()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept dropped files and images, except sprites dragged from this window."""
        if event.source() is None and pasted.can_open(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        if self._take(event.mimeData()):
            event.acceptProposedAction()

    @Slot()
    def _on_paste(self) -> None:
        """Paste into the focused text field, or else use the files or the image in the clipboard."""
        if not paste_text() and not self._take(QGuiApplication.clipboard().mimeData()):
            self.session.notify("The clipboard has no image or file.", "Copy a sprite in another program first.")

    def _take(self, data: QMimeData) -> bool:
        """Let the shown page use the data, or open it on the Sprites page. Return False without files and image."""
        if not pasted.can_open(data):
            return False
        if self.page().take(data):
            return True
        try:
            paths = pasted.paths_in(data)
        except OSError as error:
            self.session.show_error(error)
            return True
        if paths:
            self.open_paths(paths)
        return bool(paths)


class PageCommands(QObject):
    """Executes the menu actions that the shown page answers first, and then the pages that have a model or samples."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        window.menus.start.triggered.connect(self._on_start)
        window.menus.save.triggered.connect(self._on_save)
        window.menus.export.triggered.connect(self._on_export)

    @Slot()
    def _on_start(self) -> None:
        self._window.show_page("train")
        self._window.train.start()

    @Slot()
    def _on_save(self) -> None:
        pages = self._attached(self._window.generate, self._window.train)
        if not any(page.save_samples() for page in pages):
            self._notify_missing("No samples to save yet.", "Train a model or generate sprites first.")

    @Slot()
    def _on_export(self) -> None:
        pages = self._attached(self._window.train, self._window.runs)
        if not any(page.export_model() for page in pages):
            self._notify_missing("No model to export yet.", "Train a model, or choose a run on the Runs page.")

    def _attached(self, *others: Page) -> Iterator[Page]:
        """Yield the shown page, then the other pages, each attached to the window for a dialog."""
        for page in (self._window.page(), *others):
            self._window.attach(page)
            yield page

    def _notify_missing(self, title: str, hint: str) -> None:
        """Show a message about missing samples or a missing model; remove it when the page or the choice changes."""
        before = self._exportable_state()
        self._window.session.notify(title, hint, holds=lambda: self._exportable_state() == before)

    def _exportable_state(self) -> tuple[object, ...]:
        """Return a value that changes when samples to save or a model to export may have become available."""
        window, training = self._window, self._window.session.training
        chosen = [run.path for run in window.runs.table.selected()]
        made = window.generate.results.result()
        return window.page(), made, chosen, training.path, training.samples is None, training.has_checkpoint


class AutoSave(QObject):
    """Stores the window's layout and the pages' changes, in case of a crash and before the window closes."""

    def __init__(self, session: Session, window: Window) -> None:
        super().__init__(window)
        self._session, self._window = session, window
        self._error = ""  # of the last try to store changes; empty after a success
        self._was_warned = False  # whether closing has shown the error

    @Slot()
    def store(self) -> None:
        """Store unsaved changes. Show an error once, until storing works again."""
        self._store(leaving=False)

    def store_before_close(self, *, asks: bool) -> bool:
        """Store unsaved changes. Return False, once, if that fails and the window still asks the user."""
        self._store(leaving=True)
        if self._error and asks and not self._was_warned:
            self._was_warned = True
            self._notify("Your last changes could not be saved.", "Close again to discard them.")
            return False
        return True

    def _store(self, *, leaving: bool) -> None:
        self._session.settings.set_layout("window", self._window.saveGeometry())
        failed: OSError | None = None
        for page in self._window.pages.values():
            try:
                if leaving:
                    page.save_before_close()
                else:
                    page.save_state()
            except OSError as error:
                failed = error
        before, self._error = self._error, str(failed or "")
        self._was_warned = self._was_warned and bool(failed)
        if failed is not None and self._error != before:
            self._notify(f"Can't write {failed.filename or 'the file'}.", failed.strerror or str(failed))

    def _notify(self, title: str, hint: str) -> None:
        self._session.noticed.emit(StateNotice("error", title, hint, holds=lambda: bool(self._error)))
