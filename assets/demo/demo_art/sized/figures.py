"""Figures of any size: round creatures and faces."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..canvas import Canvas, chance, pick
from ..palette import Ramp
from ..shapes import Mask, box, ellipse, mirror, polygon, shift
from .making import bulge, profile, ramps, scattered, smooth, unit_of


def blob(rng: Generator, size: int) -> Canvas:
    """Draw a creature of one body, with eyes and a mouth, and often with ears, feet or spots."""
    canvas, middle, unit = Canvas(size), size / 2 - 0.5, unit_of(size)
    skin, other, bright = ramps(rng, 3)
    rx, ry = rng.uniform(0.26, 0.4, 2) * size
    bottom = size - 2 - unit
    y = bottom - ry
    body = ellipse(size, middle, y, rx, ry)
    if chance(rng, 0.5):
        body |= mirror(box(size, round(middle - rx), round(y), size // 2, round(y + ry * rng.uniform(0.6, 1.0))))
    for part in _limbs(rng, size, middle, y, rx, ry):
        canvas.form(part & ~body, pick(rng, (skin, other)), bulge(rng))
    canvas.form(body, skin, bulge(rng))
    if chance(rng, 0.4):
        belly = ellipse(size, middle, y + ry * 0.35, rx * 0.6, ry * 0.6) & body
        canvas.form(belly, bright, 0.6, low=2)
    if chance(rng, 0.4):
        canvas.darken(scattered(rng, body & (canvas.ramp == skin), 0.15, 2 * unit))
    _eyes(canvas, rng, middle, y - ry * rng.uniform(0, 0.4), max(1.0, rx * rng.uniform(0.16, 0.3)), rx * 0.5)
    width = max(1, round(rx * rng.uniform(0.2, 0.5)))
    mouth = round(y + ry * 0.3)
    canvas.flat(box(size, size // 2 - width, mouth, size // 2 + width - 1, mouth + unit - 1) & body, Ramp.SLATE, 0)
    canvas.outline()
    return canvas


def _limbs(rng: Generator, size: int, x: float, y: float, rx: float, ry: float) -> list[Mask]:
    """Return pairs of ears or horns, arms and feet."""
    parts = []
    if chance(rng, 0.6):
        out, up = rx * rng.uniform(0.5, 1.0), ry * rng.uniform(1.1, 1.5)
        top = max(1.0, y - up)
        ear = polygon(size, [(x - out, top), (x - rx * 0.1, y - ry * 0.7), (x - rx * 0.9, y - ry * 0.2)])
        parts.append(mirror(ear))
    if chance(rng, 0.5):
        parts.append(mirror(ellipse(size, max(2.0, x - rx * 1.1), y + ry * 0.2, max(1.5, rx * 0.3), ry * 0.3)))
    if chance(rng, 0.6):
        parts.append(mirror(ellipse(size, x - rx * 0.5, y + ry * 0.95, rx * 0.35, max(1.5, ry * 0.2))))
    inside = np.zeros((size, size), np.bool_)
    inside[1:-1, 1:-1] = True
    return [part & inside for part in parts]


def _eyes(canvas: Canvas, rng: Generator, x: float, y: float, radius: float, apart: float) -> None:
    """Draw one eye in the middle, or two."""
    size = canvas.size
    if chance(rng, 0.15):
        eye = ellipse(size, x, y, radius * 1.5, radius * 1.5)
    else:
        eye = mirror(ellipse(size, round(x - apart), round(y), radius, radius * rng.uniform(1.0, 1.5)))
    canvas.flat(eye, Ramp.BONE, 4)
    look = int(rng.integers(-1, 2))
    pupil = eye & shift(eye, look, 0) & shift(eye, 0, 1)
    canvas.flat(pupil if radius > 1.5 else eye, Ramp.SLATE, 0)


def face(rng: Generator, size: int) -> Canvas:
    """Draw a portrait: head, hair, shoulders, eyes and a mouth."""
    canvas, middle, unit = Canvas(size), size / 2 - 0.5, unit_of(size)
    skin, hair, cloth = (Ramp.SKIN if chance(rng, 0.5) else ramps(rng, 1)[0], *ramps(rng, 2))
    rx, ry = size * rng.uniform(0.2, 0.28), size * rng.uniform(0.24, 0.32)
    y = size * 0.45
    head = ellipse(size, middle, y, rx, ry)
    shoulders = profile(
        size, size - round(size * 0.25), smooth(rng, round(size * 0.25) - 1, size * 0.25, size * 0.44, 2)
    )
    if chance(rng, 0.4):  # long hair behind the head
        canvas.form(ellipse(size, middle, y + ry * 0.4, rx * 1.3, ry * 1.3), hair, 0.7, high=2)
    canvas.form(shoulders, cloth, bulge(rng))
    canvas.form(box(size, size // 2 - round(rx * 0.4), round(y), size // 2 + round(rx * 0.4) - 1,
                    size - round(size * 0.2)), skin, 0.6, high=2)  # fmt: skip
    canvas.form(head, skin, bulge(rng))
    canvas.seam(head)
    line = y - ry * rng.uniform(0.1, 0.5)
    fringe = ellipse(size, middle, y - ry * 0.2, rx * 1.15, ry * 1.05)
    fringe[round(line) :, :] = False
    if chance(rng, 0.85):
        canvas.form(fringe, hair, 0.9)
    apart, width = rx * 0.5, max(1, round(rx * 0.22))
    eye = mirror(box(size, round(middle - apart) - width // 2, round(y), round(middle - apart) + width // 2,
                     round(y) + max(1, width) - 1))  # fmt: skip
    canvas.flat(eye, Ramp.BONE, 4)
    canvas.flat(mirror(shift(eye, 1, 0) & eye & (np.arange(size) < size // 2)) if width > 1 else eye, Ramp.SLATE, 0)
    if size >= 32:  # nose and brows
        canvas.flat(box(size, size // 2 - unit, round(y + ry * 0.2), size // 2 - 1, round(y + ry * 0.4)), skin, 1)
        canvas.flat(shift(eye, 0, -2 * unit) & ~shift(eye, 0, -unit) & head, hair, 1)
    mouth, half = round(y + ry * 0.6), max(1, round(rx * rng.uniform(0.2, 0.45)))
    canvas.flat(
        box(size, size // 2 - half, mouth, size // 2 + half - 1, mouth + unit - 1) & head,
        pick(rng, (skin, Ramp.RED)),
        1,
    )
    if chance(rng, 0.3):  # beard
        canvas.form(head & (np.arange(size)[:, None] > mouth), hair, 0.8)
    canvas.outline()
    return canvas
