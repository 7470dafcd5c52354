"""The menus and their shortcuts: what can be done now, and with which words."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar

from studio.app import theme
from studio.app.rail import PAGES
from studio.app.session import Session

_SCHEMES = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))


class Menus(QObject):
    """Fills a menu bar. The window connects the actions that need a page; the others act on the session themselves.

    page_wanted: a page's name. recent_chosen: a folder. scheme_chosen: 'system', 'light' or 'dark'.
    """

    page_wanted = Signal(str)
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
        self.quit = self._action("Quit", "Ctrl+Q")
        self.undo = self._action("Undo", "Ctrl+Z")
        self.redo = self._action("Redo", "Ctrl+Shift+Z")
        self.start = self._action("Start", "Ctrl+R", "play")
        self.pause = self._action("Pause\tSpace", "", "pause")
        self.stop = self._action("Stop", "Ctrl+.", "stop")
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
        self._fill()
        self.undo.triggered.connect(session.importing.undo)
        self.redo.triggered.connect(session.importing.redo)
        self.stop.triggered.connect(session.training.stop)
        session.importing.imported.connect(self.refresh)
        session.training.state_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Enable what can be done now, and say what it would undo."""
        opened = self._session.importing.opened
        for action, words, choices in ((self.undo, "Undo", opened.past[-1:]), (self.redo, "Redo", opened.future[:1])):
            action.setEnabled(bool(choices))
            action.setText(f"{words}: {choices[0].title}" if choices else words)
        state = self._session.training.state
        self.start.setEnabled(state == "idle")
        self.pause.setEnabled(state in ("training", "starting", "paused"))
        self.pause.setText("Go on\tSpace" if state == "paused" else "Pause\tSpace")
        self.stop.setEnabled(state in ("training", "starting", "paused"))

    def _fill(self) -> None:
        file = self._bar.addMenu("&File")
        file.addActions([self.open_folder, self.open_files])
        file.addMenu(self._recent)
        file.addActions([self.open_demo])
        file.addSeparator()
        file.addActions([self.save, self.export])
        file.addSeparator()
        file.addAction(self.quit)
        self._bar.addMenu("&Edit").addActions([self.undo, self.redo])
        self._bar.addMenu("&Training").addActions([self.start, self.pause, self.stop])
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
        self.page_wanted.emit(action.data())
