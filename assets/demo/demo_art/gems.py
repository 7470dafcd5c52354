"""Gems: cuts seen from above or from the side, crystals, and stones in a setting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, chance, pick
from .light import ball
from .palette import BRIGHT, Ramp
from .shapes import Mask, box, ellipse, line, polygon, rim, shift

SIZE = 16
MIDDLE = SIZE / 2 - 0.5
Points = tuple[tuple[float, float], ...]
RAMPS = (*BRIGHT, Ramp.STEEL, Ramp.BONE, Ramp.SLATE)
# Outlines of cuts seen from above, in a square from -1 to 1, clockwise from the upper left.
CUTS: dict[str, Points] = {
    "octagon": ((-0.45, -1), (0.45, -1), (1, -0.45), (1, 0.45), (0.45, 1), (-0.45, 1), (-1, 0.45), (-1, -0.45)),
    "square": (
        (-0.78, -0.9),
        (0.78, -0.9),
        (0.9, -0.78),
        (0.9, 0.78),
        (0.78, 0.9),
        (-0.78, 0.9),
        (-0.9, 0.78),
        (-0.9, -0.78),
    ),
    "hexagon": ((-0.5, -1), (0.5, -1), (1, 0), (0.5, 1), (-0.5, 1), (-1, 0)),
    "tall hexagon": ((0, -1), (0.9, -0.5), (0.9, 0.5), (0, 1), (-0.9, 0.5), (-0.9, -0.5)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "pear": (
        (0, -1),
        (0.5, -0.3),
        (0.85, 0.25),
        (0.7, 0.75),
        (0.3, 1),
        (-0.3, 1),
        (-0.7, 0.75),
        (-0.85, 0.25),
        (-0.5, -0.3),
    ),
    "heart": (
        (0, -0.6),
        (0.45, -1),
        (0.9, -0.8),
        (1, -0.3),
        (0.6, 0.35),
        (0, 1),
        (-0.6, 0.35),
        (-1, -0.3),
        (-0.9, -0.8),
        (-0.45, -1),
    ),
    "triangle": ((-0.8, -1), (0.8, -1), (1, -0.6), (0.15, 1), (-0.15, 1), (-1, -0.6)),
    "shield": ((-0.8, -1), (0.8, -1), (1, -0.6), (0.7, 0.3), (0, 1), (-0.7, 0.3), (-1, -0.6)),
    "marquise": ((0, -1), (0.55, -0.45), (0.7, 0), (0.55, 0.45), (0, 1), (-0.55, 0.45), (-0.7, 0), (-0.55, -0.45)),
    "pentagon": ((0, -1), (1, -0.2), (0.62, 1), (-0.62, 1), (-1, -0.2)),
}
# Cuts seen from the side: every facet with its tone.
SIDES: tuple[tuple[tuple[int, Points], ...], ...] = (
    (
        (3, ((-0.6, -1), (0.6, -1), (0.35, -0.35), (-0.35, -0.35))),
        (4, ((-1, -0.35), (-0.6, -1), (-0.35, -0.35))),
        (2, ((1, -0.35), (0.6, -1), (0.35, -0.35))),
        (3, ((-1, -0.35), (-0.35, -0.35), (0, 1))),
        (2, ((-0.35, -0.35), (0.35, -0.35), (0, 1))),
        (1, ((0.35, -0.35), (1, -0.35), (0, 1))),
    ),
    (
        (4, ((-0.5, -1), (0, -1), (-0.5, -0.2), (-1, -0.2))),
        (3, ((0, -1), (0.5, -1), (0.5, -0.2), (-0.5, -0.2))),
        (2, ((0.5, -1), (1, -0.2), (0.5, -0.2))),
        (2, ((-1, -0.2), (-0.5, -0.2), (0, 1))),
        (3, ((-0.5, -0.2), (0, -0.2), (0, 1))),
        (2, ((0, -0.2), (0.5, -0.2), (0, 1))),
        (1, ((0.5, -0.2), (1, -0.2), (0, 1))),
    ),
    (
        (4, ((0, -1), (-0.8, -0.1), (0, 0.1))),
        (3, ((0, -1), (0, 0.1), (0.8, -0.1))),
        (2, ((-0.8, -0.1), (0, 0.1), (0, 1))),
        (1, ((0, 0.1), (0.8, -0.1), (0, 1))),
    ),
)


def _place(points: Sequence[tuple[float, float]], cx: float, cy: float, wide: float, high: float) -> Mask:
    """A polygon in unit coordinates on the canvas."""
    return polygon(SIZE, [(cx + x * wide, cy + y * high) for x, y in points])


def _side_tone(ax: float, ay: float, bx: float, by: float) -> int:
    """The tone of a bevel from the direction it faces."""
    nx, ny = by - ay, ax - bx
    facing = (nx * -0.64 + ny * -0.77) / max(float(np.hypot(nx, ny)), 1e-6)
    return 1 + int(facing > -0.6) + int(facing > 0.1) + int(facing > 0.75)


def _cut(canvas: Canvas, rng: Generator, ramp: Ramp, wide: float, high: float, cy: float) -> Mask:
    """A stone from above: bevels round a table with a streak of light."""
    points = CUTS[pick(rng, list(CUTS))]
    stone = _place(points, MIDDLE, cy, wide, high)
    inset = float(rng.uniform(0.45, 0.62))
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        facet = _place(((ax, ay), (bx, by), (0, 0)), MIDDLE, cy, wide, high) & stone
        canvas.flat(facet, ramp, _side_tone(ax * wide, ay * high, bx * wide, by * high))
    canvas.flat(stone & ~canvas.painted, ramp, 2)
    table = _place(points, MIDDLE, cy, wide * inset, high * inset)
    x, y = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    across = x - MIDDLE + y - cy
    style = int(rng.integers(4))
    canvas.flat(table, ramp, 3 if style < 2 else 2)
    if style == 0:
        canvas.flat(table & (across > 0), ramp, 2)
    elif style == 1:
        canvas.flat(table & (np.abs(across) < 1.5), ramp, 4)
    elif style == 2:
        canvas.flat(table & (across < -0.5), ramp, 3)
        canvas.flat(table & (across < -2.5), ramp, 4)
    else:
        canvas.flat(table & (across < 0) & shift(table, 1, 1), ramp, 4)
    return stone


def _side(canvas: Canvas, rng: Generator, ramp: Ramp, wide: float, high: float, cy: float) -> Mask:
    """A stone from the side."""
    for tone, points in pick(rng, SIDES):
        canvas.flat(_place(points, MIDDLE, cy, wide, high), ramp, tone)
    return canvas.painted


def _cabochon(canvas: Canvas, rng: Generator, ramp: Ramp, wide: float, high: float, cy: float) -> Mask:
    """A smooth stone, some with a slit like a cat's eye."""
    stone = ellipse(SIZE, MIDDLE, cy, wide, high)
    canvas.lit(stone, ramp, ball(SIZE, MIDDLE, cy, wide + 0.5, high + 0.5), (0.15, 0.6, 0.93))
    low = stone & shift(stone, -1, -1) & ~shift(stone, -2, -2)
    canvas.tone[low & (canvas.tone == 1)] = 2
    if chance(rng, 0.4):
        slit = ellipse(SIZE, MIDDLE, cy, 1.0, high * 0.6)
        canvas.flat(slit, ramp, pick(rng, (0, 4)))
    return stone


