"""The menus with shortcuts, the navigation rail, and commands that need no page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QDesktopServices, QIcon
from PySide6.QtWidgets import QButtonGroup, QFrame, QMenu, QMenuBar, QToolButton, QWidget

from studio.app import dialogs, keys, theme
from studio.app.settings_dialog import SettingsDialog
from studio.app.state.session import Session
from studio.app.theme import Theme
from studio.app.widgets import factory
from studio.core import paths

if TYPE_CHECKING:
    from studio.app.pages.base import Page

_TIPS = {
    "sprites": "Open and check the training sprites.",
    "train": "Train a model and watch its progress.",
    "generate": "Generate sprites, or predict classes.",
    "runs": "Compare and manage your runs.",
    "lab": "Run experiments on your sprites and devices.",
}
PAGES = tuple(_TIPS)


class Menus(QObject):
    """Fills the menu bar with actions. The window connects the actions that need a page."""

    page_requested = Signal(str)  # name of the page to show

    def __init__(self, bar: QMenuBar, session: Session, commands: Commands) -> None:
        super().__init__(bar)
        self._session, self._commands = session, commands
        self._page: Page | None = None  # the shown page
        self._recent, self._pages = QMenu("Open recent", bar), QActionGroup(self)
        file = bar.addMenu("&File")
        _add(file, "Open folder…", "open_folder", "folder", commands.open_folder)
        _add(file, "Open files…", slot=commands.open_files)
        file.addMenu(self._recent)
        _add(file, "Open demo sprites", slot=commands.open_demo)
        file.addSeparator()
        self.save = _add(file, "Save sprites…", "save", "save")
        self.export = _add(file, "Export model…", "export", "export")
        self.verify = _add(file, "Verify file…", slot=commands.verify)
        file.addSeparator()
        self.quit = _add(file, "Quit", "quit")
        edit = bar.addMenu("&Edit")
        self.undo = _add(edit, "Undo", "undo", slot=self._on_undo)
        self.redo = _add(edit, "Redo", "redo", slot=self._on_redo)
        edit.addSeparator()
        self.paste = _add(edit, "Paste", "paste")
        edit.addSeparator()
        self.settings = _add(edit, "Settings…", "settings", "settings", commands.show_settings)
        training = bar.addMenu("&Training")
        self.start = _add(training, "Start", "start", "play")
        self.pause = _add(training, "Pause", "", "pause", commands.toggle_pause)
        self.stop = _add(training, "Stop", "stop", "stop", session.training.stop)
        self.checkpoint = _add(training, "Save checkpoint", slot=session.training.save_now)
        self.watch = _add(training, "Watch run folder…", slot=commands.watch)
        self._fill_view_menu(bar.addMenu("&View"))
        help_menu = bar.addMenu("&Help")
        _add(help_menu, "Guide", "guide", slot=self._on_guide)
        _add(help_menu, "Keyboard shortcuts", "keys", slot=commands.show_keys)
        self.messages = _add(help_menu, "Messages")
        _add(help_menu, "System check…", slot=commands.check_system)
        _add(help_menu, "Show runs folder", slot=commands.show_runs_folder)
        _add(help_menu, "Show logs", slot=commands.show_logs_folder)
        for menu in (edit, training):
            menu.setToolTipsVisible(True)  # tool tips say why an action is disabled
        self._recent.aboutToShow.connect(self._on_recent_about_to_show)
        self._recent.triggered.connect(commands.open_recent)
        self._pages.triggered.connect(self._on_page_triggered)
        session.training.state_changed.connect(self.refresh)
        keys.table().changed.connect(self.refresh)
        self.refresh()

    def _fill_view_menu(self, menu: QMenu) -> None:
        for name in PAGES:
            action = _add(menu, name.capitalize(), f"page_{name}", name)
            action.setData(name)
            self._pages.addAction(action)

    @Slot()
    def refresh(self) -> None:
        """Enable the available actions and show what Undo and Redo would change."""
        history = self._page.history if self._page is not None else None
        undone, redone = (history.latest, history.next) if history is not None else (None, None)
        for action, words, step in ((self.undo, "Undo", undone), (self.redo, "Redo", redone)):
            _enable(action, "" if step else f"Nothing to {words.lower()}.")
            action.setText(f"{words} {step.title}".replace("&", "&&") if step else words)
        training = self._session.training
        busy = "Stop the current training first." if training.owns_run() else ""
        _enable(self.start, busy)
        _enable(self.pause, training.why_no_pause())
        self.pause.setText(f"{'Resume' if training.state == 'paused' else 'Pause'}\t{keys.table().text('pause')}")
        _enable(self.stop, training.why_no_stop())
        _enable(self.checkpoint, "" if training.state == "training" else "No training is running.")
        _enable(self.watch, busy)

    def set_page(self, page: Page) -> None:
        """Store the shown page, whose history Undo and Redo follow, and refresh the menus."""
        self._page = page
        self.refresh()

    @Slot()
    def _on_undo(self) -> None:
        if self._page is not None:
            self._page.history.undo()

    @Slot()
    def _on_redo(self) -> None:
        if self._page is not None:
            self._page.history.redo()

    @Slot()
    def _on_guide(self) -> None:
        self._commands.show_guide(self._page.topic if self._page is not None else "")

    @Slot()
    def _on_recent_about_to_show(self) -> None:
        self._recent.clear()
        for path in self._session.settings.recent():
            self._recent.addAction(path).setData(path)
        if self._recent.isEmpty():
            self._recent.addAction("No recent folders").setEnabled(False)

    @Slot(QAction)
    def _on_page_triggered(self, action: QAction) -> None:
        self.page_requested.emit(action.data())


def _add(menu: QMenu, words: str, command: str = "", icon: str = "", slot: factory.Action | None = None) -> QAction:
    """Add an action to a menu. command: the action has its keys. slot: called when the action is triggered."""
    action = menu.addAction(theme.icon(icon) if icon else QIcon(), words)
    if command:
        keys.bind(action, command)
    if slot is not None:
        action.triggered.connect(slot)
    return action


def _enable(action: QAction, reason_against: str) -> None:
    """Enable an action, or disable the action and show the reason as a tool tip."""
    action.setEnabled(not reason_against)
    action.setToolTip(reason_against)


class NavigationRail(QFrame):
    """A bar of buttons for switching pages. chosen: name of the clicked page."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        for number, (name, tip) in enumerate(_TIPS.items(), 1):
            button = factory.tool_button(name, name.capitalize(), f"{tip} ({{page_{name}}})")
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
        self._buttons[name].setChecked(True)

    def focuses_other(self, name: str) -> bool:
        """Return whether another page's button has the focus."""
        return any(button.hasFocus() for other, button in self._buttons.items() if other != name)

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(PAGES[number - 1])


