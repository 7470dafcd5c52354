"""Menus, shortcuts and the navigation rail, and the commands behind them that need no page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QDesktopServices, QKeySequence
from PySide6.QtWidgets import QButtonGroup, QFrame, QMenu, QMenuBar, QToolButton, QWidget

from studio.app import dialogs, theme
from studio.app.dialogs import HelpDialog
from studio.app.state.session import Session
from studio.app.theme import Scheme, Theme
from studio.app.verify_dialog import VerifyDialog
from studio.app.widgets import factory
from studio.core import paths

if TYPE_CHECKING:
    from studio.app.pages.base import Page

PAGES = ("sprites", "train", "generate", "runs", "lab")
_TIPS = {
    "sprites": "What the model will learn from.",
    "train": "Train a model on the sprites and watch it learn.",
    "generate": "Make new sprites with a model, or let it name yours.",
    "runs": "Everything that was ever trained.",
    "lab": "Experiments with training itself, on your sprites and devices.",
}
_SCHEMES = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))


class Menus(QObject):
    """Fills a menu bar. The window connects the actions that need a page; the others act on the session themselves.

    page_wanted: a page's name. recent_chosen: a folder. scheme_chosen: 'system', 'light' or 'dark'.
    """

    page_requested = Signal(str)
    recent_chosen = Signal(str)
    scheme_chosen = Signal(str)

    def __init__(self, bar: QMenuBar, session: Session) -> None:
        super().__init__(bar)
        self._bar = bar
        self._session = session
        self.open_folder = self._action("Open folder…", "Ctrl+O", "folder")
        self.open_files = self._action("Open files…")
        self.open_demo = self._action("Open the demo sprites")
        self.save = self._action("Save sprites…", "Ctrl+S", "save")
        self.export = self._action("Export model…", "Ctrl+E", "export")
        self.verify = self._action("Check a saved file…")
        self.saves_details = self._action("Note in saved pictures how they were made")
        self.saves_details.setCheckable(True)
        self.saves_details.setChecked(session.settings.saves_details())
        self.quit = self._action("Quit", "Ctrl+Q")
        self.undo = self._action("Undo", "Ctrl+Z")
        self.redo = self._action("Redo")
        self.redo.setShortcuts([QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y")])
        self.start = self._action("Start", "Ctrl+R", "play")
        self.pause = self._action("Pause\tSpace", "", "pause")
        self.stop = self._action("Stop", "Ctrl+.", "stop")
        self.checkpoint = self._action("Save the model now")
        self.watch = self._action("Watch a run's folder…")
        self.notifies = self._action("Notify me when a run ends")
        self.notifies.setCheckable(True)
        self.notifies.setChecked(session.settings.notifies())
        self.help = self._action("First steps and shortcuts", "F1")
        self.runs_folder = self._action("Open the runs' folder")
        self.logs_folder = self._action("Open the folder of logs")
        self._recent = QMenu("Open recent", bar)
        self._recent.aboutToShow.connect(self._fill_recent)
        self._recent.triggered.connect(self._choose_recent)
        self._themes = QActionGroup(self)
        self._themes.triggered.connect(self._choose_scheme)
        self._pages = QActionGroup(self)
        self._pages.triggered.connect(self._choose_page)
        self._page: Page | None = None  # on show
        self._fill()
        self.undo.triggered.connect(self._undo)
        self.redo.triggered.connect(self._redo)
        self.stop.triggered.connect(session.training.stop)
        self.checkpoint.triggered.connect(session.training.save_now)
        self.saves_details.toggled.connect(self._tell_source)
        self.notifies.toggled.connect(self._notify)
        session.open_sprites.imported.connect(self.refresh)
        session.training.state_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Enable what can be done now, and say what it would undo."""
        undone, redone = self._steps()
        for action, words, step in ((self.undo, "Undo", undone), (self.redo, "Redo", redone)):
            _enable(action, "" if step else f"Nothing to {words.lower()}.")
            action.setText(f"{words}: {step}" if step else words)
        training = self._session.training
        busy = "Stop the current training first." if training.owns_run() else ""
        _enable(self.start, busy)
        _enable(self.pause, training.why_no_pause())
        self.pause.setText("Go on\tSpace" if training.state == "paused" else "Pause\tSpace")
        _enable(self.stop, training.why_no_stop())
        _enable(self.checkpoint, "" if training.state == "training" else "No run is being trained.")
        _enable(self.watch, busy)

    def follow(self, page: Page) -> None:
        """This page is on show: Undo is for it, if it has one of its own."""
        self._page = page
        self.refresh()

    def _undoing(self) -> Page | None:
        """The page on show, if it has an undo of its own; else what was done to the open sprites is undone."""
        return self._page if self._page is not None and self._page.has_undo else None

    def _steps(self) -> tuple[str, str]:
        """What would be undone, and what done again; empty for nothing."""
        page, opened = self._undoing(), self._session.open_sprites.opened
        if page is not None:
            return page.undo_title(), page.redo_title()
        return "".join(step.title for step in opened.past[-1:]), "".join(step.title for step in opened.future[:1])

    @Slot()
    def _undo(self) -> None:
        (self._undoing() or self._session.open_sprites).undo()

    @Slot()
    def _redo(self) -> None:
        (self._undoing() or self._session.open_sprites).redo()

    def _fill(self) -> None:
        file = self._bar.addMenu("&File")
        file.addActions([self.open_folder, self.open_files])
        file.addMenu(self._recent)
        file.addActions([self.open_demo])
        file.addSeparator()
        file.addActions([self.save, self.export, self.saves_details, self.verify])
        file.addSeparator()
        file.addAction(self.quit)
        edit = self._bar.addMenu("&Edit")
        edit.addActions([self.undo, self.redo])
        training = self._bar.addMenu("&Training")
        for menu in (edit, training):
            menu.setToolTipsVisible(True)  # a tool tip says why its entry is disabled
        training.addActions([self.start, self.pause, self.stop, self.checkpoint, self.watch])
        training.addSeparator()
        training.addAction(self.notifies)
        view = self._bar.addMenu("&View")
        for number, name in enumerate(PAGES, 1):
            action = self._action(name.capitalize(), f"Ctrl+{number}", name)
            action.setData(name)
            view.addAction(self._pages.addAction(action))
        view.addSeparator()
        look = view.addMenu("Look")
        chosen = self._session.settings.scheme()
        for name, words in _SCHEMES:
            action = self._action(words)
            action.setData(name)
            action.setCheckable(True)
            action.setChecked(name == chosen)
            look.addAction(self._themes.addAction(action))
        self._bar.addMenu("&Help").addActions([self.help, self.runs_folder, self.logs_folder])

    def _action(self, words: str, keys: str = "", icon: str = "") -> QAction:
        action = QAction(words, self)
        if keys:
            action.setShortcut(QKeySequence(keys))
        if icon:
            action.setIcon(theme.icon(icon))
        return action

    @Slot(bool)
    def _tell_source(self, tells: bool) -> None:
        self._session.settings.set_saves_details(tells)

    @Slot(bool)
    def _notify(self, notifies: bool) -> None:
        self._session.settings.notify(notifies)

    @Slot()
    def _fill_recent(self) -> None:
        self._recent.clear()
        for path in self._session.settings.recent():
            self._recent.addAction(path).setData(path)
        if self._recent.isEmpty():
            self._recent.addAction("No folder was opened yet").setEnabled(False)

    @Slot(QAction)
    def _choose_recent(self, action: QAction) -> None:
        self.recent_chosen.emit(action.data())

    @Slot(QAction)
    def _choose_scheme(self, action: QAction) -> None:
        self.scheme_chosen.emit(action.data())

    @Slot(QAction)
    def _choose_page(self, action: QAction) -> None:
        self.page_requested.emit(action.data())


