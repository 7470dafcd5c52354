"""What was made lately and is still at hand: the newest, and of those before it as many as memory is meant to hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

MOST, MOST_MB = 20, 64

Made = TypeVar("Made")


def recent(made: Sequence[Made], size_bytes: Callable[[Made], int]) -> list[Made]:
    """The last of `made`, and those before it, MOST in all and MOST_MB together; the last one whatever its size."""
    kept: list[Made] = []
    room = MOST_MB * 2**20
    for one in reversed(made):
        room -= size_bytes(one)
        if kept and (room < 0 or len(kept) == MOST):
            break
        kept.append(one)
    return kept[::-1]
