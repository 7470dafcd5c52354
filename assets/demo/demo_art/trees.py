"""Trees: lumps of leaves lit one by one, tiers of needles, palms, and bare winter wood."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .light import ball, inflate, lambert, tube
from .palette import Ramp
from .shapes import Mask, art, box, ellipse, empty, line, rows, shift

SIZE = 24
FLOOR = 21
MIDDLE = SIZE / 2 - 0.5
LEAVES = (
    Ramp.GREEN,
    Ramp.GREEN,
    Ramp.GREEN,
    Ramp.TEAL,
    Ramp.ORANGE,
    Ramp.RED,
    Ramp.PINK,
    Ramp.GOLD,
    Ramp.PURPLE,
    Ramp.STEEL,
)
FRUITS = (Ramp.RED, Ramp.GOLD, Ramp.ORANGE, Ramp.PINK, Ramp.PURPLE, Ramp.BONE, Ramp.BLUE)
# Lumps of a crown, back to front: x and y from the middle of the crown, then both radii.
Lumps = tuple[tuple[float, float, float, float], ...]
CROWNS: tuple[Lumps, ...] = (
    ((0, 0, 8.2, 7.2), (-4, 2, 4.6, 4.2), (4, 2, 4.6, 4.2), (0, -3, 5, 4.2)),
    ((-4.5, 2, 5, 4.6), (4.5, 2, 5, 4.6), (0, -2.5, 6, 5.2), (0, 3, 4.4, 3.6)),
    ((0, 1, 6.2, 8.2), (-2, 4, 4, 4), (2, 4, 4, 4), (0, -3, 4, 4.4)),
    ((0, 1, 9.6, 4.8), (-5, 2, 4.2, 3.4), (5, 2, 4.2, 3.4), (-1, -1, 5, 3.6)),
    ((-3, -3, 5, 4.6), (4, 0, 5.2, 4.6), (-4.5, 2.5, 4.4, 4), (1, 3.5, 4.8, 3.8)),
    ((3, -3, 5, 4.6), (-4, 0, 5.2, 4.6), (4.5, 2.5, 4.4, 4), (-1, 3.5, 4.8, 3.8)),
    ((0, -4, 4.4, 3.8), (-4, 1, 4.8, 4.2), (4, 1, 4.8, 4.2), (0, 3.5, 5, 3.6)),
)
PALMS: tuple[tuple[str, ...], ...] = (
    (
        "....###...",
        "..######..",
        ".####.####",
        "###..#####",
        "##.######.",
        "#.####.###",
        ".####..##.",
        ".##...###.",
        ".#....##..",
        "......#...",
    ),
    (
        "......###.",
        "..####.###",
        ".#########",
        "###..#####",
        "##.#######",
        "#.####.###",
        ".###...##.",
        ".##.......",
    ),
)
TIERS = (
    ((1, 2, 3, 4), (2, 3, 4, 6), (3, 5, 6, 8)),
    ((1, 1, 2, 3, 4), (2, 3, 4, 5, 6), (3, 4, 6, 7, 9)),
    ((1, 2, 3), (2, 3, 4), (3, 4, 6), (4, 6, 8)),
    ((1, 1, 2, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    ((1, 2, 3, 5), (2, 4, 5, 7), (3, 5, 7, 9)),
)


def _trunk(canvas: Canvas, rng: Generator, top: int, half: int, ramp: Ramp) -> None:
    """A trunk with spreading roots."""
    trunk = rows(SIZE, top, [half] * (FLOOR - top) + [half + 1])
    if half > 1 and chance(rng, 0.4):
        trunk |= box(SIZE, 8, FLOOR, 15, FLOOR)
    canvas.lit(trunk, ramp, tube(SIZE, MIDDLE, half + 1.2), (0.2, 0.66, 0.96))
    if chance(rng, 0.4):
        canvas.darken(box(SIZE, 11, top + 3, 11, FLOOR - 2))


def _leafy(canvas: Canvas, mask: Mask, ramp: Ramp, cx: float, cy: float, rx: float, ry: float) -> None:
    """One lump of leaves: a lit ball whose bands of tone have scalloped edges."""
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float64)
    scallop = 0.11 * np.where(((x + 2 * (y // 2)) // 2) % 2 == 0, 1.0, -1.0)
    canvas.lit(mask, ramp, ball(SIZE, cx, cy, rx, ry) + scallop, (0.12, 0.58, 0.9))


def _crown(canvas: Canvas, rng: Generator, lumps: Lumps, cy: float, ramp: Ramp, scale: float) -> Mask:
    """Lumps from back to front, each casting a thin shadow on those behind it."""
    crown = empty(SIZE)
    for dx, dy, rx, ry in lumps:
        cx, y, wide, high = MIDDLE + dx * scale, cy + dy * scale, rx * scale, ry * scale
        lump = ellipse(SIZE, cx, y, wide, high)
        lump[:2], lump[:, :2], lump[:, 22:] = False, False, False
        shadow = (shift(lump, 1, 1) | shift(lump, 0, 1)) & crown & ~lump
        canvas.tone[shadow] = 1
        _leafy(canvas, lump, ramp, cx, y, wide, high)
        crown |= lump
    return crown


def _fruit(canvas: Canvas, rng: Generator, crown: Mask, ramp: Ramp) -> None:
    """Fruit or blossom, kept apart and off the edge."""
    fruit = pick(rng, [other for other in FRUITS if other != ramp])
    big = chance(rng, 0.6)
    taken = empty(SIZE)
    ys, xs = np.nonzero(crown)
    for _ in range(int(rng.integers(20, 50))):
        spot = int(rng.integers(len(ys)))
        x, y = int(xs[spot]), int(ys[spot])
        if crown[y - 1 : y + 3, x - 1 : x + 3].sum() < 16 or taken[y - 2 : y + 4, x - 2 : x + 4].any():
            continue
        taken[y : y + 2, x : x + 2] = True
        canvas.stamp(("43", "21") if big else ("34", "43"), x, y, {d: (fruit, int(d)) for d in "1234"})


def _broadleaf(canvas: Canvas, rng: Generator) -> None:
    """Trunk, then a crown of lumps."""
    ramp, wood = pick(rng, LEAVES), pick(rng, (Ramp.WOOD, Ramp.WOOD, Ramp.WOOD, Ramp.BONE, Ramp.SLATE))
    scale = float(rng.uniform(0.8, 1.0))
    lumps = pick(rng, CROWNS)
    cy = 2.2 + max(ry - dy for _, dy, _, ry in lumps) * scale + float(rng.integers(2))
    _trunk(canvas, rng, int(cy), pick(rng, (1, 2, 2)), wood)
    under = empty(SIZE)
    crown_bottom = cy + max(dy + ry for _, dy, _, ry in lumps) * scale
    under[int(crown_bottom) : int(crown_bottom) + 3] = True
    crown = _crown(canvas, rng, lumps, cy, ramp, scale)
    canvas.darken(under & canvas.painted & ~crown)
    canvas.seam(crown)
    if chance(rng, 0.45):
        _fruit(canvas, rng, crown, ramp)


def _pine(canvas: Canvas, rng: Generator) -> None:
    """Tiers of needles, each with a ragged hem and a shadow under the one above."""
    ramp = pick(rng, (Ramp.GREEN, Ramp.TEAL, Ramp.TEAL, Ramp.BLUE, Ramp.GREEN, Ramp.ORANGE, Ramp.PURPLE, Ramp.STEEL))
    snowy, tiers = chance(rng, 0.3), pick(rng, TIERS)
    _trunk(canvas, rng, 17, pick(rng, (1, 1, 2)), Ramp.WOOD)
    overlap = 1 if sum(map(len, tiers)) > 16 else 0
    bottom = 19
    for tier in reversed(tiers):
        halves = [min(9, half) for half in tier]
        mask = rows(SIZE, bottom - len(halves) + 1, halves)
        canvas.seam(mask, 1)
        light = lambert(inflate(mask), 0.55)
        canvas.lit(mask, ramp, light, (0.3, 0.62, 0.86))
        ragged = mask & ~shift(mask, 0, -1)
        ragged[:, ::2] = False
        canvas.tone[ragged] = 1
        if snowy:
            canvas.flat(mask & ~shift(mask, 0, 1), Ramp.BONE if ramp != Ramp.STEEL else Ramp.BLUE, 4)
        bottom -= len(halves) - overlap
    if chance(rng, 0.2):
        canvas.stamp((".h.", "hgg", ".g."), 11, max(2, bottom - 1), {"h": (Ramp.GOLD, 4), "g": (Ramp.GOLD, 3)})
    if chance(rng, 0.25):
        lamps = pick(rng, FRUITS)
        for x, y in ((9, 18), (14, 17), (10, 13), (13, 12), (11, 8)):
            if canvas.ramp[y, x] == ramp:
                canvas.stamp(("3",), x, y, {"3": (lamps, 3)})


def _palm(canvas: Canvas, rng: Generator) -> None:
    """A leaning ringed trunk and drooping fronds."""
    ramp = pick(rng, (Ramp.GREEN, Ramp.GREEN, Ramp.TEAL, Ramp.ORANGE, Ramp.PINK, Ramp.GOLD))
    lean = pick(rng, (-3, -2, 2, 3))
    drawing, head = pick(rng, PALMS), int(rng.integers(4, 6))
    for y in range(head + 3, FLOOR + 1):
        t = (FLOOR - y) / (FLOOR - head - 3)
        x = round(MIDDLE + lean - lean * t**1.6)
        for step, tone in enumerate((3, 2, 1)):
            canvas.put(x - 1 + step, y, Ramp.WOOD, max(1, tone - (y % 3 == 0)))
    fronds = art(SIZE, drawing, 2, head - 2)
    fronds |= fronds[:, ::-1]
    canvas.seam(fronds)
    canvas.flat(fronds, ramp, 2)
    canvas.flat(fronds & ~shift(fronds, 0, 1), ramp, 3)
    canvas.flat(fronds & ~shift(fronds, 0, 1) & (np.arange(SIZE) < 12), ramp, 4)
    canvas.flat(fronds & ~shift(fronds, 0, -1), ramp, 1)
    if chance(rng, 0.6):
        nut = pick(rng, (Ramp.WOOD, Ramp.GOLD, Ramp.RED))
        canvas.stamp(("32.32", "21.21"), 9, head + 4, {d: (nut, int(d)) for d in "123"})


def _bare(canvas: Canvas, rng: Generator) -> None:
    """Forked branches, sometimes with snow or a few last leaves."""
    ramp = pick(rng, (Ramp.WOOD, Ramp.SLATE, Ramp.BONE, Ramp.PURPLE, Ramp.STEEL))
    tree = rows(SIZE, 11, [1] * 4 + [2] * 6 + [3])
    for side in (-1, 1):
        high, out, fork = int(rng.integers(2, 5)), int(rng.integers(5, 9)), int(rng.integers(5, 8))
        root = 12 if side > 0 else 11
        arm = ((root, 13), (root + side * 4, 9), (root + side * out, high + 2))
        for path in (arm, ((root, 10), (root + side * 2, high)), ((root + side * 4, 9), (root + side * 8, fork + 2))):
            limb = line(SIZE, path)
            tree |= limb | (shift(limb, 0, 1) if path is arm else limb)
    tree[:2] = False
    canvas.flat(tree, ramp, 2)
    canvas.flat(tree & ~shift(tree, 1, 0), ramp, 3)
    canvas.flat(tree & ~shift(tree, -1, 0) & shift(tree, 1, 0), ramp, 1)
    tips = tree & ~shift(tree, 0, 1)
    tips[13:] = False
    style = int(rng.integers(3))
    if style == 0:
        canvas.flat(tips, Ramp.BONE if ramp != Ramp.BONE else Ramp.BLUE, 4)
    elif style == 1:
        leaf = pick(rng, (Ramp.ORANGE, Ramp.RED, Ramp.GOLD, Ramp.PINK, Ramp.GREEN))
        ys, xs = np.nonzero(tips)
        for y, x in list(zip(ys.tolist(), xs.tolist(), strict=True))[::3]:
            canvas.stamp(("34", "23"), x - 1, max(2, y - 1), {d: (leaf, int(d)) for d in "234"})


def _column(canvas: Canvas, rng: Generator) -> None:
    """Cypress, poplar or clipped topiary."""
    ramp = pick(rng, LEAVES)
    halves = pick(
        rng,
        (
            (1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 4, 4, 3),
            (2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 4, 3),
            (1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 6, 5),
        ),
    )
    _trunk(canvas, rng, 15, pick(rng, (1, 2)), Ramp.WOOD)
    mask = rows(SIZE, 3, halves)
    canvas.seam(mask)
    _leafy(canvas, mask, ramp, MIDDLE, 10.0, max(halves) + 0.8, 9.0)
    if chance(rng, 0.4):
        _fruit(canvas, rng, mask, ramp)


def draw(rng: Generator) -> Canvas:
    """One tree."""
    canvas = Canvas(SIZE)
    kinds = (_broadleaf, _broadleaf, _broadleaf, _broadleaf, _pine, _pine, _palm, _bare, _column)
    pick(rng, kinds)(canvas, rng)
    if chance(rng, 0.35):
        tuft: Key = {"g": (Ramp.GREEN, 3), "d": (Ramp.GREEN, 2)}
        blades = pick(rng, (("g..", "dg."), (".g.", "gd."), ("g.g", "dgd")))
        canvas.stamp(blades, pick(rng, (5, 6, 15, 16)), FLOOR - 1, tuft)
    canvas.outline()
    return canvas
