"""Parts of the system check that hang, die or fail, for child processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from studio.core.events import Event, Progress
from studio.engine.check.findings import Finding


def hang() -> Iterator[Event]:
    """Hang, as a driver may."""
    yield Progress(0, 0, "the driver")
    time.sleep(600)


def die() -> Iterator[Event]:
    """End the process, as a driver may."""
    yield Finding("first", "First", "good", "Fine.")
    os.abort()


def fail() -> Iterator[Event]:
    """Fail with an error that nobody expects."""
    yield Progress(0, 0, "numbers")
    raise ZeroDivisionError("no number")


def compute() -> Iterator[Event]:
    """Compute without a word, as on a busy computer."""
    end_s = time.monotonic() + 1.2
    while time.monotonic() < end_s:
        sum(range(1000))
    yield Finding("computed", "Computed", "good", "Fine.")
