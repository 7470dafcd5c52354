"""Cells of letters: a drawing is text, a letter is a tone of a material, and every figure has its own dyes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..palette import COLOURS, Ramp

SIZE = 16
LEFT = 1
"""Drawings leave the first and the last column of a cell to the outline."""
WIDTH = SIZE - 2 * LEFT
EMPTY, ERASE, INK = ".", "_", "k"
FRONT, BACK, SIDE = 0, 1, 2
"""The drawn views; a figure that walks left is the mirror image of the side view."""
Grid = NDArray[np.str_]
Mask = NDArray[np.bool_]
Dyes = Mapping[str, str]

# Base, shade and light of every material; besides there are ink, white, red and a glow.
SLOTS: dict[str, str] = {
    "skin": "stS",
    "hair": "hjH",
    "cloth": "cdC",
    "accent": "abA",
    "legs": "lmL",
    "boots": "fgG",
    "metal": "erE",
    "wood": "opO",
}
DARKER = {
    "w": "e",
    **{letters[0]: letters[1] for letters in SLOTS.values()},
    **{letters[2]: letters[0] for letters in SLOTS.values()},
}
FIXED: dict[str, tuple[Ramp, int]] = {
    "k": (Ramp.SLATE, 0),
    "w": (Ramp.BONE, 4),
    "q": (Ramp.RED, 2),
    "y": (Ramp.GOLD, 3),
}
USUAL: dict[str, str] = {
    "skin": "skin+",
    "hair": "wood-",
    "cloth": "blue",
    "accent": "gold",
    "legs": "slate",
    "boots": "wood-",
    "metal": "steel",
    "wood": "wood",
}


@dataclass(frozen=True)
class Part:
    """A drawing in three views, to be laid on a cell from a row on."""

    top: int
    views: tuple[tuple[str, ...], ...]

    def laid(self, grid: Grid, view: int, dx: int = 0, dy: int = 0) -> Mask:
        """Lays a view on the grid and returns where it painted."""
        return stamp(grid, self.views[view], LEFT + dx, self.top + dy)


def part(top: int, text: str) -> Part:
    """Reads a drawing: lines of a front, a back and a side view, parted by bars; one view alone serves for all."""
    lines = [line.strip().split("|") for line in text.strip().splitlines()]
    columns = [tuple(line[min(view, len(line) - 1)] for line in lines) for view in range(3)]
    return Part(top, tuple(columns))


def blank() -> Grid:
    """A cell with nothing in it."""
    return np.full((SIZE, SIZE), EMPTY, dtype="<U1")


def stamp(grid: Grid, drawing: tuple[str, ...], left: int, top: int) -> Mask:
    """Writes a drawing's letters on the grid, drops what lies outside, and returns where it painted."""
    painted = np.zeros((SIZE, SIZE), dtype=np.bool_)
    for y, row in enumerate(drawing, start=top):
        for x, letter in enumerate(row, start=left):
            if letter != EMPTY and 0 <= x < SIZE and 0 <= y < SIZE:
                grid[y, x] = EMPTY if letter == ERASE else letter
                painted[y, x] = letter != ERASE
    return painted


def around(mask: Mask) -> Mask:
    """The four-neighbours of a mask that are not in it."""
    wide = np.pad(mask, 1)
    near = wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]
    return np.asarray(near & ~mask)


def part_off(grid: Grid, mask: Mask) -> None:
    """Draws a line of ink around a part where it lies on others."""
    grid[around(mask) & (grid != EMPTY)] = INK


def outline(grid: Grid) -> None:
    """Rings the figure with ink."""
    grid[around(np.asarray(grid != EMPTY))] = INK


def colours(dyes: Dyes) -> dict[str, tuple[Ramp, int]]:
    """The colour of every letter: 'red' is a ramp's middle tone, 'red+' the next lighter and 'red-' the next darker."""
    key = dict(FIXED)
    for slot, letters in SLOTS.items():
        dye = dyes.get(slot, USUAL[slot])
        base = 2 + dye.count("+") - dye.count("-")
        ramp = Ramp[dye.rstrip("+-").upper()]
        for letter, tone in zip(letters, (base, base - 1, base + 1), strict=True):
            key[letter] = (ramp, min(max(tone, 0), 4))
    if "glow" in dyes:
        key["y"] = (Ramp[dyes["glow"].upper()], 3)
    return key


def coloured(grid: Grid, dyes: Dyes, table: NDArray[np.uint8] = COLOURS) -> NDArray[np.uint8]:
    """Return the pixels of a grid: alpha 0 or 255, and no colour where there is no alpha.

    table: uint8 [ramps, tones, 3], the colours.
    """
    key = colours(dyes)
    out = np.zeros((*grid.shape, 4), dtype=np.uint8)
    for y, x in zip(*np.nonzero(grid != EMPTY), strict=True):
        out[y, x, :3] = table[key[str(grid[y, x])]]
        out[y, x, 3] = 255
    return out


def shaded(letter: str) -> str:
    """The next darker tone of a letter's material."""
    return DARKER.get(letter, letter)
