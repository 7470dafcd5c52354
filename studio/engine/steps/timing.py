"""Timing of a training: a stopwatch without pauses, periodic work, speed, and throttled Progress events."""

import math
import time
from collections import deque
from collections.abc import Generator
from typing import TypeVar

from studio.core.events import Event, Events, Progress
from studio.core.generators import Steps
from studio.core.observers import Observer

T = TypeVar("T")

SIDE_SHARE = 0.04  # limit by kind of side work (live samples, validation, checkpoints), as a share of the training time
_PROGRESS_EVERY_S = 0.05


def with_progress(work: Generator[int, None, T], total: int, what: str) -> Generator[Event, None, T]:
    """Run a generator that counts up to `total`; yield Progress every 50 ms, and return the generator's value.

    what: name of the counted items, in the plural.
    """

    def progress() -> Generator[Event, None, T]:
        for done in (steps := Steps(work)):
            yield Progress(done, total, what)
        return steps.result

    return (yield from throttle_events(progress()))


def throttle_events(work: Generator[Event, None, T]) -> Generator[Event, None, T]:
    """Run a generator and return the generator's value; yield at most one event every 50 ms."""
    last_s = time.perf_counter()
    for event in (steps := Steps(work)):
        if time.perf_counter() - last_s > _PROGRESS_EVERY_S:
            last_s = time.perf_counter()
            yield event
    return steps.result


class Stopwatch(Observer):
    """Measures a training's seconds, without the time that an event's receiver takes to handle the event."""

    def __init__(self) -> None:
        self._before_s = 0.0
        self._since_s: float | None = None  # None while it stands still

    def start(self, at_s: float) -> None:
        """Start the stopwatch at `at_s` seconds."""
        self._before_s, self._since_s = at_s, time.perf_counter()

    def before(self, event: Event) -> None:
        self._before_s, self._since_s = self.now_s(), None  # stand still while the event is handled

    def after(self, event: Event) -> Events:
        self._since_s = time.perf_counter()
        yield from ()

    def now_s(self) -> float:
        """Return the measured seconds. Uses a monotonic clock, because the system's clock may jump."""
        return self._before_s + (time.perf_counter() - self._since_s if self._since_s is not None else 0.0)


class Throttle:
    """Decides when work is due: every `every_s` seconds, in at most SIDE_SHARE of the time, first after `first_s`."""

    def __init__(self, every_s: float, clock: Stopwatch, first_s: float = math.inf) -> None:
        self._every_s, self._clock = every_s, clock
        self._wait_s = min(every_s, first_s)
        self._done_s = clock.now_s()
        self.cost_s = 0.0  # seconds that the work took the last time

    def since_last_s(self) -> float:
        """Return the seconds since the periodic work last ended."""
        return self._clock.now_s() - self._done_s

    def is_affordable(self) -> bool:
        """Return whether the periodic work would stay within SIDE_SHARE of the training time."""
        return self.since_last_s() >= self.cost_s / SIDE_SHARE

    def interval_s(self) -> float:
        """Return the seconds between two starts of the work, more than `every_s` if the work is slow."""
        return max(self._every_s, self.cost_s / SIDE_SHARE)

    def is_due(self) -> bool:
        """Return whether the periodic work is due and affordable."""
        return self.is_affordable() and self.since_last_s() >= self._wait_s

    def timed(self, events: Events) -> Events:
        """Run the periodic work: forward the events, and remember the duration."""
        start_s = self._clock.now_s()
        yield from events
        self._done_s = self._clock.now_s()
        self.cost_s = self._done_s - start_s
        self._wait_s = self._every_s


class Speedometer:
    """Measures a training's sprites per second over the last few seconds."""

    def __init__(self, batch_size: int, window_s: float = 5.0) -> None:
        self._batch_size, self._window_s = batch_size, window_s
        self._ticks: deque[tuple[int, float]] = deque()  # (steps, seconds)
        self._steps, self._duration_s = 0, 0.0

    def add(self, steps: int, duration_s: float) -> None:
        """Record the duration of `steps` training steps."""
        self._ticks.append((steps, duration_s))
        self._steps += steps
        self._duration_s += duration_s
        while len(self._ticks) > 1 and self._duration_s - self._ticks[0][1] > self._window_s:
            old_steps, old_duration_s = self._ticks.popleft()
            self._steps -= old_steps
            self._duration_s -= old_duration_s

    def sprites_per_s(self) -> float:
        """Return the current speed; 0 before the first recorded steps."""
        return self._batch_size * self._steps / self._duration_s if self._duration_s > 0 else 0.0
