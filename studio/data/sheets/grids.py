"""Propose grids for a picture from its pixels. borders.py measures the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.images.canvas import COMMON_SIZES, as_uint32, upscaling_factor
from studio.data.options import SheetGrid
from studio.data.sheets.borders import LARGEST_TILE, SideLines, TileSizes

_ENOUGH = 2.0  # log-odds for a grid: 7 to 1
_MOST_CANDIDATES = 32
_SIZES_TRIED = 8  # per side and spacing
# Estimated log-odds against unusual layouts (natural logarithm).
_SPACING = (0.0, 1.0, 1.0, 3.0, 2.0, 4.0, 4.0, 4.0, 3.0)  # by pixels
_OF_STRIP = 1.0  # a long picture with several rows of tiles
_LONG = 3.0
_OBLONG = 1.4  # tiles twice as wide as high
_ODD_SIZES = ((8, 1.0), (4, 2.0), (2, 3.0), (1, 4.0))  # for uncommon sizes, by their first divisor
_COMES_OUT_EVEN = 0.5  # factor if the picture is a whole number of tiles


@dataclass(frozen=True, slots=True)
class GridCandidate:
    """A possible grid for a picture."""

    grid: SheetGrid
    score: float  # log-odds for this grid against other grids
    parted: float  # log-odds for a picture with several sprites


def background_pixel(pixels: NDArray[np.uint32]) -> int:
    """Return the background as a uint32 pixel: 0 in a picture with transparency, else the commonest edge colour."""
    if not pixels.all():
        return 0
    values, counts = np.unique(np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]), return_counts=True)
    return int(values[counts.argmax()])


def propose_grid(rgba: Rgba) -> SheetGrid | None:
    """Return the likeliest grid of at least two tiles, or None. rgba: uint8 [H, W, 4], colour zeroed under alpha 0."""
    best = next(iter(grid_candidates(rgba)), None)
    return best.grid if best and best.grid.confidence >= 0.5 else None


def grid_candidates(rgba: Rgba) -> list[GridCandidate]:
    """Return likely grids of at least two tiles, best first. rgba: uint8 [H, W, 4], colour zeroed under alpha 0."""
    scale = upscaling_factor(rgba)
    if scale == 1 or any(side % scale for side in rgba.shape[:2]):
        return _candidates(rgba)
    small = _candidates(rgba[::scale, ::scale])  # otherwise blocks of pixels would look like tiles
    return [replace(candidate, grid=_enlarged(candidate.grid, scale)) for candidate in small]


def _enlarged(grid: SheetGrid, scale: int) -> SheetGrid:
    tile, start = (scale * grid.tile_width, scale * grid.tile_height), (scale * grid.left, scale * grid.top)
    return SheetGrid(*tile, *start, scale * grid.spacing, grid.confidence)


def _candidates(rgba: Rgba) -> list[GridCandidate]:
    pixels = as_uint32(rgba)
    filled = pixels != background_pixel(pixels)
    down, across = SideLines(pixels, filled), SideLines(pixels.T, filled.T)
    high, wide = TileSizes.along(down), TileSizes.along(across)
    found = []
    for spacing, rarity in enumerate(_SPACING):
        rows, columns = _best(high.score[spacing], len(across)), _best(wide.score[spacing], len(down))
        for y, x in product(rows, columns):
            grid = SheetGrid(x, y, int(wide.start[spacing, x]), int(high.start[spacing, y]), spacing)
            if _several(grid, down, across):
                score = high.score[spacing, y] + wide.score[spacing, x] - rarity - _shape_rarity(grid, down, across)
                found.append((float(score + _resemblance(grid, down, across)), grid))
    found.sort(key=lambda pair: -pair[0])
    return [_weighed(grid, score, down, across) for score, grid in found[:_MOST_CANDIDATES]]


def _best(scores: NDArray[np.float64], also: int) -> list[int]:
    """Return the tile sizes with the best scores, and also the size `also` if possible. scores: float64 [size]."""
    sizes = np.argsort(-scores, kind="stable")[:_SIZES_TRIED].tolist()
    return [size for size in dict.fromkeys([*sizes, min(also, LARGEST_TILE)]) if scores[size] > -math.inf]


def _several(grid: SheetGrid, down: SideLines, across: SideLines) -> bool:
    """Return whether the visible pixels lie in several tiles."""
    rows = min(grid.rows(len(down)), (down.last - grid.top) // (grid.tile_height + grid.spacing) + 1)
    columns = min(grid.columns(len(across)), (across.last - grid.left) // (grid.tile_width + grid.spacing) + 1)
    return rows > 0 and columns > 0 and rows * columns > 1


def _shape_rarity(grid: SheetGrid, down: SideLines, across: SideLines) -> float:
    """Return the log-odds against the grid's tile size and shape. down, across: rows and columns."""
    width, height = grid.tile_width, grid.tile_height
    strip = grid.rows(len(down)) == 1 or grid.columns(len(across)) == 1
    long = max(len(down), len(across)) >= _LONG * min(len(down), len(across))
    rarity = _OF_STRIP if long and not strip else 0.0
    if width == height:
        return rarity + (0.0 if strip else _size_rarity(width, len(across)))
    rarity += _OBLONG * abs(math.log2(width / height))
    for size, side in ((width, len(across)), (height, len(down))):
        rarity += 0.0 if size == side and long else _size_rarity(size, side)
    return rarity


def _size_rarity(size: int, side: int) -> float:
    if size in COMMON_SIZES:
        return 0.0
    rarity = next(rarity for step, rarity in _ODD_SIZES if size % step == 0)
    return rarity if side % size else rarity * _COMES_OUT_EVEN


def _resemblance(grid: SheetGrid, down: SideLines, across: SideLines) -> float:
    one = across.resemblance(grid.tile_width + grid.spacing) if grid.columns(len(across)) > 1 else 0.0
    other = down.resemblance(grid.tile_height + grid.spacing) if grid.rows(len(down)) > 1 else 0.0
    return one + other


def _weighed(grid: SheetGrid, score: float, down: SideLines, across: SideLines) -> GridCandidate:
    """Create a candidate; compute the confidence from resemblance and borders of tiles."""
    alike = _resemblance(grid, down, across)
    evidence = parted = alike
    for lines, start, size in ((down, grid.top, grid.tile_height), (across, grid.left, grid.tile_width)):
        if size <= len(lines) // 2:
            borders = slice(start % (size + grid.spacing), None, size + grid.spacing)
            evidence += float(lines.evidence[borders].sum())
            parted += float(lines.parted[borders].sum())
    confidence = round(1 / (1 + math.exp(min(_ENOUGH - float(evidence), 700.0))), 3)
    return GridCandidate(replace(grid, confidence=confidence), round(score, 2), round(float(parted), 2))
