"""Swords laid corner to corner, built in coordinates along and across the blade, so that 45 degrees stay clean."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .canvas import Canvas, chance, pick
from .palette import Ramp
from .shapes import Field, Mask, grid, shift, shrink

SIZE = 24
TIP = 41
KINDS = ("broad", "rapier", "katana", "scimitar", "wavy", "leaf", "cleaver", "toothed", "wedge")
BLADES = (Ramp.STEEL, Ramp.STEEL, Ramp.STEEL, Ramp.SLATE, Ramp.BONE, Ramp.GOLD)
MAGIC = (Ramp.RED, Ramp.ORANGE, Ramp.GREEN, Ramp.TEAL, Ramp.BLUE, Ramp.PURPLE, Ramp.PINK)
HILTS = (Ramp.GOLD, Ramp.GOLD, Ramp.GOLD, Ramp.STEEL, Ramp.SLATE, Ramp.WOOD, Ramp.BONE, Ramp.RED, Ramp.TEAL)
GRIPS = (Ramp.WOOD, Ramp.WOOD, Ramp.WOOD, Ramp.SLATE, Ramp.SLATE, Ramp.RED, Ramp.BLUE, Ramp.PURPLE, Ramp.TEAL)


def _axes() -> tuple[Field, Field]:
    """Distance along the blade from the lower left corner, and across it toward the lower right."""
    x, y = grid(SIZE)
    return x + (SIZE - 1) - y, x + y - (SIZE - 1)


along, aside = _axes()


def _taper(half: float, start: float, tip: float, point: float) -> Field:
    """A straight blade that narrows over the last stretch."""
    return np.asarray(np.where(along < start, -1.0, np.minimum(half, (tip - along) * half / point)))


def _blade(rng: Generator, start: int, tip: int) -> tuple[Mask, Field]:
    """The blade, and how far across it each pixel lies (negative is the lit edge)."""
    t = (along - start) / (tip - start)
    arc = np.clip(t, 0.0, 1.0)
    bend: Field = np.zeros_like(along)
    kind = pick(rng, KINDS)
    if kind == "broad":
        half = _taper(float(rng.integers(2, 4)), start, tip, 8)
    elif kind == "rapier":
        half = _taper(1.0, start, tip, 4)
    elif kind == "katana":
        half = _taper(2.0, start, tip, 5)
        bend = -2.6 * np.sin(np.pi * arc) + 0.5
    elif kind == "scimitar":
        half = np.minimum(1.6 + 2.4 * arc, (tip - along) * 0.55)
        bend = 2.8 * np.sin(np.pi * arc * 0.9) - 1.0
    elif kind == "wavy":
        half = _taper(2.0, start, tip, 6)
        bend = 1.2 * np.sin((along - start) * 0.5)
    elif kind == "leaf":
        half = np.minimum(1.5 + 2.6 * np.sin(np.pi * np.clip(t * 1.15, 0, 1)), (tip - along) * 0.5)
    elif kind == "cleaver":
        half = np.where(along > tip - 4 - aside, -1.0, 3.0)
    elif kind == "toothed":
        half = _taper(2.0, start, tip, 6) + 1.0 * ((along // 3 % 2 == 0) & (t > 0.12) & (t < 0.8))
    else:
        half = np.minimum(3.4 - 2.0 * t, (tip - along) * 0.5)
    across = aside - bend
    return np.asarray((t >= 0) & (np.abs(across) <= half)), np.asarray(across)


def _edge(canvas: Canvas, rng: Generator, blade: Mask, across: Field, ramp: Ramp) -> None:
    """Two bevels meeting on a ridge, or a groove down the middle."""
    wide = np.abs(across[blade]).max() >= 1.9
    canvas.flat(blade, ramp, 2)
    canvas.flat(blade & (across < -0.5), ramp, 3)
    outer = blade & (~shift(blade, 1, 0) | ~shift(blade, 0, 1)) & (across < 0)
    style = int(rng.integers(3))
    if style == 0 or not wide:
        canvas.flat(outer, ramp, 4)
    elif style == 1:
        canvas.flat(blade & (np.abs(across) <= 0.5), ramp, 1)
        canvas.flat(outer, ramp, 4)
    else:
        canvas.flat(blade & (np.abs(across) <= 0.5), ramp, 4)
    if wide:
        far = blade & (across > 0.5) & (~shift(blade, -1, 0) | ~shift(blade, 0, -1))
        canvas.flat(far, ramp, 1)


def _runes(canvas: Canvas, rng: Generator, blade: Mask, across: Field, start: int, ramp: Ramp) -> None:
    """Signs that glow along the ridge."""
    glow = pick(rng, [r for r in MAGIC if r != ramp])
    gap = pick(rng, (2, 3, 4))
    core = shrink(blade) & (np.abs(across) <= 0.6) & (along > start + 2) & (along < TIP - 8)
    canvas.flat(core & (along // 2 % gap != 0), glow, 3)


def _guard(rng: Generator, at: int) -> Mask:
    """The cross guard: straight, bent toward either end, short, round, or a broad wedge."""
    reach = float(rng.integers(5, 8))
    side = np.abs(aside)
    kind = pick(rng, ("straight", "swept", "drooping", "disc", "wedge", "block"))
    if kind == "straight":
        guard = (np.abs(along - at) <= 1) & (side <= reach)
    elif kind == "swept":
        guard = (np.abs(along - at - side * 0.45) <= 1.3) & (side <= reach)
    elif kind == "drooping":
        guard = (np.abs(along - at + side * 0.4 - 1) <= 1.3) & (side <= reach)
    elif kind == "disc":
        guard = (along - at) ** 2 * 2 + aside**2 <= 17
    elif kind == "wedge":
        guard = (np.abs(along - at) <= 1 + side * 0.25) & (side <= min(reach, 6))
    else:
        guard = (np.abs(along - at) <= 2) & (side <= 4)
    return np.asarray(guard)


def _shade(mask: Mask) -> NDArray[np.int8]:
    """Tones of a small round part: lit on its upper left rim, dark on its lower right one."""
    tone = np.full(mask.shape, 2, dtype=np.int8)
    tone[mask & (~shift(mask, 1, 0) | ~shift(mask, 0, 1))] = 3
    tone[mask & (~shift(mask, -1, 0) | ~shift(mask, 0, -1))] = 1
    return tone


def _part(canvas: Canvas, mask: Mask, ramp: Ramp) -> None:
    """A small part in front of what is already there."""
    canvas.seam(mask)
    canvas.flat(mask, ramp, 2)
    canvas.tone[mask] = _shade(mask)[mask]


def draw(rng: Generator) -> Canvas:
    """One sword."""
    canvas = Canvas(SIZE)
    blade_ramp = pick(rng, MAGIC) if chance(rng, 0.4) else pick(rng, BLADES)
    hilt, grip_ramp = pick(rng, HILTS), pick(rng, GRIPS)
    at = int(rng.integers(14, 18))
    tip = TIP if chance(rng, 0.75) else TIP - 2 * int(rng.integers(2, 5))
    blade, across = _blade(rng, at, tip)
    blade[:2], blade[-2:], blade[:, :2], blade[:, -2:] = False, False, False, False
    _edge(canvas, rng, blade, across, blade_ramp)
    if chance(rng, 0.3):
        _runes(canvas, rng, blade, across, at, blade_ramp)
    grip = (np.abs(aside) <= 1) & (along >= 6) & (along <= at)
    canvas.flat(grip, grip_ramp, 2)
    canvas.flat(grip & (aside < 0), grip_ramp, 3)
    if chance(rng, 0.7):
        canvas.flat(grip & (along // 2 % 2 == 0), grip_ramp, 1)
    size = pick(rng, (2.5, 4.5, 4.5))
    _part(canvas, np.asarray((along - 5) ** 2 + aside**2 <= size), hilt)
    guard = _guard(rng, at)
    guard[:2], guard[-2:], guard[:, :2], guard[:, -2:] = False, False, False, False
    _part(canvas, guard, hilt)
    if chance(rng, 0.4):
        jewel = pick(rng, [r for r in MAGIC if r not in (hilt, blade_ramp)])
        canvas.flat(np.asarray((np.abs(along - at) <= 1) & (np.abs(aside) <= 1)), jewel, 2)
        canvas.flat(np.asarray((np.abs(along - at) <= 1) & (aside == -1)), jewel, 4)
    canvas.outline()
    return canvas
