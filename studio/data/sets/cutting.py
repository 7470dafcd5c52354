"""Cut a set's sheet into cells: a row per view, with frames side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studio.core.arrays import Mask, Rgba
from studio.core.errors import SetsError
from studio.core.pictures import are_filled
from studio.core.set_cells import numbers_by_row
from studio.data.images.canvas import upscaling_factor


def sheet_size(cells: Sequence[str], size: int) -> tuple[int, int]:
    """Return the width and height of a sheet in pixels. size: width and height of a cell."""
    rows = numbers_by_row(cells).values()
    return size * max(map(len, rows)), size * len(rows)


def cut_sheet(rgba: Rgba, cells: Sequence[str], size: int, name: str = "The sheet") -> tuple[Rgba, Mask]:
    """Cut a sheet uint8 [H, W, 4] into cells uint8 [C, S, S, 4]; also return a mask of cells with visible pixels.

    cells: cell names, 'down/step' or 'down', row by row. name: the sheet's name, for errors. Returns the mask as
    bool [C]. Raises SetsError for a sheet with another size.
    """
    width, height = sheet_size(cells, size)
    if rgba.shape[:2] != (height, width):
        title = f"{name} has {rgba.shape[1]} x {rgba.shape[0]} pixels; a sheet of this model has {width} x {height}."
        rows = ", ".join(numbers_by_row(cells))
        hint = f"A row for each of {rows}, in cells of {size} x {size} pixels. {_on_upscaling(rgba)}"
        raise SetsError(title, hint.strip())
    cut = np.zeros((len(cells), size, size, 4), np.uint8)
    for row, numbers in enumerate(numbers_by_row(cells).values()):
        for column, number in enumerate(numbers):
            cut[number] = rgba[row * size : (row + 1) * size, column * size : (column + 1) * size]
    return cut, are_filled(cut)


def check_cell(rgba: Rgba, size: int, name: str) -> None:
    """Raise SetsError unless a picture uint8 [H, W, 4] has a cell's size. name: the picture's name."""
    if rgba.shape[:2] != (size, size):
        title = f"{name} has {rgba.shape[1]} x {rgba.shape[0]} pixels; the model's cells have {size} x {size}."
        raise SetsError(title, f"Crop or scale the picture. {_on_upscaling(rgba)}".strip())


def _on_upscaling(rgba: Rgba) -> str:
    """Return advice on an enlarged picture; '' without enlargement."""
    factor = upscaling_factor(rgba)
    return f"It looks enlarged {factor}x: save it without enlargement." if factor > 1 else ""
