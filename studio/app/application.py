"""The application: session and window, signals of the system, uncaught errors, garbage collection."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.desktop import RunAnnouncer, SleepInhibitor, system_notifier
from studio.app.notifications import UncaughtErrors
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.window import Window
from studio.core import paths
from studio.core.process import detach_lost_terminal, termination_signals

# The name of the desktop entry in assets/desktop: by it desktops know whose windows these are, and with which icon.
DESKTOP_ENTRY = "studio.spritetraining.SpriteTrainingStudio"
_SWITCH_S = 0.0005  # the window's thread waits so long for another each time it needs the interpreter, not 5 ms
_COLLECT_MS = 50  # more seldom, and a young generation has become so large that walking it is felt


class Studio(QObject):
    """Window and session, put together; everything slow begins after the first paint."""

    def __init__(self, app: QApplication, demo: bool = False, sprites: Sequence[Path] = ()) -> None:
        super().__init__()
        sys.setswitchinterval(_SWITCH_S)
        app.setApplicationName("Sprite Training Studio")
        app.setDesktopFileName(DESKTOP_ENTRY)
        app.setWindowIcon(QIcon(str(paths.assets() / "icons" / "app.ico")))
        settings = Settings()
        self._app = app
        self._demo = demo
        self._sprites = [path.absolute() for path in sprites]
        self._collector = MainThreadCollector(self)
        self._errors = UncaughtErrors(self)
        self._interrupt = Interrupt(self)
        self.session = Session(settings, self)
        self.window = Window(self.session, theme.apply(app, settings.scheme()))
        self._notifier, self._wakefulness = system_notifier(self), SleepInhibitor(self.session.training, self)
        self.announcer = RunAnnouncer(self.session.training, settings, self.window, self._notifier)
        self.session.queue.emptied.connect(self.announcer.on_queue_emptied)
        self.session.catalog.ready.connect(self._collector.begin)
        self.session.job_queue.failed.connect(self._collector.begin)  # perhaps there will be no engine
        self.session.open_sprites.progressed.connect(self._collector.skip_oldest)
        self.session.open_sprites.ended.connect(self._settle)
        self._errors.happened.connect(self.window.notices.show_failure)
        self._interrupt.happened.connect(self.window.close_guard.force_close)
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
        self._notifier.close()
        self._wakefulness.end()
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
        if self._sprites:
            self.window.open_paths(self._sprites)
        elif self._demo:
            self.window.show_page("train")


class MainThreadCollector(QObject):
    """Switches automatic collection off and, once begun, collects by the same thresholds, from a timer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.setInterval(_COLLECT_MS)
        self._timer.timeout.connect(self.collect_due)
        self._oldest = 2  # generation to be walked

    @Slot()
    def begin(self) -> None:
        """Collect from now on, but never what is there already: torch's modules alone take 30 ms to walk."""
        if not self._timer.isActive():
            gc.freeze()
            self._timer.start()

    @Slot()
    def skip_oldest(self) -> None:
        """Much is coming that stays: leave the oldest generation alone, walking which takes ever longer."""
        self._oldest = 1

    def settle(self, *, for_good: bool) -> None:
        """What was coming is there. for_good: it is never walked, nor anything else that there is by now."""
        self._oldest = 2
        if for_good and self._timer.isActive():
            gc.freeze()

    def end(self) -> None:
        """Collect no more; what was left out is freed in order when the program ends."""
        self._timer.stop()
        gc.unfreeze()

    @Slot()
    def collect_due(self) -> None:
        """Collect the oldest generation whose threshold is passed."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in range(self._oldest, -1, -1):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return


class Interrupt(QObject):
    """happened: a signal has asked the studio to end. Ctrl+C after that ends the process at once.

    Other signals change nothing then: shells, `make` and systems that shut down repeat what they ask for.
    """

    happened = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._wake)
        self._asked = False
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1

    def install(self) -> None:
        """Take the signals; Python itself sees them only when it runs, and the socket makes it run."""
        self._before = {number: signal.signal(number, self._handle) for number in termination_signals()}
        self._wakeup_before = signal.set_wakeup_fd(self._writing.fileno())

    def uninstall(self) -> None:
        """Give the signals back."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        self._reading.close()
        self._writing.close()

    @Slot()
    def _wake(self) -> None:
        self._reading.recv(64)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        detach_lost_terminal()
        if not self._asked:
            self._asked = True
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.happened.emit()
