"""The one palette of the whole set: short ramps whose shadows drift to violet and whose highlights drift to yellow."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

TONES = 5
"""Tones of a ramp: 0 outline, 1 shadow, 2 base, 3 light, 4 highlight."""


class Ramp(IntEnum):
    """Names of the ramps, in the order of the colour table."""

    RED = 0
    ORANGE = 1
    GOLD = 2
    GREEN = 3
    TEAL = 4
    BLUE = 5
    PURPLE = 6
    PINK = 7
    WOOD = 8
    BONE = 9
    STEEL = 10
    SLATE = 11
    SKIN = 12


# Ramps share their darkest and some of their lightest tones on purpose: it ties the sprites of a set together.
_WINE, _UMBER, _DEEP, _NAVY, _PLUM, _INK = "3d1236", "3b1f33", "12303f", "1c1d4d", "2d1547", "211f38"
_HEX: dict[Ramp, tuple[str, str, str, str, str]] = {
    Ramp.RED: (_WINE, "8e1f47", "d23546", "f46a4e", "ffb584"),
    Ramp.ORANGE: (_WINE, "a03a38", "de6a30", "f2a33a", "fad552"),
    Ramp.GOLD: (_UMBER, "a05c34", "f2a33a", "fad552", "fff6b3"),
    Ramp.GREEN: (_DEEP, "1f5c56", "38934c", "80c64c", "d6ef7c"),
    Ramp.TEAL: (_DEEP, "1d5673", "239194", "4dceae", "b6f5d0"),
    Ramp.BLUE: (_NAVY, "2c3b97", "366ad8", "52a8f4", "abe6fc"),
    Ramp.PURPLE: (_PLUM, "542a8c", "8443c6", "b977ee", "ebbdfb"),
    Ramp.PINK: (_WINE, "962a70", "de4c92", "fb8db2", "ffd9c4"),
    Ramp.WOOD: (_UMBER, "633239", "a05c34", "c88d54", "ecc58a"),
    Ramp.BONE: (_UMBER, "8e7c8c", "cbb8a6", "f0e4c8", "fffbec"),
    Ramp.STEEL: (_INK, "4b5077", "8391ae", "b8c7d2", "fffbec"),
    Ramp.SLATE: (_INK, "31325a", "4b5077", "6873a0", "8391ae"),
    Ramp.SKIN: (_UMBER, "a4574c", "dc9269", "f7c694", "ffe8c0"),
}


def _table() -> NDArray[np.uint8]:
    """The RGB value of every tone of every ramp."""
    rows = [[list(bytes.fromhex(tone)) for tone in _HEX[ramp]] for ramp in Ramp]
    return np.array(rows, dtype=np.uint8)


COLOURS = _table()
BRIGHT = (
    Ramp.RED,
    Ramp.ORANGE,
    Ramp.GOLD,
    Ramp.GREEN,
    Ramp.TEAL,
    Ramp.BLUE,
    Ramp.PURPLE,
    Ramp.PINK,
)
"""Ramps of saturated colour, for whatever may have any colour at all."""
