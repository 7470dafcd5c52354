"""Fish swimming to the left: a body, tail and fins, markings, an eye and a mouth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .light import inflate, lambert
from .palette import BRIGHT, Ramp
from .shapes import Mask, art, ellipse, empty, grid, line, rim, shift, shrink

SIZE = 24
# Bodies from the snout to the tail: rows above and rows below the middle line.
BODIES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "oval": ((1, 3, 4, 4, 5, 5, 5, 5, 5, 4, 4, 3, 3, 2, 2), (1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 3, 3, 2, 2, 1)),
    "long": ((1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 1, 1), (1, 2, 2, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1)),
    "disc": ((1, 3, 4, 6, 7, 7, 7, 7, 7, 6, 5, 4, 2), (1, 2, 4, 5, 6, 7, 7, 7, 6, 5, 4, 3, 2)),
    "puffer": ((2, 4, 5, 6, 6, 7, 7, 6, 6, 5, 4, 3, 2), (2, 4, 5, 6, 7, 7, 7, 7, 6, 5, 4, 2, 1)),
    "shark": ((1, 2, 3, 3, 4, 4, 4, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1), (0, 1, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1)),
    "angler": ((3, 5, 5, 6, 6, 6, 6, 5, 5, 4, 4, 3, 2, 2), (3, 5, 6, 6, 6, 6, 5, 5, 4, 4, 3, 2, 2, 1)),
    "carp": ((1, 2, 4, 5, 6, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2), (1, 2, 3, 3, 4, 4, 4, 4, 4, 3, 3, 3, 2, 2, 1)),
    "dart": ((0, 1, 2, 3, 3, 4, 4, 4, 4, 3, 3, 3, 2, 2, 1, 1), (1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 2, 2, 2, 1, 1, 1)),
    "box": ((2, 4, 5, 5, 5, 5, 5, 5, 5, 5, 4, 3, 2), (2, 3, 4, 5, 5, 5, 5, 5, 5, 4, 3, 2, 1)),
}
TAILS: tuple[tuple[str, ...], ...] = (
    ("....#", "...##", "..###", ".####", "####.", "###..", "####.", ".####", "..###", "...##", "....#"),
    ("...##", "..###", ".####", "#####", "#####", "#####", ".####", "..###", "...##"),
    (".###.", "#####", "#####", "#####", "#####", ".###."),
    ("....#", "...##", "..##.", ".##..", "###..", "###..", ".##..", "..##.", "...##", "....#"),
    ("..###", ".####", "####.", "###..", "####.", "#####", ".####", "..##."),
    (".####", "#####", "####.", "#####", "#####", "####.", "#####", ".####"),
)
DORSALS: tuple[tuple[str, ...], ...] = (
    ("..##....", ".#####..", "########"),
    ("...#....", "..##....", ".####...", "######.."),
    ("#.#.#.#.", "########", "########"),
    (".######.", "########"),
    ("....###.", "..#####.", "########"),
    ("......##", "....####", "..######", "########"),
    ("##......", "####....", "######..", "########"),
)
BELLY_FINS: tuple[tuple[str, ...], ...] = (
    ("######", ".####.", "..##.."),
    ("####..", ".####.", "...##."),
    ("##..##", "##..##"),
    ("#####.", "..####", "....##"),
)
SIDE_FINS: tuple[tuple[str, ...], ...] = (
    ("##..", ".###", "..##"),
    (".##", "###", ".##"),
    ("###.", ".###", ".##."),
    ("##.", "###", ".##", "..#"),
)
EYES: tuple[tuple[str, ...], ...] = (
    ("ww", "kw"),
    (".ww.", "wkkw", "wkkw", ".ww."),
    ("www", "kkw", "kkw"),
    ("kk", "kk"),
    ("gg", "kg"),
    ("www", "wkw", "www"),
    ("wk", "kk"),
)


def _body(name: str, left: int, middle: int) -> Mask:
    """The silhouette from its columns."""
    up, down = BODIES[name]
    mask = empty(SIZE)
    for x, (above, below) in enumerate(zip(up, down, strict=True), start=left):
        mask[middle - above : middle + below + 1, x] = True
    return mask


def _fin(canvas: Canvas, drawing: Sequence[str], left: int, top: int, ramp: Ramp) -> Mask:
    """A flat fin with a lit upper edge and rays."""
    mask = art(SIZE, drawing, left, top)
    mask[:2], mask[22:], mask[:, 22:] = False, False, False
    canvas.flat(mask, ramp, 2)
    rays = mask.copy()
    rays[:, ::2] = False
    canvas.flat(rays & shrink(mask | canvas.painted), ramp, 1)
    canvas.flat(mask & ~shift(mask, 0, 1), ramp, 3)
    return mask


def _fins(canvas: Canvas, rng: Generator, body: Mask, ramp: Ramp, tail_at: int, middle: int) -> None:
    """Tail, back fin and belly fin, all behind the body."""
    tail = pick(rng, TAILS)
    _fin(canvas, tail, tail_at, middle - len(tail) // 2, ramp)
    tops = body.argmax(axis=0)
    bottoms = SIZE - 1 - body[::-1].argmax(axis=0)
    x = int(rng.integers(8, 11))
    if chance(rng, 0.9):
        drawing = pick(rng, DORSALS)
        roof = int(tops[x : x + 6].max())
        _fin(canvas, drawing, x, max(2, roof - len(drawing) + 1), ramp)
    if chance(rng, 0.8):
        drawing = pick(rng, BELLY_FINS)
        _fin(canvas, drawing, x + int(rng.integers(-1, 2)), min(21 - len(drawing) + 1, int(bottoms[x + 2])), ramp)


def _marks(canvas: Canvas, rng: Generator, body: Mask, ramp: Ramp, second: Ramp, middle: int) -> None:
    """Belly, bands, stripes, spots, mask or scales."""
    x, y = grid(SIZE)
    style = int(rng.integers(9))
    if style <= 2:
        belly = body & (y > middle + 1 + np.where(x < 8, -1, 0))
        canvas.recolour(belly, pick(rng, (Ramp.BONE, Ramp.SKIN, second)))
        canvas.tone[belly] = np.maximum(canvas.tone[belly], 2 - (y[belly] > middle + 4))
    if style in (2, 3):
        width, gap = pick(rng, ((2, 4), (1, 3), (2, 5)))
        start = int(rng.integers(8, 10))
        canvas.recolour(body & ((x - start) % gap < width) & (x >= start) & (x < 18), second)
    elif style == 4:
        canvas.recolour(body & (np.abs(y - middle) < 1.1) & (x > 6), second)
    elif style == 5:
        dots = [(9, -2), (12, 1), (14, -2), (11, 3), (7, 3), (15, 1), (12, -4), (9, 1)]
        for dx, dy in dots[int(rng.integers(3)) :: pick(rng, (1, 2))]:
            dot = art(SIZE, ("##", "##"), dx, middle + dy) & shrink(body)
            canvas.recolour(dot, second)
    elif style == 6:
        canvas.recolour(body & (x < int(rng.integers(7, 10))), second)
    elif style == 7:
        scales = shrink(body) & (x > 8) & (((x + 2 * (y // 2 % 2)) % 4 < 1) & (y % 2 == 0))
        canvas.tone[scales] = np.clip(canvas.tone[scales] - 1, 1, 4)
    elif style == 8:
        canvas.recolour(body & (y < middle - 1), second)


def _gill(canvas: Canvas, body: Mask, left: int, middle: int) -> None:
    """A dark bow behind the head."""
    bow = line(SIZE, ((left + 6, middle - 1), (left + 7, middle), (left + 6, middle + 1)))
    canvas.darken(bow & body)


def _head(canvas: Canvas, rng: Generator, name: str, left: int, middle: int, ramp: Ramp) -> None:
    """Eye and mouth."""
    key: Key = {"w": (Ramp.BONE, 4), "k": (Ramp.SLATE, 0), "g": (Ramp.GOLD, 3), "t": (Ramp.BONE, 4), "d": (ramp, 0)}
    big = name in ("disc", "puffer", "angler", "box")
    eye = pick(rng, EYES if big else [e for e in EYES if len(e) < 4])
    canvas.stamp(eye, left + 2 + int(big), middle - len(eye) + (0 if not big else 1) - int(name == "angler"), key)
    if name == "angler":
        canvas.stamp(("ddddd.", "tdtdtd", "dddddd", ".tdtd."), left, middle + 1, key)
        lure = line(SIZE, ((left + 5, middle - 6), (left + 3, middle - 9), (left + 1, middle - 9)))
        canvas.flat(lure & ~canvas.painted, ramp, 1)
        canvas.stamp(("43", "32"), left - 1, middle - 9, {d: (Ramp.GOLD, int(d)) for d in "234"})
    elif name == "shark":
        canvas.stamp(("dddd", ".t.t"), left + 1, middle + 1, key)
    else:
        canvas.stamp(pick(rng, (("dd",), ("d.", ".d"), ("dd", ".d"))), left, middle + 1, key)


def _spines(canvas: Canvas, body: Mask, ramp: Ramp) -> None:
    """Short spikes round a puffer."""
    edge = rim(body)
    for y, x in zip(*(axis.tolist() for axis in np.nonzero(edge)), strict=True):
        if (x * 3 + y * 5) % 7 == 0 and 7 < x < 15:
            canvas.put(x, y + (1 if y > 12 else -1), ramp, 2)


def draw(rng: Generator) -> Canvas:
    """One fish."""
    canvas = Canvas(SIZE)
    ramp = pick(rng, (*BRIGHT, *BRIGHT, Ramp.STEEL, Ramp.SLATE, Ramp.BONE, Ramp.SKIN))
    second = pick(rng, [r for r in (*BRIGHT, Ramp.BONE, Ramp.SLATE) if r != ramp])
    fins = second if chance(rng, 0.35) else ramp
    name = pick(rng, list(BODIES))
    length = len(BODIES[name][0])
    left = max(2, 3 + (16 - length) // 2)
    middle = 13 if name == "angler" else 11
    body = _body(name, left, middle)
    _fins(canvas, rng, body, fins, min(left + length - 1, 17), middle)
    canvas.seam(body, 1)
    if name == "puffer" and chance(rng, 0.7):
        _spines(canvas, body, ramp)
    canvas.lit(body, ramp, lambert(inflate(body), 1.0), (0.2, 0.62, 0.93))
    _marks(canvas, rng, body, ramp, second, middle)
    _gill(canvas, body, left, middle)
    side = pick(rng, SIDE_FINS)
    if chance(rng, 0.8):
        mask = art(SIZE, side, left + 8, middle + 1)
        canvas.darken(shift(mask, 0, 1) & body)
        canvas.flat(mask & body, fins, 3)
        canvas.flat(mask & body & ~shift(mask, 0, -1), fins, 2)
    _head(canvas, rng, name, left, middle, ramp)
    if chance(rng, 0.2):
        bubble = ellipse(SIZE, 2.5, 4.5, 1, 1)
        canvas.flat(bubble & ~canvas.painted & (name != "angler"), Ramp.BLUE, 4)
    canvas.outline()
    return canvas
