"""What every finished sprite goes through: few enough colours, a clear border, no stray pixels, no near copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
MOST_COLOURS = 14
FEWEST_COLOURS = 6
WORST_MERGE = 220.0
"""Pixels times colour distance; a merge above it would be seen, so the sprite is drawn anew instead."""
LEAST_CHANGE = 8
"""Pixels in which any two sprites of a class must differ."""


def _merge(values: Pixels, counts: NDArray[np.int64]) -> tuple[int, int, float]:
    """The colour that can vanish into another at the least cost, the other one, and that cost."""
    rgb = values.astype(np.float64)
    # Eyes judge green differences most and blue ones least.
    apart = np.sqrt(((rgb[:, None] - rgb[None, :]) ** 2 * np.array([0.3, 0.59, 0.11])).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    cost = apart.min(axis=1) * counts
    gone = int(cost.argmin())
    return gone, int(apart[gone].argmin()), float(cost[gone])


def limit_colours(pixels: Pixels) -> Pixels | None:
    """Melts the least used colours into their nearest ones until few are left; None if that would show."""
    solid = pixels[..., 3] > 0
    out = pixels.copy()
    while True:
        values, where, counts = np.unique(out[solid][:, :3], axis=0, return_inverse=True, return_counts=True)
        if len(values) <= MOST_COLOURS:
            return out
        gone, into, cost = _merge(values, counts)
        if cost > WORST_MERGE:
            return None
        flat = out[solid]
        flat[where.reshape(-1) == gone, :3] = values[into]
        out[solid] = flat


def is_clean(pixels: Pixels) -> bool:
    """Enough colours, an empty border, and no pixel that stands alone."""
    solid = np.pad(pixels[..., 3] > 0, 1)
    inner = solid[1:-1, 1:-1]
    if len(np.unique(pixels[inner], axis=0)) < FEWEST_COLOURS:
        return False
    if inner[0].any() or inner[-1].any() or inner[:, 0].any() or inner[:, -1].any():
        return False
    size = inner.shape[0]
    near = sum(
        solid[1 + dy : 1 + dy + size, 1 + dx : 1 + dx + size].astype(np.int64)
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        if dy or dx
    )
    return not bool((inner & (near == 0)).any())


def is_new(pixels: Pixels, others: list[Pixels]) -> bool:
    """Differs visibly from each of the others."""
    if not others:
        return True
    changed = (np.stack(others) != pixels).any(axis=3).sum(axis=(1, 2))
    return int(changed.min()) >= LEAST_CHANGE
