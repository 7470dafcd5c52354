"""Styles: other palettes, fewer or more tones, grain and other outlines for finished drawings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .canvas import Canvas, chance, pick
from .palette import COLOURS, TONES, Ramp
from .shapes import Field, Mask, grow, shift

Outline = Literal["own", "ink", "none"]
TONE_CHOICES = ((0, 1, 2, 3, 4), (0, 1, 2, 3, 4), (0, 1, 2, 3, 3), (0, 1, 2, 2, 3), (0, 2, 2, 3, 3), (0, 2, 2, 2, 2))
OUTLINES: tuple[Outline, ...] = ("own", "own", "ink", "ink", "none")
MUTED = (Ramp.WOOD, Ramp.BONE, Ramp.STEEL, Ramp.SLATE, Ramp.SKIN)
GRAINY_SHARE = 0.4  # of random styles
SHADES = 3  # of a grainy style, from one tone to the next
SHADOW_HUE, HIGHLIGHT_HUE = 5.2, 1.1  # violet and yellow, in radians from red
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Style:
    """The look of a set of sprites.

    colours: uint8 [ramps, TONES, 3], in place of COLOURS. tones: a tone in place of each tone. outline: each ramp's own
    darkest tone, the darkest colour of the palette, or no outline. grain: standard deviation of random changes of each
    pixel's tone, in tones; with grain, tones also blend into each other, in SHADES steps.
    """

    colours: NDArray[np.uint8]
    tones: tuple[int, ...] = tuple(range(TONES))
    outline: Outline = "own"
    grain: float = 0.0

    def paint(self, canvas: Canvas, rng: Generator) -> NDArray[np.uint8]:
        """Return the pixels of a drawing in this style, uint8 [S, S, 4]."""
        out = np.zeros((canvas.size, canvas.size, 4), np.uint8)
        painted = canvas.painted & ~_outline(canvas) if self.outline == "none" else canvas.painted
        tone = np.array(self.tones)[canvas.tone]
        if self.grain:
            out[painted, :3] = self._shades(_grainy(tone, canvas, self.grain, rng), canvas.ramp)[painted]
        else:
            out[painted, :3] = self.colours[canvas.ramp[painted], tone[painted]]
        out[painted, 3] = 255
        if self.outline == "ink":
            out[canvas.painted & (tone == 0), :3] = min(self.colours.reshape(-1, 3).tolist(), key=sum)
        return out

    def _shades(self, tone: Field, ramp: NDArray[np.int8]) -> NDArray[np.uint8]:
        """Return the colours between two tones of the ramps, uint8 [S, S, 3]. tone: multiples of 1 / SHADES."""
        low = np.floor(tone).astype(int)
        high = np.minimum(low + 1, TONES - 1)
        share = (tone - low)[..., None]
        blended = (1 - share) * self.colours[ramp, low] + share * self.colours[ramp, high]
        return np.asarray(blended.round().astype(np.uint8))


def _grainy(tone: NDArray[np.int_], canvas: Canvas, grain: float, rng: Generator) -> Field:
    """Blend the tones of neighbours on the same ramp and add random changes; the darkest tone stays."""
    inside = canvas.painted & (tone > 0)
    total, count = tone.astype(np.float64), np.ones(tone.shape)
    for dx, dy in ((0, 1), (1, 0), (-1, 0), (0, -1)):
        ramp = np.roll(canvas.ramp, (dy, dx), (0, 1))
        same = shift(inside, dx, dy) & (ramp == canvas.ramp)
        total += np.where(same, np.roll(tone, (dy, dx), (0, 1)), 0)
        count += same
    changed = total / count + rng.normal(0, grain, tone.shape)
    return np.where(inside, (changed.clip(1, TONES - 1) * SHADES).round() / SHADES, tone)


def _outline(canvas: Canvas) -> Mask:
    """Return the pixels of the darkest tone that touch the background."""
    return np.asarray(canvas.painted & (canvas.tone == 0) & grow(~canvas.painted))


def random_style(rng: Generator) -> Style:
    """Return a random style; a third of the palettes have two to four ramps only."""
    colours = _turned_table(rng) if chance(rng, 0.2) else _ramp_table(rng)
    if chance(rng, 0.33):
        few = rng.choice(len(colours), int(rng.integers(2, 5)), replace=False)
        colours = colours[rng.choice(few, len(colours))]
    tones, outline = pick(rng, TONE_CHOICES), pick(rng, OUTLINES)
    return Style(colours, tones, outline, rng.uniform(0.05, 0.4) if chance(rng, GRAINY_SHARE) else 0.0)


def _turned_table(rng: Generator) -> NDArray[np.uint8]:
    """Return the demo's palette with the ramps in another order: a red fish may become blue."""
    return np.asarray(COLOURS[rng.permutation(len(COLOURS))])


def _ramp_table(rng: Generator) -> NDArray[np.uint8]:
    """Return random ramps from dark to light, whose shadows and highlights drift to other hues."""
    darkest, lightest = rng.uniform(0.02, 0.2), rng.uniform(0.8, 1.0)
    drift, vivid = rng.uniform(0, 0.8), rng.uniform(0.35, 1.0)
    first = rng.uniform(0, 2 * np.pi)
    table = []
    for number, ramp in enumerate(Ramp):
        hue = first + 2 * np.pi * number / len(Ramp) + rng.normal(0, 0.2)
        chroma = vivid * (rng.uniform(0.05, 0.4) if ramp in MUTED else rng.uniform(0.5, 1.0))
        middle = rng.uniform(0.3, 0.6)
        lumas = np.interp(range(TONES), (0, 2, TONES - 1), (darkest, middle, lightest))
        shares = np.linspace(1, -1, TONES) * drift  # 1: fully the hue of shadows, -1: of highlights
        towards = np.where(shares > 0, SHADOW_HUE, HIGHLIGHT_HUE)
        hues = hue + np.abs(shares) * np.angle(np.exp(1j * (towards - hue)))
        table.append([_rgb(luma, tone_hue, chroma) for luma, tone_hue in zip(lumas, hues, strict=True)])
    return np.array(table, np.uint8)


def _rgb(luma: float, hue: float, chroma: float) -> list[int]:
    """Return the RGB of a brightness in [0, 1], a hue in radians and a chroma, which the gamut may limit."""
    change = chroma * np.cos(hue - np.array([0, 2, 4]) * np.pi / 3)
    change -= change @ _LUMA
    room = np.where(change > 0, 1 - luma, luma) / np.maximum(np.abs(change), 1e-6)
    rgb = luma + change * min(1.0, float(room.min()))
    return [int(value) for value in np.round(rgb * 255)]
