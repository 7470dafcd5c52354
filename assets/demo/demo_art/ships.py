"""Space ships seen from above, nose up: hull, wings, canopy, stripes, engines and flames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from .canvas import Canvas, chance, pick
from .light import inflate, lambert, tube
from .palette import Ramp
from .shapes import Mask, box, ellipse, mirror, polygon, rows, shift

SIZE = 24
MIDDLE = SIZE // 2
HULLS: dict[str, tuple[int, ...]] = {
    "dart": (1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 3),
    "cruiser": (1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 3),
    "heavy": (2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 4, 4, 5, 4, 3),
    "needle": (1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 2),
    "shuttle": (1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3),
    "wasp": (1, 2, 3, 3, 3, 2, 2, 2, 3, 4, 4, 4, 3, 3, 2, 2),
    "hammer": (3, 4, 4, 3, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3),
    "barge": (2, 3, 4, 4, 4, 3, 3, 5, 5, 5, 3, 3, 5, 5, 4),
}
# Left wings as corner points, x counted from the middle to the left, y from the ship's nose.
WINGS: dict[str, tuple[tuple[float, float], ...]] = {
    "delta": ((1, 5), (9.6, 14), (9.6, 16), (1, 15)),
    "swept": ((2, 8), (9.6, 13), (9.6, 17), (7.6, 17), (2, 13)),
    "forward": ((2, 13), (9.6, 6), (9.6, 9), (2, 16)),
    "stub": ((2, 8), (6.6, 9), (6.6, 14), (2, 15)),
    "blade": ((2, 9), (9.6, 8), (9.6, 11), (2, 13)),
    "bat": ((2, 6), (8.6, 8), (9.6, 15), (7, 13), (5.5, 16), (4, 13), (2, 15)),
    "claw": ((2, 10), (7, 8), (8, 3), (9.6, 5), (9.6, 12), (6, 15), (2, 15)),
    "fin": ((2, 12), (7.6, 16), (7.6, 18), (2, 16)),
    "twin": ((2, 4), (7.6, 7), (7.6, 9), (2, 8), (2, 11), (9.6, 14), (9.6, 17), (2, 15)),
}
HULL_RAMPS = (Ramp.STEEL, Ramp.STEEL, Ramp.BONE, Ramp.SLATE, Ramp.RED, Ramp.BLUE, Ramp.GREEN, Ramp.PURPLE,
              Ramp.ORANGE, Ramp.TEAL, Ramp.GOLD, Ramp.PINK)  # fmt: skip
GLASS = (Ramp.BLUE, Ramp.TEAL, Ramp.GOLD, Ramp.GREEN, Ramp.PURPLE)
FIRE = ((Ramp.ORANGE, Ramp.GOLD), (Ramp.BLUE, Ramp.TEAL), (Ramp.PURPLE, Ramp.PINK), (Ramp.GREEN, Ramp.GOLD))


def _wing_mask(points: Sequence[tuple[float, float]], top: int) -> Mask:
    """Both wings from the corners of the left one."""
    corners = [(MIDDLE - 0.5 - x, top + y) for x, y in points]
    return mirror(polygon(SIZE, corners))


def _wings(canvas: Canvas, rng: Generator, top: int, ramp: Ramp, accent: Ramp) -> Mask:
    """Flat wings: a lit leading edge, the right wing turned from the light, maybe a stripe."""
    name = pick(rng, list(WINGS))
    wings = _wing_mask(WINGS[name], top)
    wings[22:] = False
    canvas.flat(wings, ramp, 2)
    right = wings.copy()
    right[:, :MIDDLE] = False
    canvas.flat(right, ramp, 1)
    lead = wings & ~shift(wings, 0, 1)
    canvas.flat(lead & ~right, ramp, 4)
    canvas.flat(lead & right, ramp, 3)
    canvas.flat(wings & ~right & shift(lead, 0, 1), ramp, 3)
    if chance(rng, 0.6):
        x = int(rng.integers(4, 9))
        band = wings & mirror(box(SIZE, MIDDLE - x - 1, 0, MIDDLE - x, SIZE - 1))
        canvas.recolour(band, accent)
    return wings


def _guns(canvas: Canvas, rng: Generator, wings: Mask) -> None:
    """Barrels on the front of the wings."""
    x = MIDDLE - int(rng.integers(5, 9))
    column = np.nonzero(wings[:, x])[0]
    if not len(column):
        return
    y = int(column[0])
    length = int(rng.integers(2, 4))
    for side, tone in ((x, 3), (SIZE - 1 - x, 2)):
        canvas.flat(box(SIZE, side, max(2, y - length), side, y + 1), Ramp.STEEL, tone)


def _pods(canvas: Canvas, rng: Generator, wings: Mask, accent: Ramp) -> None:
    """Rounded pods on the wing tips."""
    columns = np.nonzero(wings.any(axis=0))[0]
    x = int(columns[0])
    ys = np.nonzero(wings[:, x])[0]
    top, bottom = max(2, int(ys[0]) - int(rng.integers(1, 4))), min(21, int(ys[-1]) + int(rng.integers(0, 3)))
    pod = mirror(box(SIZE, x, top, x + 1, bottom))
    canvas.seam(pod)
    canvas.flat(pod, accent, 2)
    canvas.flat(pod & ~shift(pod, 1, 0), accent, 3)
    canvas.flat(pod & ~shift(pod, 0, 1), accent, 4)
    canvas.flat(pod & ~shift(pod, 0, -1), accent, 1)


def _canopy(canvas: Canvas, rng: Generator, top: int, halves: Sequence[int]) -> None:
    """The cockpit glass, placed where the hull is wide enough."""
    glass = pick(rng, GLASS)
    wide = max(halves[:8]) > 3
    row = next((y for y, half in enumerate(halves) if half >= 3), 7) - int(rng.integers(2))
    slim = ((1, 1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1))
    broad = ((1, 2, 2, 2, 1), (2, 3, 3), (1, 2, 2, 1), (1, 2, 2, 1, 1))
    shape = pick(rng, broad if wide else slim)
    mask = rows(SIZE, top + row, [min(half, max(1, halves[row + 1] - 1)) for half in shape])
    canvas.seam(mask, 1)
    canvas.flat(mask, glass, 2)
    canvas.flat(mask & ~shift(mask, 0, -1), glass, 1)
    canvas.flat(mask & ~shift(mask, 0, 1), glass, 3)
    y, x = (int(axis[0]) for axis in np.nonzero(mask))
    canvas.put(x, y, glass, 4)
    canvas.put(x, y + 1, glass, 4)


def _hull_marks(canvas: Canvas, rng: Generator, hull: Mask, top: int, height: int, accent: Ramp) -> None:
    """Stripes, a painted nose, panel joints."""
    style = int(rng.integers(5))
    band = hull.copy()
    if style == 0:
        band[top + int(rng.integers(2, 5)) :] = False
        canvas.recolour(band, accent)
    elif style == 1:
        at = top + int(rng.integers(height - 6, height - 2))
        band[:at], band[at + 2 :] = False, False
        canvas.recolour(band, accent)
    elif style == 2:
        canvas.recolour(hull & box(SIZE, MIDDLE - 1, 0, MIDDLE, SIZE - 1), accent)
    elif style == 3:
        edge = hull & mirror(~shift(hull, 1, 0))
        edge[: top + 5] = False
        canvas.recolour(edge, accent)
    joint = top + int(rng.integers(height - 5, height - 1))
    seam = hull.copy()
    seam[:joint], seam[joint + 1 :] = False, False
    plates = hull & mirror(box(SIZE, MIDDLE - 3, top + height // 2, MIDDLE - 3, top + height - int(rng.integers(3, 6))))
    canvas.darken(seam | (plates if chance(rng, 0.5) else seam))
    if chance(rng, 0.5):
        vent = mirror(box(SIZE, MIDDLE - 2, joint - 2, MIDDLE - 2, joint - 1)) & hull
        canvas.flat(vent, Ramp.SLATE, 1)


def _engines(canvas: Canvas, rng: Generator, bottom: int, half: int) -> list[tuple[int, int]]:
    """Nozzles under the hull; gives back where the flames go, as left column and width."""
    nozzles = [(MIDDLE - 1, 2)] if half < 3 or chance(rng, 0.4) else [(MIDDLE - 3, 2), (MIDDLE + 1, 2)]
    if half >= 4 and chance(rng, 0.4):
        nozzles = [(MIDDLE - 2, 4)]
    for left, width in nozzles:
        canvas.flat(box(SIZE, left, bottom, left + width - 1, bottom), Ramp.SLATE, 3)
        canvas.flat(box(SIZE, left + width - 1, bottom, left + width - 1, bottom), Ramp.SLATE, 2)
    return nozzles


def _flames(canvas: Canvas, rng: Generator, nozzles: list[tuple[int, int]], top: int) -> None:
    """Fire without an outline, hot in the middle and pointed at the end."""
    outer, inner = pick(rng, FIRE)
    length = min(int(rng.integers(3, 5)), SIZE - 2 - top)
    for left, width in nozzles:
        for y in range(length):
            narrow = 1 if width == 4 and y and y >= length - 2 else 0
            mask = box(SIZE, left + narrow, top + y, left + width - 1 - narrow, top + y)
            hot = y < length - 1
            canvas.flat(mask, inner if hot else outer, 4 - y if y < 2 else 2)


def _saucer(canvas: Canvas, rng: Generator) -> None:
    """A flying saucer from the side: dome, disc, lamps."""
    ramp, glass, lamp = pick(rng, HULL_RAMPS), pick(rng, GLASS), pick(rng, (Ramp.GOLD, Ramp.RED, Ramp.TEAL, Ramp.PINK))
    y = int(rng.integers(12, 15))
    reach = float(pick(rng, (8.6, 9.6, 10.2)))
    dome = ellipse(SIZE, MIDDLE - 0.5, y - 2, pick(rng, (4.2, 5.2)), pick(rng, (5.2, 6.3)))
    canvas.form(dome, glass)
    under = ellipse(SIZE, MIDDLE - 0.5, y + 2, reach * 0.6, 3.4)
    canvas.form(under, Ramp.SLATE)
    disc = ellipse(SIZE, MIDDLE - 0.5, y, reach, float(pick(rng, (2.6, 3.2))))
    canvas.seam(disc)
    canvas.lit(disc, ramp, lambert(inflate(disc), 1.3), (0.05, 0.55, 0.88))
    for x in range(-7, 9, pick(rng, (3, 4))):
        canvas.flat(box(SIZE, MIDDLE + x, y, MIDDLE + x, y) & disc, lamp, 3)
    if chance(rng, 0.5):
        canvas.flat(box(SIZE, MIDDLE - 1, y - 10, MIDDLE - 1, y - 8), Ramp.STEEL, 3)
        canvas.flat(box(SIZE, MIDDLE - 1, y - 10, MIDDLE, y - 9), lamp, 3)
    canvas.outline()


def draw(rng: Generator) -> Canvas:
    """One ship."""
    canvas = Canvas(SIZE)
    if chance(rng, 0.1):
        _saucer(canvas, rng)
        return canvas
    ramp = pick(rng, HULL_RAMPS)
    accent = pick(rng, [r for r in HULL_RAMPS if r != ramp])
    wing_ramp = accent if chance(rng, 0.35) else ramp
    halves = HULLS[pick(rng, list(HULLS))]
    top = 2 + int(rng.integers(2))
    wings = _wings(canvas, rng, top, wing_ramp, ramp if wing_ramp == accent else accent)
    if chance(rng, 0.45):
        _guns(canvas, rng, wings)
    if chance(rng, 0.35):
        _pods(canvas, rng, wings, accent)
    bottom = top + len(halves)
    nozzles = _engines(canvas, rng, bottom, halves[-1])
    hull = rows(SIZE, top, halves)
    canvas.seam(hull)
    canvas.lit(hull, ramp, np.where(hull, tube(SIZE, MIDDLE - 0.5, max(halves) + 0.6), 0.0), (0.2, 0.7, 0.96))
    canvas.flat(hull & ~shift(hull, 0, -1), ramp, 1)
    _hull_marks(canvas, rng, hull, top, len(halves), accent)
    _canopy(canvas, rng, top, halves)
    canvas.outline()
    if chance(rng, 0.75):
        _flames(canvas, rng, nozzles, bottom + 1)
    return canvas
