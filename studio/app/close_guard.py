"""Closes the window while a run trains in it: asks the user, then stops and saves the run, up to a timeout."""

import sys

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QMessageBox, QWidget

from studio.app.state.training.training import CurrentTraining
from studio.core.events import Blocked, Notice

_SAVE_TIMEOUT_MS = 60_000
_SAVED = "Save the run and close the window? You can resume the run later."
_LOST = "Closing now loses the progress since the last checkpoint."
_ALL_LOST = "The run has no checkpoint. Closing now loses all progress."


class CloseGuard(QObject):
    """Decides when the window may close."""

    ready = Signal()  # close now
    cancelled = Signal(object)  # Notice, the window stays open

    def __init__(self, training: CurrentTraining, window: QWidget) -> None:
        super().__init__(window)
        self._training, self._window = training, window
        self._is_closing = False
        self._forces = False  # closes even if saving fails
        self._question: QMessageBox | None = None
        self._question_blocked: Blocked | None = None  # the reason that the question names
        self._deadline = QTimer(self, singleShot=True, interval=_SAVE_TIMEOUT_MS)
        self._deadline.timeout.connect(self.ready)  # only the last checkpoint remains, for instance of a hanging device
        training.state_changed.connect(self._on_training_changed)

    def may_close(self) -> bool:
        """Return whether the window can close now: not while a run trains in this window.

        In that case, asks the user whether to stop the training; the window closes after the answer.
        """
        if not self._training.runs_in_window():
            return True
        if not self._is_closing:
            self._ask()
        return False

    @Slot()
    def force_close(self) -> None:
        """Save the run and close without asking, even if saving fails; write the error to stderr."""
        self._forces = True
        self.close_after_saving()

    @Slot()
    def close_after_saving(self) -> None:
        """Stop and save the run, then emit `ready`; emit `cancelled` if saving fails."""
        self._is_closing = True
        if self._training.runs_in_window():
            self._training.stop_for_close(force=self._forces)
            self._deadline.start()
        else:
            self.ready.emit()

    def _ask(self) -> None:
        if self._question is None:
            title, text = "Close while training?", f"'{self._training.title}' is not finished."
            question = QMessageBox(QMessageBox.Icon.Question, title, text, parent=self._window)
            blocked = self._question_blocked = self._training.blocked
            lost = _LOST if self._training.has_checkpoint else _ALL_LOST
            question.setInformativeText(f"{blocked.title} {lost}" if blocked else _SAVED)
            texts = ("Close without saving", "Cancel") if blocked else ("Save and close", "Keep training")
            leave = question.addButton(texts[0], QMessageBox.ButtonRole.AcceptRole)
            stay = question.addButton(texts[1], QMessageBox.ButtonRole.RejectRole)
            question.setDefaultButton(stay if blocked else leave)
            question.setEscapeButton(stay)
            question.accepted.connect(self.force_close if blocked else self.close_after_saving)
            question.finished.connect(self._on_question_closed)
            self._question = question
        self._question.open()

    @Slot()
    def _on_question_closed(self) -> None:
        if self._question is not None:
            self._question.deleteLater()
            self._question = None

    @Slot()
    def _on_training_changed(self) -> None:
        if self._question is not None and self._question_blocked is not self._training.blocked:
            self._question.reject()  # the reason in its text is outdated
            if self._training.runs_in_window():
                self._ask()
        if not self._is_closing:
            return
        if self._training.runs_in_window():
            if self._training.blocked is not None and self._forces:
                self.close_after_saving()  # without saving
            elif self._training.blocked is not None:
                self._is_closing = False
                self._deadline.stop()
            return
        self._deadline.stop()
        failure = self._training.failure
        if failure is not None and self._forces:
            sys.stderr.write(f"{failure.title} {failure.hint}".strip() + "\n")
        elif failure is not None:
            self._is_closing = False
            title = f"'{self._training.title}' ended with an error."
            saved = "The last checkpoint is saved." if self._training.has_checkpoint else "The run has no checkpoint."
            self.cancelled.emit(Notice("warning", title, f"{saved} Close again to quit."))
            return
        self.ready.emit()
