"""Observers: code that sees the events of a job on their way from the job to its caller."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from studio.core.events import Event, Events


class Observer:
    """Base of classes that observe a job's events. Subclasses override the methods they need."""

    def before(self, event: Event) -> None:
        """Handle an event before the job's caller receives the event."""

    def after(self, event: Event) -> Events:
        """Yield further events after the job's caller has handled `event`."""
        yield from ()

    def close(self) -> None:
        """Release resources; called when the job has ended."""


def observed(events: Events, observers: Sequence[Observer]) -> Events:
    """Yield a job's events; call every observer's `before` and, in reverse order, `after` around each event."""
    with contextlib.closing(events), contextlib.ExitStack() as at_the_end:
        for observer in observers:
            at_the_end.callback(observer.close)
        for event in events:
            for observer in observers:
                observer.before(event)
            yield event
            for observer in reversed(observers):
                yield from observer.after(event)
