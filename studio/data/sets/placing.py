"""Place images in a set's cells: a single cell's image, a whole sheet, or files named after cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.set_cells import columns_by_row, numbers_by_row
from studio.data.images.canvas import clear_hidden, undo_upscaling, upscaling_factor
from studio.data.sets.layout import GAP
from studio.data.sets.matching import same_view

_FRAME = re.compile(r"(.*\D|)(\d+)")  # an animation's name and the frame's number


@dataclass(frozen=True)
class CellGrid:
    """A set's cells as a table: a row per view, a column per frame. names: 'down/step' or 'down'."""

    names: tuple[str, ...]

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self._frames)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The frames' names; numbers if frame names differ between views; '' for a single frame."""
        frames = [tuple(columns) for columns in columns_by_row(self.names).values()]
        longest = max(frames, key=len, default=())
        is_same = all(longest[: len(own)] == own for own in frames)
        return longest if is_same else tuple(map(str, range(1, len(longest) + 1)))

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The cell by row and column, int64 [R, K]; GAP where a view has fewer frames."""
        table = np.full((len(self.rows), len(self.columns)), GAP, np.int64)
        for row, cells in enumerate(self._frames.values()):
            table[row, : len(cells)] = cells
        return table

    @cached_property
    def _frames(self) -> dict[str, list[int]]:
        """The cells by the view's name."""
        return numbers_by_row(self.names)

    def cell_of_file(self, name: str) -> int:
        """Return the cell for a file named after a cell: 'down-step.png', 'hero_down_step.png'; GAP without a match.

        A view's name alone, 'hero_down.png', means the view's first frame.
        """
        return self._cell_of(PurePath(name).stem)

    def cell_of_frame(self, part: str) -> int:
        """Return the cell for a frame's name: 'down/step', 'walk down 2', 'front 2'; GAP without a match."""
        named = self._cell_of(part)
        found = _FRAME.fullmatch(part)
        if named != GAP or found is None:
            return named
        words = (same_view(word, self.rows) for word in reversed(re.findall("[^\\W\\d_]+", found[1])))
        cells = self._frames.get(next(filter(None, words), ""), [])
        column = int(found[2]) - 1
        return cells[column] if column < len(cells) else GAP

    def _cell_of(self, name: str) -> int:
        """Return the cell whose name, or whose view's name, ends `name`; GAP without a match.

        A view stands for its first cell.
        """
        stem = re.sub("[-/ ]", "_", name.casefold())
        cells = {own: cell for cell, own in enumerate(self.names)}
        cells |= {view: own[0] for view, own in self._frames.items() if view not in cells}
        for own, cell in sorted(cells.items(), key=lambda item: -len(item[0])):  # the longest name first
            end = re.sub("[-/ ]", "_", own.casefold())
            if stem == end or stem.endswith(f"_{end}"):
                return cell
        return GAP


def place_images(
    images: Sequence[tuple[str, Rgba]], grid: CellGrid, size: int, free: Sequence[int], target: int = GAP
) -> dict[int, Rgba]:
    """Return pixels by filled cell. Raises BadInputError for images with an unsuitable size.

    images: name and uint8 [H, W, 4]. size: width of a cell in pixels. free: the empty cells. target: the cell for a
    single image, or the first cell for several images. With GAP as target, files named after cells fill these cells,
    other files fill the first free cells. A whole sheet fills every cell, without the sheet's empty cells; a smaller
    sheet or a strip fills cells from the target on.
    """
    sheet = (size * len(grid.rows), size * len(grid.columns))
    if len(images) == 1 and (rgba := _fit(images[0][1], sheet)) is not None:
        return _cells_of_sheet(images[0][0], rgba, grid.table, size)
    named = [grid.cell_of_file(name) if target == GAP or len(images) > 1 else GAP for name, _ in images]
    first = max(0, target)
    waiting = [cell for cell in (*range(first, len(grid.names)), *range(first)) if cell in (target, *free)] or [0]
    waiting = [cell for cell in waiting if cell not in named]
    placed: dict[int, Rgba] = {}
    for (name, image), own in zip(images, named, strict=True):
        rgba = _fit(image, (size, size))
        part = _cells_of_part(name, image, grid, size, own if own != GAP else target) if rgba is None else {}
        placed.update(part)
        if part:
            continue
        if rgba is None:
            advice = f"A cell has {size} x {size} pixels, a sheet of all cells {sheet[1]} x {sheet[0]}."
            raise BadInputError(f"{name} has {image.shape[1]} x {image.shape[0]} pixels.", advice)
        at = own if own != GAP else waiting.pop(0) if waiting else GAP
        if at == GAP or at in placed:
            title = f"{len(images)} images don't fit the empty cells."
            raise BadInputError(title, f"Name the files after cells: {', '.join(grid.names[:3])} …")
        placed[at] = rgba
    return placed


