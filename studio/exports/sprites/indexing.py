"""Sprites as numbers of colours, for the formats that have a palette."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba

MOST_COLOURS = 255  # beside the transparent one
_OPAQUE = 0xFF000000  # alpha is the last byte of four
Numbers = NDArray[np.uint32]  # colours, red in the lowest byte


@dataclass(frozen=True, eq=False)
class IndexedSprites:
    """Sprites as numbers of colours.

    indices: uint8 [N, H, W]. table: uint8 [K, 4], of which 0 is transparent; at most 256.
    strays: how many colours of the sprites the palette does not have; they come after its own.
    """

    indices: NDArray[np.uint8]
    table: Rgba
    extra_colours: int


def visible_colours(sprites: Rgba) -> Numbers:
    """The colours that can be seen in uint8 [N, H, W, 4], opaque ones first, of these the most used first."""
    each = [np.unique(_numbers(sprite), return_counts=True) for sprite in sprites]  # all at once take much memory
    values, where = np.unique(np.concatenate([values for values, _ in each]), return_inverse=True)
    counts = np.bincount(where, np.concatenate([counts for _, counts in each]))
    seen = values >> 24 > 0
    values, counts = values[seen], counts[seen]
    return values[np.lexsort((values, -counts, values < _OPAQUE))]


def index_colours(sprites: Rgba, palette: NDArray[np.uint8] | None) -> IndexedSprites | None:
    """uint8 [N, H, W, 4] in a table of colours; None where 255 beside the transparent one are too few.

    The table begins with the palette, uint8 [K, 3], in its order, or with its used colours where all have no room.
    """
    colours = visible_colours(sprites)
    if len(colours) > MOST_COLOURS:
        return None
    own = np.zeros(0, np.uint32) if palette is None else _numbers(add_opaque_alpha(palette))
    extra_colours = colours[~np.isin(colours, own)]
    if len(own) + len(extra_colours) > MOST_COLOURS:
        used = own[np.isin(own, colours)]
        own = used[np.sort(np.unique(used, return_index=True)[1])]  # each once
    table = np.concatenate([np.zeros(1, np.uint32), own, extra_colours])
    values, places = np.unique(table, return_index=True)  # of a colour that is there twice the first
    indices = np.empty(sprites.shape[:3], np.uint8)
    for sprite, numbers in zip(sprites, indices, strict=True):
        numbers[:] = places[np.searchsorted(values, _numbers(sprite))]
    return IndexedSprites(indices, unpack_colours(table), len(extra_colours))


def add_opaque_alpha(colours: NDArray[np.uint8]) -> Rgba:
    """uint8 [..., 3] with alpha."""
    return np.concatenate([colours, np.full((*colours.shape[:-1], 1), 255, np.uint8)], -1)


def unpack_colours(values: Numbers) -> Rgba:
    """Numbers [K] -> uint8 [K, 4]."""
    return values.astype("<u4").view(np.uint8).reshape(-1, 4)


def _numbers(colours: Rgba) -> Numbers:
    """uint8 [..., 4] -> [...]; all that can't be seen is 0."""
    values = np.ascontiguousarray(colours).view("<u4")[..., 0]
    return np.where(values >> 24, values, 0).astype(np.uint32)
