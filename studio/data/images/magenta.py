"""Find and clear magenta, the transparent colour in pictures without alpha."""

from __future__ import annotations

import numpy as np

from studio.core.arrays import Rgba
from studio.data.images.canvas import as_numbers

_MAGENTA = np.uint32(0xFFFF00FF)  # opaque (255, 0, 255) in the format of `as_numbers`
_LEAST_SHARE = 0.05  # share of the pixels; less magenta belongs to the drawing


def has_magenta_ground(rgba: Rgba) -> bool:
    """Return whether an opaque picture, uint8 [H, W, 4], has much magenta, some of it at the border."""
    if not rgba.size or rgba[..., 3].min() < 255:
        return False
    found = as_numbers(rgba) == _MAGENTA
    border = (found[0], found[-1], found[:, 0], found[:, -1])
    return any(side.any() for side in border) and bool(found.mean() >= _LEAST_SHARE)


def clear_magenta(rgba: Rgba) -> None:
    """Make magenta pixels transparent in place. rgba: uint8 [H, W, 4]; pictures with alpha stay unchanged."""
    if rgba.size and rgba[..., 3].min() == 255:
        rgba[as_numbers(rgba) == _MAGENTA] = 0
