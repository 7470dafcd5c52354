"""Bats: a furry ball between two hand-drawn wings."""

from __future__ import annotations

from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .palette import Ramp
from .shapes import art, mirror, rows

SIZE = 24
# Left wings; the right edge of each drawing tucks in under the body. '#' membrane, 'b' bone, 'd' fold.
WINGS: tuple[tuple[tuple[str, ...], int], ...] = (
    (
        (
            "b........",
            "bb.......",
            "b#b......",
            "b##b.....",
            "b#d#b....",
            "b#d##bb..",
            "##d##d#bb",
            ".#d##d###",
            ".##.#d##d",
            "..#.##.##",
            "....#..##",
            ".......#.",
        ),
        2,
    ),
    (
        (
            "...b.....",
            "..b#b....",
            ".b#d#b...",
            "b##d##bbb",
            "b#d##d##d",
            "##d##d##d",
            "##.##d##d",
            "#..#.##.#",
            "#.....#..",
        ),
        5,
    ),
    (
        (
            "....bb...",
            "..bb##bbb",
            ".b##d##d#",
            ".b#d##d##",
            "b##d##d##",
            "b#d##d##.",
            "b#d##.#..",
            "##d.#....",
            "##..#....",
            "#........",
        ),
        7,
    ),
    (
        (
            ".b.......",
            "bb.......",
            "b#b....b.",
            "b##b..b#b",
            "b#d#bb##d",
            "b#d##d##d",
            "b#d##d##d",
            "##.##.#d#",
            ".#..#..##",
            ".......#.",
        ),
        3,
    ),
    (
        (
            "bbb......",
            "b##bb....",
            ".b#d#bb..",
            ".b##d##bb",
            "..#d##d##",
            "..##d##d#",
            "..#.##.d#",
            "....#..##",
        ),
        5,
    ),
)
EARS: tuple[tuple[str, ...], ...] = (
    ("o..", "oo.", "oio", "oio"),
    (".o.", "ooo", "oio", "oio"),
    ("o.", "oo", "oo"),
    ("o..", "oo.", "oio", "oio", "oio"),
    (".o", "oo", "oo"),
)
EYES: tuple[tuple[str, ...], ...] = (
    ("e", "e"),
    ("ee", "ee"),
    ("e.", "ee"),
    ("ek", "ek"),
    ("ww", "wk"),
    ("www", "wkk", "wkk"),
    ("kk", "wk"),
    ("kkk",),
)
MOUTHS: tuple[tuple[str, ...], ...] = (
    ("kkkk", "w..w"),
    ("wkkw",),
    ("k..k", ".kk."),
    ("kk",),
    ("kkkk",),
    ("kkkk", ".w.."),
)
BODIES = (
    (3, 4, 4, 4, 4, 3, 2),
    (2, 3, 4, 4, 4, 4, 3, 2),
    (2, 3, 3, 3, 3, 3, 3, 2),
    (3, 4, 4, 4, 3, 3, 2, 1),
    (3, 4, 4, 4, 4, 4, 4, 3),
    (2, 3, 3, 3, 3, 4, 4, 3, 2),
)
WING_RAMPS = (Ramp.PURPLE, Ramp.SLATE, Ramp.RED, Ramp.WOOD, Ramp.BLUE, Ramp.TEAL, Ramp.PINK, Ramp.GREEN, Ramp.ORANGE)


def _wings(canvas: Canvas, rng: Generator, ramp: Ramp) -> None:
    """Both wings, the bones of the far one a touch darker as it turns from the light."""
    drawing, top = pick(rng, WINGS)
    top += int(rng.integers(-1, 2))
    canvas.stamp_pair(drawing, 2, max(top, 2), {"#": (ramp, 2), "b": (ramp, 3), "d": (ramp, 1)})
    near = canvas.painted & (canvas.tone == 3)
    far = near.copy()
    far[:, : SIZE // 2] = False
    canvas.tone[far] = 2
    if chance(rng, 0.5):
        near[:, 6:] = False
        near[max(top, 2) + 3 :] = False
        canvas.tone[near] = 4


def _face(canvas: Canvas, rng: Generator, top: int, ramp: Ramp, wide: bool) -> None:
    """Eyes and mouth, or one huge eye."""
    glow = pick(rng, [r for r in (Ramp.GOLD, Ramp.RED, Ramp.GREEN, Ramp.TEAL) if r != ramp])
    key: Key = {
        "e": (glow, 3),
        "k": (Ramp.SLATE, 0),
        "w": (Ramp.BONE, 4),
        "s": (Ramp.BONE, 2),
        "i": (glow, 2),
    }
    middle = SIZE // 2
    if chance(rng, 0.15) and wide:
        canvas.stamp((".wwww.", "wwiiww", "wikkiw", "wikwiw", "wwiisw", ".wsss."), middle - 3, top + 2, key)
        return
    eye = pick(rng, EYES)
    canvas.stamp_pair(eye, middle - 1 - len(eye[0]), top + 2, key)
    mouth = pick(rng, MOUTHS)
    canvas.stamp(mouth, middle - len(mouth[0]) // 2, top + 3 + len(eye), key)


def draw(rng: Generator) -> Canvas:
    """One bat."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, (*WING_RAMPS, Ramp.STEEL, Ramp.BONE))
    wing = pick(rng, WING_RAMPS) if chance(rng, 0.6) else (ramp if ramp in WING_RAMPS else Ramp.SLATE)
    _wings(canvas, rng, wing)
    halves = pick(rng, BODIES)
    top = 9 + int(rng.integers(0, 2))
    body = rows(SIZE, top, halves)
    ear = pick(rng, EARS)
    ears: Key = {"o": (ramp, 3), "i": (Ramp.PINK if ramp not in (Ramp.PINK, Ramp.RED) else Ramp.SKIN, 1)}
    ear_top = top - len(ear) + 2
    shape = mirror(art(SIZE, [row.replace("o", "#").replace("i", "#") for row in ear], SIZE // 2 - halves[1], ear_top))
    canvas.seam(body | shape)
    canvas.stamp_pair(ear, SIZE // 2 - halves[1], ear_top, ears)
    canvas.form(body, ramp, bulge=0.9)
    _face(canvas, rng, top, ramp, max(halves[:4]) > 3)
    if chance(rng, 0.6):
        canvas.stamp_pair(("f",), SIZE // 2 - 2, top + len(halves), {"f": (ramp, 1)})
    canvas.outline()
    return canvas