def _shard(canvas: Canvas, ramp: Ramp, foot: tuple[float, float], tip: tuple[float, float], half: float) -> None:
    """One crystal: a lit face, a middle face and a shaded one, ending in a point."""
    (fx, fy), (tx, ty) = foot, tip
    sx, sy = fx + (tx - fx) * 0.7, fy + (ty - fy) * 0.7
    whole = polygon(SIZE, [(fx - half, fy), (sx - half, sy), (tx, ty), (sx + half, sy), (fx + half, fy)])

    def face(left: float, right: float) -> Mask:
        """What of the crystal lies between two lines along it."""
        points = [(fx + left, fy + 1), (sx + left, sy), (tx, ty), (sx + right, sy), (fx + right, fy + 1)]
        return np.asarray(whole & polygon(SIZE, points))

    cap = polygon(SIZE, [(sx - half - 1, sy + 1), (tx, ty - 1), (tx, ty + 1), (sx - 0.2, sy + 1)])
    canvas.seam(whole)
    canvas.flat(whole, ramp, 2)
    canvas.flat(face(-half - 1, -0.3), ramp, 3)
    canvas.flat(face(half * 0.4, half + 2), ramp, 1)
    canvas.flat(whole & cap, ramp, 4)


def _cluster(canvas: Canvas, rng: Generator, ramp: Ramp) -> None:
    """One to three crystals on a bit of rock or on nothing."""
    count = int(rng.integers(1, 4))
    if count > 1:
        _shard(canvas, ramp, (5.5, 13), (float(rng.uniform(2.5, 4)), float(rng.integers(5, 8))), 1.6)
    if count > 2:
        _shard(canvas, ramp, (10, 13), (float(rng.uniform(11.5, 13)), float(rng.integers(4, 8))), 1.6)
    tip = MIDDLE + float(rng.integers(-1, 2)), float(rng.integers(1, 3))
    _shard(canvas, ramp, (MIDDLE, 13), tip, 2.2 if count > 1 else 3.0)
    canvas.ramp[:2], canvas.ramp[14:] = -1, -1
    canvas.ramp[:, :2], canvas.ramp[:, 14:] = -1, -1
    if chance(rng, 0.6):
        rock = pick(rng, (Ramp.SLATE, Ramp.WOOD, Ramp.STEEL))
        stone = polygon(SIZE, [(2, 14), (2, 12), (5, 10.6), (8, 11.6), (11, 10.6), (13.2, 12), (13.2, 14)])
        canvas.seam(stone)
        canvas.flat(stone, rock, 2)
        canvas.flat(stone & ~shift(stone, 0, 1), rock, 3)
        canvas.flat(stone & (~shift(stone, 0, -1) | (np.arange(SIZE) > 10)), rock, 1)


