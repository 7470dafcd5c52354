"""Helpers for drawings of any size."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..canvas import pick
from ..palette import BRIGHT, Ramp
from ..shapes import Field, Mask, empty, polygon

RAMPS = (*BRIGHT, Ramp.WOOD, Ramp.BONE, Ramp.STEEL, Ramp.SLATE, Ramp.SKIN)


def ramps(rng: Generator, count: int) -> list[Ramp]:
    """Return different random ramps."""
    return [RAMPS[number] for number in rng.choice(len(RAMPS), count, replace=False)]


def smooth(rng: Generator, count: int, low: float, high: float, knots: int = 4) -> Field:
    """Return `count` values between low and high that change smoothly."""
    places = np.linspace(0, count - 1, knots)
    return np.interp(np.arange(count), places, rng.uniform(low, high, knots))


def profile(size: int, top: int, halves: Field) -> Mask:
    """Return a mirrored silhouette from half widths, a row each; the axis lies between the two middle columns."""
    mask = empty(size)
    for row, half in enumerate(halves, start=top):
        width = max(1, round(float(half)))
        mask[row, size // 2 - width : size // 2 + width] = True
    return mask


def rough(rng: Generator, size: int, x: float, y: float, radii: tuple[float, float], corners: int) -> Mask:
    """Return a polygon around (x, y) whose corners lie between four fifths and all of the radii away."""
    angles = np.sort((np.arange(corners) + rng.uniform(-0.3, 0.3, corners)) * 2 * np.pi / corners)
    reach = rng.uniform(0.8, 1.0, corners)
    points = zip(x + radii[0] * reach * np.cos(angles), y + radii[1] * reach * np.sin(angles), strict=True)
    return polygon(size, [(float(px), float(py)) for px, py in points])


def scattered(rng: Generator, within: Mask, share: float, unit: int) -> Mask:
    """Return random squares of `unit` pixels that cover about this share of a mask."""
    size = len(within)
    coarse = rng.random((-(-size // unit), -(-size // unit))) < share
    return np.asarray(coarse.repeat(unit, 0).repeat(unit, 1)[:size, :size] & within)


def unit_of(size: int) -> int:
    """Return the width of a fine detail: 1 pixel of 16 and 32, 2 of 64."""
    return max(1, size // 32)


def bulge(rng: Generator) -> float:
    """Return how round a form looks."""
    return float(pick(rng, (0.7, 0.9, 1.1)))
