"""Things of any size: boulders, planets, vessels, emblems and tools."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ..canvas import Canvas, chance, pick
from ..light import ball
from ..palette import Ramp
from ..shapes import Mask, box, ellipse, grid, line, polygon, shift, shrink
from .making import bulge, profile, ramps, rough, scattered, smooth, unit_of


def boulder(rng: Generator, size: int) -> Canvas:
    """Draw one to three rocks or crystals on the ground, some with moss or cracks."""
    canvas, unit = Canvas(size), unit_of(size)
    stone, moss = ramps(rng, 2)
    for _ in range(int(rng.integers(1, 4))):
        rx, ry = rng.uniform(0.18, 0.38, 2) * size
        x = rng.uniform(rx + 1, size - rx - 2)
        y = size - 2 - unit - ry * 0.9
        if chance(rng, 0.3):  # a crystal: two planes
            tip, foot, half = max(1.5, y - ry), size - 2.0 - unit, rx * 0.5
            points = [
                (x, tip),
                (x + half, tip + half),
                (x + half * 0.8, foot),
                (x - half * 0.8, foot),
                (x - half, tip + half),
            ]
            rock = polygon(size, points)
            canvas.flat(rock, stone, 2)
            canvas.flat(rock & (grid(size)[0] > x + half * 0.2), stone, 1)
            canvas.flat(rock & (grid(size)[0] < x - half * 0.4), stone, 4)
        else:
            rock = rough(rng, size, x, y, (rx, ry), int(rng.integers(6, 11)))
            canvas.form(rock, stone, bulge(rng))
        canvas.seam(rock)
    if chance(rng, 0.4):
        top = canvas.painted & ~shift(canvas.painted, 0, 2 * unit)
        canvas.flat(scattered(rng, top, 0.7, unit), moss, 3)
    if chance(rng, 0.5):
        canvas.darken(scattered(rng, canvas.painted, 0.08, unit))
    canvas.outline()
    return canvas


def planet(rng: Generator, size: int) -> Canvas:
    """Draw a ball with bands, spots or continents, and sometimes with a ring."""
    canvas, unit = Canvas(size), unit_of(size)
    ground, sea, ring = ramps(rng, 3)
    radius = rng.uniform(0.28, 0.44) * size
    middle = size / 2 - 0.5
    body, light = ellipse(size, middle, middle, radius, radius), ball(size, middle, middle, radius, radius)
    canvas.lit(body, sea, light)
    if chance(rng, 0.4):
        bands = smooth(rng, size, 0, 3, max(4, size // 4)) > 1.5
        canvas.recolour(body & bands[:, None], ground)
    elif chance(rng, 0.7):
        for _ in range(int(rng.integers(2, 6))):
            x, y = rng.uniform(middle - radius, middle + radius, 2)
            reach = radius * rng.uniform(0.2, 0.5)
            canvas.recolour(rough(rng, size, x, y, (reach, reach), 8) & body, ground)
    else:
        canvas.darken(scattered(rng, body, 0.15, 2 * unit))
    if chance(rng, 0.3):
        wide = min(radius * 1.6, size / 2 - 1.5)
        around = ellipse(size, middle, middle, wide, radius * 0.4) & ~ellipse(
            size, middle, middle, wide * 0.8, radius * 0.25
        )
        canvas.flat(around & ~(body & (np.arange(size)[:, None] < middle)), ring, 3)
    canvas.outline()
    return canvas


def vessel(rng: Generator, size: int) -> Canvas:
    """Draw a pot, bottle, vase or cup of a random profile, with bands or contents."""
    canvas, unit = Canvas(size), unit_of(size)
    clay, other, rim = ramps(rng, 3)
    height = round(size * rng.uniform(0.5, 0.85))
    top = size - 1 - unit - height
    halves = smooth(rng, height, size * 0.1, size * 0.4, int(rng.integers(3, 6)))
    body = profile(size, top, halves)
    canvas.form(body, clay, bulge(rng))
    if chance(rng, 0.5):
        first, tall = rng.integers(0, height - 2), rng.integers(unit, max(unit + 1, height // 3))
        band = body & (np.abs(np.arange(size) - (top + first)) <= tall)[:, None]
        canvas.recolour(band, other)
    if chance(rng, 0.5):  # a lid or a lip
        wide = max(2, round(float(halves[0]) + unit))
        canvas.form(box(size, size // 2 - wide, top, size // 2 + wide - 1, top + 2 * unit - 1), rim, 0.8)
    if chance(rng, 0.35):
        across = round(float(halves.max()))
        side, inner = rng.uniform(0.15, 0.25) * size, rng.uniform(0.08, 0.12) * size
        x, y = min(size - 2 - side, size / 2 + across - 1), top + height * 0.4
        handle = ellipse(size, x, y, side, side) & ~ellipse(size, x, y, inner, inner) & ~body
        handle[:, -1:] = False
        canvas.form(handle & (grid(size)[0] > size / 2), clay, 0.8)
    if chance(rng, 0.5):
        shine = shrink(body) & ~shift(shrink(body), 2 * unit, 0)
        canvas.flat(shine & scattered(rng, body, 0.6, 2 * unit), clay, 4)
    canvas.outline()
    return canvas


def emblem(rng: Generator, size: int) -> Canvas:
    """Draw a shield, banner or badge with a pattern of two colours."""
    canvas, middle, unit = Canvas(size), size / 2 - 0.5, unit_of(size)
    field, sign, frame = ramps(rng, 3)
    plate = _plate(rng, size)
    canvas.form(plate, frame, bulge(rng))
    inner = plate
    for _ in range(2 * unit if size > 16 else 1):
        inner = shrink(inner)
    canvas.form(inner, field, 0.6)
    x, y = grid(size)
    broad = size * rng.uniform(0.06, 0.14)
    patterns = (
        np.abs(x - middle) < broad,
        np.abs(y - middle) < broad,
        (np.abs(x - middle) < broad) | (np.abs(y - middle) < broad),
        np.abs(x - y) < broad * 1.4,
        (x > middle) ^ (y > middle),
        (x // max(2, size // 8)) % 2 == 0,
        np.hypot(x - middle, y - middle) < size * 0.18,
        np.abs(x - middle) + np.abs(y - middle) < size * 0.22,
    )
    canvas.recolour(inner & pick(rng, patterns), sign)
    canvas.outline()
    return canvas


def _plate(rng: Generator, size: int) -> Mask:
    """Return the outline of a shield, a disc, a square, a hexagon or a pennant."""
    middle, reach = size / 2 - 0.5, size * rng.uniform(0.32, 0.44)
    low, high, top, bottom = middle - reach, middle + reach, middle - reach, middle + reach
    shapes = (
        ellipse(size, middle, middle, reach, reach),
        polygon(size, [(low, top), (high, top), (high, middle), (middle, bottom), (low, middle)]),
        polygon(size, [(low, top), (high, top), (high, bottom), (low, bottom)]),
        polygon(size, [(middle, top), (high, middle - reach / 2), (high, middle + reach / 2), (middle, bottom),
                       (low, middle + reach / 2), (low, middle - reach / 2)]),
        polygon(size, [(low, top), (high, top), (high, bottom), (middle, bottom - reach / 2), (low, bottom)]),
    )  # fmt: skip
    return pick(rng, shapes)


def tool(rng: Generator, size: int) -> Canvas:
    """Draw a tool or weapon along the diagonal or upright: a handle and a head."""
    canvas, unit = Canvas(size), unit_of(size)
    wood, metal, jewel = (Ramp.WOOD if chance(rng, 0.5) else ramps(rng, 1)[0], *ramps(rng, 2))
    low, high = 2 + unit, size - 3 - unit
    diagonal = chance(rng, 0.6)
    foot, head = ((low, high), (high, low)) if diagonal else ((size // 2, high), (size // 2, low))
    handle = line(size, [foot, head])
    for _ in range(unit):
        handle |= shift(handle, 1, 0)
    canvas.form(handle, wood, 1.0)
    x, y = float(head[0]), float(head[1])
    reach = size * rng.uniform(0.14, 0.28)
    x, y = min(x, size - 2 - reach), max(y, 1 + reach)
    kind = rng.integers(5)
    if kind == 0:
        blade = ellipse(size, x, y, reach, reach) & ~ellipse(size, x + reach * 0.6, y - reach * 0.6, reach, reach)
    elif kind == 1:
        blade = polygon(size, [(x - reach, y), (x, y - reach), (x + reach, y), (x, y + reach)])
    elif kind == 2:
        blade = rough(rng, size, x, y, (reach, reach), int(rng.integers(5, 9)))
    elif kind == 3:
        blade = polygon(size, [(x - reach, y - reach), (x + reach, y - reach), (x + reach, y), (x - reach, y)])
    else:
        blade = polygon(size, [(x, y - reach), (x + reach, y + reach), (x - reach, y + reach * 0.5)])
    canvas.form(blade, metal, bulge(rng))
    canvas.seam(blade)
    if chance(rng, 0.4):
        canvas.form(ellipse(size, x, y, max(1.2, reach * 0.35), max(1.2, reach * 0.35)), jewel, 1.1)
    canvas.outline()
    return canvas
