"""The application from its first picture to its last."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.garbage import MainThreadCollector
from studio.app.interrupt import Interrupt
from studio.app.notices import UncaughtErrors
from studio.app.session import Session
from studio.app.settings import Settings
from studio.app.window import Window
from studio.core import places

# The name of the desktop entry in assets/desktop: by it desktops know whose windows these are, and with which icon.
DESKTOP_ENTRY = "studio.spritetraining.SpriteTrainingStudio"
_SWITCH_S = 0.0005  # the window's thread waits so long for another each time it needs the interpreter, not 5 ms


class Studio(QObject):
    """Window and session, put together; everything slow begins after the first paint."""

    def __init__(self, app: QApplication, demo: bool = False, paths: Sequence[Path] = ()) -> None:
        super().__init__()
        sys.setswitchinterval(_SWITCH_S)
        app.setApplicationName("Sprite Training Studio")
        app.setDesktopFileName(DESKTOP_ENTRY)
        app.setWindowIcon(QIcon(str(places.assets() / "icons" / "app.ico")))
        settings = Settings()
        self._app = app
        self._demo = demo
        self._paths = [path.absolute() for path in paths]
        self._collector = MainThreadCollector(self)
        self._errors = UncaughtErrors(self)
        self._interrupt = Interrupt(self)
        self.session = Session(settings, self)
        self.window = Window(self.session, theme.apply(app, settings.scheme()))
        self.session.workshop.ready.connect(self._collector.begin)
        self.session.dispatcher.failed.connect(self._collector.begin)  # perhaps there will be no engine
        self.session.importing.progressed.connect(self._collector.spare_the_old)
        self.session.importing.ended.connect(self._settle)
        self._errors.happened.connect(self.window.notices.show_failure)
        self._interrupt.happened.connect(self.window.farewell.insist)
        self.window.painted.connect(self._open)

    def run(self) -> int:
        """Show the window until it is closed."""
        self._errors.install()
        self._interrupt.install()
        self.window.show()
        code = self._app.exec()
        self._interrupt.uninstall()
        self._errors.uninstall()
        self._collector.end()
        if not self.session.close():
            os._exit(code)  # a thread hangs in its device: what is saved is saved, and ending it would abort
        return code

    @Slot()
    def _settle(self) -> None:
        """Half a million sprites bring as many objects; but a network that trains is to go when it is done."""
        self._collector.settle(for_good=not self.session.training.is_busy())

    @Slot()
    def _open(self) -> None:
        self.session.open(demo=self._demo)
        if self._paths:
            self.window.open_paths(self._paths)
        elif self._demo:
            self.window.show_page("train")
