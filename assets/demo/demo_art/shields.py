"""Shields: an outline, a metal rim, a divided field, and a charge or a boss."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .light import inflate, lambert
from .palette import BRIGHT, Ramp
from .shapes import Mask, art, ellipse, grid, rim, rows, shift, shrink

SIZE = 20
MIDDLE = SIZE / 2 - 0.5
OUTLINES: dict[str, tuple[int, ...]] = {
    "heater": (8, 8, 8, 8, 8, 8, 8, 8, 7, 7, 6, 6, 5, 4, 3, 1),
    "kite": (4, 6, 7, 7, 7, 7, 7, 6, 6, 5, 5, 4, 4, 3, 2, 1),
    "tower": (5, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 5),
    "broad": (7, 8, 8, 8, 8, 8, 8, 8, 8, 7, 7, 6, 5, 3, 1),
    "hexagon": (3, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8, 8, 7, 6, 5, 3),
    "eared": (8, 8, 7, 7, 7, 7, 7, 7, 8, 8, 7, 7, 6, 5, 3, 1),
    "spade": (6, 7, 8, 8, 8, 8, 7, 7, 6, 6, 5, 4, 4, 3, 2, 1),
    "lozenge": (1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1),
}
# What replaces the first rows of some shields.
CRESTS: tuple[tuple[str, ...], ...] = (
    ("##............##", "####........####", "################"),
    ("......####......", "..############..", "################"),
    ("##....####....##", "################", "################"),
    ("...###....###...", ".######..######.", "################"),
)
CHARGES: tuple[tuple[str, ...], ...] = (
    ("...##...", "...##...", "########", ".######.", "..####..", ".##..##."),
    ("...##...", "...##...", "########", "########", "...##...", "...##...", "...##..."),
    ("..####..", ".##.....", "##......", "##......", ".##.....", "..####.."),
    ("..####..", ".######.", ".#.##.#.", ".######.", "..####..", "..#..#.."),
    ("...##...", "...##...", "...##...", "...##...", ".######.", "...##...", "...##..."),
    ("#..##..#", "##.##.##", "########", "########", "........", "########"),
    (".##..##.", "########", "########", ".######.", "..####..", "...##..."),
    ("...##...", "..####..", ".##..##.", "##.##.##", ".##..##.", "..####..", "...##..."),
    ("...#....", "..##....", "..###.#.", ".######.", ".######.", "..####.."),
    ("...##...", "..####..", ".##..##.", "##....##", "#......#"),
    ("...##...", ".######.", "..####..", "########", "...##...", "..####.."),
    ("##....##", ".##..##.", "..####..", "..####..", ".##..##.", "##....##"),
    ("...##...", "..####..", ".######.", "########", "...##...", "...##..."),
    ("########", "##.##.##", "########", ".######.", ".######.", "..#..#.."),
)
CALM = (0, 1, 3, 6)
"""Divisions on which a charge can still be read."""
METALS = (Ramp.STEEL, Ramp.STEEL, Ramp.GOLD, Ramp.GOLD, Ramp.SLATE, Ramp.WOOD, Ramp.BONE)
FIELDS = (*BRIGHT, Ramp.SLATE, Ramp.WOOD, Ramp.BONE, Ramp.STEEL)


def _outline(rng: Generator) -> Mask:
    """A silhouette: round, oval or from the list, with a crest now and then."""
    kind = int(rng.integers(11))
    if kind == 0:
        return ellipse(SIZE, MIDDLE, MIDDLE, 8.2, 8.2)
    if kind == 1:
        radius = float(pick(rng, (6.2, 7.2)))
        return ellipse(SIZE, MIDDLE, MIDDLE, radius, radius)
    if kind == 2:
        return ellipse(SIZE, MIDDLE, MIDDLE, 6.2, 8.2)
    halves = OUTLINES[pick(rng, list(OUTLINES))]
    mask = rows(SIZE, 2, halves)
    if halves[2] == 8 and halves[0] >= 6 and chance(rng, 0.45):
        mask[2:5] = False
        mask |= art(SIZE, pick(rng, CRESTS), 2, 2)
    elif chance(rng, 0.3) and max(halves) == 8 and halves[0] >= 4:
        mask = rows(SIZE, 2, [max(1, half - 1) for half in halves])
    return mask


def _division(rng: Generator) -> tuple[Mask, bool]:
    """Where the second colour of the field goes, and whether that leaves room for a charge."""
    x, y = grid(SIZE)
    dx, dy = x - MIDDLE, y - 8.5
    options = (
        dx > 0,
        dy > 0,
        (dx > 0) != (dy > 0),
        dx + dy > 0,
        (np.abs(dx) < 1.6) | (np.abs(dy) < 1.6),
        (np.abs(dx - dy) < 2.1) | (np.abs(dx + dy) < 2.1),
        np.abs(dx) < 2.6,
        np.abs(dy) < 2.6,
        (np.abs(dy + 2 - np.abs(dx) * 0.9 + 2) < 2.0) & (dy > -9),
        ((x - 2) // 4 % 2 == 0) != ((y - 2) // 4 % 2 == 0),
        np.abs(dx - dy) < 2.6,
        (np.floor(np.abs(dx) + 0.5) // 2) % 2 == 1,
        (y - 3) // 3 % 2 == 1,
    )
    chosen = int(rng.integers(len(options)))
    return np.asarray(options[chosen]), chosen in CALM


def _edge(canvas: Canvas, rng: Generator, shield: Mask, metal: Ramp) -> None:
    """The rim: bright where it faces the light, dark where it turns away, with rivets on some."""
    edge = rim(shield)
    lit = edge & (~shift(shield, 1, 0) | ~shift(shield, 0, 1))
    canvas.flat(edge, metal, 1)
    canvas.flat(lit, metal, 3)
    canvas.flat(lit & (~shift(shield, -1, 0) | ~shift(shield, 0, -1)), metal, 2)
    y, x = np.nonzero(lit)
    near = x + y <= int((x + y).min()) + 5
    canvas.tone[y[near], x[near]] = 4
    if chance(rng, 0.35):
        inner = shrink(shield)
        canvas.darken(inner & (~shift(inner, 1, 0) | ~shift(inner, 0, 1)))


def _boss(canvas: Canvas, rng: Generator, metal: Ramp) -> None:
    """A metal dome in the middle, or a set stone."""
    radius = float(pick(rng, (1.6, 2.3, 2.9)))
    dome = ellipse(SIZE, MIDDLE, 8.5, radius, radius)
    canvas.seam(dome, 1 if radius < 2 else 0)
    ramp = metal if chance(rng, 0.7) else pick(rng, BRIGHT)
    canvas.lit(dome, ramp, lambert(inflate(dome)), (0.2, 0.62, 0.9))
    canvas.put(8 if radius > 2 else 9, 7 if radius > 2 else 8, ramp, 4)


def _charge(canvas: Canvas, rng: Generator, inner: Mask, ramp: Ramp) -> None:
    """An emblem, light on its upper edge, with a thin shadow below it."""
    drawing = pick(rng, CHARGES)
    mask = art(SIZE, drawing, 6, 9 - len(drawing) // 2 - 1) & inner
    canvas.darken((shift(mask, 1, 1) | shift(mask, 0, 1)) & inner & ~mask)
    dark = ramp == Ramp.SLATE
    canvas.flat(mask, ramp, 0 if dark else 3)
    if not dark:
        canvas.flat(mask & ~shift(mask, 0, 1) & ~shift(mask, 1, 0), ramp, 4)
        canvas.flat(mask & ~shift(mask, 0, -1), ramp, 2)


def _planks(canvas: Canvas, inner: Mask) -> None:
    """Joints between boards."""
    joint = inner.copy()
    joint[:, [x for x in range(SIZE) if x not in (5, 9, 13)]] = False
    canvas.darken(joint, 1)


def _spikes(canvas: Canvas, shield: Mask, metal: Ramp) -> None:
    """Points on four sides of a small round shield."""
    key: Key = {"4": (metal, 4), "3": (metal, 3), "2": (metal, 2), "1": (metal, 1)}
    ys, xs = np.nonzero(shield)
    top, left = int(ys.min()), int(xs.min())
    if top < 3 or left < 3:
        return
    canvas.stamp(("42",), 9, top - 1, key)
    canvas.stamp(("31",), 9, SIZE - top, key)
    canvas.stamp(("4", "2"), left - 1, 9, key)
    canvas.stamp(("2", "1"), SIZE - left, 9, key)


def draw(rng: Generator) -> Canvas:
    """One shield."""
    canvas = Canvas(SIZE)
    field = pick(rng, FIELDS)
    metal = pick(rng, [r for r in METALS if r != field])
    second = pick(rng, [r for r in FIELDS if r not in (field, metal)])
    shield = _outline(rng)
    inner = shrink(shield)
    canvas.lit(inner, field, lambert(inflate(shield), 0.5), (0.3, 0.66, 0.97))
    if field == Ramp.WOOD or chance(rng, 0.12):
        _planks(canvas, inner)
    divided, calm = chance(rng, 0.65), True
    if divided:
        division, calm = _division(rng)
        canvas.recolour(division & inner, second)
    _edge(canvas, rng, shield, metal)
    centre = float(rng.random())
    if calm and centre < 0.62:
        third = (metal, Ramp.BONE, Ramp.SLATE, Ramp.GOLD)
        _charge(canvas, rng, inner, pick(rng, [r for r in third if r != field and (not divided or r != second)]))
    elif centre < 0.82:
        _boss(canvas, rng, metal)
    if chance(rng, 0.5):
        _spikes(canvas, shield, metal)
    canvas.outline()
    return canvas
