"""What the readers of animations give: frames as their file holds them, not yet laid over one another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

_SHORTEST_MS, _INSTEAD_MS = 11, 100


def display_ms(duration_ms: int) -> int:
    """Return the time that viewers show a frame: they replace a very short `duration_ms` by 100 ms."""
    return duration_ms if duration_ms >= _SHORTEST_MS else _INSTEAD_MS


class Disposal(Enum):
    """What becomes of a frame's area before the next one is drawn."""

    KEEP = auto()
    CLEAR = auto()
    RESTORE = auto()  # what was there before the frame


@dataclass(frozen=True, eq=False, slots=True)
class EncodedFrame:
    """One frame of an animation.

    data: a file of the same kind that holds this frame alone, as large as its area.
    left, top, width, height: its area on the screen, in pixels. screen: (width, height) of the whole animation.
    over: it is blended with what is there; otherwise it takes its place, alpha included.
    duration_ms: how long viewers show the frame.
    """

    data: bytes
    left: int
    top: int
    width: int
    height: int
    screen: tuple[int, int]
    over: bool
    disposal: Disposal
    duration_ms: int
