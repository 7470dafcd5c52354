"""Ctrl+C in the terminal, seen while Qt waits for events."""

from __future__ import annotations

import signal
import socket
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot


class Interrupt(QObject):
    """happened: the user pressed Ctrl+C. A second one ends the process at once."""

    happened = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._wake)
        self._before = (signal.getsignal(signal.SIGINT), -1)

    def install(self) -> None:
        """Take Ctrl+C; Python itself sees it only when it runs, and the socket makes it run."""
        self._before = (signal.signal(signal.SIGINT, self._handle), signal.set_wakeup_fd(self._writing.fileno()))

    def uninstall(self) -> None:
        """Give Ctrl+C back."""
        handler, wakeup = self._before
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, handler)
        self._notifier.setEnabled(False)
        self._reading.close()
        self._writing.close()

    @Slot()
    def _wake(self) -> None:
        self._reading.recv(64)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.happened.emit()
