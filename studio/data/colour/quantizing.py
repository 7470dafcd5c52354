"""Reduce the colours of sprites: map them to a palette, with or without dithering, or merge similar colours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.events import Progress
from studio.data.colour.palette import Palette, distance_slices, nearest_colours, to_oklab
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32, sprite_slices

NO_DITHER, BAYER = "none", "bayer 4x4"
DITHERS = (NO_DITHER, BAYER)
_COARSENESS = 0.1  # penalty for the distance of two mixed colours; see _mixes
_BAYER = (np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) + 0.5) / 16
_BATCH_COLOURS = 1024
_TOE = 1.206 / 1.03
_STRIDE = 1 << 20  # cell numbers per row of cells


def map_to_palette(rgba: Rgba, palette: Palette, dither: str = NO_DITHER) -> Rgba:
    """Map every visible pixel of uint8 [N, S, S, 4] to the nearest palette colour in OKLab; keep alpha.

    Transparent pixels become 0. dither: a value from DITHERS; a Bayer pattern (B. E. Bayer 1973) mixes two palette
    colours for colours in between, and leaves palette colours flat. Raises BadInputError for a palette without visible
    colours.
    """
    assert dither in DITHERS, dither
    colours = palette.visible()
    colours = colours[to_oklab(colours)[:, 0].argsort(kind="stable")]  # dark to light
    used = _used(rgba)
    values = to_oklab(as_rgba(used)[:, :3])
    near = nearest_colours(values, to_oklab(colours))
    far, share = (near, np.zeros(len(near))) if dither == NO_DITHER else _mixes(values, to_oklab(colours), near)
    # Use the lighter colour's share: otherwise the pattern would jump where the nearest colour changes.
    dark, light, share = np.minimum(near, far), np.maximum(near, far), np.where(far < near, 1 - share, share)
    height, width = rgba.shape[1:3]
    levels = np.tile(_BAYER, (height // 4 + 1, width // 4 + 1))[:height, :width]
    result = np.zeros_like(rgba)
    for part in sprite_slices(rgba):
        seen = rgba[part, ..., 3] > 0
        which = np.searchsorted(used, as_uint32(rgba[part])[seen] | OPAQUE)
        level = np.broadcast_to(levels, seen.shape)[seen]
        result[part][seen, :3] = colours[np.where(level < share[which], light[which], dark[which])]
    result[..., 3] = rgba[..., 3]
    return result


def _mixes(
    colours: NDArray[np.float64], palette: NDArray[np.float64], near: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose a second palette colour to dither with the nearest: index, int64 [n], and share, float64 [n], 0 to 0.5.

    colours: OKLab [n, 3]. palette: OKLab [K, 3]. near: int64 [n], the nearest palette indices. The share is the
    position of the colour on the line from the nearest to the other palette colour. The chosen mix has the smallest
    error plus a penalty for mixing distant colours (after J. Yliluoma 2011, arbitrary-palette positional dithering).
    """
    others, shares = np.empty_like(near), np.empty(len(near))
    for part in distance_slices(len(colours), len(palette)):
        start = palette[near[part]]
        way = palette - start[:, None]  # [n, K, 3]
        length = (way**2).sum(2)
        along = np.einsum("nkc,nc->nk", way, colours[part] - start)
        share = np.divide(along, length, out=np.zeros_like(along), where=length > 0).clip(0, 0.5)
        error = share * (share * length - 2 * along) + _COARSENESS * share * (1 - share) * length
        others[part] = best = error.argmin(1)
        shares[part] = share[np.arange(len(best)), best]
    return others, shares


def _used(rgba: Rgba) -> NDArray[np.uint32]:
    """Return the distinct colours of visible pixels, sorted and made opaque: uint32 [n]."""
    found = np.zeros(0, np.uint32)
    for part in sprite_slices(rgba):
        found = np.union1d(found, as_uint32(rgba[part])[rgba[part, ..., 3] > 0] | OPAQUE)
    return found


def merge_near_colours(
    colours: NDArray[np.uint8], counts: NDArray[np.int64], distance: float
) -> Generator[Progress, None, NDArray[np.int64]]:
    """Map each colour, uint8 [K, 3], to the index of a similar, more used colour: int64 [K]. Yields Progress.

    Visits colours by falling `counts`, int64 [K]. A colour becomes the nearest kept colour within `distance`, in
    OKLab with toe; a colour without a near colour is kept.
    """
    labs = oklab_with_toe(colours)
    # With cells as wide as the distance, nearer colours lie in the same cell or its 26 neighbours.
    cells = (np.floor(labs / distance).astype(np.int64) @ np.array([_STRIDE * _STRIDE, _STRIDE, 1])).tolist()
    around = [(down * _STRIDE + right) * _STRIDE + back for down, right, back in product((-1, 0, 1), repeat=3)]
    kept: defaultdict[int, list[int]] = defaultdict(list)
    becomes = np.arange(len(colours))
    rows = labs.tolist()
    for done, index in enumerate(np.lexsort((np.arange(len(colours)), -counts)).tolist()):
        if not done % _BATCH_COLOURS:
            yield Progress(done, len(colours), "colours compared")
        lightness, a, b = rows[index]
        closest, best = distance * distance, index
        for cell in around:
            for other in kept.get(cells[index] + cell, ()):
                lab = rows[other]
                distance2 = (lightness - lab[0]) ** 2 + (a - lab[1]) ** 2 + (b - lab[2]) ** 2
                if distance2 < closest:
                    closest, best = distance2, other
        becomes[index] = best
        if best == index:
            kept[cells[index]].append(index)
    return becomes


def oklab_with_toe(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Convert uint8 [K, 3] to OKLab, float64 [K, 3], with B. Ottosson's toe (2021): plain OKLab exaggerates darks."""
    lab = to_oklab(colours)
    lightness = lab[:, :1]
    knee = _TOE * lightness - 0.206
    toed = (knee + np.sqrt(knee**2 + 4 * 0.03 * _TOE * lightness)) / 2
    return np.asarray(lab * np.divide(toed, lightness, out=np.zeros_like(toed), where=lightness > 0))
