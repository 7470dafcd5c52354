"""Where jobs are handed out and where what they say arrives, in the main thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background.worker import Job, JobEnded, Worker
from studio.core.events import Event, Events, JobFailed, Notice, Progress

Place = Literal["engine", "files"]

_SHORTEST_BETWEEN_MAILS_S = 0.03
_LONGEST_STRETCH_S = 0.01  # of handing out, before the window may draw and answer
_BREATH_MS = 5  # for that
_MOMENT_MS = 100  # for the window to show what brings a background job about, before the job takes the interpreter


class JobQueue(QObject):
    """Two workers, 'engine' for all that is torch and 'files' for the rest, and the one road back from them.

    jobs_changed: a job began or ended. progressed: (Job, Progress). failed: (JobFailed). noticed: (Notice).
    """

    jobs_changed = Signal()
    progressed = Signal(object, object)
    failed = Signal(object)
    noticed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workers: dict[Place, Worker] = {"engine": Worker("engine", self), "files": Worker("files", self)}
        self._running: dict[Job, Place] = {}
        self._waiting: list[Job] = []  # background jobs that no worker has been given yet
        self._moment = QTimer(self)
        self._moment.setSingleShot(True)
        self._moment.setInterval(_MOMENT_MS)
        self._moment.timeout.connect(self._submit_waiting)
        self._mail: deque[tuple[Job, Event]] = deque()
        self._taken_at = 0.0
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.timeout.connect(self.deliver)
        for worker in self._workers.values():
            worker.mail.connect(self._collect)

    def start(
        self, place: Place, title: str, events: Events, receive: Callable[[Event], None], *, background: bool = False
    ) -> Job:
        """Hand a job to a worker, in the background after a moment.

        `receive` gets its events in the main thread, `JobEnded` last.
        """
        job = Job(title, events, receive, background)
        self._running[job] = place
        if background:
            self._waiting.append(job)
            self._moment.start()
        else:
            self._workers[place].submit(job)
        self.jobs_changed.emit()
        return job

    def running(self) -> list[Job]:
        """The jobs that have not ended, the oldest first."""
        return list(self._running)

    def cancel(self, job: Job) -> None:
        """End a job after the event it is working on; nothing happens when it has ended."""
        if job in self._running:
            self._workers[self._running[job]].cancel(job)

    def give_up(self, job: Job | None) -> None:
        """End a job that nobody waits for any more: nothing that it still says is received, not even its end."""
        if job is not None:
            job.receive = _ignore
            self.cancel(job)

    def pause(self, job: Job) -> None:
        """Stop advancing a job."""
        if job in self._running:
            self._workers[self._running[job]].pause(job)

    def resume(self, job: Job) -> None:
        """Go on with a paused job."""
        if job in self._running:
            self._workers[self._running[job]].resume(job)

    def prioritize(self, job: Job) -> None:
        """Go on with a job before all others, paused or not."""
        if job in self._running:
            self._workers[self._running[job]].prioritize(job)

    def set_quiet_interval(self, seconds: float) -> None:
        """How often losses may wake the window: each time slows a training on the same cores."""
        self._workers["engine"].quiet_interval_s = seconds

    def shut_down(self, wait_ms: int) -> bool:
        """Close all jobs and end both threads. False when one is still busy after the wait."""
        ended = all([worker.shut_down(wait_ms) for worker in self._workers.values()])  # noqa: C419 - both, always
        self._submit_waiting()  # to be closed
        return ended

    @Slot()
    def _submit_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            self._workers[self._running[job]].submit(job)

    @Slot()
    def _collect(self) -> None:
        remaining_s = self._taken_at + _SHORTEST_BETWEEN_MAILS_S - time.monotonic()
        if remaining_s <= 0:
            self.deliver()
        elif not self._delay.isActive():
            self._delay.start(int(1000 * remaining_s) + 1)

    @Slot()
    def deliver(self) -> None:
        """Hand out the mail that there is, what takes long in several goes."""
        self._taken_at = time.monotonic()
        is_left_over = bool(self._mail)
        if not is_left_over:  # else the workers go on joining what they say, and wait where there is no room for it
            for worker in self._workers.values():
                self._mail.extend(worker.take())
        while self._mail:
            self._hand_out(*self._mail.popleft())
            if self._mail and time.monotonic() - self._taken_at > _LONGEST_STRETCH_S:
                self._delay.start(_BREATH_MS)
                return
        if is_left_over:
            self._delay.start(_BREATH_MS)

    def _hand_out(self, job: Job, event: Event) -> None:
        if isinstance(event, JobEnded):
            del self._running[job]
        job.receive(event)
        if isinstance(event, JobEnded):
            self.jobs_changed.emit()
        elif job.receive is _ignore:
            return
        elif isinstance(event, JobFailed):
            self.failed.emit(event)
        elif isinstance(event, Notice):
            self.noticed.emit(event)
        elif isinstance(event, Progress):
            self.progressed.emit(job, event)


def _ignore(event: Event) -> None:
    """Receive what is of no interest."""
