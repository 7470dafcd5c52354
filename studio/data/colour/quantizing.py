"""Sprites in fewer colours: snapped to a palette, or with colours that the eye takes for one made one."""

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
_COARSENESS = 0.1  # what a mix of two colours costs for the distance between them; see _mixes
_BAYER = (np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) + 0.5) / 16
_AT_ONCE = 1024  # colours
_TOE = 1.206 / 1.03
_STRIDE = 1 << 20  # of cell numbers, between one row of cells and the next


def map_to_palette(rgba: Rgba, palette: Palette, dither: str = NO_DITHER) -> Rgba:
    """uint8 [N, S, S, 4] with every visible pixel in a colour of the palette; alpha stays, and is 0 with colour 0.

    Nearest means in OKLab. With dither, one of DITHERS, a colour that lies between two of the palette becomes a Bayer
    pattern of the two (B. E. Bayer 1973); colours of the palette stay flat. Raises BadInputError for a palette in which
    nothing can be seen.
    """
    assert dither in DITHERS, dither
    colours = palette.visible()
    colours = colours[to_oklab(colours)[:, 0].argsort(kind="stable")]  # a pattern is of a darker and a lighter index
    used = _used(rgba)
    values = to_oklab(as_rgba(used)[:, :3])
    near = nearest_colours(values, to_oklab(colours))
    far, share = (near, np.zeros(len(near))) if dither == NO_DITHER else _mixes(values, to_oklab(colours), near)
    # The share of the lighter one, or else the pattern would jump where the two change places as the nearest.
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
    """The colour of the palette to mix with the nearest one, and its share from 0 to 0.5: int64 and float64 [n].

    All in OKLab. The share is how far a colour lies on the way from its nearest to the other one. Of all others,
    the one whose mix comes closest is taken, where the distance of the two counts against them (after J. Yliluoma 2011,
    arbitrary-palette positional dithering); a colour that is almost in the palette mixes with none.
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
    """The distinct colours of visible pixels, with full alpha, sorted: uint32 [n]."""
    found = np.zeros(0, np.uint32)
    for part in sprite_slices(rgba):
        found = np.union1d(found, as_uint32(rgba[part])[rgba[part, ..., 3] > 0] | OPAQUE)
    return found


def merge_near_colours(
    colours: NDArray[np.uint8], counts: NDArray[np.int64], distance: float
) -> Generator[Progress, None, NDArray[np.int64]]:
    """For each colour, uint8 [K, 3], the index of the one that it becomes: int64 [K]; yields Progress.

    The most used ones, by their counts int64 [K], stay. Each other one becomes the nearest of those that stay, where
    one is nearer than `distance`, and stays itself where none is. Distances are as in `oklab_with_toe`.
    """
    places = oklab_with_toe(colours)
    # Cells as wide as the distance: what is nearer than that lies in the same cell or in one of the 26 around it.
    cells = (np.floor(places / distance).astype(np.int64) @ np.array([_STRIDE * _STRIDE, _STRIDE, 1])).tolist()
    around = [(down * _STRIDE + right) * _STRIDE + back for down, right, back in product((-1, 0, 1), repeat=3)]
    staying: defaultdict[int, list[int]] = defaultdict(list)
    becomes = np.arange(len(colours))
    rows = places.tolist()
    for done, index in enumerate(np.lexsort((np.arange(len(colours)), -counts)).tolist()):
        if not done % _AT_ONCE:
            yield Progress(done, len(colours), "colours compared")
        lightness, a, b = rows[index]
        closest, best = distance * distance, index
        for cell in around:
            for other in staying.get(cells[index] + cell, ()):
                place = rows[other]
                apart = (lightness - place[0]) ** 2 + (a - place[1]) ** 2 + (b - place[2]) ** 2
                if apart < closest:
                    closest, best = apart, other
        becomes[index] = best
        if best == index:
            staying[cells[index]].append(index)
    return becomes


def oklab_with_toe(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """OKLab with B. Ottosson's toe (2021), [K, 3] -> float64 [K, 3]: in OKLab itself all blacks are far apart."""
    lab = to_oklab(colours)
    lightness = lab[:, :1]
    knee = _TOE * lightness - 0.206
    toed = (knee + np.sqrt(knee**2 + 4 * 0.03 * _TOE * lightness)) / 2
    return np.asarray(lab * np.divide(toed, lightness, out=np.zeros_like(toed), where=lightness > 0))
