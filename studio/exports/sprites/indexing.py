"""Convert sprites to palette indices, for indexed formats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba

MOST_COLOURS = 255  # plus the transparent colour
_OPAQUE = 0xFF000000  # alpha is the highest byte
PackedColours = NDArray[np.uint32]  # RGBA, red in the lowest byte


@dataclass(frozen=True, eq=False)
class IndexedSprites:
    """Sprites as palette indices."""

    indices: NDArray[np.uint8]  # [N, H, W]
    table: Rgba  # uint8 [K, 4], K up to 256; index 0 is transparent
    extra_colours: int  # number of colours outside the palette; the table lists them after the palette


def visible_colours(sprites: Rgba) -> PackedColours:
    """Return the distinct visible colours of sprites, uint8 [N, H, W, 4]: opaque and frequent colours first."""
    each = [np.unique(_pack(sprite), return_counts=True) for sprite in sprites]  # sprite by sprite, to save memory
    values, where = np.unique(np.concatenate([values for values, _ in each]), return_inverse=True)
    counts = np.bincount(where, np.concatenate([counts for _, counts in each]))
    seen = values >> 24 > 0
    values, counts = values[seen], counts[seen]
    return values[np.lexsort((values, -counts, values < _OPAQUE))]


def index_colours(sprites: Rgba, palette: NDArray[np.uint8] | None) -> IndexedSprites | None:
    """Convert sprites, uint8 [N, H, W, 4], to palette indices; return None for more than 255 colours.

    The table starts with the palette, uint8 [K, 3], in its order; if the table is too small, without unused colours.
    """
    colours = visible_colours(sprites)
    if len(colours) > MOST_COLOURS:
        return None
    own = np.zeros(0, np.uint32) if palette is None else _pack(add_opaque_alpha(palette))
    extra_colours = colours[~np.isin(colours, own)]
    if len(own) + len(extra_colours) > MOST_COLOURS:
        used = own[np.isin(own, colours)]
        own = used[np.sort(np.unique(used, return_index=True)[1])]  # without duplicates
    table = np.concatenate([np.zeros(1, np.uint32), own, extra_colours])
    values, first = np.unique(table, return_index=True)  # a palette may contain a colour twice
    indices = np.empty(sprites.shape[:3], np.uint8)
    for sprite, row in zip(sprites, indices, strict=True):
        row[:] = first[np.searchsorted(values, _pack(sprite))]
    return IndexedSprites(indices, unpack_colours(table), len(extra_colours))


def add_opaque_alpha(colours: NDArray[np.uint8]) -> Rgba:
    """Append alpha 255 to RGB colours: uint8 [..., 3] -> [..., 4]."""
    return np.concatenate([colours, np.full((*colours.shape[:-1], 1), 255, np.uint8)], -1)


def unpack_colours(values: PackedColours) -> Rgba:
    """Convert packed colours [K] to RGBA, uint8 [K, 4]."""
    return values.astype("<u4").view(np.uint8).reshape(-1, 4)


def _pack(colours: Rgba) -> PackedColours:
    """Pack RGBA, uint8 [..., 4], into uint32 [...]; fully transparent pixels become 0."""
    values = np.ascontiguousarray(colours).view("<u4")[..., 0]
    return np.where(values >> 24, values, 0).astype(np.uint32)
