"""What a training does while its disk takes nothing: it waits, and its work stays in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from studio.core.errors import UnwritableError
from studio.core.events import Event, Halted
from studio.engine.model import Control

T = TypeVar("T")


def until_written(control: Control, write: Callable[[], T]) -> Generator[Event, None, T]:
    """Call `write` until it does not fail, and return what it does; yields Halted after each failure.

    A wish to stop is put off until the work is saved. One that comes while it can't be saved ends the run with what is
    on disk: raises UnwritableError.
    """
    is_halted = wants_stop = False
    while True:
        try:
            done = write()
            control.stop |= wants_stop
            return done
        except UnwritableError as error:
            if is_halted and control.stop:
                raise
            is_halted, wants_stop, control.stop = True, wants_stop or control.stop, False
            hint = f"{error.reason}. Training waits and nothing is lost: free some space, then go on."
            yield Halted("error", error.title, hint)
