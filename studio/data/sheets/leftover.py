"""Describe the pixels of a sheet behind the last whole tiles of its grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from studio.core.arrays import Rgba
from studio.data.options import SheetGrid
from studio.data.sheets.cells import GridCells, SummedAreaTable, find_cells
from studio.data.sheets.grids import grid_candidates

_LIKELY = 0.5  # lowest confidence of a grid proposed to the user


def describe_leftover(rgba: Rgba, grid: SheetGrid) -> str:
    """Describe for users the pixels left over behind the last tiles, and a change of the grid that would fit.

    rgba: uint8 [H, W, 4], colour zeroed under alpha 0. Returns '' if only background is left over.
    """
    foreground = SummedAreaTable.of(rgba)
    return describe_leftover_cells(find_cells(grid, foreground), foreground, _seen(rgba))


def describe_leftover_cells(cells: GridCells, foreground: SummedAreaTable, seen: Iterable[SheetGrid]) -> str:
    """Describe for users the pixels left over behind the last cells, and a fitting grid of `seen`, the likeliest first.

    foreground: the picture's summed-area table. Returns '' without leftover pixels.
    """
    strips = leftover_strips(cells.right, cells.below)
    if not strips:
        return ""
    fitting = [grid for grid in seen if grid.confidence >= _LIKELY and _fits(grid, foreground)]
    of_same_tiles = (grid for grid in fitting if _tile(grid) == _tile(cells.grid))
    best = next(of_same_tiles, fitting[0] if fitting else None)
    numbers = _change(cells.grid, best) if best else _whole_sizes(cells)
    return f"{strips}: {numbers}"


def leftover_strips(right: int, below: int) -> str:
    """Return '6 px at the right and 2 px at the bottom left over'; '' without leftover pixels."""
    strips = [f"{size} px at the {side}" for size, side in ((right, "right"), (below, "bottom")) if size]
    return f"{' and '.join(strips)} left over" if strips else ""


def _seen(rgba: Rgba) -> Iterator[SheetGrid]:
    """Detect grids in a picture and yield them, the likeliest first."""
    yield from (candidate.grid for candidate in grid_candidates(rgba))


def _fits(grid: SheetGrid, foreground: SummedAreaTable) -> bool:
    cells = find_cells(grid, foreground)
    return not cells.right and not cells.below


def _tile(grid: SheetGrid) -> tuple[int, int]:
    return grid.tile_width, grid.tile_height


def _change(grid: SheetGrid, fitting: SheetGrid) -> str:
    """Describe the settings of `grid` to change for the grid `fitting`: 'spacing 1 would fit'."""
    numbers = []
    if _tile(fitting) != _tile(grid):
        numbers.append(f"tiles of {fitting.tile_width} x {fitting.tile_height}")
    if fitting.spacing != grid.spacing:
        numbers.append(f"spacing {fitting.spacing}")
    if (fitting.left, fitting.top) != (grid.left, grid.top):
        above = f" and {fitting.top} above" if fitting.top != fitting.left else ""
        numbers.append(f"margin {fitting.left}{above}")
    return f"{', '.join(numbers)} would fit"


def _whole_sizes(cells: GridCells) -> str:
    """Return the nearest picture sizes with whole tiles: '5 columns end at 80 px, 6 at 96 px'."""
    grid, words = cells.grid, []
    for strip, side, tile, starts in (
        (cells.right, "columns", grid.tile_width, cells.lefts),
        (cells.below, "rows", grid.tile_height, cells.tops),
    ):
        if strip:
            end = int(starts[-1]) + tile
            words.append(f"{len(starts)} {side} end at {end} px, {len(starts) + 1} at {end + grid.spacing + tile} px")
    return "; ".join(words)
