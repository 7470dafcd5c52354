"""Places of any size: houses, flowers, and floors and walls that fill their canvas."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..canvas import Canvas, chance, pick
from ..palette import Ramp
from ..shapes import Mask, box, ellipse, grid, line, polygon, shift
from .making import bulge, profile, ramps, scattered, smooth, unit_of


def house(rng: Generator, size: int) -> Canvas:
    """Draw a house or a tower with a roof, a door and windows."""
    canvas, unit = Canvas(size), unit_of(size)
    wall, roof, door = ramps(rng, 3)
    half = round(size * rng.uniform(0.16, 0.36))
    eaves = round(size * rng.uniform(0.3, 0.55))
    left, right, bottom = size // 2 - half, size // 2 + half - 1, size - 2 - unit
    front = box(size, left, eaves, right, bottom)
    canvas.flat(front, wall, 3)
    canvas.flat(front & (grid(size)[0] > size / 2 + half * 0.5), wall, 2)
    canvas.darken(_courses(rng, size) & front)
    over = min(left - 1, 1 + unit)
    top = max(1, eaves - round(size * rng.uniform(0.2, 0.4)))
    if chance(rng, 0.2):  # battlements
        crown = box(size, left - over, eaves - 2 * unit, right + over, eaves) | (
            box(size, left - over, eaves - 4 * unit, right + over, eaves) & ((grid(size)[0] // (2 * unit)) % 2 == 0)
        )
        canvas.flat(crown, wall, 3)
    else:
        inset = half * pick(rng, (0.0, 0.5, 1.0))
        points = [
            (left - over, eaves),
            (size / 2 - 0.5 - inset, top),
            (size / 2 - 0.5 + inset, top),
            (right + over, eaves),
        ]
        gable = polygon(size, [*points, (right + over, eaves + unit), (left - over, eaves + unit)])
        canvas.form(gable, roof, bulge(rng))
        canvas.darken(_courses(rng, size) & gable)
        canvas.seam(gable, 1)
    wide, tall = max(1, round(half * 0.3)), max(2, round((bottom - eaves) * 0.45))
    canvas.flat(box(size, size // 2 - wide, bottom - tall + 1, size // 2 + wide - 1, bottom), door, 1)
    _windows(canvas, rng, left, right, eaves + 2 * unit)
    canvas.outline()
    return canvas


def _windows(canvas: Canvas, rng: Generator, left: int, right: int, top: int) -> None:
    """Draw a row of lit or dark windows."""
    side = max(1, canvas.size // 12)
    if right - left < 4 * side:
        return
    lit = pick(rng, ((Ramp.GOLD, 4), (Ramp.SLATE, 1), (Ramp.BLUE, 3)))
    for x in (left + side, right - 2 * side + 1):
        canvas.flat(box(canvas.size, x, top, x + side - 1, top + side - 1), *lit)


def flower(rng: Generator, size: int) -> Canvas:
    """Draw a flower, bush or tree: a stem, leaves, and blossoms or a crown."""
    canvas, middle, unit = Canvas(size), size / 2 - 0.5, unit_of(size)
    green = Ramp.GREEN if chance(rng, 0.5) else ramps(rng, 1)[0]
    petal, heart = ramps(rng, 2)
    bottom, y = size - 2 - unit, size * rng.uniform(0.28, 0.45)
    bend = rng.uniform(-0.12, 0.12) * size
    stem = line(size, [(size // 2, bottom), (round(middle + bend), round(size * 0.65)), (size // 2, round(y))])
    for _ in range(max(unit - 1, round(size * rng.uniform(0, 0.06)))):
        stem |= shift(stem, 1, 0)
    canvas.form(stem, pick(rng, (green, Ramp.WOOD)), 0.9)
    for side in (-1, 1):
        if chance(rng, 0.7):
            leaf = ellipse(size, middle + side * size * 0.17, size * rng.uniform(0.6, 0.8), size * 0.14, size * 0.06)
            canvas.form(leaf, green, 0.9)
    reach = size * rng.uniform(0.1, 0.17)
    if chance(rng, 0.6):
        count = int(rng.integers(4, 8))
        for angle in np.arange(count) * 2 * np.pi / count + rng.uniform(0, 1):
            x, up = middle + 1.1 * reach * np.cos(angle), y + 1.1 * reach * np.sin(angle)
            canvas.form(ellipse(size, x, max(reach + 1, up), reach, reach), petal, 0.9)
        canvas.form(ellipse(size, middle, y, reach * 0.8, reach * 0.8), heart, 1.0)
    else:
        for _ in range(int(rng.integers(3, 7))):
            x, up = middle + rng.uniform(-0.2, 0.2) * size, max(2 * reach + 1, y + rng.uniform(-0.1, 0.15) * size)
            canvas.form(ellipse(size, x, up, 1.4 * reach, 1.4 * reach), green, 1.0)
        canvas.flat(scattered(rng, canvas.painted & (canvas.ramp == green), 0.08, unit), petal, 3)
    canvas.outline()
    return canvas


def floor(rng: Generator, size: int) -> Canvas:
    """Draw ground that fills the canvas: grass, sand, water, planks or flagstones."""
    canvas, unit = Canvas(size), unit_of(size)
    ground, other = ramps(rng, 2)
    whole = np.ones((size, size), np.bool_)
    canvas.flat(whole, ground, int(rng.integers(2, 4)))
    kind = rng.integers(4)
    if kind == 0:  # grass or sand
        for tone in (1, 2, 3, 4):
            canvas.flat(scattered(rng, whole, rng.uniform(0.02, 0.2), unit), ground, tone)
        if chance(rng, 0.4):
            canvas.flat(scattered(rng, whole, 0.03, 2 * unit), other, 3)
    elif kind == 1:  # waves
        shifts = np.round(smooth(rng, size, 0, size / 6, 8)).astype(int)
        rows = (np.arange(size)[:, None] + shifts) % max(4, size // 4)
        canvas.flat(np.asarray(rows == 0), ground, 4)
        canvas.flat(np.asarray(rows == 1), ground, 1)
    else:
        canvas.darken(_courses(rng, size), int(rng.integers(1, 3)), floor=0)
        canvas.flat(scattered(rng, whole, 0.06, unit), ground, int(rng.integers(1, 4)))
    return canvas


def wall(rng: Generator, size: int) -> Canvas:
    """Draw a wall that fills the canvas: bricks with lit and dark edges, some of another tone."""
    canvas, unit = Canvas(size), unit_of(size)
    brick, mortar, moss = ramps(rng, 3)
    joints = _courses(rng, size)
    for _ in range(unit - 1):
        joints |= shift(joints, 1, 1)
    stones = ~joints
    canvas.flat(stones, brick, 2)
    canvas.flat(stones & shift(joints, unit, unit), brick, 3)
    canvas.flat(stones & shift(joints, -unit, -unit), brick, 1)
    canvas.flat(joints, mortar, int(rng.integers(0, 2)))
    canvas.darken(scattered(rng, stones, 0.1, 2 * unit))
    if chance(rng, 0.3):
        drop = profile(size, 0, smooth(rng, size // 2, 1, size / 2 - 1, 5))
        canvas.flat(scattered(rng, drop & stones, 0.5, unit), moss, 2)
    return canvas


def _courses(rng: Generator, size: int) -> Mask:
    """Return the joints of bricks, planks or square stones."""
    x, y = grid(size)
    high, wide = (max(3, round(size * share)) for share in rng.uniform(0.12, 0.3, 2))
    row = y // high
    offset = row % 2 * (wide // 2) if chance(rng, 0.7) else 0 * row
    flat = y % high == 0
    return np.asarray(flat if chance(rng, 0.25) else flat | ((x + offset) % wide == 0))
