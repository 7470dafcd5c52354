"""What a training does while its disk takes nothing: it waits, and its work stays in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import ParamSpec, TypeVar

from studio.core.errors import UnwritableError
from studio.core.events import Event, Halted
from studio.engine.model import Control

P = ParamSpec("P")
T = TypeVar("T")


def retry_until_writable(
    control: Control, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> Generator[Event, None, T]:
    """Call `write` with these arguments until it does not fail, and return what it does; yields Halted each time.

    Raises UnwritableError when `control.give_up` is set.
    """
    while True:
        try:
            return write(*args, **kwargs)
        except UnwritableError as error:
            if control.give_up:
                raise
            hint = f"{error.reason}. Training waits and nothing is lost. Once that is mended it can go on."
            yield Halted("error", error.title, hint)
