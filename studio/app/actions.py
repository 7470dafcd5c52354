"""The menus with their shortcuts, the navigation rail, and commands that need no page."""

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
    "sprites": "Open and check the training sprites.",
    "train": "Train a model and watch its progress.",
    "generate": "Generate sprites, or predict classes.",
    "runs": "Compare and manage your runs.",
    "lab": "Run experiments on your sprites and devices.",
}
_SCHEMES = (("system", "Follow system"), ("light", "Light"), ("dark", "Dark"))


class Menus(QObject):
    """Fills the menu bar with actions. The window connects the actions that need a page.

    page_requested: name of the page to show. recent_chosen: path of the folder to open. scheme_chosen: 'system',
    'light' or 'dark'.
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
        self.open_demo = self._action("Open demo sprites")
        self.save = self._action("Save sprites…", "Ctrl+S", "save")
        self.export = self._action("Export model…", "Ctrl+E", "export")
        self.verify = self._action("Verify file…")
        self.saves_details = self._action("Write generation details into saved images")
        self.saves_details.setCheckable(True)
        self.saves_details.setChecked(session.settings.saves_details())
        self.quit = self._action("Quit", "Ctrl+Q")
        self.undo = self._action("Undo", "Ctrl+Z")
        self.redo = self._action("Redo")
        self.redo.setShortcuts([QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y")])
        self.start = self._action("Start", "Ctrl+R", "play")
        self.pause = self._action("Pause\tSpace", "", "pause")
        self.stop = self._action("Stop", "Ctrl+.", "stop")
        self.checkpoint = self._action("Save checkpoint")
        self.watch = self._action("Watch run folder…")
        self.notifies = self._action("Notify when a run ends")
        self.notifies.setCheckable(True)
        self.notifies.setChecked(session.settings.notifies())
        self.help = self._action("First steps and shortcuts", "F1")
        self.runs_folder = self._action("Show runs folder")
        self.logs_folder = self._action("Show logs")
        self._recent = QMenu("Open recent", bar)
        self._recent.aboutToShow.connect(self._on_recent_about_to_show)
        self._recent.triggered.connect(self._on_recent_triggered)
        self._themes = QActionGroup(self)
        self._themes.triggered.connect(self._on_scheme_triggered)
        self._pages = QActionGroup(self)
        self._pages.triggered.connect(self._on_page_triggered)
        self._page: Page | None = None  # the shown page
        self._fill()
        self.undo.triggered.connect(self._on_undo)
        self.redo.triggered.connect(self._on_redo)
        self.stop.triggered.connect(session.training.stop)
        self.checkpoint.triggered.connect(session.training.save_now)
        self.saves_details.toggled.connect(self._on_saves_details_toggled)
        self.notifies.toggled.connect(self._on_notifies_toggled)
        session.open_sprites.imported.connect(self.refresh)
        session.training.state_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Enable the available actions and show what Undo and Redo would change."""
        undone, redone = self._step_titles()
        for action, words, step in ((self.undo, "Undo", undone), (self.redo, "Redo", redone)):
            _enable(action, "" if step else f"Nothing to {words.lower()}.")
            action.setText(f"{words}: {step}" if step else words)
        training = self._session.training
        busy = "Stop the current training first." if training.owns_run() else ""
        _enable(self.start, busy)
        _enable(self.pause, training.why_no_pause())
        self.pause.setText("Resume\tSpace" if training.state == "paused" else "Pause\tSpace")
        _enable(self.stop, training.why_no_stop())
        _enable(self.checkpoint, "" if training.state == "training" else "No training is running.")
        _enable(self.watch, busy)

    def set_page(self, page: Page) -> None:
        """Store the shown page and refresh the menus. Undo and Redo act on the page if it has an undo history."""
        self._page = page
        self.refresh()

    def _undo_page(self) -> Page | None:
        """Return the shown page if it has its own undo history; None if Undo reverts import options instead."""
        return self._page if self._page is not None and self._page.has_undo else None

    def _step_titles(self) -> tuple[str, str]:
        """Return the titles of the next undo step and the next redo step; an empty title if there is no step."""
        page, opened = self._undo_page(), self._session.open_sprites.opened
        if page is not None:
            return page.undo_title(), page.redo_title()
        return "".join(step.title for step in opened.past[-1:]), "".join(step.title for step in opened.future[:1])

    @Slot()
    def _on_undo(self) -> None:
        (self._undo_page() or self._session.open_sprites).undo()

    @Slot()
    def _on_redo(self) -> None:
        (self._undo_page() or self._session.open_sprites).redo()

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
            menu.setToolTipsVisible(True)  # tool tips say why an action is disabled
        training.addActions([self.start, self.pause, self.stop, self.checkpoint, self.watch])
        training.addSeparator()
        training.addAction(self.notifies)
        view = self._bar.addMenu("&View")
        for number, name in enumerate(PAGES, 1):
            action = self._action(name.capitalize(), f"Ctrl+{number}", name)
            action.setData(name)
            view.addAction(self._pages.addAction(action))
        view.addSeparator()
        themes = view.addMenu("Theme")
        chosen = self._session.settings.scheme()
        for name, words in _SCHEMES:
            action = self._action(words)
            action.setData(name)
            action.setCheckable(True)
            action.setChecked(name == chosen)
            themes.addAction(self._themes.addAction(action))
        self._bar.addMenu("&Help").addActions([self.help, self.runs_folder, self.logs_folder])

    def _action(self, words: str, keys: str = "", icon: str = "") -> QAction:
        action = QAction(words, self)
        if keys:
            action.setShortcut(QKeySequence(keys))
        if icon:
            action.setIcon(theme.icon(icon))
        return action

    @Slot(bool)
    def _on_saves_details_toggled(self, saves: bool) -> None:
        self._session.settings.set_saves_details(saves)

    @Slot(bool)
    def _on_notifies_toggled(self, notifies: bool) -> None:
        self._session.settings.set_notifies(notifies)

    @Slot()
    def _on_recent_about_to_show(self) -> None:
        self._recent.clear()
        for path in self._session.settings.recent():
            self._recent.addAction(path).setData(path)
        if self._recent.isEmpty():
            self._recent.addAction("No recent folders").setEnabled(False)

    @Slot(QAction)
    def _on_recent_triggered(self, action: QAction) -> None:
        self.recent_chosen.emit(action.data())

    @Slot(QAction)
    def _on_scheme_triggered(self, action: QAction) -> None:
        self.scheme_chosen.emit(action.data())

    @Slot(QAction)
    def _on_page_triggered(self, action: QAction) -> None:
        self.page_requested.emit(action.data())