def _setting(canvas: Canvas, rng: Generator, stone: Mask) -> None:
    """A metal rim, or a loop to hang it by."""
    metal = pick(rng, (Ramp.GOLD, Ramp.GOLD, Ramp.STEEL))
    style = int(rng.integers(3))
    edge = rim(stone)
    if style == 0:
        canvas.flat(edge, metal, 2)
        canvas.flat(edge & (~shift(stone, 1, 0) | ~shift(stone, 0, 1)), metal, 3)
        canvas.flat(edge & ~shift(stone, -1, 0), metal, 1)
    top = int(np.nonzero(stone.any(axis=1))[0][0])
    if style > 0 and top >= 4:
        loop = box(SIZE, 6, top - 2, 9, top - 1) & ~box(SIZE, 7, top - 1, 8, top - 1)
        canvas.flat(loop, metal, 3)
        canvas.flat(box(SIZE, 9, top - 2, 9, top - 1), metal, 2)


def _finish(canvas: Canvas, rng: Generator, stone: Mask, ramp: Ramp) -> None:
    """A second colour, a setting, a glint."""
    if chance(rng, 0.13):
        other = pick(rng, [r for r in BRIGHT if r != ramp])
        lower = stone.copy()
        lower[: int(rng.integers(7, 10))] = False
        canvas.recolour(lower, other)
    if chance(rng, 0.35):
        _setting(canvas, rng, stone)


def draw(rng: Generator) -> Canvas:
    """One gem."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, RAMPS)
    wide, high = float(pick(rng, (4.2, 5.1, 6.1))), float(pick(rng, (4.2, 5.1, 6.1)))
    cy = MIDDLE + float(high < 6 and chance(rng, 0.5))
    kind = int(rng.integers(10))
    if kind < 5:
        _finish(canvas, rng, _cut(canvas, rng, ramp, wide, high, cy), ramp)
    elif kind < 7:
        _finish(canvas, rng, _side(canvas, rng, ramp, max(wide, 5.1), high, cy), ramp)
    elif kind == 7:
        _finish(canvas, rng, _cabochon(canvas, rng, ramp, wide, high, cy), ramp)
    else:
        _cluster(canvas, rng, ramp)
    canvas.outline()
    if chance(rng, 0.25):
        x, y = pick(rng, ((12, 3), (3, 3), (12, 12)))
        glint = line(SIZE, ((x - 1, y), (x + 1, y))) | line(SIZE, ((x, y - 1), (x, y + 1)))
        canvas.flat(glint, Ramp.BONE, 4)
    return canvas
