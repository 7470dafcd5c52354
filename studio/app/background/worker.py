"""The worker thread, which advances jobs (generators of events), and its mailbox to the main thread."""

from __future__ import annotations

import enum
import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from PySide6.QtCore import QObject, QThread, Signal

from studio.core import formatting, logs
from studio.core.errors import StudioError
from studio.core.events import Blocked, Event, Events, JobFailed, LossChunk, Progress
from studio.core.process import HeapTrimmer

Outcome = Literal["done", "failed", "cancelled"]

_log = logging.getLogger(__name__)
_STACK_BYTES = 64 << 20  # macOS gives a thread 512 KB, too little for torch
_MERGE_AT = 64  # join this number of `LossChunk`s
_CAPACITY = 2000  # maximum number of mailbox entries
_outliving: list[Worker] = []  # workers with a busy thread after the timeout of `shut_down`
_PUT_TIMEOUT_S = 0.5  # for a full mailbox: the main thread may be waiting for the worker


@dataclass(frozen=True)
class JobPaused(Event):
    """The worker has paused the job. The earlier events of the job were delivered."""


@dataclass(frozen=True)
class JobIdle(Event):
    """The job has nothing to do: the worker pauses it until `resume` or `prioritize`."""


@dataclass(frozen=True, eq=False)
class JobResult(Event):
    """The return value of an operation that `JobQueue.run` has called."""

    value: Any


@dataclass(frozen=True)
class JobEnded(Event):
    """The last event of every job."""

    outcome: Outcome


class JobState(enum.Enum):
    """State of a job in the worker's list."""

    READY = enum.auto()
    PRIORITIZED = enum.auto()  # runs before other ready jobs
    PAUSING = enum.auto()  # pause requested, `JobPaused` not sent yet
    PAUSED = enum.auto()
    CANCELLED = enum.auto()


@dataclass(eq=False)
class Job:
    """A generator of events, advanced by a worker. The main thread calls `receive` with each event.

    A background job runs only while no other job is ready. The worker owns `state`, the job queue owns `receive` and
    `is_cancelled`.
    """

    title: str
    events: Events
    receive: Callable[[Event], None]
    background: bool = False
    cancellable: bool = True  # whether the user can cancel it
    is_quiet: bool = False  # the status bar shows other jobs and the training first
    kind: str = ""  # the job's start removes earlier messages of this kind
    about: str = ""  # a longer explanation than the title
    is_cancelled: bool = False  # the worker closes the generator after the current event
    state: JobState = JobState.READY
    wakeups: int = 0  # how often the job was resumed or prioritized


