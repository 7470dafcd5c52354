"""Masks on a small square grid: ellipses, polygons, lines, row profiles, and what can be done to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Field = NDArray[np.float64]


def empty(size: int) -> Mask:
    """A mask with nothing in it."""
    return np.zeros((size, size), dtype=np.bool_)


def grid(size: int) -> tuple[Field, Field]:
    """The x and y of every pixel centre, pixel (0, 0) being at 0, 0."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float64)
    return x, y


def ellipse(size: int, cx: float, cy: float, rx: float, ry: float) -> Mask:
    """Pixels whose centre lies inside the ellipse."""
    x, y = grid(size)
    return np.asarray(((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 <= 1.0)


def box(size: int, left: int, top: int, right: int, bottom: int) -> Mask:
    """A rectangle, its last column and row included."""
    mask = empty(size)
    mask[max(top, 0) : bottom + 1, max(left, 0) : right + 1] = True
    return mask


def polygon(size: int, points: Sequence[tuple[float, float]]) -> Mask:
    """Pixels whose centre lies inside the polygon (even-odd), a hair of slack keeping edge centres in."""
    x, y = grid(size)
    inside = empty(size)
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        if ay == by:
            continue
        crosses = (ay > y + 1e-6) != (by > y + 1e-6)
        inside ^= crosses & (x < ax + (y - ay) * (bx - ax) / (by - ay) + 1e-6)
    return inside


def rows(size: int, top: int, halves: Sequence[int], *, odd: bool = False) -> Mask:
    """A mirrored silhouette from half widths, one a row; with odd it has a middle column, which is size // 2 - 1."""
    mask = empty(size)
    for row, half in enumerate(halves, start=top):
        if odd and half >= 0:
            mask[row, size // 2 - 1 - half : size // 2 + half] = True
        elif half > 0:
            mask[row, size // 2 - half : size // 2 + half] = True
    return mask


def line(size: int, points: Sequence[tuple[int, int]]) -> Mask:
    """A one pixel wide line through the points."""
    mask = empty(size)
    for (ax, ay), (bx, by) in pairwise(points):
        steps = max(abs(bx - ax), abs(by - ay), 1)
        for step in range(steps + 1):
            x = int(np.floor(ax + (bx - ax) * step / steps + 0.5))
            y = int(np.floor(ay + (by - ay) * step / steps + 0.5))
            if 0 <= x < size and 0 <= y < size:
                mask[y, x] = True
    return mask


def art(size: int, drawing: Sequence[str], left: int, top: int) -> Mask:
    """The '#' of a string drawing as a mask."""
    mask = empty(size)
    for y, row in enumerate(drawing, start=top):
        for x, char in enumerate(row, start=left):
            if char == "#" and 0 <= x < size and 0 <= y < size:
                mask[y, x] = True
    return mask


def silhouette(size: int, drawing: Sequence[str], left: int, top: int) -> Mask:
    """Everything of a string drawing that is not a dot, as a mask."""
    return art(size, ["".join("." if char == "." else "#" for char in row) for row in drawing], left, top)


def shift(mask: Mask, dx: int, dy: int) -> Mask:
    """The mask moved, what leaves the grid being lost."""
    size = mask.shape[0]
    moved = empty(size)
    moved[max(dy, 0) : size + min(dy, 0), max(dx, 0) : size + min(dx, 0)] = mask[
        max(-dy, 0) : size + min(-dy, 0), max(-dx, 0) : size + min(-dx, 0)
    ]
    return moved


def mirror(mask: Mask, *, odd: bool = False) -> Mask:
    """The mask together with its mirror image; with odd the axis is the column size // 2 - 1."""
    flipped = mask[:, ::-1]
    return np.asarray(mask | (shift(flipped, -1, 0) if odd else flipped))


def grow(mask: Mask) -> Mask:
    """The mask and its four-neighbours."""
    return np.asarray(mask | shift(mask, 1, 0) | shift(mask, -1, 0) | shift(mask, 0, 1) | shift(mask, 0, -1))


def shrink(mask: Mask) -> Mask:
    """The mask without the pixels that touch its outside."""
    return np.asarray(~grow(~mask) & mask)


def rim(mask: Mask) -> Mask:
    """The pixels of the mask that touch its outside."""
    return np.asarray(mask & ~shrink(mask))
