"""Mushrooms: a cap with its markings, gills beneath, a stem, and sometimes company."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .light import inflate, lambert, tube
from .palette import BRIGHT, Ramp
from .shapes import Mask, art, box, rim, rows, shift, silhouette

SIZE = 16
FLOOR = 13
CAPS: dict[str, tuple[int, ...]] = {
    "dome": (3, 5, 6, 6, 6, 6),
    "cone": (1, 2, 3, 4, 5, 6),
    "bell": (2, 3, 4, 4, 5, 6),
    "flat": (4, 6, 6, 5),
    "button": (3, 4, 5, 5, 5, 4),
    "witch": (1, 1, 2, 3, 5, 6),
    "tall": (2, 3, 4, 4, 4, 4, 4),
    "wide": (3, 5, 6, 6, 5),
    "funnel": (4, 6, 6, 5, 4),
    "egg": (2, 4, 5, 5, 5, 5, 4),
}
STEMS: tuple[tuple[int, ...], ...] = (
    (2, 2, 2, 2, 2, 2, 2),
    (1, 1, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 2, 2),
    (2, 2, 2, 2, 3, 3, 3),
    (3, 3, 3, 3, 3, 3, 3),
    (2, 2, 2, 3, 3, 3, 2),
    (3, 3, 2, 2, 2, 2, 3),
)
MARKS: tuple[tuple[str, ...], ...] = (
    (".....##.....", "##...##...##", "##........##", "...##..##...", "...##..##..."),
    ("....####....", "....####....", "##..####..##", "##...##...##", "##........##"),
    ("...#....#...", "......#.....", ".#........#.", "....#..#....", ".#....#...#."),
    ("............", "..##....##..", "..##.##.##..", ".....##.....", "##........##"),
    ("............", "............", "############", "............", "############"),
    ("...#.##.#...", "..#..##..#..", ".#..#..#..#.", ".#..#..#..#.", "#...#..#...#"),
    ("............", "..###.......", "..###...##..", "........##..", "...##......."),
)
FACES: tuple[tuple[str, ...], ...] = (
    ("k..k", "...."),
    ("k..k", "k..k"),
    ("k..k", ".kk."),
    ("w..w", "k..k"),
    ("k..k", "p..p"),
)


def _cap(canvas: Canvas, rng: Generator, ramp: Ramp, top: int, halves: tuple[int, ...]) -> Mask:
    """The cap and whatever is painted on it, the markings taking on its light."""
    cap = rows(SIZE, top, halves)
    light = lambert(inflate(cap), 0.9)
    canvas.lit(cap, ramp, light, (0.18, 0.62, 0.93))
    if chance(rng, 0.7):
        spot = pick(rng, [r for r in (Ramp.BONE, Ramp.BONE, Ramp.BONE, Ramp.GOLD, Ramp.TEAL, Ramp.PINK) if r != ramp])
        marks = art(SIZE, pick(rng, MARKS), 2, top + int(rng.integers(0, 2))) & cap
        low = 1 if spot == Ramp.BONE else 2
        canvas.recolour(marks, spot)
        canvas.tone[marks] = np.clip(canvas.tone[marks] + low, 2, 4)
    elif chance(rng, 0.5):
        hem = cap & ~shift(cap, 0, -1)
        canvas.recolour(hem, Ramp.BONE if ramp != Ramp.BONE else Ramp.WOOD)
    return cap


def _gills(canvas: Canvas, rng: Generator, cap_bottom: int, half: int, ramp: Ramp) -> None:
    """The underside: one narrow row of shaded gills."""
    under = rows(SIZE, cap_bottom + 1, (max(2, half - 1),))
    canvas.flat(under, ramp, 1)
    if chance(rng, 0.6):
        teeth = under.copy()
        teeth[:, 1::2] = False
        canvas.tone[teeth] = 2


def _stem(canvas: Canvas, rng: Generator, from_row: int, ramp: Ramp, halves: tuple[int, ...]) -> None:
    """The stem with the cap's shadow at its top, perhaps with a ring of skin."""
    halves = halves[-(FLOOR - from_row + 1) :]
    stem = rows(SIZE, FLOOR + 1 - len(halves), halves)
    canvas.lit(stem, ramp, tube(SIZE, SIZE / 2 - 0.5, max(halves) + 0.8), (0.25, 0.7, 0.97))
    canvas.darken(box(SIZE, 0, from_row, SIZE, from_row) & stem)
    if chance(rng, 0.3) and len(halves) > 4:
        ring = rows(SIZE, from_row + 2, (halves[2] + 1,))
        canvas.flat(ring, ramp, 3)
        canvas.darken(shift(ring, 0, 1) & stem)


def _small(canvas: Canvas, rng: Generator, ramp: Ramp, stem: Ramp) -> None:
    """A little one at the foot, on either side."""
    key: Key = {"4": (ramp, 4), "3": (ramp, 3), "2": (ramp, 2), "1": (ramp, 1), "s": (stem, 3), "d": (stem, 2)}
    drawing = pick(rng, ((".32.", "3221", ".sd."), ("32", "21", "sd"), (".32.", "4221", ".sd.", ".sd.")))
    left = pick(rng, (2, 14 - len(drawing[0])))
    canvas.seam(silhouette(SIZE, drawing, left, FLOOR + 1 - len(drawing)))
    canvas.stamp(drawing, left, FLOOR + 1 - len(drawing), key)


def draw(rng: Generator) -> Canvas:
    """One mushroom."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, (*BRIGHT, Ramp.RED, Ramp.WOOD, Ramp.BONE, Ramp.SLATE, Ramp.SKIN))
    stem_ramp = pick(rng, [r for r in (Ramp.BONE, Ramp.BONE, Ramp.BONE, Ramp.SKIN, Ramp.WOOD, Ramp.STEEL) if r != ramp])
    name = pick(rng, list(CAPS))
    halves = CAPS[name]
    if chance(rng, 0.2):
        halves = tuple(max(1, half - 1) for half in halves)
    top = 2 + int(rng.integers(0, 2 if len(halves) > 5 else 4))
    bottom = top + len(halves) - 1
    stem = pick(rng, [s for s in STEMS if max(s) < max(halves) - 1])
    _stem(canvas, rng, bottom + 1, stem_ramp, stem)
    if name not in ("button", "egg", "tall"):
        _gills(canvas, rng, bottom, halves[-1], stem_ramp)
    cap = _cap(canvas, rng, ramp, top, halves)
    canvas.tone[bottom + 1][rim(cap)[bottom] & canvas.painted[bottom + 1]] = 1
    if chance(rng, 0.3) and stem[-3] >= 2 and bottom < 10:
        key: Key = {"k": (Ramp.SLATE, 0), "w": (Ramp.BONE, 4), "p": (Ramp.PINK, 3)}
        canvas.stamp(pick(rng, FACES), 6, bottom + 3 if bottom < 9 else bottom + 2, key)
    if chance(rng, 0.3):
        _small(canvas, rng, ramp, stem_ramp)
    elif chance(rng, 0.3):
        tuft: Key = {"g": (Ramp.GREEN, 3), "d": (Ramp.GREEN, 2)}
        blades = pick(rng, (("g..", "dg."), (".g.", "gd."), ("g.g", "dgd")))
        canvas.stamp(blades, pick(rng, (2, 3, 10, 11)), FLOOR - 1, tuft)
    canvas.outline()
    return canvas
