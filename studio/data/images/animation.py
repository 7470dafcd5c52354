"""Encoded frames from animations, not composed yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

_SHORTEST_MS, _INSTEAD_MS = 11, 100


def display_ms(duration_ms: int) -> int:
    """Return the display time of a frame: viewers replace a very short `duration_ms` by 100 ms."""
    return duration_ms if duration_ms >= _SHORTEST_MS else _INSTEAD_MS


class Disposal(Enum):
    """The treatment of a frame's area before drawing the next frame."""

    KEEP = auto()
    CLEAR = auto()
    RESTORE = auto()  # back to the pixels before the frame


@dataclass(frozen=True, eq=False, slots=True)
class EncodedFrame:
    """An encoded frame from an animation, with its area on the screen in pixels."""

    data: bytes  # a picture file in the same format with only this frame, as large as its area
    left: int
    top: int
    width: int
    height: int
    screen: tuple[int, int]  # (width, height) of the whole animation
    over: bool  # blend with the pixels below; False replaces pixels and alpha
    disposal: Disposal
    duration_ms: int  # display time
