"""A program that the user edits and runs in the window."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_queue import JobQueue, ignore
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import code_child, learning
from studio.core.events import Event, Events


class CodeRun(QObject):
    """Runs a program in a child process, collects its output, and holds the user's edited code."""

    changed = Signal()  # the program started, printed or ended

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self._receive: Callable[[Event], None] = ignore  # receives each event of the running job
        self.code: str | None = None  # the edited code; None without edits
        self.output = ""
        self.is_loading = False  # whether the process still loads PyTorch
        self.is_cancelled = False
        self.done: code_child.CodeDone | None = None  # the end of the last program

    def is_running(self) -> bool:
        return self._job is not None

    def run(self, code: str) -> None:
        """Run code in a child process with a time limit."""
        self.start(lambda: learning.run_code(code))

    def start(self, events: Callable[[], Events], receive: Callable[[Event], None] = ignore) -> None:
        """Start a program, unless one is running. events: makes the generator of `learn.running`."""
        if self._job is None:
            self.output, self.is_loading, self.is_cancelled, self.done = "", True, False, None
            self._receive = receive
            self._job = self._job_queue.start("files", "Your program", events, self._on_event)
            self.changed.emit()

    @Slot()
    def stop(self) -> None:
        if self._job is not None:
            self.is_cancelled = True
            self._job_queue.cancel(self._job)

    def clear(self) -> None:
        """Stop the program, and forget its output and the edited code."""
        self._job_queue.abandon(self._job)
        self._job, self.code, self.output, self.done, self.is_cancelled = None, None, "", None, False
        self.changed.emit()

    def _on_event(self, event: Event) -> None:
        self._receive(event)
        if isinstance(event, JobEnded):
            self._job = None
        elif isinstance(event, code_child.CodePrinted):
            self.output += event.text
        elif isinstance(event, code_child.CodeDone):
            self.done = event
        elif isinstance(event, code_child.CodeStarted) and event.is_running == self.is_loading:
            self.is_loading = not event.is_running
        else:
            return
        self.changed.emit()
