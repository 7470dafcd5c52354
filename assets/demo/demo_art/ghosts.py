"""Ghosts: sheets of mist with a wavy hem, hollow faces and the odd keepsake."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .palette import Ramp
from .shapes import Mask, art, empty, rows

SIZE = 20
HEADS = {
    "dome": (3, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6),
    "wide": (4, 6, 6, 7, 7, 7, 7, 7, 7, 7),
    "slim": (2, 4, 4, 5, 5, 5, 5, 5, 5, 6, 6, 6),
    "hood": (1, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6),
    "bell": (2, 4, 5, 5, 5, 5, 5, 6, 6, 7, 7, 8),
    "skull": (3, 5, 6, 6, 6, 6, 5, 5, 5, 5, 6),
}
GHOSTLY = (Ramp.BONE, Ramp.BONE, Ramp.BONE, Ramp.STEEL, Ramp.STEEL, Ramp.BLUE, Ramp.TEAL, Ramp.PURPLE, Ramp.PINK,
           Ramp.SLATE, Ramp.GREEN)  # fmt: skip
# Lower edges: per column pair from the middle outwards, how far the cloth hangs below the last row.
HEMS = ((2, 2, 1, 0, 1, 2, 2, 1), (1, 2, 2, 1, 1, 2, 2, 1), (3, 3, 2, 1, 1, 2, 2, 1), (0, 1, 2, 2, 1, 0, 1, 2))
TAILS = (
    (
        "###########",
        ".#########.",
        "..########.",
        "...######..",
        "....#####..",
        ".....####..",
        "......###..",
        ".......##..",
    ),
    ("############", ".##########.", "..#########.", "...########.", ".....######.", ".......####.", ".........##."),
)
EYES: dict[str, tuple[tuple[str, ...], int]] = {
    "hollow": ((".#.", "###", "###", "##."), 1),
    "tall": (("##", "##", "##"), 1),
    "dots": (("##", "##"), 1),
    "glint": (("w#", "##", "##"), 1),
    "angry": (("#..", "###", ".##"), 1),
    "sad": (("..#", ".##", "###"), 1),
    "round": (("###", "#w#", "###"), 1),
    "closed": (("#.#", ".#."), 1),
    "lamp": (("oo.", "ooo", ".oo"), 1),
}
MOUTHS: dict[str, tuple[str, ...]] = {
    "wail": (".##.", "####", "####", ".##."),
    "ooh": ("##", "##"),
    "smile": ("#..#", ".##."),
    "fangs": ("####", "w##w"),
    "tongue": ("####", ".pp.", ".pp."),
    "line": ("####",),
    "grin": ("######", "#w##w#", ".####."),
    "none": (),
}


def _hem(halves: tuple[int, ...], top: int, hem: tuple[int, ...]) -> Mask:
    """A body whose lower edge rises and falls, the same on both sides."""
    mask = rows(SIZE, top, halves)
    last = top + len(halves) - 1
    for step in range(halves[-1]):
        mask[last : last + hem[step] + 1, SIZE // 2 + step] = True
        mask[last : last + hem[step] + 1, SIZE // 2 - 1 - step] = True
    return mask


def _body(rng: Generator, name: str) -> tuple[Mask, int]:
    """The silhouette and its top row."""
    halves = list(HEADS[name])
    if chance(rng, 0.3):
        halves.insert(6, halves[6])
    if chance(rng, 0.3):
        halves, tail = halves[:9], pick(rng, TAILS)
        top = 18 - len(halves) - len(tail)
        top = max(2, top - int(rng.integers(2)))
        mask = rows(SIZE, top, halves)
        drawing = tail if chance(rng, 0.5) else tuple(row[::-1] for row in tail)
        mask |= art(SIZE, drawing, (SIZE - len(drawing[0])) // 2, top + len(halves))
        mask[18:] = False
        return mask, top
    hem = pick(rng, HEMS)
    top = max(2, 17 - len(halves) - max(hem[: halves[-1]]) + 1 - int(rng.integers(3)))
    mask = _hem(tuple(halves), top, hem)
    mask[18:] = False
    return mask, top


def _arms(rng: Generator, body: Mask, top: int) -> Mask:
    """Stubs held out, raised or hanging, as far as the cell has room."""
    left = int(np.nonzero(body[top + 7])[0][0])
    drawing, dy = pick(
        rng,
        (
            ((), 0),
            (("##.", "###", ".##"), 6),
            (("#..", "##.", ".##", ".##"), 4),
            ((".##", "###", "##."), 7),
            (("###", "###"), 7),
        ),
    )
    arms = empty(SIZE)
    if drawing and left >= 4:
        arms |= art(SIZE, drawing, left - 2, top + dy)
        arms |= arms[:, ::-1]
    return np.asarray(arms & ~body)


def _face(canvas: Canvas, rng: Generator, top: int, ramp: Ramp) -> None:
    """Eyes and mouth; a dark ghost has eyes that shine."""
    glow = pick(rng, (Ramp.GOLD, Ramp.TEAL, Ramp.RED, Ramp.BLUE))
    ink = (glow, 3) if ramp == Ramp.SLATE else (Ramp.SLATE, 0)
    key: Key = {"#": ink, "w": (Ramp.BONE, 4), "p": (Ramp.PINK, 2), "o": (glow, 3)}
    drawing, gap = EYES[pick(rng, list(EYES))]
    canvas.stamp_pair(drawing, SIZE // 2 - gap - len(drawing[0]), top + 4, key)
    mouth = MOUTHS[pick(rng, list(MOUTHS))]
    if mouth:
        canvas.stamp(mouth, SIZE // 2 - len(mouth[0]) // 2, top + 5 + len(drawing), key)
    if chance(rng, 0.2):
        blush = Ramp.PINK if ramp != Ramp.PINK else Ramp.RED
        canvas.stamp_pair(("bb",), SIZE // 2 - gap - len(drawing[0]) - 1, top + 4 + len(drawing), {"b": (blush, 3)})


def _hat(canvas: Canvas, rng: Generator, top: int) -> None:
    """A keepsake on the head."""
    key: Key = {
        "k": (Ramp.SLATE, 1),
        "l": (Ramp.SLATE, 3),
        "r": (Ramp.RED, 2),
        "g": (Ramp.GOLD, 3),
        "h": (Ramp.GOLD, 4),
        "d": (Ramp.GOLD, 2),
        "p": (Ramp.PINK, 2),
        "i": (Ramp.PINK, 3),
    }
    drawing = pick(
        rng,
        (
            (".lkkk.", ".lkkk.", ".rrrr.", "lkkkkk"),
            ("h.gg.d", "hggggd", "hgrrgd"),
            (".hggd.", ".d..d.", "..dd..", "......"),
            ("ii.pp", "ipppp", "pp.pp"),
            ("...kk...", "..lkkk..", "..rrrr..", "llkkkkkk"),
        ),
    )
    y = top - len(drawing) + 1
    if y >= 2:
        canvas.stamp(drawing, SIZE // 2 - (len(drawing[0]) + 1) // 2, y, key)


def draw(rng: Generator) -> Canvas:
    """One ghost."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, GHOSTLY)
    body, top = _body(rng, pick(rng, list(HEADS)))
    arms = _arms(rng, body, top)
    steps = (0.12, 0.5, 0.86) if ramp in (Ramp.BONE, Ramp.STEEL) else (0.2, 0.62, 0.9)
    canvas.form(body, ramp, bulge=0.9, steps=steps)
    canvas.form(arms, ramp, bulge=0.7, steps=steps)
    _face(canvas, rng, top, ramp)
    if chance(rng, 0.45):
        _hat(canvas, rng, top)
    canvas.outline()
    return canvas
