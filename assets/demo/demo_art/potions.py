"""Potions: a glass, something in it, a stopper, and now and then a label."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .light import inflate, lambert
from .palette import BRIGHT, Ramp
from .shapes import Mask, art, box, empty, rim, rows, shift, shrink

SIZE = 20
FLOOR = 17
GLASSES: dict[str, tuple[int, ...]] = {
    "round": (3, 5, 6, 7, 7, 7, 7, 6, 5, 3),
    "cone": (2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 6),
    "vial": (3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2),
    "square": (5, 6, 6, 6, 6, 6, 6, 6, 6, 5),
    "drop": (2, 3, 4, 5, 6, 6, 7, 7, 6, 5, 3),
    "gourd": (2, 4, 4, 4, 2, 4, 6, 7, 7, 7, 6, 4),
    "jar": (4, 5, 5, 5, 5, 5, 5, 5, 5, 4),
    "disc": (3, 5, 7, 7, 7, 7, 5, 3),
    "hex": (3, 4, 5, 6, 7, 7, 6, 5, 4, 3),
    "bell": (3, 4, 4, 4, 5, 5, 6, 7, 7, 7, 6),
    "bottle": (2, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4),
    "pot": (5, 6, 7, 7, 7, 7, 7, 6, 5),
}
HEART = (
    "..####..####..",
    ".############.",
    "##############",
    "##############",
    "##############",
    ".############.",
    "..##########..",
    "...########...",
    "....######....",
    ".....####.....",
)
LABELS: tuple[tuple[str, ...], ...] = (
    ("#.##.#", "######", ".####.", "..##.."),
    ("..##..", ".####.", "##..##", ".####."),
    ("..##..", "######", "######", "..##.."),
    (".####.", "##..##", ".####.", ".#..#."),
    ("..##..", "..##..", ".####.", ".####."),
    ("######", "......", "####..", "......"),
)


def _liquid(canvas: Canvas, rng: Generator, inner: Mask, ramp: Ramp) -> None:
    """Fills the glass to some height, sometimes in two layers, with a bright surface."""
    ys = np.nonzero(inner.any(axis=1))[0]
    height = len(ys)
    level = int(ys[0]) + int(rng.integers(0, max(1, round(height * 0.55))))
    wet = inner.copy()
    wet[:level] = False
    canvas.lit(wet, ramp, lambert(inflate(inner), 0.9), (0.28, 0.72, 9.0))
    if chance(rng, 0.22) and height - level > 4:
        low = wet.copy()
        low[: level + int(rng.integers(2, height - level - 1))] = False
        canvas.recolour(low, pick(rng, [other for other in BRIGHT if other != ramp]))
    if level > ys[0] and chance(rng, 0.25):
        foam = inner & ~wet
        foam[: level - 1] = False
        canvas.flat(foam, Ramp.BONE if ramp != Ramp.PINK else Ramp.SKIN, 4)
    canvas.tone[level][wet[level]] = 4
    canvas.tone[level][wet[level] & ~shift(wet, 1, 0)[level]] = 3


def _bubbles(canvas: Canvas, rng: Generator, inner: Mask) -> None:
    """A few bubbles, or a pair of sparks."""
    ys, xs = np.nonzero(shrink(inner) & (canvas.tone <= 2) & canvas.painted)
    if not len(ys):
        return
    for _ in range(int(rng.integers(4))):
        spot = int(rng.integers(len(ys)))
        x, y = int(xs[spot]), int(ys[spot])
        ramp = Ramp(int(canvas.ramp[y, x]))
        canvas.put(x, y, ramp, min(4, int(canvas.tone[y, x]) + 2))


def _stopper(canvas: Canvas, rng: Generator, lip: int, half: int) -> None:
    """Cork, metal cap, glass ball or a jewel above the lip."""
    style = int(rng.integers(5))
    cork = rows(SIZE, lip - 2, (half, half))
    if style <= 1:
        canvas.flat(cork, Ramp.WOOD, 2)
        canvas.stamp(("43", "32"), SIZE // 2 - half, lip - 2, {d: (Ramp.WOOD, int(d)) for d in "1234"})
        canvas.tone[lip - 2 : lip, SIZE // 2 + half - 1] = 1
    elif style == 2:
        canvas.form(rows(SIZE, lip - 3, (1, 2, 1)) | rows(SIZE, lip - 1, (1,)), pick(rng, BRIGHT))
    elif style == 3:
        canvas.form(rows(SIZE, lip - 2, (half, half + 1)), pick(rng, (Ramp.GOLD, Ramp.SLATE, Ramp.STEEL)))
    else:
        gem = pick(rng, BRIGHT)
        canvas.stamp((".43.", "4322", ".21."), SIZE // 2 - 2, lip - 3, {d: (gem, int(d)) for d in "1234"})


def _label(canvas: Canvas, rng: Generator, inner: Mask, ramp: Ramp) -> None:
    """A paper label with a sign, where the glass is wide enough for one."""
    ys = np.nonzero(inner.sum(axis=1) >= 8)[0]
    if len(ys) < 6:
        return
    top = int(ys[-1]) - 5
    paper = box(SIZE, 6, top, 13, top + 5) & inner
    canvas.flat(paper, Ramp.BONE, 3)
    canvas.flat(paper & ~shift(paper, 0, -1), Ramp.BONE, 2)
    canvas.flat(paper & ~shift(paper, -1, 0), Ramp.BONE, 2)
    sign = Ramp.SLATE if chance(rng, 0.4) else ramp
    canvas.stamp(pick(rng, LABELS), 7, top + 1, {"#": (sign, 1)})


def _glass(canvas: Canvas, body: Mask, tint: Ramp) -> None:
    """Empty glass: pale inside, a lit edge on the left and a shaded one on the right."""
    canvas.flat(body, tint, 3)
    edge = rim(body)
    right = edge & (~shift(body, -1, 0) | ~shift(body, 0, -1))
    canvas.flat(right, tint, 2)
    canvas.flat(edge & ~right & ~shift(body, 1, 0), tint, 4)


def _gleam(canvas: Canvas, rng: Generator, inner: Mask) -> None:
    """The window's reflection, down the upper left of the glass."""
    ys, xs = np.nonzero(inner & ~shift(inner, 1, 0))
    rows_here = [int(y) for y in ys if canvas.painted[y].sum() >= 6]
    if not rows_here:
        return
    top = rows_here[1] if len(rows_here) > 5 else rows_here[0]
    for y in range(top, min(top + int(rng.integers(2, 4)), FLOOR - 2)):
        x = int(xs[ys == y].min()) + 1
        canvas.put(x, y, Ramp.BONE, 4)
    low = FLOOR - 3
    right = np.nonzero(inner[low])[0]
    if len(right) > 6:
        canvas.tone[low - 1 : low + 1, right[-1] - 1] = np.minimum(canvas.tone[low - 1 : low + 1, right[-1] - 1] + 1, 4)


