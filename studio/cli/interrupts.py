"""Ctrl+C while a model trains: the first one asks it to stop and save, the second gives up at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Protocol

_SAVING = b"\nStopping and saving the work. Ctrl+C again gives up at once.\n"


class Stoppable(Protocol):
    """What listens: the engine's Control."""

    stop: bool


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextlib.contextmanager
def stopping(control: Stoppable) -> Iterator[Interruption]:
    """Inside the block SIGINT and SIGTERM set `control.stop`; a second one raises KeyboardInterrupt."""
    interruption = Interruption()

    def ask(number: int, frame: FrameType | None) -> None:
        if interruption.asked:
            raise KeyboardInterrupt
        interruption.asked = True
        control.stop = True
        with contextlib.suppress(OSError):
            os.write(2, _SAVING)  # print is not safe in a handler: it may have interrupted a print

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
