"""Tell sprite sheets from single sprites: by shape, by pixels, and by a vote among files.

Reader threads score pictures independently. Then the files vote: a tile size found in many files decides for a picture
with several possible grids or with little evidence. A folder's sheets also vote for the folder's other pictures of
equal size. A few pictures with various grids, among many single sprites of equal size, are single sprites, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.data.images.canvas import LARGE_PICTURE, as_uint32
from studio.data.options import MAX_SHEET_SPRITES, SheetGrid
from studio.data.sheets.cells import GridCells, SummedAreaTable, find_cells
from studio.data.sheets.grids import background_pixel, grid_candidates

SizeInFolder = tuple[str, tuple[int, int]]  # a picture's folder, and its width and height in pixels

_SMALLEST_TILE = 6  # pixels; smaller tiles only if the user asks
_LONG, _OBLONG = 3.0, 1.9  # aspect ratios; long sprites hardly occur, oblong sprites rarely
# Log-odds for a sheet, by the picture's shape.
_IF_LONG, _IF_OBLONG, _IF_TOO_LARGE, _IF_LARGE, _IF_SMALL = 0.0, -3.0, 2.0, -2.0, -5.0
_SMALL, _LARGE = 48, 96  # pixels
_SQUARE = 1.4  # largest aspect ratio of pictures with rows and columns
_LITTLE = 0.35  # share of the usual crossings between two lines
_SURE = 6.0  # lowest log-odds for a certain sheet
_LIKELY = -1.5  # lowest log-odds for a grid
# Lowest `score` and `sheet`, log-odds, for a grid with a cut-off tile at the end of a strip.
_LIKELY_IF_CUT_OFF, _CLEAR = -4.0, 12.0
_LEAST_CONFIDENCE = 0.5  # lowest confidence if the user calls the picture a sheet
# Thresholds for `_alternating`: share of tiles in every other row, rows, tiles, log-odds.
_MOSTLY_EMPTY, _ENOUGH_ROWS, _ENOUGH_TILES, _ALTERNATING = 0.5, 4, 8, 10.0
_ENOUGH_PAIRS = 6  # pairs of vertically adjacent tiles
_CUT = 10.0  # log-odds against a grid that cuts every drawing at a border
# Log-odds against tiles with two stacked drawings; smaller / larger drawing; fewest tiles.
_JOINED, _LEAST_PART, _FEW_TILES = 8.0, 0.25, 4
_BORDERS, _ENOUGH_BORDERS = 0.15, 20.0  # weight and limit of clear borders
_MOST_SEEN = 12  # grids per picture in the vote
_HALF = 3.0  # votes for half of the largest support
_ENOUGH_TWINS, _TWIN_SHARE = 4, 0.5  # fewest sheets with equal grid; share of the pictures of equal size to exceed
# Thresholds for `without_lone_sheets`: shares of a folder's pictures, fewest single sprites.
_MOSTLY_EQUAL, _FEW_SHEETS, _ENOUGH_SPRITES = 0.9, 1 / 3, 20
# Pixels touching in the middle of tiles with two sprites: as shares of the usual number, and relative to the borders.
_FEW_TOUCH, _AS_AT_BORDERS = np.array([0.25, 0.5]), 2.0
_LESS_LIKELY = 7.0  # log-odds against an added grid: more than the largest support
_SUPPORT, _SIDE_SUPPORT = 4.0, 2.0  # largest support in log-odds: from equal tiles, from equal widths or heights


@dataclass(frozen=True, slots=True)
class SheetCandidate:
    """A possible grid for a picture."""

    grid: SheetGrid
    sprites: int  # number of tiles with foreground
    score: float  # log-odds for this grid against other grids
    sheet: float  # log-odds for a sheet against a single sprite
    strip: bool = False  # single row or column: the tile width or height may include margins
    rest: tuple[int, int] = (0, 0)  # width and height in pixels of the strips behind the last tiles
    halved: bool = False  # halves the tiles of the picture's first grid, because a tile may hold two sprites


def sheet_candidates(rgba: Rgba) -> tuple[SheetCandidate, ...]:
    """Return possible grids, best first; () for a clear single sprite. rgba: uint8 [H, W, 4], alpha 0 zeroed."""
    if not _may_hold_several(rgba):
        return ()
    found: list[SheetCandidate] = []
    shares: list[float | None] = []
    foreground, before = SummedAreaTable.of(rgba), _prior(*rgba.shape[:2])
    crossings = _Crossings.of(foreground)
    for candidate in grid_candidates(rgba):
        grid = candidate.grid
        if min(grid.tile_width, grid.tile_height) >= _SMALLEST_TILE:
            cells = find_cells(grid, foreground)
            if 1 < cells.sprites <= MAX_SHEET_SPRITES:
                against = _alternating(cells.filled) + _alternating(cells.filled.T) + _joined(cells, crossings)
                score = round(candidate.score - against, 2)
                strip = 1 in (grid.rows(rgba.shape[0]), grid.columns(rgba.shape[1]))
                shares.append(_cut_through(cells, crossings))
                parted, rest = round(candidate.parted + before, 2), (cells.right, cells.below)
                found.append(SheetCandidate(grid, cells.sprites, score, parted, strip, rest))
    cut = {number: share for number, share in enumerate(shares) if share is not None}
    fewest = min(cut.values(), default=0.0)
    penalties = [_CUT * (cut.get(number, fewest) - fewest) for number in range(len(found))]
    pairs = zip(found, penalties, strict=True)
    weighed = [replace(one, score=round(one.score - penalty, 2)) for one, penalty in pairs]
    most_likely = sorted(weighed, key=lambda one: -one.score)[:_MOST_SEEN]
    return tuple(_with_halves(most_likely, foreground)) if most_likely else ()


def _alternating(filled: NDArray[np.bool_]) -> float:
    """Return log-odds against a grid with every other row mostly empty: its tiles have half the right height.

    filled: bool [rows, columns], tiles with foreground.
    """
    rows = np.flatnonzero(filled.any(axis=1))
    few, many = sorted((int(filled[::2].sum()), int(filled[1::2].sum())))
    if rows[-1] - rows[0] < _ENOUGH_ROWS - 1 or many < _ENOUGH_TILES or few > _MOSTLY_EMPTY * many:
        return 0.0
    return (1 - few / many) * _ALTERNATING


@dataclass(frozen=True, eq=False, slots=True)
class _Crossings:
    """Pixels where drawings continue from a picture's row to the next row."""

    filled: NDArray[np.int64]  # [H + 1, W], number of foreground pixels above a row, by column
    touching: NDArray[np.bool_]  # [H, W], True where a foreground pixel lies below a foreground pixel

    @classmethod
    def of(cls, foreground: SummedAreaTable) -> _Crossings:
        """Find the crossing pixels. foreground: the picture's summed-area table."""
        sums = foreground.sums.astype(np.int64)
        above = sums[:, 1:] - sums[:, :-1]
        filled = above[1:] > above[:-1]
        touching = np.zeros(filled.shape, np.bool_)
        touching[1:] = filled[1:] & filled[:-1]
        return cls(above, touching)


