"""The thread that drives jobs, generators of events, and the mailbox by which their events reach the main thread."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from PySide6.QtCore import QObject, QThread, Signal

from studio.core import logs, wording
from studio.core.errors import StudioError
from studio.core.events import Event, Events, Halted, JobFailed, LossChunk, Progress

Outcome = Literal["done", "failed", "cancelled"]

_log = logging.getLogger(__name__)
_STACK_BYTES = 64 << 20  # macOS gives a thread 512 KB, too little for torch


@dataclass(frozen=True)
class JobPaused(Event):
    """A job has stopped advancing; what it said before has arrived."""


@dataclass(frozen=True)
class JobEnded(Event):
    """The last event of every job."""

    outcome: Outcome


@dataclass(eq=False)
class Job:
    """A generator of events that a worker drives. `receive` is called in the main thread with each of its events.

    A background job gives way to the others between its events. The flags belong to the worker, `receive` to the
    job_queue.
    """

    title: str
    events: Events
    receive: Callable[[Event], None]
    background: bool = False
    paused: bool = False  # asked for
    resting: bool = False  # is so, and was said
    cancelled: bool = False
    hurried: bool = False


class Worker(QThread):
    """Advances its jobs one at a time, background ones only when there is nothing else to do.

    mail: events lie in the mailbox (sent once until `take` empties it).
    """

    mail = Signal()

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setStackSize(_STACK_BYTES)
        self.quiet_interval_s = 0.1  # between signals for losses and progress of background jobs
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._closing = False
        self._box = Mailbox()
        self._raised_at = 0.0

    def submit(self, job: Job) -> None:
        """Queue a job; it starts when the ones before it are done, a background job when nothing else is left.

        Once the thread has been shut down, by an event that was still on its way, nothing begins any more.
        """
        with self._changed:
            if self._closing:
                job.events.close()
                return
            self._jobs.append(job)
            self._changed.notify()
        _log.info("%s: %s", self.objectName(), job.title)
        if not self.isRunning():
            self.start()

    def pause(self, job: Job) -> None:
        """Stop advancing `job` after the event it is working on; `JobPaused` says when."""
        with self._changed:
            job.paused = True
            self._changed.notify()

    def resume(self, job: Job) -> None:
        """Go on with a paused job."""
        with self._changed:
            job.paused = job.resting = False
            self._changed.notify()

    def prioritize(self, job: Job) -> None:
        """Go on with a job, before all others: it will soon be done."""
        with self._changed:
            job.hurried = True
            job.paused = job.resting = False
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        """Close the job's generator after the event it is working on, also when it is paused."""
        with self._changed:
            job.cancelled = True
            self._changed.notify()

    def take(self) -> list[tuple[Job, Event]]:
        """Empty the mailbox: what came since the last call, the order of each job kept."""
        return self._box.take()

    def shut_down(self, wait_ms: int) -> bool:
        """Close all jobs and end the thread. False when it is still busy after `wait_ms`; it must then outlive us."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        return self.wait(wait_ms)

    def run(self) -> None:
        """The thread: pick a job, advance it by one event, again."""
        while (job := self._next()) is not None:
            if job.cancelled or self._closing:
                self._end(job, "cancelled")
            elif self._rests(job):
                self._post(job, JobPaused())
            else:
                self._advance(job)

    def _next(self) -> Job | None:
        """The job to turn to now; waits for one. None when the worker is to end and all jobs are closed."""
        with self._changed:
            while True:
                for job in sorted(self._jobs, key=_urgency):
                    if self._closing or job.cancelled or not job.resting:
                        return job
                if self._closing:
                    return None
                self._changed.wait()

    def _rests(self, job: Job) -> bool:
        with self._changed:
            job.resting = job.paused
            return job.paused

    def _advance(self, job: Job) -> None:
        try:
            event = next(job.events)
        except StopIteration:
            self._end(job, "done")
        except Exception as error:  # noqa: BLE001 - the one place where a job of the window can fail
            self._fail(job, error)
            self._end(job, "failed")
        else:
            if isinstance(event, Halted):
                self._halt(job)
            self._post(job, event)

    def _halt(self, job: Job) -> None:
        """Wait until somebody wants to try again."""
        with self._changed:
            job.paused, job.hurried = True, False

    def _end(self, job: Job, outcome: Outcome) -> None:
        with self._changed:
            self._jobs.remove(job)
        try:
            job.events.close()
        except Exception as error:  # noqa: BLE001 - closing runs the job's own code as well
            self._fail(job, error)
        _log.info("%s: %s: %s", self.objectName(), job.title, outcome)
        self._post(job, JobEnded(outcome))

    def _fail(self, job: Job, error: Exception) -> None:
        _log.error("'%s' failed.", job.title, exc_info=error)
        self._post(job, failure(error))

    def _post(self, job: Job, event: Event) -> None:
        """Put an event in the mailbox and wake the main thread, for what can wait at most every `quiet_interval_s`."""
        logs.note(event)
        self._box.put(job, event)
        now = time.monotonic()
        can_wait = job.background and isinstance(event, LossChunk | Progress)
        if can_wait and now - self._raised_at < self.quiet_interval_s:
            return
        self._raised_at = now
        if self._box.claim_announcement():
            self.mail.emit()


def failure(error: Exception) -> JobFailed:
    """What to tell the user of an error, with the traceback of one that the studio or a plug-in did not foresee."""
    title, hint = wording.error_words(error, otherwise="Something went wrong inside the studio.")
    foreseen = isinstance(error, StudioError)
    return JobFailed(title, hint, "" if foreseen else "".join(traceback.format_exception(error)))


def _urgency(job: Job) -> tuple[bool, bool, bool]:
    return (not job.cancelled, not job.hurried, job.background)


_MERGE_AT = 64
_FULL = 2000  # entries
_LONGEST_WAIT_S = 0.5  # for room; a main thread that waits for the worker must not wait for ever


class Mailbox:
    """A locked list that stays short however fast a job talks.

    Losses are joined, of progress the newest is kept, and where there is no room the job waits for a while.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._entries: list[tuple[Job, list[Event]]] = []
        self._latest: dict[Job, list[Event]] = {}
        self._announced = False

    def put(self, job: Job, event: Event) -> None:
        """Add an event, or join it to the one that the same job put before it."""
        with self._lock:
            if len(self._entries) >= _FULL:
                self._lock.wait(_LONGEST_WAIT_S)
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

    def take(self) -> list[tuple[Job, Event]]:
        """Everything that is in the box, which is empty afterwards."""
        with self._lock:
            entries, self._entries, self._latest, self._announced = self._entries, [], {}, False
            self._lock.notify_all()
        return [(job, _joined(events)) for job, events in entries]

    def claim_announcement(self) -> bool:
        """Whether the main thread has yet to be told that there is mail; true once until `take`."""
        with self._lock:
            claimed, self._announced = not self._announced, True
            return claimed

    def __len__(self) -> int:
        return len(self._entries)


def _replaces(before: Event, event: Event) -> bool:
    return isinstance(event, Progress) and isinstance(before, Progress) and before.what == event.what


def _continues(before: Event, event: Event) -> bool:
    if not isinstance(event, LossChunk) or not isinstance(before, LossChunk):
        return False
    return before.first_step + len(before.losses) == event.first_step


def _joined(events: list[Event]) -> Event:
    """One event for several `LossChunk`s that follow one another; a single event as it is."""
    chunks = [event for event in events if isinstance(event, LossChunk)]
    if len(chunks) < 2:
        return events[-1]
    return replace(
        chunks[-1],
        first_step=chunks[0].first_step,
        losses=np.concatenate([chunk.losses for chunk in chunks]),
        grad_norms=np.concatenate([chunk.grad_norms for chunk in chunks]),
    )
