"""Slimes: jelly bodies with a face and, often, something growing on them or sunk in them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .palette import BRIGHT, Ramp
from .shapes import Mask, rows, shift

SIZE = 20
FLOOR = 17
BODIES = {
    "dome": (4, 6, 7, 7, 8, 8, 8, 8, 8, 8, 7),
    "drop": (1, 1, 2, 2, 3, 4, 6, 7, 8, 8, 8, 8, 8, 7),
    "tall": (3, 5, 6, 6, 6, 6, 6, 6, 7, 7, 8, 8, 7),
    "puddle": (3, 5, 6, 6, 7, 7, 8, 8, 8),
    "cube": (6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6),
    "pear": (3, 4, 5, 5, 5, 6, 7, 7, 8, 8, 8, 8, 7),
    "flan": (4, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8),
    "ball": (3, 5, 6, 7, 7, 8, 8, 8, 8, 7, 7, 6, 4),
}
INK: Key = {"#": (Ramp.SLATE, 0), "w": (Ramp.BONE, 4), "r": (Ramp.RED, 2), "p": (Ramp.PINK, 2), "t": (Ramp.RED, 3)}
# One eye each: the left one. Its column says how far its right edge stays from the middle.
EYES: dict[str, tuple[tuple[str, ...], int]] = {
    "dots": (("#", "#"), 2),
    "wide": (("##", "##"), 2),
    "tall": (("w#", "##", "##"), 1),
    "glossy": (("w#", "##"), 2),
    "round": ((".ww.", "ww#w", "ww#w", ".ww."), 0),
    "angry": (("#..", "##.", "w#."), 1),
    "happy": ((".#.", "#.#"), 1),
    "sleepy": (("###",), 1),
    "pupil": (("ww", "w#", "w#"), 1),
}
MOUTHS: dict[str, tuple[str, ...]] = {
    "smile": ("#..#", ".##."),
    "grin": ("#....#", ".####."),
    "open": ("####", "#tt#", ".##."),
    "small": ("##",),
    "flat": ("####",),
    "fang": ("####", "w..w"),
    "tongue": ("####", ".tt.", ".tt."),
    "frown": (".##.", "#..#"),
    "cat": ("#.##.#", ".#..#."),
}
GLEAM = (("ww.", "w.."), ("www", "w..", "w.."), (".ww", "w..", "w.."), ("ww", "ww"))


def _body(rng: Generator, name: str) -> Mask:
    """A silhouette standing on the floor, stretched by repeating one of its widest rows."""
    halves = list(BODIES[name])
    widest = halves.index(max(halves))
    room = {"drop": 1, "tall": 2, "puddle": 2, "cube": 1}.get(name, 2)
    for _ in range(int(rng.integers(room + 1))):
        halves.insert(widest, halves[widest])
    if chance(rng, 0.25) and name != "drop":
        halves = [half - 1 for half in halves]
    return rows(SIZE, FLOOR + 1 - len(halves), halves)


def _puddle(canvas: Canvas, rng: Generator, ramp: Ramp) -> None:
    """Feet of jelly where the body meets the floor."""
    base = int(np.count_nonzero(canvas.painted[FLOOR]))
    left = (SIZE - base) // 2 - 1
    if left < 2 or chance(rng, 0.5):
        return
    canvas.put(left, FLOOR, ramp, 2)
    canvas.put(SIZE - 1 - left, FLOOR, ramp, 1)


def _shade(canvas: Canvas, rng: Generator, body: Mask, ramp: Ramp, name: str) -> None:
    """A round body with a wet gleam; the cube instead shows a lit top and a shaded side."""
    ys, xs = np.nonzero(body)
    top, left = int(ys.min()), int(xs[ys == ys.min()].min())
    if name == "cube":
        canvas.flat(body, ramp, 2)
        canvas.flat(body & shift(body, 0, -1) & ~shift(body, 0, 3), ramp, 3)
        canvas.flat(body & ~shift(body, -2, 0), ramp, 1)
        canvas.flat(body & ~shift(body, 0, -1), ramp, 1)
        canvas.stamp(pick(rng, GLEAM), left + 1, top + 1, {"w": (ramp, 4)})
        return
    canvas.form(body, ramp, bulge=float(rng.uniform(0.8, 1.1)), steps=(0.16, 0.6, 0.93))
    glint = body & shift(body, 2, 2) & ~shift(body, 3, 3) & (canvas.tone == 4)
    if chance(rng, 0.6) and glint.any():
        canvas.form(body, ramp, bulge=0.9, steps=(0.16, 0.6, 9.0))
        y, x = (int(axis.mean()) for axis in np.nonzero(glint))
        canvas.stamp(pick(rng, GLEAM), x - 1, y - 1, {"w": (ramp, 4)})


def _topping(canvas: Canvas, rng: Generator, top: int, ramp: Ramp) -> None:
    """Something on the head, where there is room for it."""
    gold: Key = {"g": (Ramp.GOLD, 3), "d": (Ramp.GOLD, 1), "h": (Ramp.GOLD, 4), "r": (Ramp.RED, 2)}
    leaf: Key = {"l": (Ramp.GREEN, 3), "g": (Ramp.GREEN, 2), "d": (Ramp.GREEN, 1)}
    horn: Key = {"h": (Ramp.BONE, 4), "b": (Ramp.BONE, 3), "d": (Ramp.BONE, 1)}
    own: Key = {"h": (ramp, 4), "l": (ramp, 3), "b": (ramp, 2), "d": (ramp, 1)}
    bow: Key = {"l": (Ramp.PINK, 3), "b": (Ramp.PINK, 2), "d": (Ramp.PINK, 1)}
    options: list[tuple[tuple[str, ...], int, Key, bool]] = [
        (("h.gg.g", "hggggd", "hrggrd"), 7, gold, False),
        ((".ll.", "lgg.", "..gd", "...d"), 6, leaf, False),
        (("ll..dg", ".lggg.", "..gd.."), 7, leaf, False),
        (("h..", "hb.", ".bd"), 4, horn, True),
        (("bl.", "bbl", "dbb"), 4, own, True),
        (("hb", "bd", ".d"), 6, own, True),
        (("ll.lb", "lbdbb", "bb.bd"), 10, bow, False),
        ((".hl.", ".lb.", "hlbd"), 8, own, False),
    ]
    drawing, left, key, paired = pick(rng, options)
    y = top - len(drawing) + 1
    if paired:
        y += 1
    if y < 2:
        return
    if paired:
        canvas.stamp_pair(drawing, left, y, key)
    else:
        canvas.stamp(drawing, left, y, key)


def _face(canvas: Canvas, rng: Generator, body: Mask) -> None:
    """Eyes and a mouth on the lower middle of the body."""
    ys = np.nonzero(body.any(axis=1))[0]
    height = len(ys)
    line = int(ys[0]) + round(height * 0.52)
    name = pick(rng, list(EYES))
    drawing, gap = EYES[name]
    eye_top = line - len(drawing) + 1
    canvas.stamp_pair(drawing, SIZE // 2 - 1 - gap - len(drawing[0]), eye_top, INK)
    mouth = MOUTHS[pick(rng, list(MOUTHS))]
    if line + 1 + len(mouth) > FLOOR:
        mouth = MOUTHS["small"]
    if not chance(rng, 0.12):
        canvas.stamp(mouth, SIZE // 2 - len(mouth[0]) // 2, line + 2 if len(mouth) < 3 else line + 1, INK)


def _inside(canvas: Canvas, rng: Generator, body: Mask, ramp: Ramp) -> None:
    """Bubbles near the rim, or spots on the skin."""
    ys, xs = np.nonzero(body & (canvas.tone <= 2))
    for _ in range(int(rng.integers(3))):
        spot = int(rng.integers(len(ys)))
        x, y = int(xs[spot]), int(ys[spot])
        if body[y - 1 : y + 3, x - 1 : x + 3].sum() == 16 and (x < 5 or x > 13):
            tone = int(canvas.tone[y, x]) + 1
            canvas.tone[y : y + 2, x : x + 2] = min(tone, 3)
            canvas.put(x, y, ramp, 4)


def draw(rng: Generator) -> Canvas:
    """One slime."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, (*BRIGHT, Ramp.STEEL, Ramp.BONE, Ramp.SLATE))
    name = pick(rng, list(BODIES))
    body = _body(rng, name)
    top = int(np.nonzero(body.any(axis=1))[0][0])
    _shade(canvas, rng, body, ramp, name)
    _inside(canvas, rng, body, ramp)
    if name not in ("ball", "cube"):
        _puddle(canvas, rng, ramp)
    if chance(rng, 0.55):
        _topping(canvas, rng, top, ramp)
    _face(canvas, rng, body)
    canvas.outline()
    return canvas
