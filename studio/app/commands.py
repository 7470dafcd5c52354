"""What the menus and shortcuts do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices

from studio.app import asking
from studio.app.help import HelpSheet
from studio.app.menus import Menus
from studio.app.session import Session
from studio.app.theme import Scheme, Theme
from studio.core import places
from studio.core.events import Notice

if TYPE_CHECKING:
    from studio.app.window import Window

_NO_SPRITES = Notice("info", "There are no samples to save yet.", "Train a model or generate sprites first.")
_NO_MODEL = Notice("info", "There is no model to export yet.", "Train one, or choose a run on the Runs page.")


class Commands(QObject):
    """Carries out what the menus ask for."""

    def __init__(self, window: Window, menus: Menus, session: Session, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._theme = theme
        menus.page_wanted.connect(window.show_page)
        menus.recent_chosen.connect(self._open_recent)
        menus.scheme_chosen.connect(self._set_scheme)
        menus.open_folder.triggered.connect(self._ask_for_folder)
        menus.open_files.triggered.connect(self._ask_for_files)
        menus.open_demo.triggered.connect(self._open_demo)
        menus.save.triggered.connect(self._save)
        menus.export.triggered.connect(self._export)
        menus.start.triggered.connect(self._start)
        menus.pause.triggered.connect(self.pause_or_go_on)
        menus.quit.triggered.connect(window.close)
        menus.help.triggered.connect(self._show_help)
        menus.runs_folder.triggered.connect(self._open_runs_folder)
        menus.logs_folder.triggered.connect(self._open_logs_folder)

    @Slot()
    def pause_or_go_on(self) -> None:
        """Pause the training, or go on with it."""
        training = self._session.training
        if training.state == "paused":
            training.resume()
        else:
            training.pause()

    @Slot()
    def _ask_for_folder(self) -> None:
        path = asking.for_folder(self._window, self._session.settings, "Open a folder of sprites")
        if path is not None:
            self._window.open_paths([path])

    @Slot()
    def _ask_for_files(self) -> None:
        paths = asking.for_files(self._window, self._session.settings, "Open sprites")
        if paths:
            self._window.open_paths(paths)

    @Slot()
    def _open_demo(self) -> None:
        self._window.open_paths([places.demo_sprites()])

    @Slot(str)
    def _open_recent(self, path: str) -> None:
        self._window.open_paths([Path(path)])

    @Slot(str)
    def _set_scheme(self, scheme: Scheme) -> None:
        self._session.settings.keep_text("scheme", scheme)
        self._theme.set_scheme(scheme)

    @Slot()
    def _start(self) -> None:
        self._window.show_page("train")
        self._window.train.start()

    @Slot()
    def _save(self) -> None:
        pages = (self._window.page(), self._window.generate, self._window.train)
        if not any(page.save_samples() for page in pages):
            self._session.dispatcher.noticed.emit(_NO_SPRITES)

    @Slot()
    def _export(self) -> None:
        pages = (self._window.page(), self._window.train, self._window.runs)
        if not any(page.export_model() for page in pages):
            self._session.dispatcher.noticed.emit(_NO_MODEL)

    @Slot()
    def _show_help(self) -> None:
        HelpSheet(self._window).open()

    @Slot()
    def _open_runs_folder(self) -> None:
        _open_folder(places.runs())

    @Slot()
    def _open_logs_folder(self) -> None:
        _open_folder(places.logs())


def _open_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
