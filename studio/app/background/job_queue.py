"""Submits jobs to the worker threads and delivers their events in the main thread."""

import time
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Literal, TypedDict, TypeVar, Unpack

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background.worker import Job, JobEnded, JobResult, JobState, Worker
from studio.core.events import Event, Events, JobFailed, Notice, Progress

WorkerName = Literal["engine", "files"]
T = TypeVar("T")
Operation = Callable[[], Generator[Event, None, T]] | Callable[[], T]

_DELIVERY_INTERVAL_S = 0.03  # minimum time between deliveries
_MAX_DELIVERY_S = 0.01  # then the window may paint and handle input
_BREAK_MS = 5  # between two parts of a long delivery
_BACKGROUND_DELAY_MS = 100  # a background job holds the interpreter: let the window paint first


class JobOptions(TypedDict, total=False):
    """The optional arguments of `JobQueue.start`."""

    background: bool  # run only while no other job is ready, after a short delay
    urgent: bool  # run before other jobs
    quiet: bool  # the status bar shows other jobs and the training first; by default only for background jobs
    cancellable: bool  # by the user; by default not for background jobs
    kind: str  # the start of a job withdraws the messages of earlier jobs of its kind
    about: str  # the purpose of the job, in a sentence or two


def ignore(_: object) -> None:
    """Ignore an event or a result: the callback of jobs without a receiver."""