def place_frames(frames: Sequence[tuple[str, Rgba]], grid: CellGrid, size: int, target: int = GAP) -> dict[int, Rgba]:
    """Return pixels by cell for a file's frames. Raises BadInputError for frames with an unsuitable size.

    frames: names and uint8 [H, W, 4]. Frames named after cells fill these cells. Without such names, frames fill every
    cell if the numbers match, else the row of `target` from the target on; further frames are left out.
    """
    named = [grid.cell_of_frame(name) for name, _ in frames]
    if all(cell == GAP for cell in named):
        row = next(own for own in grid.table.tolist() if max(target, 0) in own)
        listed = [cell for cell in row[row.index(max(target, 0)) :] if cell != GAP]
        named = list(range(len(grid.names))) if len(frames) == len(grid.names) else listed
    placed: dict[int, Rgba] = {}
    for (_, image), cell in zip(frames, named, strict=False):
        rgba = _fit(image, (size, size))
        if rgba is None:
            title = f"The frames have {image.shape[1]} x {image.shape[0]} pixels; a cell has {size} x {size}."
            raise BadInputError(title, "Crop or scale the frames.")
        if cell != GAP:
            placed.setdefault(cell, rgba)
    return placed


def count_colours(cells: Rgba) -> int:
    """Return the number of visible colours in uint8 [..., 4]."""
    pixels = cells.reshape(-1, 4)
    return len(np.unique(pixels[pixels[:, 3] > 0], axis=0))


def _fit(rgba: Rgba, shape: tuple[int, int]) -> Rgba | None:
    """Return a copy of an image with height and width `shape`, with upscaling undone; None for another size."""
    if rgba.shape[:2] != shape and upscaling_factor(rgba) > 1:
        rgba = undo_upscaling(rgba, 0)
    if rgba.shape[:2] != shape:
        return None
    fitted = rgba.copy()
    clear_hidden(fitted)
    return fitted


def _cells_of_part(name: str, image: Rgba, grid: CellGrid, size: int, first: int) -> dict[int, Rgba]:
    """Return the pixels by cell for a strip or a small sheet, without empty cells; {} for an unsuitable image size.

    first: the cell for the upper left tile; GAP for the first cell. Raises BadInputError for an empty sheet.
    """
    row, column = np.argwhere(grid.table == max(first, 0))[0].tolist()
    for rgba in (image, undo_upscaling(image, 0)):
        rows, columns = rgba.shape[0] // size, rgba.shape[1] // size
        table = grid.table[row : row + rows, column : column + columns]
        if rgba.shape[:2] == (size * rows, size * columns) and table.shape == (rows, columns):
            clear_hidden(rgba := rgba.copy())
            return _cells_of_sheet(name, rgba, table, size)
    return {}


def _cells_of_sheet(name: str, sheet: Rgba, table: NDArray[np.int64], size: int) -> dict[int, Rgba]:
    """Return a sheet's pixels by cell, without empty cells. Raises BadInputError for an empty sheet.

    table: int64 [R, K], cell or GAP by row and column.
    """
    placed = {}
    for (row, column), cell in np.ndenumerate(table):
        pixels = sheet[row * size : (row + 1) * size, column * size : (column + 1) * size]
        if cell != GAP and pixels[..., 3].any():
            placed[int(cell)] = pixels.copy()
    if not placed:
        raise BadInputError(f"{name} is empty.", "Open a sheet with at least one drawn cell.")
    return placed
