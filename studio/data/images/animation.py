"""What the readers of animations give: frames as their file holds them, not yet laid over one another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


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
    """

    data: bytes
    left: int
    top: int
    width: int
    height: int
    screen: tuple[int, int]
    over: bool
    disposal: Disposal
