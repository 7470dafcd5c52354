"""The colours of a set of sprites."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Rgba

_MOST_PIXELS = 4_000_000  # looked at; larger sets are sampled evenly
_GREY_CHROMA = 0.035  # in OKLab: below it the eye sees no hue
_HUE_GROUPS = 12

_SRGB_TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LMS_TO_OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def palette_of(rgba: Rgba, limit: int = 256) -> tuple[Rgba, NDArray[np.int64]]:
    """The most used opaque colours of uint8 [N, S, S, 4]: uint8 [K, 4] and their pixels int64 [K], most used first.

    K is at most `limit`. Sets of more than four million pixels are sampled evenly, always in the same way, and the
    counts are then estimates.
    """
    pixels_each = int(np.prod(rgba.shape[1:3]))
    step = max(1, -(-len(rgba) * pixels_each // _MOST_PIXELS))
    pixels = np.ascontiguousarray(rgba[::step]).view("<u4").reshape(-1)
    values = pixels[pixels >= 0xFF000000]  # alpha is the last byte of four
    colours, counts = np.unique(values, return_counts=True)
    order = np.lexsort((colours, -counts))[: max(limit, 0)]
    chosen = np.ascontiguousarray(colours[order]).view(np.uint8).reshape(-1, 4)
    return chosen, counts[order].astype(np.int64) * step


def display_order(colours: Rgba) -> NDArray[np.int64]:
    """Indices that lay uint8 [K, 4] out for the eye: greys from dark to light, then hue by hue: int64 [K]."""
    lab = oklab(colours[..., :3])
    chroma = np.hypot(lab[:, 1], lab[:, 2])
    turn = np.arctan2(lab[:, 2], lab[:, 1]) / (2 * np.pi) % 1.0
    group = np.where(chroma < _GREY_CHROMA, -1, np.floor(turn * _HUE_GROUPS))
    return np.lexsort((turn, lab[:, 0], group)).astype(np.int64)


def oklab(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """sRGB uint8 [..., 3] in OKLab, where distances are as the eye sees them: lightness, a, b as float64 [..., 3]."""
    share = rgb.astype(np.float64) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(linear @ np.array(_SRGB_TO_LMS).T)
    return np.asarray(cones @ np.array(_LMS_TO_OKLAB).T)