def _joined(cells: GridCells, crossings: _Crossings) -> float:
    """Return log-odds against a grid with two rows of sprites in a tile, if most tiles have a gap at equal height."""
    height, tiles = cells.grid.tile_height, cells.sprites
    lines = np.arange(_SMALLEST_TILE, height - _SMALLEST_TILE + 1)
    above_line = crossings.filled.sum(1)
    first = above_line[cells.tops].sum()
    drawn = above_line[cells.tops[:, None] + lines].sum(0) - first
    lines = lines[_are_alike(drawn, above_line[cells.tops + height].sum() - first - drawn)]
    if tiles < _FEW_TILES or not len(lines):
        return 0.0
    touches = crossings.touching.sum(1)[cells.tops[:, None] + lines].sum(0)
    middle = cells.tops + lines[touches.argmin()]
    columns = cells.lefts[:, None] + np.arange(cells.grid.tile_width)
    top, half, bottom = (crossings.filled[at][:, columns].sum(2) for at in (cells.tops, middle, cells.tops + height))
    goes_on = crossings.touching[middle][:, columns].any(2)
    parted = np.count_nonzero(cells.filled & _are_alike(half - top, bottom - half) & ~goes_on) / tiles
    return float(max(0.0, 2 * parted - 1) * _JOINED)


