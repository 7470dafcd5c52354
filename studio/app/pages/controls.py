"""One large Start, which becomes Pause and Stop."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from studio.app import parts, theme
from studio.app.training import Training

_START = "Start training with these settings. (Ctrl+R)"
_PAUSE = "Hold the training; the model stays ready to be used. (Space)"
_GO_ON = "Go on with the training. (Space)"
_STOP = "End the training and keep its work; it can be resumed later. (Ctrl+.)"


class Controls(QWidget):
    """start_wanted: the user pressed Start, which was possible."""

    start_wanted = Signal()

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training
        self._problem = ""
        self.start = parts.button("Start", _START, "play", "primary")
        self.pause = parts.button("Pause", _PAUSE, "pause", "primary")
        self.stop = parts.button("Stop", _STOP, "stop")
        self.stop.setMinimumHeight(40)
        self._reason = parts.text("", "muted")
        self._buttons = QStackedWidget()
        self._buttons.addWidget(parts.panel(parts.row(self.start)))
        running = parts.row(self.pause, self.stop)
        running.setStretch(0, 2)
        running.setStretch(1, 1)
        self._buttons.addWidget(parts.panel(running))
        self._buttons.setMaximumHeight(48)
        self.setLayout(parts.column(self._reason, self._buttons))
        self.start.clicked.connect(self.start_wanted)
        self.pause.clicked.connect(self._pause_or_go_on)
        self.stop.clicked.connect(training.stop)
        training.state_changed.connect(self.refresh)
        self.refresh()

    def set_problem(self, problem: str) -> None:
        """Say why Start is not possible; empty when it is."""
        self._problem = problem
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the buttons that fit the state."""
        state = self._training.state
        self._buttons.setCurrentIndex(0 if state == "idle" else 1)
        parts.enable(self.start, self._problem, _START)
        self._reason.setText(self._problem if state == "idle" else "")
        self._reason.setVisible(bool(self._reason.text()))
        paused = state == "paused"
        parts.relabel(self.pause, "Go on" if paused else "Pause")
        self.pause.setIcon(theme.icon("play" if paused else "pause", "on_accent"))
        saving = "The run is being saved." if state == "stopping" else ""
        parts.enable(self.pause, saving, _GO_ON if paused else _PAUSE)
        parts.enable(self.stop, saving, _STOP)
        parts.relabel(self.stop, "Saving…" if saving else "Stop")

    @Slot()
    def _pause_or_go_on(self) -> None:
        if self._training.state == "paused":
            self._training.resume()
        else:
            self._training.pause()