class JobQueue(QObject):
    """Runs jobs on two workers: 'engine' for all torch work, 'files' for the rest."""

    jobs_changed = Signal()  # a job started or ended
    progressed = Signal(object, object)  # Job, Progress
    failed = Signal(object)  # JobFailed
    noticed = Signal(object)  # Notice
    withdrawn = Signal(object)  # Notice, the message of an earlier job

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workers: dict[WorkerName, Worker] = {"engine": Worker("engine", self), "files": Worker("files", self)}
        self._running: dict[Job, WorkerName] = {}
        self._messages: list[tuple[Job, Notice]] = []  # shown messages of jobs with a kind
        self._delayed: list[Job] = []  # waiting background jobs
        self._submit_timer = QTimer(self, singleShot=True, interval=_BACKGROUND_DELAY_MS)
        self._submit_timer.timeout.connect(self._submit_delayed)
        self._undelivered: deque[tuple[Job, Event]] = deque()
        self._delivered_at = 0.0
        self._delivery_timer = QTimer(self, singleShot=True)
        self._delivery_timer.timeout.connect(self.deliver)
        for worker in self._workers.values():
            worker.events_waiting.connect(self._deliver_soon)

    def start(
        self, worker: WorkerName, title: str, events: Events | Callable[[], Events], receive: Callable[[Event], None],
        **options: Unpack[JobOptions],
    ) -> Job:  # fmt: skip
        """Submit a job to a worker.

        events: the job's generator, or a function that the worker calls to make the generator. receive: called in the
        main thread with each event of the job, `JobEnded` last.
        """
        generator = _deferred(events) if callable(events) else events
        is_background = options.get("background", False)
        job = Job(title, generator, receive, is_background, options.get("cancellable", not is_background))
        job.is_quiet = options.get("quiet", is_background)
        job.kind, job.about = options.get("kind", ""), options.get("about", "")
        if options.get("urgent", False):
            job.state = JobState.PRIORITIZED
        self._withdraw(job.kind)
        self._running[job] = worker
        if is_background:
            self._delayed.append(job)
            self._submit_timer.start()
        else:
            self._workers[worker].submit(job)
        self.jobs_changed.emit()
        return job

    def run(
        self, worker: WorkerName, title: str, operation: Operation[T], on_success: Callable[[T], None],
        on_event: Callable[[Event], None] = ignore, **options: Unpack[JobOptions],
    ) -> Job:  # fmt: skip
        """Call `operation` on a worker thread, then `on_success` in the main thread with its result.

        operation: returns the result, or a generator that yields events and returns the result. on_event: called in the
        main thread with each event, `JobEnded` last. options: see `JobOptions`.
        """
        receive = partial(_receive, on_success, on_event)
        return self.start(worker, title, _events_of(operation), receive, **options)

    def running(self) -> list[Job]:
        """Return the jobs that have not ended, oldest first."""
        return list(self._running)

    def cancel(self, job: Job) -> None:
        """Close a job's generator after its current event, unless the job has ended."""
        if job in self._running:
            self._set_state(job, JobState.CANCELLED)
            job.is_cancelled = True
            self.jobs_changed.emit()

    def abandon(self, job: Job | None) -> None:
        """Cancel the job and drop its remaining events, `JobEnded` included."""
        if job is not None:
            job.receive = ignore
            self.cancel(job)

    def pause(self, job: Job) -> None:
        """Stop advancing a job after its current event."""
        self._set_state(job, JobState.PAUSING)

    def resume(self, job: Job) -> None:
        self._set_state(job, JobState.READY)

    def prioritize(self, job: Job) -> None:
        """Run this job before all other jobs, and resume a paused job."""
        self._set_state(job, JobState.PRIORITIZED)

    def _set_state(self, job: Job, state: JobState) -> None:
        if job in self._running:
            self._workers[self._running[job]].set_state(job, state)

    def set_wakeup_interval(self, seconds: float) -> None:
        """Set the minimum time between two wake-ups of the main thread by a training's losses."""
        self._workers["engine"].wakeup_interval_s = seconds

    def shut_down(self, wait_ms: int) -> bool:
        """Close all jobs and end both threads. Return False if a thread is still busy after `wait_ms`."""
        for worker in self._workers.values():  # before waiting, so that the second worker starts no job meanwhile
            worker.begin_shut_down()
        ended = all([worker.shut_down(wait_ms) for worker in self._workers.values()])  # noqa: C419 - shut down both
        self._submit_delayed()  # closes them
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
        """Deliver the waiting events to their receivers, with breaks for painting and input."""
        self._delivered_at = time.monotonic()
        is_continued = bool(self._undelivered)
        if not is_continued:  # meanwhile the workers join their events in the mailbox
            for worker in self._workers.values():
                self._undelivered.extend(worker.mailbox.drain())
        while self._undelivered:
            self._dispatch(*self._undelivered.popleft())
            if self._undelivered and time.monotonic() - self._delivered_at > _MAX_DELIVERY_S:
                self._delivery_timer.start(_BREAK_MS)
                return
        if is_continued:
            self._delivery_timer.start(_BREAK_MS)

    def _dispatch(self, job: Job, event: Event) -> None:
        if isinstance(event, JobEnded):
            del self._running[job]
        job.receive(event)
        if isinstance(event, JobEnded):
            if event.outcome == "done":
                self._withdraw(job.kind, except_job=job)
            self.jobs_changed.emit()
        elif job.receive is ignore:
            return
        elif isinstance(event, JobFailed | Notice):
            notice = event if isinstance(event, Notice) else Notice("error", event.title, event.hint)
            if job.kind:  # a later job of this kind withdraws the message when it starts or succeeds
                self._messages.append((job, notice))
            (self.noticed if notice is event else self.failed).emit(event)
        elif isinstance(event, Progress):
            self.progressed.emit(job, event)

    def withdraw(self, prefix: str) -> None:
        """Withdraw the messages of all jobs whose kind starts with `prefix`."""
        for kind in {job.kind for job, _ in self._messages if job.kind.startswith(prefix)}:
            self._withdraw(kind)

    def _withdraw(self, kind: str, except_job: Job | None = None) -> None:
        """Withdraw the messages of all jobs of this kind except `except_job`."""
        for message in [each for each in self._messages if each[0].kind == kind and each[0] is not except_job]:
            self._messages.remove(message)
            self.withdrawn.emit(message[1])


def _deferred(make_events: Callable[[], Events]) -> Events:
    """Call `make_events` on the worker thread, which may import modules, and yield the events."""
    yield from make_events()


def _events_of(operation: Operation[T]) -> Events:
    """Yield the operation's events, then a `JobResult` with the result."""
    result = operation()
    if isinstance(result, Generator):
        result = yield from result
    yield JobResult(result)


def _receive(on_success: Callable[[T], None], on_event: Callable[[Event], None], event: Event) -> None:
    if isinstance(event, JobResult):
        on_success(event.value)
    else:
        on_event(event)
