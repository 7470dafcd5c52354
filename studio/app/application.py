"""The application: session, window, operating system signals, uncaught errors and garbage collection."""

import gc
import logging
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
from studio.data.demo import DemoKind

_log = logging.getLogger(__name__)

# The name of the desktop entry in assets/desktop; desktops use it to find the name and the icon of the window.
DESKTOP_ENTRY = "studio.spritetraining.SpriteTrainingStudio"
_SWITCH_S = 0.0005  # interpreter switch interval; with 5 ms the window would wait noticeably for workers
_COLLECT_MS = 50  # with a longer interval, collecting a large young generation would be noticeable


class Studio(QObject):
    """The application: creates the session and the window. Slow work starts after the first paint."""

    def __init__(self, app: QApplication, demo: DemoKind | None = None, sprites: Sequence[Path] = ()) -> None:
        super().__init__()
        sys.setswitchinterval(_SWITCH_S)
        app.setApplicationName("Sprite Training Studio")
        app.setDesktopFileName(DESKTOP_ENTRY)
        app.setWindowIcon(QIcon(str(paths.assets() / "icons" / "app.ico")))
        settings = Settings()
        self._app, self._demo, self._sprites = app, demo, [path.absolute() for path in sprites]
        self._collector = MainThreadCollector(self)
        self._errors = UncaughtErrors(self)
        self._interrupt = Interrupt(self)
        self.session = Session(settings, self)
        self.window = Window(self.session, theme.apply(app, settings.scheme()))
        self._notifier, self._sleep_inhibitor = system_notifier(self), SleepInhibitor(self.session.training, self)
        self.announcer = RunAnnouncer(self.session.training, settings, self.window, self._notifier)
        self.session.queue.emptied.connect(self.announcer.on_queue_emptied)
        self.session.catalog.ready.connect(self._collector.begin)
        self.session.job_queue.failed.connect(self._collector.begin)  # torch may have failed to load
        self.session.open_sprites.progressed.connect(self._collector.skip_oldest)
        self.session.open_sprites.ended.connect(self._on_import_ended)
        self._errors.happened.connect(self.window.notices.show_failure)
        self._interrupt.happened.connect(self.window.close_guard.force_close)
        self.window.painted.connect(self._on_painted)

    def run(self) -> int:
        """Show the window, run the event loop and return the exit code."""
        self._errors.install()
        self._interrupt.install()
        self.window.show()
        code = self._app.exec()
        self._interrupt.uninstall()
        self._errors.uninstall()
        self._collector.end()
        self._notifier.close()
        self._sleep_inhibitor.release()
        if not self.session.close():
            os._exit(code)  # a thread hangs in its device, and a normal exit would abort
        return code

    @Slot()
    def _on_import_ended(self) -> None:
        """Exclude the imported objects (up to half a million) from garbage collection, unless a run is open."""
        self._collector.stop_skipping(freeze=not self.session.training.is_busy())

    @Slot()
    def _on_painted(self) -> None:
        self.session.open(demo=self._demo)
        if self._sprites:
            self.window.open_paths(self._sprites)
        elif self._demo:
            self.window.show_page("train")


class MainThreadCollector(QObject):
    """Replaces Python's automatic garbage collection by a timer on the main thread, with the same thresholds."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=_COLLECT_MS)
        self._timer.timeout.connect(self.collect_due)
        self._oldest = 2  # generation to collect

    @Slot()
    def begin(self) -> None:
        """Start the timer and exclude existing objects from collection: torch's modules alone would take 30 ms."""
        if not self._timer.isActive():
            gc.freeze()
            self._timer.start()

    @Slot()
    def skip_oldest(self) -> None:
        """Collect only the young generations during an import, because the many new objects stay alive."""
        self._oldest = 1

    def stop_skipping(self, *, freeze: bool) -> None:
        """Resume collecting the oldest generation. freeze: exclude all objects that exist now from collection."""
        self._oldest = 2
        if freeze and self._timer.isActive():
            gc.freeze()

    def end(self) -> None:
        """Stop the timer and include the excluded objects in collection again, which frees them at exit."""
        self._timer.stop()
        gc.unfreeze()

    @Slot()
    def collect_due(self) -> None:
        """Collect garbage up to the oldest generation whose count exceeds the threshold, if any."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        due = [number for number in range(self._oldest + 1) if counts[number] > thresholds[number]]
        if due:
            gc.collect(due[-1])


class Interrupt(QObject):
    """Emits the Qt signal `happened` when an operating system signal, such as Ctrl+C, asks the process to quit.

    A second Ctrl+C ends the process immediately. Other repeated signals are ignored, because shells, `make` and a
    system shutdown send several.
    """

    happened = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_socket_readable)
        self._was_requested = False
        self._before: dict[int, Any] = {}  # earlier handlers by signal number
        self._wakeup_before = -1

    def install(self) -> None:
        """Install the signal handlers. A socket wakes the Qt event loop, so that Python can run the handlers."""
        self._before = {number: signal.signal(number, self._handle) for number in termination_signals()}
        self._wakeup_before = signal.set_wakeup_fd(self._writing.fileno())

    def uninstall(self) -> None:
        """Restore the previous signal handlers."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        self._reading.close()
        self._writing.close()

    @Slot()
    def _on_socket_readable(self) -> None:
        self._reading.recv(64)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        detach_lost_terminal()
        if not self._was_requested:
            self._was_requested = True
            _log.info("%s asks the window to close.", signal.Signals(number).name)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.happened.emit()