def _enable(action: QAction, reason_against: str) -> None:
    """Enable an action, or disable the action and show the reason as its tool tip."""
    action.setEnabled(not reason_against)
    action.setToolTip(reason_against)


class NavigationRail(QFrame):
    """chosen: the name of the page that the user wants."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        for number, name in enumerate(PAGES, 1):
            button = factory.tool_button(name, name.capitalize(), f"{_TIPS[name]} (Ctrl+{number})")
            button.setText(name.capitalize())
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(24, 24))
            button.setFixedSize(80, 64)
            button.setCheckable(True)
            self._group.addButton(button, number)
            self._buttons[name] = button
        self._group.idClicked.connect(self._choose)
        self.setLayout(factory.column(*self._buttons.values(), 1, margin=factory.GRID))
        theme.set_role(self, "")

    def show_page(self, name: str) -> None:
        """Mark a page as the one on show."""
        self._buttons[name].setChecked(True)

    @Slot(int)
    def _choose(self, number: int) -> None:
        self.chosen.emit(PAGES[number - 1])


class Commands(QObject):
    """What the menus ask for and no page is needed for. open_wanted: the paths of sprites to open, a list.

    watched: a run is watched.
    """

    open_requested = Signal(object)
    watched = Signal()

    def __init__(self, window: QWidget, menus: Menus, session: Session, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._theme = theme
        menus.recent_chosen.connect(self._open_recent)
        menus.scheme_chosen.connect(self._set_scheme)
        menus.open_folder.triggered.connect(self._ask_for_folder)
        menus.open_files.triggered.connect(self._ask_for_files)
        menus.open_demo.triggered.connect(self._open_demo)
        menus.pause.triggered.connect(self.toggle_pause)
        menus.watch.triggered.connect(self._watch)
        menus.help.triggered.connect(self._show_help)
        menus.verify.triggered.connect(self._verify)
        menus.runs_folder.triggered.connect(self._open_runs_folder)
        menus.logs_folder.triggered.connect(self._open_logs_folder)

    @Slot()
    def toggle_pause(self) -> None:
        """Pause the training, or go on with it."""
        training = self._session.training
        if training.state == "paused":
            training.resume()
        else:
            training.pause()

    @Slot()
    def _ask_for_folder(self) -> None:
        path = dialogs.choose_folder(self._window, self._session.settings, "Open a folder of sprites")
        if path is not None:
            self.open_requested.emit([path])

    @Slot()
    def _ask_for_files(self) -> None:
        paths = dialogs.choose_files(self._window, self._session.settings, "Open sprites")
        if paths:
            self.open_requested.emit(paths)

    @Slot()
    def _verify(self) -> None:
        path = dialogs.choose_file(self._window, self._session.settings, "Check an exported model or a saved picture")
        if path is not None:
            VerifyDialog(self._session, path, self._window).open()

    @Slot()
    def _watch(self) -> None:
        path = dialogs.choose_folder(self._window, self._session.settings, "Watch the run in a folder")
        if path is not None:
            self._session.watch(path)
            self.watched.emit()

    @Slot()
    def _open_demo(self) -> None:
        self.open_requested.emit([paths.demo_sprites()])

    @Slot(str)
    def _open_recent(self, path: str) -> None:
        self.open_requested.emit([Path(path)])

    @Slot(str)
    def _set_scheme(self, scheme: Scheme) -> None:
        self._session.settings.set_text("scheme", scheme)
        self._theme.set_scheme(scheme)

    @Slot()
    def _show_help(self) -> None:
        HelpDialog(self._window).open()

    @Slot()
    def _open_runs_folder(self) -> None:
        _open_folder(paths.runs())

    @Slot()
    def _open_logs_folder(self) -> None:
        _open_folder(paths.logs())


def _open_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
