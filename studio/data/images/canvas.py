"""Fit sprites to a square canvas by whole pixels, detect upscaling, and convert between pixel formats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba

COMMON_SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
LARGE_PICTURE = COMMON_SIZES[-1]  # pixels; larger than any canvas, so hardly a single sprite
_STRIP_CELLS, _BLOCK_CELLS, _SHEET_CELLS = 3, 8, 16  # canvases in a sheet
_MOSTLY = 0.75  # share of single sprites; then the other pictures count as sheets
_ENOUGH = 0.9  # share of the pictures that a proposed canvas fits
_PIXELS_AT_ONCE = 1 << 20
OPAQUE = np.uint32(0xFF000000)  # alpha mask in the format of `as_uint32`
_LIGHT = np.array([1, 2, 1], np.int16)
_ENOUGH_STEPS = 15_000  # sum of brightness steps; less is too little evidence
_MOST_TURNS = 1.2  # 4,000 hand-drawn sprites are above 1.4, their smooth enlargements below 1.1
_MAGENTA = np.uint32(0xFFFF00FF)  # opaque (255, 0, 255) in the format of `as_uint32`
_LEAST_MAGENTA = 0.05  # share of the pixels; less magenta belongs to the drawing
_FEWEST_CELLS = 4  # blocks in each direction; three blocks can be part of a drawing


def propose_canvas_size(sizes: Mapping[tuple[int, int], int]) -> int:
    """Return the smallest canvas size, from COMMON_SIZES, that fits nine out of ten pictures.

    sizes: number of pictures by (width, height). Pictures larger than every canvas, and a few that look like sheets,
    don't count. Without other pictures, returns the largest size.
    """
    fitting = {size: count for size, count in sizes.items() if max(size) <= COMMON_SIZES[-1]}
    middle = _holding(fitting, 0.5)
    single = {size: count for size, count in fitting.items() if not looks_like_sheet(*size, middle)}
    mostly_single = sum(single.values()) >= _MOSTLY * sum(fitting.values())
    return _holding(single if mostly_single else fitting, _ENOUGH)


def _holding(sizes: Mapping[tuple[int, int], int], share: float) -> int:
    """Return the smallest size from COMMON_SIZES that fits at least `share` of the pictures."""
    total = sum(sizes.values())
    for canvas in COMMON_SIZES:
        if total and sum(count for size, count in sizes.items() if max(size) <= canvas) >= share * total:
            return canvas
    return COMMON_SIZES[-1]


def looks_like_sheet(width: int, height: int, canvas: int) -> bool:
    """Return whether a picture has a sheet's size: many times the `canvas`, or a strip or block of whole canvases."""
    cells = (width // canvas) * (height // canvas)
    if width % canvas or height % canvas:
        return cells >= _SHEET_CELLS
    return cells >= _BLOCK_CELLS or (cells >= _STRIP_CELLS and min(width, height) == canvas)


def as_uint32(rgba: Rgba) -> NDArray[np.uint32]:
    """View uint8 [..., 4] as uint32 [...], one number per pixel; copies only non-contiguous arrays."""
    return np.asarray(np.ascontiguousarray(rgba).view("<u4")[..., 0])


def as_rgba(numbers: NDArray[np.uint32]) -> Rgba:
    """View uint32 [...], one number per pixel, as uint8 [..., 4]; copies only non-contiguous arrays."""
    return np.ascontiguousarray(numbers, "<u4").view(np.uint8).reshape(*numbers.shape, 4)


def sprite_slices(rgba: Rgba, count: int | None = None, pixels: int = _PIXELS_AT_ONCE) -> Iterator[slice]:
    """Yield slices along N of uint8 [N, S, S, 4] with about `pixels` pixels each, to limit memory; `count` limits N."""
    count = len(rgba) if count is None else count
    step = max(1, pixels // max(1, int(np.prod(rgba.shape[1:3]))))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def clear_hidden(rgba: Rgba) -> None:
    """Set the colour of fully transparent pixels to 0, in place."""
    visible = rgba[..., 3] != 0
    if not visible.all():
        rgba *= visible[..., None]


def visible_bounds(rgba: Rgba) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom (exclusive) of the visible pixels; None for a transparent picture."""
    alpha = rgba[..., 3]
    if alpha.all():
        return (0, 0, alpha.shape[1], alpha.shape[0])
    columns = np.flatnonzero(alpha.any(axis=0))
    if not columns.size:
        return None
    rows = np.flatnonzero(alpha.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def crop_transparent(rgba: Rgba) -> Rgba:
    """Return a picture without its transparent borders; unchanged if no pixel is visible."""
    left, top, right, bottom = visible_bounds(rgba) or (0, 0, rgba.shape[1], rgba.shape[0])
    return rgba[top:bottom, left:right]


def paste_centred(rgba: Rgba, canvas: Rgba) -> None:
    """Copy uint8 [H, W, 4] to the centre of a zeroed canvas, by whole pixels, in place."""
    height, width = rgba.shape[:2]
    top, left = (canvas.shape[0] - height) // 2, (canvas.shape[1] - width) // 2
    canvas[top : top + height, left : left + width] = rgba


def upscaling_factor(rgba: Rgba) -> int:
    """Return the whole number by which a sprite, uint8 [H, W, 4], was upscaled; 1 without evidence.

    An upscaled sprite consists of blocks of equal pixels. The evidence needs at least four blocks in each direction and
    a change of colour at most borders between blocks.
    """
    box = visible_bounds(rgba)
    if box is None:
        return 1
    left, top, right, bottom = box
    pixels = as_uint32(rgba[top:bottom, left:right])
    down, across = (_changes(pixels, axis) for axis in (0, 1))
    scale = math.gcd(*down, *across, *pixels.shape)
    if scale == 1 or min(pixels.shape) < scale * _FEWEST_CELLS:
        return 1
    lines = sum(pixels.shape) // scale - 2
    return scale if 2 * (len(down) + len(across)) > lines else 1


def undo_upscaling(rgba: Rgba, scale: int) -> Rgba:
    """Return an upscaled sprite, uint8 [H, W, 4], at its original size; return other sprites unchanged.

    scale: factor; 0 detects the factor, 1 changes nothing. Borders without whole blocks are cropped to the visible
    pixels.
    """
    scale = scale or upscaling_factor(rgba)
    box = visible_bounds(rgba) if scale > 1 else None
    if box is None:
        return rgba
    left, top, right, bottom = box
    in_step = not any(number % scale for number in (left, top, *rgba.shape[:2]))
    blocks = rgba if in_step else rgba[top:bottom, left:right]
    small = blocks[::scale, ::scale]
    large = as_uint32(small).repeat(scale, 0).repeat(scale, 1)
    return small.copy() if np.array_equal(large, as_uint32(blocks)) else rgba


def _changes(pixels: NDArray[np.uint32], axis: int) -> list[int]:
    """Return the indices of rows (axis 0) or columns (axis 1) that differ from the row or column before."""
    before, after = (pixels[:-1], pixels[1:]) if axis == 0 else (pixels[:, :-1], pixels[:, 1:])
    differs = (before != after).any(axis=1 - axis)
    return [int(position) + 1 for position in np.flatnonzero(differs)]


def looks_smooth(rgba: Rgba) -> bool:
    """Return whether a picture has smooth shading, like a photo or a smoothed enlargement.

    In smooth pictures, the second differences of brightness are no larger than the first differences. In pixel art,
    upscaled or not, the second differences are 1.5 to 2 times as large.
    """
    if min(rgba.shape[:2]) < 3:
        return False
    steps = turns = 0
    light = rgba[..., :3].astype(np.int16) @ _LIGHT
    opaque = rgba[..., 3] == 255
    for level, solid in ((light, opaque), (light.T, opaque.T)):
        inside = solid[2:] & solid[1:-1] & solid[:-2]
        step = np.diff(level, axis=0)
        steps += int(np.abs(step[1:])[inside].sum())
        turns += int(np.abs(np.diff(step, axis=0))[inside].sum())
    return steps >= _ENOUGH_STEPS and turns < _MOST_TURNS * steps


def has_magenta_ground(rgba: Rgba) -> bool:
    """Return whether an opaque picture, uint8 [H, W, 4], has much magenta, also at the border."""
    if not rgba.size or rgba[..., 3].min() < 255:
        return False
    found = as_uint32(rgba) == _MAGENTA
    border = (found[0], found[-1], found[:, 0], found[:, -1])
    return any(side.any() for side in border) and bool(found.mean() >= _LEAST_MAGENTA)


def clear_magenta(rgba: Rgba) -> None:
    """Make magenta pixels transparent, in place. rgba: uint8 [H, W, 4]; pictures with alpha are unchanged."""
    if rgba.size and rgba[..., 3].min() == 255:
        rgba[as_uint32(rgba) == _MAGENTA] = 0
