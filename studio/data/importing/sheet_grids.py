"""Parse and edit ImportOptions.sheet_grids, a list of grids by file name: 'a.png=16x24; b_*.png=12x14+1+2/1'."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from studio.core.errors import BadInputError
from studio.data.doctor.fixes import as_patterns, exclusion_filter
from studio.data.options import LARGEST_CANVAS, SheetGrid

_SEPARATOR = ";"
_GRID = re.compile(r"(\d{1,4})x(\d{1,4})(?:\+(\d{1,4})\+(\d{1,4}))?(?:/(\d{1,4}))?")


def parse_sheet_grids(text: str) -> dict[str, SheetGrid]:
    """Parse a list of grids like 'a.png=16x24; b_*.png=12x14'; return the grids by pattern. Raises BadInputError."""
    grids = {}
    for entry in filter(None, map(str.strip, text.split(_SEPARATOR))):
        name, is_given, numbers = entry.rpartition("=")
        match = _GRID.fullmatch(numbers.strip())
        if not (is_given and name.strip() and match):
            raise BadInputError(f"{entry!r} is no file name with a grid.", "Write a name and a grid: hero.png=16x24.")
        width, height, *others = (int(number or 0) for number in match.groups())
        if not (1 <= width <= LARGEST_CANVAS and 1 <= height <= LARGEST_CANVAS) or max(others) > LARGEST_CANVAS:
            title = f"The grid {numbers.strip()!r} of {name.strip()!r} is too small or too large."
            raise BadInputError(title, f"Tiles measure 1 to {LARGEST_CANVAS} pixels.")
        grids[name.strip()] = SheetGrid(width, height, *others)
    return grids


def replace_sheet_grids(text: str, names: Collection[str], grids: Mapping[str, SheetGrid]) -> str:
    """Replace the entries of the files `names` in a list of grids by `grids`; return it. Raises BadInputError."""
    known = parse_sheet_grids(text).items()
    others = {pattern: grid for pattern, grid in known if not any(map(exclusion_filter(pattern), names))}
    entries = {as_patterns([name]): grid for name, grid in grids.items()} | others
    return f"{_SEPARATOR} ".join(f"{name}={_numbers(grid)}" for name, grid in entries.items())


def match_sheet_grids(text: str, names: Iterable[str]) -> dict[str, SheetGrid]:
    """Return the grid of each file in `names` that matches an entry in a list of grids. Raises BadInputError."""
    known = [(exclusion_filter(name), grid) for name, grid in parse_sheet_grids(text).items()]
    found = ((name, next((grid for fits, grid in known if fits(name)), None)) for name in names)
    return {name: grid for name, grid in found if grid is not None} if known else {}


def _numbers(grid: SheetGrid) -> str:
    start = f"+{grid.left}+{grid.top}" if grid.left or grid.top else ""
    return f"{grid.tile_width}x{grid.tile_height}{start}" + (f"/{grid.spacing}" if grid.spacing else "")
