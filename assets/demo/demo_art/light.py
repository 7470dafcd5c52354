"""Form shading: a height for every pixel, the light that falls on it from the top left, and its tone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .shapes import Field, Mask, grid, shift

TOWARD_LIGHT = (-0.52, -0.62, 0.59)
STEPS = (0.16, 0.58, 0.9)
"""Where shadow, base, light and highlight part."""


@lru_cache(maxsize=4096)
def _inflate(mask_bytes: bytes, size: int) -> Field:
    """Solves a soap film over the mask; its root is round like a ball on any silhouette."""
    mask = np.frombuffer(mask_bytes, dtype=np.bool_).reshape(size, size)
    film = np.zeros((size + 2, size + 2))
    inside = np.pad(mask, 1)
    for _ in range(90):
        film[1:-1, 1:-1] = (film[:-2, 1:-1] + film[2:, 1:-1] + film[1:-1, :-2] + film[1:-1, 2:] + 1.0) / 4.0
        film *= inside
    return np.asarray(2.0 * np.sqrt(film[1:-1, 1:-1]))


def inflate(mask: Mask) -> Field:
    """The height of a balloon blown up inside the mask."""
    return _inflate(mask.tobytes(), mask.shape[0])


def lambert(height: Field, bulge: float = 1.0) -> Field:
    """How squarely each pixel of a height field faces the light, -1 to 1."""
    dy, dx = np.gradient(height * bulge)
    lx, ly, lz = TOWARD_LIGHT
    return np.asarray((-dx * lx - dy * ly + lz) / np.sqrt(dx**2 + dy**2 + 1.0))


def ball(size: int, cx: float, cy: float, rx: float, ry: float) -> Field:
    """The light on an ellipsoid, clipped beyond its edge."""
    x, y = grid(size)
    nx, ny = (x - cx) / rx, (y - cy) / ry
    nz = np.sqrt(np.clip(1.0 - nx**2 - ny**2, 0.0, 1.0))
    lx, ly, lz = TOWARD_LIGHT
    return np.asarray(nx * lx + ny * ly + nz * lz)


def tube(size: int, cx: float, radius: float) -> Field:
    """The light on an upright cylinder."""
    x, _ = grid(size)
    nx = np.clip((x - cx) / radius, -1.0, 1.0)
    return np.asarray(nx * -0.66 + np.sqrt(1.0 - nx**2) * 0.75)


def tones(light: Field, steps: tuple[float, float, float] = STEPS) -> NDArray[np.int8]:
    """Light as tones 1 to 4."""
    return np.asarray(1 + np.searchsorted(np.array(steps), light), dtype=np.int8)


def tidy(tone: NDArray[np.int8], mask: Mask) -> NDArray[np.int8]:
    """Tones without lone pixels: one that no four-neighbour in the mask shares takes their median."""
    moves = ((1, 0), (-1, 0), (0, 1), (0, -1))
    out = tone.copy()
    near = [np.where(shift(mask, dx, dy), np.roll(tone, (dy, dx), (0, 1)), -1) for dx, dy in moves]
    stack = np.stack(near)
    alone = mask & ~(stack == tone).any(axis=0) & (stack >= 0).any(axis=0)
    for y, x in zip(*np.nonzero(alone), strict=True):
        around = np.sort(stack[:, y, x][stack[:, y, x] >= 0])
        out[y, x] = around[len(around) // 2]
    return out
