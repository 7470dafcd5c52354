"""Sprites spoilt in known ways, to see what a measure of quality sees."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.colour.palette import dominant_colours, nearest_colours, to_oklab
from studio.data.images.canvas import as_rgba, as_uint32


def spoilt(sprites: Rgba, training: Rgba) -> Iterator[tuple[str, Rgba]]:
    """Names and sprites uint8 [N, S, S, 4] of each way to spoil them, in the colours of those learnt from."""
    rng, palette = np.random.default_rng(0), dominant_colours(training, 256)[:, :3]
    size = sprites.shape[1]
    for share in (0.01, 0.03, 0.1):
        yield f"{share:.0%} speckled", _speckled(sprites, share, palette, rng)
    for share in (0.1, 0.3):
        yield f"{share:.0%} of outlines moved", _moved_outlines(sprites, share, rng)
    yield "faces blurred", _blurred(sprites, size // 3, palette)
    yield "all blurred", _blurred(sprites, size, palette)
    for turn in (0.05, 0.15):
        yield f"hues turned by {360 * turn:.0f} degrees", _turned(sprites, turn, palette)
    for share in (0.1, 0.3, 0.5, 0.9):
        copied = sprites.copy()
        chosen = rng.random(len(sprites)) < share
        copied[chosen] = training[rng.integers(len(training), size=chosen.sum())]
        yield f"{share:.0%} copies", copied
    yield "blank", np.zeros_like(sprites)


def _speckled(sprites: Rgba, share: float, palette: NDArray[np.uint8], rng: np.random.Generator) -> Rgba:
    found = sprites.copy()
    hit = (sprites[..., 3] >= 128) & (rng.random(sprites.shape[:3]) < share)
    found[hit, :3] = palette[rng.integers(len(palette), size=hit.sum())]
    return found


def _moved_outlines(sprites: Rgba, share: float, rng: np.random.Generator) -> Rgba:
    """Of this share of the pixels that have nothing beside them, half are gone, and half stand there too."""
    found, seen, size = sprites.copy(), sprites[..., 3] >= 128, sprites.shape[1]
    around = np.pad(seen, ((0, 0), (1, 1), (1, 1)))
    inside = around[:, :-2, 1:-1] & around[:, 2:, 1:-1] & around[:, 1:-1, :-2] & around[:, 1:-1, 2:]
    hit, grows = seen & ~inside & (rng.random(seen.shape) < share), rng.random(seen.shape) < 0.5
    found[hit & ~grows] = 0
    which, y, x = np.nonzero(hit & grows)
    dy, dx = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])[rng.integers(4, size=len(which))].T
    to_y, to_x = np.clip(y + dy, 0, size - 1), np.clip(x + dx, 0, size - 1)
    free = ~seen[which, to_y, to_x]
    found[which[free], to_y[free], to_x[free]] = sprites[which[free], y[free], x[free]]
    return found


def _blurred(sprites: Rgba, side: int, palette: NDArray[np.uint8]) -> Rgba:
    """A square in the upper middle, blurred twice over 3 x 3 pixels; the shape and the number of colours stay."""
    size = sprites.shape[1]
    pixels = sprites.astype(float) * np.maximum(sprites[..., 3:] / 255, [0, 0, 0, 1])
    for _ in range(2):
        padded = np.pad(pixels, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
        parts = [padded[:, y : y + size, x : x + size] for y in range(3) for x in range(3)]
        pixels = np.mean(parts, axis=0)
    colour = (pixels[..., :3] / pixels[..., 3:].clip(1e-3) * 255).clip(0, 255).round().astype(np.uint8)
    left, top = (size - side) // 2, min(size // 6, size - side)
    inside = np.zeros((size, size), bool)
    inside[top : top + side, left : left + side] = True
    chosen, found = inside & (sprites[..., 3] >= 128), sprites.copy()
    found[chosen, :3] = _in_palette(colour[chosen], palette)
    return found


def _turned(sprites: Rgba, turn: float, palette: NDArray[np.uint8]) -> Rgba:
    values, places = np.unique(as_uint32(sprites), return_inverse=True)
    colours = as_rgba(values).copy()
    for colour in colours:
        hue, saturation, value = colorsys.rgb_to_hsv(*(colour[:3] / 255))
        colour[:3] = np.round(255 * np.array(colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)))
    seen = colours[:, 3] > 0
    colours[seen, :3] = _in_palette(colours[seen, :3], palette)
    return np.asarray(colours[places].reshape(sprites.shape))


def _in_palette(colours: NDArray[np.uint8], palette: NDArray[np.uint8]) -> NDArray[np.uint8]:
    values, places = np.unique(colours, axis=0, return_inverse=True)
    return np.asarray(palette[nearest_colours(to_oklab(values), to_oklab(palette))][places.reshape(-1)])
