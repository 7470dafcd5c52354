"""Magenta as the colour of transparent pixels, in pictures whose file format or painter had no alpha."""

from __future__ import annotations

import numpy as np

from studio.core.events import Rgba
from studio.data.images.canvas import as_numbers

_MAGENTA = np.uint32(0xFFFF00FF)  # (255, 0, 255), opaque, in `as_numbers`
_LEAST_SHARE = 0.05  # of the pixels; less magenta is a detail of the drawing


def has_magenta_ground(rgba: Rgba) -> bool:
    """Return whether an opaque picture, uint8 [H, W, 4], stands on magenta: much of it, up to the border."""
    if not rgba.size or rgba[..., 3].min() < 255:
        return False
    found = as_numbers(rgba) == _MAGENTA
    border = (found[0], found[-1], found[:, 0], found[:, -1])
    return any(side.any() for side in border) and bool(found.mean() >= _LEAST_SHARE)


def clear_magenta(rgba: Rgba) -> None:
    """Make the magenta pixels of an opaque picture, uint8 [H, W, 4], transparent in place; leave other pictures."""
    if rgba.size and rgba[..., 3].min() == 255:
        rgba[as_numbers(rgba) == _MAGENTA] = 0
