"""Fitting sprites to one square canvas, by whole pixels: nothing is scaled. Telling whether they were enlarged."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Rgba

COMMON_SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_ENOUGH = 0.9  # share of the sprites that a proposed canvas holds
_FEWEST_CELLS = 4  # of an enlarged sprite in each direction: three blocks in a row can be art


def propose_size(sizes: Mapping[tuple[int, int], int]) -> int:
    """The smallest common canvas that holds nine of ten pictures, from how many there are of each (width, height).

    Pictures too large for every canvas (sheets, photos) don't count. The largest canvas when there are no others.
    """
    counted = {max(size): 0 for size in sizes if max(size) <= COMMON_SIZES[-1]}
    for size, count in sizes.items():
        if max(size) in counted:
            counted[max(size)] += count
    total = sum(counted.values())
    for canvas in COMMON_SIZES:
        if total and sum(count for side, count in counted.items() if side <= canvas) >= _ENOUGH * total:
            return canvas
    return COMMON_SIZES[-1]


def packed(rgba: Rgba) -> NDArray[np.uint32]:
    """uint8 [..., 4] as one number a pixel: uint32 [...], a view of the same memory where it is contiguous."""
    return np.ascontiguousarray(rgba).view(np.uint32)[..., 0]


def clear_hidden(rgba: Rgba) -> None:
    """Zero the colour wherever alpha is 0, in place."""
    visible = rgba[..., 3] != 0
    if not visible.all():
        rgba *= visible[..., None]


def visible_box(rgba: Rgba) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom (the last two excluded) of what is not fully transparent; None when nothing is."""
    alpha = rgba[..., 3]
    if alpha.all():
        return (0, 0, alpha.shape[1], alpha.shape[0])
    columns = np.flatnonzero(alpha.any(axis=0))
    if not columns.size:
        return None
    rows = np.flatnonzero(alpha.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def fit_into(rgba: Rgba, canvas: Rgba) -> None:
    """Copy uint8 [H, W, 4] to the centre of a zeroed canvas that is large enough, by whole pixels, in place."""
    height, width = rgba.shape[:2]
    top, left = (canvas.shape[0] - height) // 2, (canvas.shape[1] - width) // 2
    canvas[top : top + height, left : left + width] = rgba


def native_scale(rgba: Rgba) -> int:
    """By what whole number a sprite was enlarged, 1 where there is no evidence for any.

    Looks where neighbouring columns and rows of uint8 [H, W, 4] differ: in an enlarged sprite only at every n-th. The
    sprite has to be rich enough to tell: four blocks in each direction, and a change between most of them.
    """
    box = visible_box(rgba)
    if box is None:
        return 1
    left, top, right, bottom = box
    pixels = packed(rgba[top:bottom, left:right])
    down, across = (_changes(pixels, axis) for axis in (0, 1))
    scale = math.gcd(*down, *across, *pixels.shape)
    if scale == 1 or min(pixels.shape) < scale * _FEWEST_CELLS:
        return 1
    lines = sum(pixels.shape) // scale - 2
    return scale if 2 * (len(down) + len(across)) > lines else 1


def _changes(pixels: NDArray[np.uint32], axis: int) -> list[int]:
    """Positions along `axis` where a row or column differs from the one before it."""
    before, after = (pixels[:-1], pixels[1:]) if axis == 0 else (pixels[:, :-1], pixels[:, 1:])
    differs = (before != after).any(axis=1 - axis)
    return [int(position) + 1 for position in np.flatnonzero(differs)]


def looks_smooth(rgba: Rgba) -> bool:
    """Whether a picture is shaded like a photo or a smoothed enlargement: neighbours nearly alike, rarely the same."""
    height, width = rgba.shape[:2]
    if min(height, width) < 48:
        return False  # grass and water of 32 x 32 are drawn pixel by pixel, and look just like it
    both = (rgba[:, 1:, 3] == 255) & (rgba[:, :-1, 3] == 255)
    pairs = int(both.sum())
    if pairs < 1000:
        return False
    steps = np.abs(rgba[:, 1:, :3].astype(np.int16) - rgba[:, :-1, :3]).max(axis=-1)[both]
    return bool((steps == 0).mean() < 0.1 and np.median(steps) <= 12)