class Worker(QThread):
    """A thread that advances its jobs one event at a time; background jobs only while no other job is ready."""

    events_waiting = Signal()  # in the mailbox; emitted once until it is drained

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setStackSize(_STACK_BYTES)
        self.wakeup_interval_s = 0.1  # minimum time between signals for losses and progress of background jobs
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._closing = False
        self.mailbox = Mailbox()
        self._announced_at = 0.0
        self._heap = HeapTrimmer()

    def submit(self, job: Job) -> None:
        """Append a job to the thread's jobs. After `begin_shut_down`, close the job immediately."""
        with self._changed:
            if self._closing:
                job.events.close()
                return
            self._jobs.append(job)
            self._changed.notify()
        _log.info("%s: %s", self.objectName(), job.title)
        if not self.isRunning():
            self.start()

    def set_state(self, job: Job, state: JobState) -> None:
        """Change a job's state and wake the thread. A cancelled job stays cancelled, a paused job can't pause again.

        PAUSING: the job's `JobPaused` follows its current event. CANCELLED: close the generator after that event.
        """
        with self._changed:
            job.wakeups += state in (JobState.READY, JobState.PRIORITIZED)
            if job.state is JobState.CANCELLED or (job.state, state) == (JobState.PAUSED, JobState.PAUSING):
                return
            job.state = state
            self._changed.notify()

    def begin_shut_down(self) -> None:
        """Let the thread close all jobs and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def shut_down(self, wait_ms: int) -> bool:
        """Close all jobs, end the thread and return True; return False if the thread is still busy after `wait_ms`.

        A busy worker leaves its parent and stays in memory: Qt aborts the process if a running thread is deleted.
        """
        self.begin_shut_down()
        has_ended = self.wait(wait_ms)
        if not has_ended:
            self.setParent(None)
            _outliving.append(self)
        return has_ended

    def run(self) -> None:
        """Advance the most urgent job by one event, again and again: the loop of the thread."""
        while (job := self._next()) is not None:
            if self._closing or job.state is JobState.CANCELLED:
                self._end(job, "cancelled")
            elif self._pause_if_requested(job):
                self._post(job, JobPaused())
            else:
                self._advance(job)

    def _pause_unless_woken(self, job: Job, wakeups: int) -> None:
        """Pause a blocked or idle job. wakeups: value of `job.wakeups`; if the value has changed, do nothing."""
        with self._changed:
            if job.wakeups == wakeups and job.state in (JobState.READY, JobState.PRIORITIZED):
                job.state = JobState.PAUSING

    def _next(self) -> Job | None:
        """Wait for a ready job and return the most urgent job; None when the worker closes and all jobs have ended."""
        with self._changed:
            while True:
                if ready := [job for job in self._jobs if self._closing or job.state is not JobState.PAUSED]:
                    return min(ready, key=_urgency)
                if self._closing:
                    return None
                self._changed.wait()

    def _pause_if_requested(self, job: Job) -> bool:
        """Pause the job if requested; return whether it was paused."""
        with self._changed:
            if job.state is JobState.PAUSING:
                job.state = JobState.PAUSED
            return job.state is JobState.PAUSED

    def _advance(self, job: Job) -> None:
        wakeups = job.wakeups
        try:
            event = next(job.events)
        except StopIteration:
            self._end(job, "done")
        except Exception as error:  # noqa: BLE001 - any error of a job becomes an event
            self._fail(job, error)
            self._end(job, "failed")
        else:
            if isinstance(event, Blocked | JobIdle):  # a blocked job waits for `resume`
                self._pause_unless_woken(job, wakeups)
            self._post(job, event)

    def _end(self, job: Job, outcome: Outcome) -> None:
        with self._changed:
            self._jobs.remove(job)
        try:
            job.events.close()
        except Exception as error:  # noqa: BLE001 - closing runs the job's code, too
            self._fail(job, error)
        _log.info("%s: %s: %s", self.objectName(), job.title, outcome)
        self._post(job, JobEnded(outcome))
        self._heap.trim()

    def _fail(self, job: Job, error: Exception) -> None:
        _log.error("'%s' failed.", job.title, exc_info=error)
        self._post(job, failure(error))

    def _post(self, job: Job, event: Event) -> None:
        """Put an event into the mailbox and wake the main thread: for frequent events once per `wakeup_interval_s`."""
        logs.log_event(event)
        self.mailbox.put(job, event)
        now = time.monotonic()
        is_frequent = job.background and isinstance(event, LossChunk | Progress)
        if is_frequent and now - self._announced_at < self.wakeup_interval_s:
            return
        self._announced_at = now
        if self.mailbox.needs_wakeup():
            self.events_waiting.emit()


class Mailbox:
    """A thread-safe, limited queue of events. It merges consecutive losses and replaces progress by newer progress."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._entries: list[tuple[Job, list[Event]]] = []
        self._latest: dict[Job, list[Event]] = {}
        self._announced = False

    def put(self, job: Job, event: Event) -> None:
        """Add an event, or merge the event into the previous event of the job."""
        with self._lock:
            if len(self._entries) >= _CAPACITY:
                self._lock.wait(_PUT_TIMEOUT_S)
            latest = self._latest.get(job)
            if latest is not None and _replaces(latest[-1], event):
                latest[-1] = event
            elif latest is not None and _continues(latest[-1], event):
                latest.append(event)
                if len(latest) >= _MERGE_AT:
                    latest[:] = [_joined(latest)]
            else:
                self._latest[job] = [event]
                self._entries.append((job, self._latest[job]))

    def drain(self) -> list[tuple[Job, Event]]:
        """Empty the mailbox and return its events, in order for each job."""
        with self._lock:
            entries, self._entries, self._latest, self._announced = self._entries, [], {}, False
            self._lock.notify_all()
        return [(job, _joined(events)) for job, events in entries]

    def needs_wakeup(self) -> bool:
        """Return whether the main thread needs a wake-up: True at the first call after each `drain`."""
        with self._lock:
            needed, self._announced = not self._announced, True
            return needed

    def __len__(self) -> int:
        return len(self._entries)


def _replaces(before: Event, event: Event) -> bool:
    return isinstance(event, Progress) and isinstance(before, Progress) and before.what == event.what


def _continues(before: Event, event: Event) -> bool:
    if not isinstance(event, LossChunk) or not isinstance(before, LossChunk):
        return False
    return before.first_step + len(before.losses) == event.first_step


def _joined(events: list[Event]) -> Event:
    """Merge consecutive `LossChunk` events into one event; return a single event unchanged."""
    chunks = [event for event in events if isinstance(event, LossChunk)]
    if len(chunks) < 2:
        return events[-1]
    losses = np.concatenate([chunk.losses for chunk in chunks])
    grad_norms = np.concatenate([chunk.grad_norms for chunk in chunks])
    return replace(chunks[-1], first_step=chunks[0].first_step, losses=losses, grad_norms=grad_norms)


def failure(error: Exception) -> JobFailed:
    """Return the `JobFailed` event for an error, with the traceback if the error is not a StudioError."""
    title, hint = formatting.describe_error(error, otherwise="Unexpected error in the studio.")
    if isinstance(error, StudioError):
        return JobFailed(title, hint, topic=error.topic)
    return JobFailed(title, hint, "".join(traceback.format_exception(error)))


def _urgency(job: Job) -> tuple[bool, bool, bool]:
    return (job.state is not JobState.CANCELLED, job.state is not JobState.PRIORITIZED, job.background)
