"""Whether sprites are made of the pixels that pixel art is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Rgba
from studio.data.colour_use import colours_used


@dataclass(frozen=True)
class PixelTruth:
    """Shares from 0 to 1; 0 where there is nothing to be seen.

    half_transparent: of the pixels that can be seen, those that can be seen through.
    colours: the median number of colours of a sprite; every pixel that can be seen counts, without its alpha.
    off_palette: of the pixels that can be seen, those in a colour that the reference sprites don't have.
    """

    half_transparent: float
    colours: float
    off_palette: float


def pixel_truth(sprites: Rgba, reference: Rgba) -> PixelTruth:
    """Look at uint8 [N, S, S, 4] beside reference sprites uint8 [M, T, T, 4]."""
    alpha = sprites[..., 3]
    seen = alpha > 0
    colours = _colours(sprites)
    palette = np.unique(_colours(reference)[reference[..., 3] > 0])
    visible = max(1, int(seen.sum()))
    half = int((seen & (alpha < 255)).sum()) / visible
    off = int((~np.isin(colours[seen], palette)).sum()) / visible
    each = colours_used(sprites)
    return PixelTruth(half, float(np.median(each)) if len(each) else 0.0, off)


def _colours(sprites: Rgba) -> NDArray[np.uint32]:
    """Red, green and blue as one number: uint32 [N, S, S]."""
    return np.asarray(np.ascontiguousarray(sprites).view("<u4")[..., 0] & 0xFFFFFF)