def _body(rng: Generator) -> tuple[Mask, int]:
    """The glass below its neck, and its top row."""
    if chance(rng, 0.09):
        return art(SIZE, HEART, 3, 8), 8
    halves = list(GLASSES[pick(rng, list(GLASSES))])
    widest = halves.index(max(halves))
    for _ in range(int(rng.integers(2))):
        if len(halves) < 12:
            halves.insert(widest, halves[widest])
    if chance(rng, 0.2) and max(halves) > 5:
        halves = [max(2, half - 1) for half in halves]
    top = FLOOR + 1 - len(halves)
    return rows(SIZE, top, halves), top


def draw(rng: Generator) -> Canvas:
    """One potion."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, BRIGHT)
    tint = pick(rng, (Ramp.STEEL, Ramp.STEEL, Ramp.BLUE, Ramp.TEAL, Ramp.BONE))
    tint = Ramp.STEEL if tint == ramp else tint
    body, top = _body(rng)
    half = pick(rng, (1, 2, 2)) if top > 6 else 2
    neck = rows(SIZE, top - 1 - int(top > 7), (half,) * (1 + int(top > 7))) if top > 5 else empty(SIZE)
    lip_row = int(np.nonzero((body | neck).any(axis=1))[0][0]) - 1
    lip = rows(SIZE, lip_row, (half + 1,))
    _glass(canvas, body | neck, tint)
    inner = shrink(body)
    _liquid(canvas, rng, inner, ramp)
    _bubbles(canvas, rng, inner)
    labelled = chance(rng, 0.25)
    if labelled:
        _label(canvas, rng, inner, ramp)
    _gleam(canvas, rng, inner)
    canvas.flat(lip, tint, 2)
    canvas.flat(lip & box(SIZE, 0, 0, 9, SIZE), tint, 4)
    _stopper(canvas, rng, lip_row, half)
    if neck.any() and chance(rng, 0.3):
        cord: Key = {"c": (pick(rng, (Ramp.WOOD, Ramp.RED, Ramp.GOLD)), 2)}
        canvas.stamp(("c" * (2 * half + 2),), SIZE // 2 - half - 1, top - 1, cord)
    canvas.outline()
    return canvas
