"""Events on their way to the main thread."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from studio.core.events import Event, LossChunk, Progress

if TYPE_CHECKING:
    from studio.app.worker import Job

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
