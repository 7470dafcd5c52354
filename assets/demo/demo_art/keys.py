"""Keys: a bow to hold, a shaft, and bits at the end."""

from __future__ import annotations

from numpy.random import Generator

from .canvas import Canvas, chance, pick
from .palette import BRIGHT, Ramp
from .shapes import art, box, shift

SIZE = 20
TIP = 17
LEFT = SIZE // 2 - 1
METALS = (Ramp.GOLD, Ramp.GOLD, Ramp.GOLD, Ramp.STEEL, Ramp.STEEL, Ramp.WOOD, Ramp.SLATE, Ramp.BONE, *BRIGHT)
# Bows: '#' metal, 'o' a stone or a second metal, blanks show through.
BOWS: tuple[tuple[str, ...], ...] = (
    ("..####..", ".##..##.", "##....##", "##....##", ".##..##.", "..####.."),
    (".######.", "##....##", "#......#", "##....##", ".######.", "...##..."),
    (".##..##.", "########", "##.##.##", "##....##", ".##..##.", "..####.."),
    ("...##...", "..####..", ".##..##.", ".##..##.", "..####..", "...##..."),
    ("..####..", "..#..#..", "########", "#..##..#", "#..##..#", "########"),
    (".######.", "########", "#oo##oo#", "#oo##oo#", "########", ".##..##.", "..####.."),
    ("#..##..#", "#..##..#", "##.##.##", "########", "#oo##oo#", "########"),
    ("########", "#......#", "#..oo..#", "#..oo..#", "#......#", "########"),
    ("...##...", "..####..", ".##oo##.", "##oooo##", ".##oo##.", "..####.."),
    (".##..##.", "########", "###oo###", "###oo###", ".######.", "..####.."),
    ("..####..", ".######.", "##.oo.##", "##.oo.##", ".######.", "..####.."),
    ("##....##", "###..###", "#.####.#", "##.##.##", ".######.", "...##..."),
    (".##..##.", "########", ".##..##.", "...##...", ".##..##.", ".##..##.", "..####.."),
    ("..####..", ".#oooo#.", "#oo##oo#", "#oo##oo#", ".#oooo#.", "..####.."),
    ("..######..", ".##....##.", "##......##", "##......##", "##......##", ".##....##.", "..######.."),
    ("...####...", "..##..##..", ".###..###.", "##.####.##", "##..##..##", ".########.", "....##...."),
    ("##..##..##", "###.##.###", ".########.", ".##.##.##.", "..######..", "....##...."),
    ("....##....", "...####...", "##########", ".###oo###.", "..##oo##..", ".########.", ".##.##.##."),
    (".########.", "##......##", "#..#..#..#", "#...##...#", "#..#..#..#", "##......##", ".########."),
    ("..######..", ".##.##.##.", "##..##..##", "##########", "##..##..##", ".##.##.##.", "..######.."),
)
BITS: tuple[tuple[int, ...], ...] = (
    (3, 0, 3),
    (2, 3, 3),
    (3, 1, 3),
    (3, 3, 0, 2),
    (2, 0, 2, 0),
    (4, 3, 0, 0),
    (2, 0, 4),
    (3, 3),
    (3, 3, 0, 4, 4),
    (4, 0, 3, 4),
    (3, 0, 3, 0, 3),
    (4, 1, 4, 1),
    (4, 4, 2, 4, 4),
    (4, 2, 4),
)


def _shade(canvas: Canvas, left: int, top: int, drawing: tuple[str, ...], ramp: Ramp) -> None:
    """A flat bow with a lit upper left edge and a dark lower right one."""
    mask = art(SIZE, drawing, left, top)
    canvas.flat(mask, ramp, 2)
    canvas.flat(mask & ~shift(mask, -1, 0), ramp, 2)
    canvas.flat(mask & ~shift(mask, 0, -1), ramp, 1)
    canvas.flat(mask & (~shift(mask, 1, 0) | ~shift(mask, 0, 1)), ramp, 3)
    canvas.flat(mask & ~shift(mask, 1, 0) & ~shift(mask, 0, 1), ramp, 4)
    right = mask & ~shift(mask, -1, 0) & shift(mask, 1, 0)
    canvas.flat(right, ramp, 1)


def _bits(canvas: Canvas, rng: Generator, ramp: Ramp, bottom: int) -> None:
    """Teeth to the right, mirrored to the left on some."""
    bits = pick(rng, BITS)
    both = 0 in bits and chance(rng, 0.3)
    for step, length in enumerate(bits):
        y = bottom - len(bits) + 1 + step
        for x in range(LEFT + 2, LEFT + 2 + length):
            canvas.put(x, y, ramp, 3 if step == 0 or not bits[step - 1] else 2)
        if length:
            canvas.put(LEFT + 1 + length, y, ramp, 1)
        for x in range(LEFT - min(length, 2), LEFT) if both else ():
            canvas.put(x, y, ramp, 3)


def _collar(canvas: Canvas, rng: Generator, ramp: Ramp, top: int) -> None:
    """Rings where the shaft meets the bow."""
    for y in pick(rng, ((), (top,), (top, top + 2), (top + 1,))):
        canvas.flat(box(SIZE, LEFT - 1, y, LEFT + 2, y), ramp, 2)
        canvas.put(LEFT - 1, y, ramp, 4)
        canvas.put(LEFT + 2, y, ramp, 1)


def draw(rng: Generator) -> Canvas:
    """One key."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, METALS)
    bow_ramp = pick(rng, METALS) if chance(rng, 0.35) else ramp
    stone = pick(rng, [r for r in (*BRIGHT, Ramp.BONE) if r not in (ramp, bow_ramp)])
    drawing = pick(rng, BOWS)
    below = 2 + len(drawing)
    canvas.flat(box(SIZE, LEFT, below - 1, LEFT, TIP), ramp, 3)
    canvas.flat(box(SIZE, LEFT + 1, below - 1, LEFT + 1, TIP), ramp, 2)
    canvas.put(LEFT + 1, TIP, ramp, 1)
    canvas.put(LEFT, below, ramp, 4)
    corner = LEFT + 1 - len(drawing[0]) // 2
    _shade(canvas, corner, 2, drawing, bow_ramp)
    inlay = art(SIZE, [row.replace("#", ".").replace("o", "#") for row in drawing], corner, 2)
    canvas.flat(inlay, stone, 2)
    canvas.flat(inlay & ~shift(inlay, 0, 1), stone, 3)
    canvas.flat(inlay & ~shift(inlay, 0, 1) & ~shift(inlay, 1, 0), stone, 4)
    if not inlay.any() and chance(rng, 0.35):
        canvas.stamp(("43", "32"), LEFT, 4, {d: (stone, int(d)) for d in "234"})
    _collar(canvas, rng, bow_ramp, below)
    _bits(canvas, rng, ramp, TIP - int(rng.integers(2)))
    canvas.outline()
    return canvas
