"""The queue of jobs: it hands them to the workers and their events to whoever started them, in the main thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Literal, TypedDict, TypeVar, Unpack

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background.worker import Job, JobEnded, JobResult, Worker
from studio.core.events import Event, Events, JobFailed, Notice, Progress

WorkerName = Literal["engine", "files"]
T = TypeVar("T")
Operation = Callable[[], Generator[Event, None, T]] | Callable[[], T]

_DELIVERY_INTERVAL_S = 0.03  # the least
_LONGEST_DELIVERY_S = 0.01  # at a stretch, before the window may draw and answer
_BREAK_MS = 5  # for that
_BACKGROUND_DELAY_MS = 100  # the window first shows what made a background job start; the job holds the interpreter


class JobOptions(TypedDict, total=False):
    """The optional arguments of `JobQueue.start`."""

    background: bool
    cancellable: bool | None
    kind: str
    about: str


def ignore(_: object) -> None:
    """Do nothing with an event or a result."""


class JobQueue(QObject):
    """Two workers, 'engine' for everything that uses torch and 'files' for the rest.

    jobs_changed: a job began or ended. progressed: (Job, Progress). failed: (JobFailed). noticed: (Notice).
    withdrawn: (Notice) remove this message of an earlier job: its cause is gone.
    """

    jobs_changed = Signal()
    progressed = Signal(object, object)
    failed = Signal(object)
    noticed = Signal(object)
    withdrawn = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workers: dict[WorkerName, Worker] = {"engine": Worker("engine", self), "files": Worker("files", self)}
        self._running: dict[Job, WorkerName] = {}
        self._messages: list[tuple[Job, Notice]] = []  # on show, of jobs with a kind
        self._delayed: list[Job] = []  # background jobs, not submitted yet
        self._submit_timer = QTimer(self)
        self._submit_timer.setSingleShot(True)
        self._submit_timer.setInterval(_BACKGROUND_DELAY_MS)
        self._submit_timer.timeout.connect(self._submit_delayed)
        self._undelivered: deque[tuple[Job, Event]] = deque()
        self._delivered_at = 0.0
        self._delivery_timer = QTimer(self)
        self._delivery_timer.setSingleShot(True)
        self._delivery_timer.timeout.connect(self.deliver)
        for worker in self._workers.values():
            worker.events_waiting.connect(self._deliver_soon)

    def start(
        self,
        worker: WorkerName,
        title: str,
        events: Events | Callable[[], Events],
        receive: Callable[[Event], None],
        *,
        background: bool = False,
        cancellable: bool | None = None,
        kind: str = "",
        about: str = "",
    ) -> Job:
        """Submit a job to a worker; a background job is submitted after a short delay.

        events: the job's generator, or a function that the worker calls to make the generator. receive: called in the
        main thread with each event of the job, `JobEnded` last. cancellable: whether the user can cancel the job; by
        default background jobs can't be cancelled. kind: the start of a job withdraws the messages of earlier jobs of
        the same kind. about: the purpose of the job, in a sentence or two.
        """
        self._withdraw(kind)
        cancellable = not background if cancellable is None else cancellable
        generator = _deferred(events) if callable(events) else events
        job = Job(title, generator, receive, background, cancellable, kind, about)
        self._running[job] = worker
        if background:
            self._delayed.append(job)
            self._submit_timer.start()
        else:
            self._workers[worker].submit(job)
        self.jobs_changed.emit()
        return job

    def run(
        self,
        worker: WorkerName,
        title: str,
        operation: Operation[T],
        on_success: Callable[[T], None],
        on_event: Callable[[Event], None] = ignore,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Call `operation` on a worker thread, then `on_success` in the main thread with its result.

        operation: returns the result, or a generator that yields events and returns the result. on_event: called in the
        main thread with each of these events, `JobEnded` last. options: as in `start`.
        """
        receive = partial(_receive, on_success, on_event)
        return self.start(worker, title, _events_of(operation), receive, **options)

    def running(self) -> list[Job]:
        """The jobs that have not ended, the oldest first."""
        return list(self._running)

    def cancel(self, job: Job) -> None:
        """Close a job's generator after its current event; nothing happens when it has ended."""
        if job in self._running:
            self._workers[self._running[job]].cancel(job)
            job.is_cancelled = True
            self.jobs_changed.emit()

    def abandon(self, job: Job | None) -> None:
        """Cancel the job and drop its remaining events, `JobEnded` included."""
        if job is not None:
            job.receive = ignore
            self.cancel(job)

    def pause(self, job: Job) -> None:
        """Stop advancing a job after its current event."""
        if job in self._running:
            self._workers[self._running[job]].pause(job)

    def resume(self, job: Job) -> None:
        """Advance a paused job again."""
        if job in self._running:
            self._workers[self._running[job]].resume(job)

    def prioritize(self, job: Job) -> None:
        """Advance a job before all others, paused or not."""
        if job in self._running:
            self._workers[self._running[job]].prioritize(job)

    def set_wakeup_interval(self, seconds: float) -> None:
        """The least time between two wakings of the window for losses: each slows a training on the same cores."""
        self._workers["engine"].wakeup_interval_s = seconds

    def shut_down(self, wait_ms: int) -> bool:
        """Close all jobs and end both threads. False when one is still busy after the wait."""
        for worker in self._workers.values():  # first, or else the second worker starts jobs while the first is awaited
            worker.begin_shut_down()
        ended = all([worker.shut_down(wait_ms) for worker in self._workers.values()])  # noqa: C419 - both, always
        self._submit_delayed()  # to be closed
        return ended

    @Slot()
    def _submit_delayed(self) -> None:
        delayed, self._delayed = self._delayed, []
        for job in delayed:
            self._workers[self._running[job]].submit(job)

    @Slot()
    def _deliver_soon(self) -> None:
        remaining_s = self._delivered_at + _DELIVERY_INTERVAL_S - time.monotonic()
        if remaining_s <= 0:
            self.deliver()
        elif not self._delivery_timer.isActive():
            self._delivery_timer.start(int(1000 * remaining_s) + 1)

    @Slot()
    def deliver(self) -> None:
        """Hand the waiting events to their receivers, with breaks where that takes long."""
        self._delivered_at = time.monotonic()
        is_rest = bool(self._undelivered)
        if not is_rest:  # else the workers go on joining their events, and wait while a mailbox is full
            for worker in self._workers.values():
                self._undelivered.extend(worker.take())
        while self._undelivered:
            self._hand_over(*self._undelivered.popleft())
            if self._undelivered and time.monotonic() - self._delivered_at > _LONGEST_DELIVERY_S:
                self._delivery_timer.start(_BREAK_MS)
                return
        if is_rest:
            self._delivery_timer.start(_BREAK_MS)

    def _hand_over(self, job: Job, event: Event) -> None:
        if isinstance(event, JobEnded):
            del self._running[job]
        job.receive(event)
        if isinstance(event, JobEnded):
            if event.outcome == "done":
                self._withdraw(job.kind, except_of=job)
            self.jobs_changed.emit()
        elif job.receive is ignore:
            return
        elif isinstance(event, JobFailed):
            self._remember(job, Notice("error", event.title, event.hint))
            self.failed.emit(event)
        elif isinstance(event, Notice):
            self._remember(job, event)
            self.noticed.emit(event)
        elif isinstance(event, Progress):
            self.progressed.emit(job, event)

    def _remember(self, job: Job, notice: Notice) -> None:
        """Remember the message of a job until a later job of the same kind starts or succeeds."""
        if job.kind:
            self._messages.append((job, notice))

    def withdraw(self, prefix: str) -> None:
        """Withdraw the messages of all jobs whose kind starts with `prefix`."""
        for kind in {job.kind for job, _ in self._messages if job.kind.startswith(prefix)}:
            self._withdraw(kind)

    def _withdraw(self, kind: str, except_of: Job | None = None) -> None:
        """Withdraw the messages of all jobs of a kind, except the messages of the job `except_of`."""
        for message in [each for each in self._messages if each[0].kind == kind and each[0] is not except_of]:
            self._messages.remove(message)
            self.withdrawn.emit(message[1])


def _deferred(make_events: Callable[[], Events]) -> Events:
    """Make the generator on the worker thread, where its module may be imported."""
    yield from make_events()


def _events_of(operation: Operation[T]) -> Events:
    """Yield the events of an operation, then its result as a `JobResult`."""
    result = operation()
    if isinstance(result, Generator):
        result = yield from result
    yield JobResult(result)


def _receive(on_success: Callable[[T], None], on_event: Callable[[Event], None], event: Event) -> None:
    if isinstance(event, JobResult):
        on_success(event.value)
    else:
        on_event(event)