class Commands(QObject):
    """Executes the menu actions that don't depend on the window's page."""

    open_requested = Signal(object)  # files to open, list of Path
    page_requested = Signal(str)  # name of the page to show

    def __init__(self, window: QWidget, session: Session, theme: Theme) -> None:
        super().__init__(window)
        self._window, self._session, self._theme = window, session, theme

    @Slot()
    def toggle_pause(self) -> None:
        """Pause the training, or resume it."""
        training = self._session.training
        if training.state == "paused":
            training.resume()
        else:
            training.pause()

    @Slot()
    def open_folder(self) -> None:
        path = dialogs.choose_folder(self._window, self._session.settings, "Open a folder of sprites")
        if path is not None:
            self.open_requested.emit([path])

    @Slot()
    def open_files(self) -> None:
        paths = dialogs.choose_files(self._window, self._session.settings, "Open sprites")
        if paths:
            self.open_requested.emit(paths)

    @Slot()
    def verify(self) -> None:
        path = dialogs.choose_file(self._window, self._session.settings, "Verify an exported model or a saved image")
        if path is not None:
            dialogs.VerifyDialog(self._session, path, self._window).open()

    @Slot()
    def watch(self) -> None:
        path = dialogs.choose_folder(self._window, self._session.settings, "Watch run folder")
        if path is not None:
            self._session.watch(path)
            self.page_requested.emit("train")

    @Slot()
    def open_demo(self) -> None:
        self.open_requested.emit([paths.demo_sprites()])

    @Slot(QAction)
    def open_recent(self, action: QAction) -> None:
        self.open_requested.emit([Path(action.data())])

    @Slot()
    def show_settings(self) -> None:
        SettingsDialog(self._session, self._theme, self._window).open()

    @Slot()
    def show_keys(self) -> None:
        settings = SettingsDialog(self._session, self._theme, self._window)
        settings.show_keys()
        settings.open()

    @Slot()
    def check_system(self) -> None:
        from studio.app.check_dialog import CheckDialog  # not at the start of the program

        CheckDialog(self._session.job_queue, self._window).open()

    @Slot(str)
    def show_guide(self, topic: str) -> None:
        """Open the guide at a topic, for example 'train' or 'train#pause'. The topics share a window."""
        from studio.app.guide_window import GuideWindow  # 0.1 s, not at the start of the program

        shown = self._window.findChild(GuideWindow) or GuideWindow(self._window)
        shown.show_topic(topic)
        shown.show()
        shown.raise_()
        shown.activateWindow()

    @Slot()
    def show_runs_folder(self) -> None:
        _open_folder(paths.runs())

    @Slot()
    def show_logs_folder(self) -> None:
        _open_folder(paths.logs())


def _open_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
