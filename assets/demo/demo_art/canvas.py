"""The canvas: every pixel is a tone of a ramp, and becomes a colour only at the very end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .light import STEPS, inflate, lambert, tidy, tones
from .palette import COLOURS, Ramp
from .shapes import Field, Mask, grow, shift

Key = Mapping[str, tuple[Ramp, int]]
T = TypeVar("T")


class Canvas:
    """A square sprite in the making."""

    def __init__(self, size: int) -> None:
        """Starts with nothing painted."""
        self.size = size
        self.ramp = np.full((size, size), -1, dtype=np.int8)
        self.tone = np.zeros((size, size), dtype=np.int8)

    @property
    def painted(self) -> Mask:
        """Pixels that have a colour."""
        return np.asarray(self.ramp >= 0)

    def flat(self, mask: Mask, ramp: Ramp, tone: int) -> None:
        """One tone all over the mask."""
        self.ramp[mask] = ramp
        self.tone[mask] = tone

    def lit(
        self,
        mask: Mask,
        ramp: Ramp,
        light: Field,
        steps: tuple[float, float, float] = STEPS,
        low: int = 1,
        high: int = 4,
    ) -> None:
        """Paints the mask by a given light."""
        tone = tidy(np.clip(tones(light, steps), low, high).astype(np.int8), mask)
        self.ramp[mask] = ramp
        self.tone[mask] = tone[mask]

    def form(
        self,
        mask: Mask,
        ramp: Ramp,
        bulge: float = 1.0,
        steps: tuple[float, float, float] = STEPS,
        low: int = 1,
        high: int = 4,
    ) -> None:
        """Paints the mask as a rounded body."""
        self.lit(mask, ramp, lambert(inflate(mask), bulge), steps, low, high)

    def seam(self, mask: Mask, tone: int = 0) -> None:
        """Darkens what lies around a part, so that it stands off from the one behind it."""
        around = grow(mask) & ~mask & self.painted
        self.tone[around] = tone

    def darken(self, mask: Mask, by: int = 1, floor: int = 1) -> None:
        """Takes painted pixels down their ramp (a shadow cast on them)."""
        here = mask & self.painted
        self.tone[here] = np.maximum(np.minimum(self.tone[here], floor), self.tone[here] - by)

    def recolour(self, mask: Mask, ramp: Ramp) -> None:
        """Changes the ramp and keeps the shading."""
        self.ramp[mask & self.painted] = ramp

    def behind(self, mask: Mask, ramp: Ramp, tone: int) -> None:
        """Fills only what is still empty; used after the outline for parts too thin to have one."""
        self.flat(mask & ~self.painted, ramp, tone)

    def put(self, x: int, y: int, ramp: Ramp, tone: int) -> None:
        """One pixel, dropped silently outside the canvas."""
        if 0 <= x < self.size and 0 <= y < self.size:
            self.ramp[y, x] = ramp
            self.tone[y, x] = tone

    def stamp(self, drawing: Sequence[str], left: int, top: int, key: Key) -> None:
        """A small drawing in characters; those not in the key are see-through."""
        for y, row in enumerate(drawing, start=top):
            for x, char in enumerate(row, start=left):
                if char in key:
                    self.put(x, y, *key[char])

    def stamp_pair(self, drawing: Sequence[str], left: int, top: int, key: Key, *, odd: bool = False) -> None:
        """The drawing and its mirror image on the other side."""
        self.stamp(drawing, left, top, key)
        width = max(len(row) for row in drawing)
        flipped = [row.ljust(width)[::-1] for row in drawing]
        self.stamp(flipped, self.size - left - width - int(odd), top, key)

    def outline(self) -> None:
        """Rings the sprite with the darkest tone of whatever ramp it rings."""
        painted = self.painted
        ring = grow(painted) & ~painted
        # The neighbour below or to the right decides first: the lit side of a part owns its outline.
        for dx, dy in ((0, 1), (1, 0), (-1, 0), (0, -1)):
            source = shift(painted, dx, dy) & ring
            self.ramp[source] = np.roll(self.ramp, (dy, dx), (0, 1))[source]
            self.tone[source] = 0

    def rgba(self) -> NDArray[np.uint8]:
        """The finished pixels: alpha 0 or 255, and no colour where there is no alpha."""
        out = np.zeros((self.size, self.size, 4), dtype=np.uint8)
        painted = self.painted
        out[painted, :3] = COLOURS[self.ramp[painted], self.tone[painted]]
        out[painted, 3] = 255
        return out


def pick(rng: Generator, options: Sequence[T]) -> T:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def chance(rng: Generator, share: float) -> bool:
    """True in that share of calls."""
    return bool(rng.random() < share)
