"""The grids that a picture may be cut along, found in its pixels; the evidence is measured in borders.py."""

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

_ENOUGH = 2.0  # evidence for a grid: 7 to 1
_MOST_CANDIDATES = 32
_SIZES_TRIED = 8  # of each side, for each spacing
# Natural logarithms of how much rarer something is than its plain counterpart, as far as that can be said.
_SPACING = (0.0, 1.0, 1.0, 3.0, 2.0, 4.0, 4.0, 4.0, 3.0)  # by pixels
_OF_STRIP = 1.0  # rows of tiles in a picture that is that long
_LONG = 3.0
_OBLONG = 1.4  # for tiles that are twice as wide as high
_ODD_SIZES = ((8, 1.0), (4, 2.0), (2, 3.0), (1, 4.0))  # by the first number that divides a size that is not common
_COMES_OUT_EVEN = 0.5  # of that where the picture is so many tiles exactly


@dataclass(frozen=True, slots=True)
class GridCandidate:
    """A grid that a picture may have, all as log-odds.

    score: against other grids. parted: that the picture is many sprites and no whole one, as far as pixels tell.
    """

    grid: SheetGrid
    score: float
    parted: float


def background_pixel(pixels: NDArray[np.uint32]) -> int:
    """The pixel that means nothing: 0, if any is fully transparent, else the commonest at the edges."""
    if not pixels.all():
        return 0
    values, counts = np.unique(np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]), return_counts=True)
    return int(values[counts.argmax()])


def propose_grid(rgba: Rgba) -> SheetGrid | None:
    """The likeliest grid of at least two tiles in uint8 [H, W, 4] with colour zeroed under alpha 0.

    None where there is no evidence for any: a single sprite, too few tiles, ground that goes on from tile to tile.
    """
    best = next(iter(grid_candidates(rgba)), None)
    return best.grid if best and best.grid.confidence >= 0.5 else None


def grid_candidates(rgba: Rgba) -> list[GridCandidate]:
    """The likeliest grids of at least two tiles, the best first; uint8 [H, W, 4] with colour zeroed under alpha 0."""
    scale = upscaling_factor(rgba)
    if scale == 1 or any(side % scale for side in rgba.shape[:2]):
        return _candidates(rgba)
    small = _candidates(rgba[::scale, ::scale])  # blocks of pixels would be taken for tiles
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
    """The sizes of the best scores, and one that would make the tiles square."""
    sizes = np.argsort(-scores, kind="stable")[:_SIZES_TRIED].tolist()
    return [size for size in dict.fromkeys([*sizes, min(also, LARGEST_TILE)]) if scores[size] > -math.inf]


def _several(grid: SheetGrid, down: SideLines, across: SideLines) -> bool:
    """Whether what can be seen lies in more than one tile."""
    rows = min(grid.rows(len(down)), (down.last - grid.top) // (grid.tile_height + grid.spacing) + 1)
    columns = min(grid.columns(len(across)), (across.last - grid.left) // (grid.tile_width + grid.spacing) + 1)
    return rows > 0 and columns > 0 and rows * columns > 1


def _shape_rarity(grid: SheetGrid, down: SideLines, across: SideLines) -> float:
    """Of tiles of that size; a strip is as high as its tiles, whatever that is."""
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
    """A candidate with what speaks for its borders alone, whatever its numbers are."""
    alike = _resemblance(grid, down, across)
    evidence = parted = alike
    for lines, start, size in ((down, grid.top, grid.tile_height), (across, grid.left, grid.tile_width)):
        if size <= len(lines) // 2:
            borders = slice(start % (size + grid.spacing), None, size + grid.spacing)
            evidence += float(lines.evidence[borders].sum())
            parted += float(lines.parted[borders].sum())
    confidence = round(1 / (1 + math.exp(min(_ENOUGH - float(evidence), 700.0))), 3)
    return GridCandidate(replace(grid, confidence=confidence), round(score, 2), round(float(parted), 2))