def _enable(action: QAction, reason_against: str) -> None:
    """Enable an action, or disable the action and show the reason as its tool tip."""
    action.setEnabled(not reason_against)
    action.setToolTip(reason_against)


class NavigationRail(QFrame):
    """The bar of buttons that switch pages. chosen: name of the clicked page."""

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
        self._group.idClicked.connect(self._on_clicked)
        self.setLayout(factory.column(*self._buttons.values(), 1, margin=factory.GRID))
        theme.set_role(self, "")

    def show_page(self, name: str) -> None:
        """Mark the button of the page `name` as checked."""
        self._buttons[name].setChecked(True)

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(PAGES[number - 1])


class Commands(QObject):
    """Executes menu actions that need no page.

    open_requested: (list of Path) open these files. watched: the window now follows a run of another process.
    """

    open_requested = Signal(object)
    watched = Signal()

    def __init__(self, window: QWidget, menus: Menus, session: Session, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._theme = theme
        menus.recent_chosen.connect(self._on_recent_chosen)
        menus.scheme_chosen.connect(self._on_scheme_chosen)
        menus.open_folder.triggered.connect(self._on_open_folder)
        menus.open_files.triggered.connect(self._on_open_files)
        menus.open_demo.triggered.connect(self._on_open_demo)
        menus.pause.triggered.connect(self.toggle_pause)
        menus.watch.triggered.connect(self._on_watch)
        menus.help.triggered.connect(self._on_help)
        menus.verify.triggered.connect(self._on_verify)
        menus.runs_folder.triggered.connect(self._on_runs_folder)
        menus.logs_folder.triggered.connect(self._on_logs_folder)

    @Slot()
    def toggle_pause(self) -> None:
        """Pause the training, or resume it."""
        training = self._session.training
        if training.state == "paused":
            training.resume()
        else:
            training.pause()

    @Slot()
    def _on_open_folder(self) -> None:
        path = dialogs.choose_folder(self._window, self._session.settings, "Open a folder of sprites")
        if path is not None:
            self.open_requested.emit([path])

    @Slot()
    def _on_open_files(self) -> None:
        paths = dialogs.choose_files(self._window, self._session.settings, "Open sprites")
        if paths:
            self.open_requested.emit(paths)

    @Slot()
    def _on_verify(self) -> None:
        path = dialogs.choose_file(self._window, self._session.settings, "Verify an exported model or a saved image")
        if path is not None:
            VerifyDialog(self._session, path, self._window).open()

    @Slot()
    def _on_watch(self) -> None:
        path = dialogs.choose_folder(self._window, self._session.settings, "Watch run folder")
        if path is not None:
            self._session.watch(path)
            self.watched.emit()

    @Slot()
    def _on_open_demo(self) -> None:
        self.open_requested.emit([paths.demo_sprites()])

    @Slot(str)
    def _on_recent_chosen(self, path: str) -> None:
        self.open_requested.emit([Path(path)])

    @Slot(str)
    def _on_scheme_chosen(self, scheme: Scheme) -> None:
        self._session.settings.set_text("scheme", scheme)
        self._theme.set_scheme(scheme)

    @Slot()
    def _on_help(self) -> None:
        HelpDialog(self._window).open()

    @Slot()
    def _on_runs_folder(self) -> None:
        _open_folder(paths.runs())

    @Slot()
    def _on_logs_folder(self) -> None:
        _open_folder(paths.logs())


def _open_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
