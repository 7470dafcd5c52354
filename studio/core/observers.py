"""Observers: code that sees the events of a job on their way from the job to its caller."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from studio.core.events import Event, Events


class Observer:
    """Code that sees every event of a job; a subclass overrides the methods that it needs."""

    def before(self, event: Event) -> None:
        """Handle an event before `observed` yields it."""

    def after(self, event: Event) -> Events:
        """Yield events that follow `event`; called when the receiver of `event` asks for the next event."""
        yield from ()

    def close(self) -> None:
        """Release resources; called when the job has ended."""


def observed(events: Events, observers: Sequence[Observer]) -> Events:
    """Yield the events of a job. Each event passes all observers: in their order before it is yielded, in the
    reverse order afterwards.
    """
    with contextlib.closing(events), contextlib.ExitStack() as at_the_end:
        for observer in observers:
            at_the_end.callback(observer.close)
        for event in events:
            for observer in observers:
                observer.before(event)
            yield event
            for observer in reversed(observers):
                yield from observer.after(event)
