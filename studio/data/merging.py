"""Colours that the eye takes for one become one: saves, editors and scalings leave such."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from studio.core.events import Progress
from studio.data.palette import oklab

_AT_ONCE = 1024  # colours
_TOE = 1.206 / 1.03
_STRIDE = 1 << 20  # of cell numbers, between one row of cells and the next


def merge(
    colours: NDArray[np.uint8], counts: NDArray[np.int64], distance: float
) -> Generator[Progress, None, NDArray[np.int64]]:
    """For each colour, uint8 [K, 3], the index of the one that it becomes: int64 [K]; yields Progress.

    The most used ones, by their counts int64 [K], stay. Each other one becomes the nearest of those that stay, where
    one is nearer than `distance`, and stays itself where none is. Distances are as in `places_of`.
    """
    places = places_of(colours)
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
        nearest, best = distance * distance, index
        for cell in around:
            for other in staying.get(cells[index] + cell, ()):
                place = rows[other]
                apart = (lightness - place[0]) ** 2 + (a - place[1]) ** 2 + (b - place[2]) ** 2
                if apart < nearest:
                    nearest, best = apart, other
        becomes[index] = best
        if best == index:
            staying[cells[index]].append(index)
    return becomes


def places_of(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """OKLab with B. Ottosson's toe (2021), [K, 3] -> float64 [K, 3]: in OKLab itself all blacks are far apart."""
    lab = oklab(colours)
    lightness = lab[:, :1]
    knee = _TOE * lightness - 0.206
    toed = (knee + np.sqrt(knee**2 + 4 * 0.03 * _TOE * lightness)) / 2
    return np.asarray(lab * np.divide(toed, lightness, out=np.zeros_like(toed), where=lightness > 0))
