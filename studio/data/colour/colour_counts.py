"""Count colours in sprites, and find sprites with a colour."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Progress
from studio.data.colour.palette import extract_palette, sampling_step
from studio.data.images.canvas import OPAQUE, as_uint32, sprite_slices

_ANY = 1 << 40  # no limit


@dataclass(frozen=True, eq=False)
class ColourCounts:
    """The most used opaque colours of a set of sprites. In a sampled set the counts are estimates."""

    colours: Rgba  # uint8 [K, 4], most used first
    pixels: NDArray[np.int64]  # [K], number of pixels with the colour
    sprites: NDArray[np.int64]  # [K], number of sprites with the colour
    total: int  # number of distinct colours in the set; too low in a sampled set
    step: int  # 1, or n if only every n-th sprite of a large set was counted


def count_colours(rgba: Rgba, limit: int = 256) -> ColourCounts:
    """Count the most used colours of uint8 [N, S, S, 4], at most `limit`."""
    step = sampling_step(rgba)
    colours, pixels = extract_palette(rgba, _ANY)
    chosen = np.ascontiguousarray(colours[:limit])
    return ColourCounts(chosen, pixels[:limit], _sprites_with(rgba[::step], chosen) * step, len(colours), step)


def find_sprites_with_colour(rgba: Rgba, colour: Rgba) -> Generator[Progress, None, NDArray[np.int64]]:
    """Return the indices of sprites, uint8 [N, S, S, 4], with an opaque pixel of `colour`, uint8 [4]: int64 [n]."""
    value = as_uint32(colour)
    found: list[NDArray[np.int64]] = []
    for part in sprite_slices(rgba):
        pixels = as_uint32(rgba[part]).reshape(part.stop - part.start, -1)
        found.append(np.flatnonzero((pixels == value).any(axis=1)) + part.start)
        yield Progress(part.stop, len(rgba), "sprites searched")
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def colours_per_sprite(rgba: Rgba) -> NDArray[np.int64]:
    """Return the number of visible colours in each sprite of uint8 [N, S, S, 4], ignoring alpha: int64 [N]."""
    shown = rgba[..., 3] > 0
    pixels = np.where(shown, as_uint32(rgba) | OPAQUE, 0).reshape(len(rgba), -1)
    pixels.sort(axis=1)
    return np.asarray(np.count_nonzero(_firsts(pixels) & (pixels != 0), axis=1), np.int64)


def _sprites_with(rgba: Rgba, colours: Rgba) -> NDArray[np.int64]:
    """Return the number of sprites, uint8 [N, S, S, 4], with each colour of uint8 [K, 4]: int64 [K]."""
    values = as_uint32(colours)
    order = values.argsort()
    ranked = values[order]
    counts = np.zeros(len(values), np.int64)
    for part in sprite_slices(rgba) if len(values) else ():
        pixels = np.sort(as_uint32(rgba[part]).reshape(part.stop - part.start, -1), axis=1)
        once = pixels[_firsts(pixels)]
        index = np.searchsorted(ranked, once).clip(max=len(ranked) - 1)
        counts[order] += np.bincount(index[ranked[index] == once], minlength=len(ranked))
    return counts


def _firsts(rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Mark the first of equal entries in each sorted row of [N, P]: bool [N, P]."""
    first = np.ones(rows.shape, np.bool_)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return first
