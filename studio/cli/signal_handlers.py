"""Handle Ctrl+C, `kill` and a closed terminal: a training stops and saves; other commands clean up and end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Protocol

from studio.core.process import detach_lost_terminal, termination_signals

_SAVING = "Stopping and saving the run. Press Ctrl+C again to quit at once."


class Stoppable(Protocol):
    """An object whose `stop` flag ends a job, for example a training's `Control`."""

    stop: bool


class StopRequest:
    """The result of watching for signals. received: whether a signal asked the command to stop."""

    def __init__(self) -> None:
        self.received = False


@contextlib.contextmanager
def stop_on_signal(
    control: Stoppable, *, message: str = _SAVING, signals: Sequence[signal.Signals] | None = None
) -> Iterator[StopRequest]:
    """Create a context in which the first signal sets `control.stop`; a second Ctrl+C raises KeyboardInterrupt.

    Further signals of other kinds have no effect: shells, `make` and a shutdown send theirs several times.
    message: line for stderr at the first signal; may be empty. signals: None means all that ask a process to end.
    """
    request = StopRequest()
    line = os.fsencode(f"\n{message}\n") if message else b""

    def stop(number: int, frame: FrameType | None) -> None:
        detach_lost_terminal()
        if request.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not request.received:
            request.received = control.stop = True
            with contextlib.suppress(OSError):
                os.write(2, line)  # not print: the signal may have interrupted a print, which can't be nested

    with _handled_by(stop, termination_signals() if signals is None else signals):
        yield request


@contextlib.contextmanager
def interrupt_on_signal() -> Iterator[None]:
    """Create a context in which the first SIGTERM or SIGHUP raises KeyboardInterrupt; later signals have no effect."""
    request = StopRequest()

    def interrupt(number: int, frame: FrameType | None) -> None:
        detach_lost_terminal()
        if not request.received:
            request.received = True
            raise KeyboardInterrupt

    with _handled_by(interrupt, [number for number in termination_signals() if number != signal.SIGINT]):
        yield


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None], numbers: Sequence[int]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
