"""Ctrl+C, `kill` and a terminal that is closed, seen while Qt waits for events."""

from __future__ import annotations

import signal
import socket
from types import FrameType
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

from studio.core.process import end_signals, let_go_of_lost_terminal


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
        self._before = {number: signal.signal(number, self._handle) for number in end_signals()}
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
        let_go_of_lost_terminal()
        if not self._asked:
            self._asked = True
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.happened.emit()
