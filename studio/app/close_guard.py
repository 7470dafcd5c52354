"""Closing the window while a run trains in it: asks, stops and saves the run, and waits for that up to a limit.

A run that other processes train goes on.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QMessageBox, QWidget

from studio.app.state.training.training import CurrentTraining
from studio.core.events import Blocked, Notice

_LONGEST_SAVE_MS = 60_000
_SAVED = "Its work is saved when you leave, and you can resume it next time."
_LOST = "Leaving now loses the progress since the last checkpoint."
_ALL_LOST = "The run has no checkpoint: leaving now loses all of its progress."


class CloseGuard(QObject):
    """ready: the window may close now. stayed: (Notice) it stays open, and why."""

    ready = Signal()
    cancelled = Signal(object)

    def __init__(self, training: CurrentTraining, window: QWidget) -> None:
        super().__init__(window)
        self._training = training
        self._window = window
        self._leaving = False
        self._insists = False  # leaves whatever comes of it
        self._question: QMessageBox | None = None
        self._asked_of: Blocked | None = None  # what the question says
        self._deadline = QTimer(self)
        self._deadline.setSingleShot(True)
        self._deadline.setInterval(_LONGEST_SAVE_MS)
        self._deadline.timeout.connect(self._give_up_waiting)
        training.state_changed.connect(self._look)

    def may_close(self) -> bool:
        """Whether the window can close at once; asks when a run trains in it."""
        if not self._training.runs_in_window():
            return True
        if not self._leaving:
            self._ask()
        return False

    @Slot()
    def force_close(self) -> None:
        """Leave without asking, as `leave` does, but also when saving fails: stderr is told."""
        self._insists = True
        self.leave()

    @Slot()
    def leave(self) -> None:
        """Save what trains; `ready` comes when that is done, `cancelled` when it fails."""
        self._leaving = True
        if self._training.runs_in_window():
            self._training.leave(insists=self._insists)
            self._deadline.start()
        else:
            self.ready.emit()

    def _ask(self) -> None:
        if self._question is None:
            question = QMessageBox(self._window)
            question.setWindowTitle("Leave while training?")
            question.setIcon(QMessageBox.Icon.Question)
            question.setText(f"'{self._training.title}' is not finished.")
            halted = self._asked_of = self._training.halted
            lost = _LOST if self._training.has_checkpoint else _ALL_LOST
            question.setInformativeText(f"{halted.title} {lost}" if halted else _SAVED)
            words = ("Leave without saving", "Stay") if halted else ("Stop and save", "Keep training")
            leave = question.addButton(words[0], QMessageBox.ButtonRole.AcceptRole)
            stay = question.addButton(words[1], QMessageBox.ButtonRole.RejectRole)
            question.setDefaultButton(stay if halted else leave)
            question.setEscapeButton(stay)
            question.accepted.connect(self.force_close if halted else self.leave)
            question.finished.connect(self._forget_question)
            self._question = question
        self._question.open()

    @Slot()
    def _forget_question(self) -> None:
        if self._question is not None:
            self._question.deleteLater()
            self._question = None

    @Slot()
    def _look(self) -> None:
        if self._question is not None and self._asked_of is not self._training.halted:
            self._question.reject()  # what it says of saving holds no longer
            if self._training.runs_in_window():
                self._ask()
        if not self._leaving:
            return
        if self._training.runs_in_window():
            if self._training.halted is not None:
                self._face_halt()
            return
        self._deadline.stop()
        failure = self._training.failure
        if failure is not None and self._insists:
            sys.stderr.write(f"{failure.title} {failure.hint}".strip() + "\n")
        elif failure is not None:
            self._leaving = False
            title = f"The window stays open: '{self._training.title}' ended with an error."
            saved = "The last checkpoint is saved." if self._training.has_checkpoint else "The run has no checkpoint."
            self.cancelled.emit(Notice("warning", title, f"{saved} Close again to leave."))
            return
        self.ready.emit()

    def _face_halt(self) -> None:
        """The run has halted, since it can't be saved for now: leave without saving if asked to, else stay open."""
        if self._insists:
            self.leave()
        else:
            self._leaving = False
            self._deadline.stop()

    @Slot()
    def _give_up_waiting(self) -> None:
        """The device hangs: leave with what the last checkpoint holds."""
        self.ready.emit()
