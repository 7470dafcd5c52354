"""Flags to stop a training or request samples and checkpoints; it pauses while nobody advances its generator."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from studio.core.errors import UnwritableError
from studio.core.events import Blocked, Event, Events

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False)
class Control:
    """Flags that a running training polls between ticks, and the training's live model for other jobs."""

    stop: bool = False
    give_up: bool = False  # raise UnwritableError instead of trying again
    sample_now: bool = False
    checkpoint_now: bool = False
    is_paused: bool = False  # nobody advances the generator
    live: TrainedModel | None = None


def until_stopped(events: Events, control: Control) -> Events:
    """Forward `events` to the end, or until `control.stop`."""
    while not control.stop and (event := next(events, None)) is not None:
        yield event


def retry_until_writable(
    control: Control, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> Generator[Event, None, T]:
    """Return what `write` returns; yields Blocked after an UnwritableError, and raises it if `control.give_up`."""
    while True:
        try:
            return write(*args, **kwargs)
        except UnwritableError as error:
            if control.give_up:
                raise
            yield Blocked("error", error.title, f"{error.reason}. {error.while_halted}")