def _are_alike(above: NDArray[np.int64], below: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether pixel counts above and below a gap suggest two sprites, not a sprite with a shadow."""
    return np.asarray(np.minimum(above, below) >= _LEAST_PART * np.maximum(above, below))


def _cut_through(cells: GridCells, crossings: _Crossings) -> float | None:
    """Return the share of borders between stacked sprites that cut a drawing; None for few borders."""
    both = cells.filled[1:] & cells.filled[:-1]
    if np.count_nonzero(both) < _ENOUGH_PAIRS:
        return None
    if cells.grid.spacing:
        return 0.0
    columns = cells.lefts[:, None] + np.arange(cells.grid.tile_width)
    goes_on = crossings.touching[cells.tops[1:]][:, columns].any(2)
    return float(np.count_nonzero(both & goes_on) / np.count_nonzero(both))


def _with_halves(most_likely: list[SheetCandidate], foreground: SummedAreaTable) -> list[SheetCandidate]:
    """Mark or add grids that halve the first grid's tiles, if a tile may hold two sprites.

    Frames in a walk resemble each other in pairs. If the frames of a pair touch, pixels suggest pairs as tiles.
    """
    best = most_likely[0]
    grid, found = _plain(best.grid), {_plain(one.grid): one for one in most_likely}
    high, wide = replace(grid, tile_height=grid.tile_height // 2), replace(grid, tile_width=grid.tile_width // 2)
    down = (high, foreground.sums, grid.top, grid.tile_height)
    across = (wide, foreground.sums.T, grid.left, grid.tile_width)
    for half, sums, start, side in () if grid.spacing else (down, across):
        if _holds_two(sums, start, side):
            sprites = find_cells(half, foreground).sprites
            added = replace(best, grid=half, sprites=sprites, score=round(best.score - _LESS_LIKELY, 2))
            found[half] = replace(found.get(half, added), halved=True)
    return [one for one in found.values() if one.sprites <= MAX_SHEET_SPRITES]


def _plain(grid: SheetGrid) -> SheetGrid:
    return replace(grid, confidence=1.0)


def _holds_two(sums: NDArray[np.uint32], start: int, side: int) -> bool:
    """Return whether drawings hardly touch in the middle of tiles, or as little as at tile borders, along one side.

    sums: uint32 [n + 1, m + 1], summed-area table, by lines. start: first line of the first tile. side: tile size.
    """
    if side % 2 or side < 2 * _SMALLEST_TILE or len(sums) - 1 < start + 2 * side:
        return False
    touches = np.count_nonzero(_Crossings.of(SummedAreaTable(sums)).touching, axis=1)
    few, many = _FEW_TOUCH * np.quantile(touches, 0.75)
    borders = touches[start + side :: side].mean()
    return bool(touches[start + side // 2 :: side].mean() <= min(max(few, _AS_AT_BORDERS * borders), many))


def _may_hold_several(rgba: Rgba) -> bool:
    """Return whether a picture may be a sheet, by a quick check: long shape, or borders at equal distances."""
    height, width = rgba.shape[:2]
    long, short = max(height, width), min(height, width)
    if short < _SMALLEST_TILE or long < 2 * _SMALLEST_TILE:
        return False
    if long >= _LONG * short or long > LARGE_PICTURE:
        return True
    pixels = as_uint32(rgba)
    square, loosely = long < _SQUARE * short, long > _SMALL
    filled = pixels != (background_pixel(pixels) if loosely else 0)  # small and opaque: a ground tile
    if (square or width > height) and not _parted_evenly(pixels.T, filled.T, loosely):
        return False
    return not (square or height > width) or _parted_evenly(pixels, filled, loosely)


def _parted_evenly(pixels: NDArray[np.uint32], filled: NDArray[np.bool_], loosely: bool) -> bool:
    """Return whether borders without crossing drawings divide a picture, or the visible part, into equal parts.

    pixels: uint32 [n, m], rows or columns. filled: bool [n, m], foreground. loosely: allow a few crossing pixels.
    Tolerates borders that miss by a line.
    """
    content = np.flatnonzero(filled.any(axis=1))
    if len(content) < 2:
        return False
    inside = slice(content[0], content[-1] + 1)
    pixels, filled, start, side = pixels[inside], filled[inside], int(content[0]), len(pixels)
    touching = filled[1:] & filled[:-1]
    touches = np.count_nonzero(touching, axis=1)
    if not loosely:
        return _even_borders(touches == 0, start, side)
    links = np.count_nonzero((pixels[1:] == pixels[:-1]) & touching, axis=1)
    return any(_even_borders(count <= _LITTLE * np.quantile(count, 0.75), start, side) for count in (touches, links))


def _even_borders(free: NDArray[np.bool_], start: int, side: int) -> bool:
    """Return whether free borders, off by a line at most, divide a side or the visible part into equal parts.

    free: bool [n], borders between lines of the visible part that few pixels cross. start: offset of the visible part.
    side: length of the whole side.
    """
    near = free.copy()
    near[:-1] |= free[1:]
    near[1:] |= free[:-1]
    for before, length in ((start, side), (0, len(free) + 1)):
        for parts in range(2, length // _SMALLEST_TILE + 1):
            borders = np.arange(1, parts) * length // parts - 1 - before
            borders = borders[(borders >= 0) & (borders < len(near))]
            if len(borders) and near[borders].all():
                return True
    return False


def _prior(height: int, width: int) -> float:
    """Return the log-odds for a sheet by the picture's shape, before looking at pixels."""
    long, short = max(height, width), min(height, width)
    if long > LARGE_PICTURE:
        return _IF_TOO_LARGE
    if long >= _LONG * short:
        return _IF_LONG
    if long >= _OBLONG * short:
        return _IF_OBLONG
    return _IF_LARGE if long > _LARGE else _IF_SMALL


class _Votes:
    """Counts certain sheets by tile size, by tile width and by tile height."""

    def __init__(self, sure: Iterable[SheetCandidate]) -> None:
        self._tiles: Counter[tuple[int, int, bool]] = Counter()
        self._sides: Counter[tuple[str, int]] = Counter()
        for one in sure:
            self._count(one, 1)

    def support(self, one: SheetCandidate, own: SheetCandidate | None) -> float:
        """Return log-odds for a candidate grid, from the tile sizes of other sheets.

        own: the picture's own grid among the counted grids, or None. Strips support only strips, because the tile width
        or height of a strip may include margins.
        """
        if own is not None:
            self._count(own, -1)
        size = (one.grid.tile_width, one.grid.tile_height)
        same = self._tiles[*size, False] + (self._tiles[*size, True] if one.strip else 0)
        side = max(self._sides["width", size[0]], self._sides["height", size[1]])
        if own is not None:
            self._count(own, 1)
        return _SUPPORT * same / (same + _HALF) + _SIDE_SUPPORT * side / (side + _HALF)

    def _count(self, one: SheetCandidate, by: int) -> None:
        width, height = one.grid.tile_width, one.grid.tile_height
        self._tiles[width, height, one.strip] += by
        self._sides["width", width] += by
        self._sides["height", height] += by


def vote_on_sheets(
    seen: Mapping[int, Sequence[SheetCandidate]], sizes: Mapping[int, SizeInFolder] | None = None
) -> dict[int, SheetCandidate]:
    """Let the pictures' candidate grids vote; return the grids of sheets, by file number.

    seen: candidate grids by file number. sizes: by file number; sheets also vote for pictures of equal size.
    """
    best_first = {number: several[0] for number, several in seen.items() if several}
    certain = {key: one for key, one in best_first.items() if one.sheet >= _SURE and one.score >= _LIKELY}
    votes = _Votes(certain.values())
    sheets = {}
    for number, several in seen.items():
        supported = [(one, votes.support(one, certain.get(number))) for one in several]
        if not supported:
            continue
        best, support = max(supported, key=lambda pair: pair[0].score + pair[1] + _border_weight(pair[0]))
        most_likely_grid, sure = best.score + support - _lowest_score(best), best.sheet + support
        if most_likely_grid >= 0 and sure >= _SURE:
            confidence = round(1 / (1 + math.exp(-min(most_likely_grid, sure))), 3)
            sheets[number] = replace(best, grid=replace(best.grid, confidence=confidence))
    return sheets | _like_twins(seen, sheets, sizes or {})


def _like_twins(
    seen: Mapping[int, Sequence[SheetCandidate]],
    sheets: Mapping[int, SheetCandidate],
    sizes: Mapping[int, SizeInFolder],
) -> dict[int, SheetCandidate]:
    """Return the pictures that should take over the grid of most pictures of equal size in the folder, with the grid.

    Chooses pictures outside `sheets` for which the grid is likely, and sheets whose tiles the grid halves.
    """
    totals = Counter(sizes.values())
    grids = Counter((sizes[number], _plain(one.grid)) for number, one in sheets.items() if sizes)
    changed: dict[int, SheetCandidate] = {}
    for number, several in seen.items():
        own = sheets.get(number)
        for one in several if number in sizes else ():
            count = grids[sizes[number], _plain(one.grid)]
            share = count / totals[sizes[number]]
            likely = own is None and one.score >= _LIKELY and one.rest == (0, 0)
            fits = likely or (own is not None and one.halved and _plain(own.grid) == _plain(several[0].grid))
            if count >= _ENOUGH_TWINS and share > _TWIN_SHARE and fits:
                changed[number] = replace(one, grid=replace(one.grid, confidence=round(share, 3)))
    return changed


def without_lone_sheets(
    sheets: Mapping[int, SheetCandidate], sizes: Mapping[int, SizeInFolder], pictures: Counter[SizeInFolder]
) -> dict[int, SheetCandidate]:
    """Return the sheets without the folders' single sprites whose drawings, such as bricks, look like tiles.

    A folder has single sprites if nearly all pictures are of equal size, few of the pictures look like sheets, and most
    of the few have different grids. sizes: by file number. pictures: number of pictures by size in folder.
    """
    in_folder = Counter[str]()
    for (folder, _), count in pictures.items():
        in_folder[folder] += count
    grids: dict[SizeInFolder, Counter[SheetGrid]] = {}
    for number, one in sheets.items():
        grids.setdefault(sizes[number], Counter())[_plain(one.grid)] += 1
    of_single_sprites = set()
    for size, counts in grids.items():
        count, equal, most_common = counts.total(), pictures[size], max(counts.values())
        is_few = count <= _FEW_SHEETS * equal and equal - count >= _ENOUGH_SPRITES
        has_common_grid = most_common >= _ENOUGH_TWINS and most_common > _TWIN_SHARE * count
        if is_few and equal >= _MOSTLY_EQUAL * in_folder[size[0]] and not has_common_grid:
            of_single_sprites.add(size)
    return {number: one for number, one in sheets.items() if sizes[number] not in of_single_sprites}


def _border_weight(one: SheetCandidate) -> float:
    """Return the bonus for a candidate grid with clear borders, to decide between similarly likely grids."""
    return _BORDERS * min(one.sheet, _ENOUGH_BORDERS)


def _lowest_score(one: SheetCandidate) -> float:
    """Return the lowest score for a likely grid: lower for a strip with clear borders and a cut-off last tile."""
    cut_off = one.strip and one.rest != (0, 0) and one.sheet >= _CLEAR
    return _LIKELY_IF_CUT_OFF if cut_off else _LIKELY


def most_likely_grid(several: Sequence[SheetCandidate]) -> SheetCandidate | None:
    """Return the best of a picture's candidate grids, for a picture that the user calls a sheet; None if unlikely."""
    best = next(iter(several), None)
    if best is None or best.grid.confidence < _LEAST_CONFIDENCE or best.score < _lowest_score(best) or best.sheet < 0:
        return None
    return best
