"""Ctrl+C, `kill` and a terminal that is closed: a training stops and saves, other commands end and tidy up."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Protocol

from studio.core.process import detach_lost_terminal, termination_signals

_SAVING = "Stopping and saving the work. Ctrl+C again gives up at once."


class Stoppable(Protocol):
    """What listens: the engine's Control."""

    stop: bool


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextlib.contextmanager
def stopping(
    control: Stoppable, *, words: str = _SAVING, numbers: Sequence[signal.Signals] | None = None
) -> Iterator[Interruption]:
    """Inside the block the signals that ask for an end set `control.stop`; Ctrl+C after that raises KeyboardInterrupt.

    Other signals change nothing then: shells, `make` and systems that shut down repeat what they ask for. words: a line
    for stderr at the first signal, may be empty. numbers: the signals that are meant; None: all of them.
    """
    interruption = Interruption()
    line = os.fsencode(f"\n{words}\n") if words else b""

    def ask(number: int, frame: FrameType | None) -> None:
        detach_lost_terminal()
        if interruption.asked:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        interruption.asked = True
        control.stop = True
        with contextlib.suppress(OSError):
            os.write(2, line)  # print is not safe in a handler: it may have interrupted a print

    with _handling(ask, termination_signals() if numbers is None else numbers):
        yield interruption


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Inside the block the other signals that ask for an end do what Ctrl+C does: what was begun is tidied up.

    They do it once: what repeats them doesn't interrupt the tidying up.
    """
    interruption = Interruption()

    def end(number: int, frame: FrameType | None) -> None:
        detach_lost_terminal()
        if not interruption.asked:
            interruption.asked = True
            raise KeyboardInterrupt

    with _handling(end, [number for number in termination_signals() if number != signal.SIGINT]):
        yield


@contextlib.contextmanager
def _handling(handle: Callable[[int, FrameType | None], None], numbers: Sequence[int]) -> Iterator[None]:
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
