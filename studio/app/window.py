"""The window: pages, menus, shortcuts. Wiring only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDesktopServices, QDragEnterEvent, QDropEvent, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QMainWindow, QStackedWidget

from studio.app import asking, parts
from studio.app.farewell import Farewell
from studio.app.help import HelpSheet
from studio.app.menus import Menus
from studio.app.notices import NoticeBar
from studio.app.pages.base import Page
from studio.app.pages.generate import GeneratePage
from studio.app.pages.runs import RunsPage
from studio.app.pages.sprites import SpritesPage
from studio.app.pages.train import TrainPage
from studio.app.rail import Rail
from studio.app.session import Session
from studio.app.status import StatusLine
from studio.app.theme import Scheme, Theme
from studio.core import places


class Window(QMainWindow):
    """The main window. painted: its first picture is on the screen. closed: it is gone for good."""

    painted = Signal()
    closed = Signal()

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._theme = theme
        self._painted = False
        self._may_close = False
        self._offered: Path | None = None
        self.setWindowTitle("Sprite Training Studio")
        self.setAcceptDrops(True)
        self.notices = NoticeBar()
        self.rail = Rail()
        self.train = TrainPage(session)
        self.pages: dict[str, Page] = {
            "sprites": SpritesPage(session),
            "train": self.train,
            "generate": GeneratePage(session),
            "runs": RunsPage(session),
        }
        self._stack = QStackedWidget()
        for page in self.pages.values():
            self._stack.addWidget(page)
            page.page_wanted.connect(self.show_page)
        body = parts.row(self.rail, parts.column(self.notices, self._stack, spacing=0), spacing=0)
        body.setStretch(1, 1)
        self.setCentralWidget(parts.panel(body))
        self.status = StatusLine(session)
        self.setStatusBar(self.status)
        self.menus = Menus(self.menuBar(), session)
        self.farewell = Farewell(session.training, self)
        self._connect()
        self.show_page("sprites")
        self.resize(1280, 800)
        self.restoreGeometry(session.settings.layout("window"))

    def _connect(self) -> None:
        session, menus = self._session, self.menus
        session.dispatcher.failed.connect(self.notices.show_failure)
        session.dispatcher.noticed.connect(self.notices.show_notice)
        session.run_offered.connect(self._offer_run)
        self.farewell.ready.connect(self._close_now)
        self.rail.chosen.connect(self.show_page)
        menus.page_wanted.connect(self.show_page)
        menus.recent_chosen.connect(self._open_recent)
        menus.scheme_chosen.connect(self._set_scheme)
        menus.open_folder.triggered.connect(self._ask_for_folder)
        menus.open_files.triggered.connect(self._ask_for_files)
        menus.save.triggered.connect(self._save)
        menus.export.triggered.connect(self._export)
        menus.start.triggered.connect(self._start)
        menus.pause.triggered.connect(self._pause_or_go_on)
        menus.quit.triggered.connect(self.close)
        menus.help.triggered.connect(self._show_help)
        menus.runs_folder.triggered.connect(self._open_runs_folder)

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show the page of that name."""
        page = self.pages[name]
        page.arrive()
        self.rail.show_page(name)
        self._stack.setCurrentWidget(page)

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open dropped files and folders as sprites."""
        self.show_page("sprites")
        self._session.importing.open_paths(paths)

    def page(self) -> Page:
        """The page on show."""
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        return page

    @Slot()
    def _ask_for_folder(self) -> None:
        path = asking.for_folder(self, self._session.settings, "Open a folder of sprites")
        if path is not None:
            self.open_paths([path])

    @Slot()
    def _ask_for_files(self) -> None:
        paths = asking.for_files(self, self._session.settings, "Open sprites")
        if paths:
            self.open_paths(paths)

    @Slot(str)
    def _open_recent(self, path: str) -> None:
        self.open_paths([Path(path)])

    @Slot(str)
    def _set_scheme(self, scheme: Scheme) -> None:
        self._session.settings.keep_text("scheme", scheme)
        self._theme.set_scheme(scheme)

    @Slot()
    def _start(self) -> None:
        self.show_page("train")
        self.train.start()

    @Slot()
    def _pause_or_go_on(self) -> None:
        training = self._session.training
        if training.state == "paused":
            training.resume()
        else:
            training.pause()

    @Slot()
    def _save(self) -> None:
        pages = (self.page(), self.pages["generate"], self.pages["train"])
        if not any(page.save_samples() for page in pages):
            self.notices.add("info", "There are no samples to save yet.", "Train a model or generate sprites first.")

    @Slot()
    def _export(self) -> None:
        pages = (self.page(), self.pages["train"], self.pages["runs"])
        if not any(page.export_model() for page in pages):
            self.notices.add("info", "There is no model to export yet.", "Train one, or choose a run on the Runs page.")

    @Slot()
    def _show_help(self) -> None:
        HelpSheet(self).open()

    @Slot()
    def _open_runs_folder(self) -> None:
        places.runs().mkdir(parents=True, exist_ok=True)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(places.runs())))

    @Slot(object, str)
    def _offer_run(self, path: Path, sentence: str) -> None:
        self._offered = path
        self.notices.add("info", sentence, "Its work is kept.", button="Resume").acted.connect(self._resume_offered)

    @Slot()
    def _resume_offered(self) -> None:
        if self._offered is not None:
            self.show_page("train")
            self._session.resume_run(self._offered)

    @Slot()
    def _close_now(self) -> None:
        self._may_close = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        """Close, or ask first."""
        if not self._may_close and not self.farewell.may_close():
            event.ignore()
            return
        for page in self.pages.values():
            page.keep()
        self._session.settings.keep_layout("window", self.saveGeometry())
        event.accept()
        self.closed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint; the first time, say so as soon as the picture is out."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self, self._say_painted)

    @Slot()
    def _say_painted(self) -> None:
        self.painted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Space that no control wanted pauses the training."""
        if event.key() == Qt.Key.Key_Space and self.menus.pause.isEnabled():
            self._pause_or_go_on()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        """Files can be dropped everywhere."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """Open what was dropped."""
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.open_paths(paths)
