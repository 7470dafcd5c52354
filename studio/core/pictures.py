"""Many sprites as one picture, and back."""

from __future__ import annotations

import math

import numpy as np

from studio.core.events import Rgba


def tile(sprites: Rgba, columns: int) -> Rgba:
    """uint8 [N, S, S, 4] -> one picture, uint8 [rows * S, columns * S, 4], row by row; empty cells are transparent."""
    count, size = sprites.shape[:2]
    rows = math.ceil(count / columns)
    cells = np.zeros((rows * columns, size, size, 4), dtype=np.uint8)
    cells[:count] = sprites
    return cells.reshape(rows, columns, size, size, 4).swapaxes(1, 2).reshape(rows * size, columns * size, 4)


def untile(picture: Rgba, size: int) -> Rgba:
    """The cells of a picture made by `tile`, row by row: uint8 [rows * columns, size, size, 4]."""
    rows, columns = picture.shape[0] // size, picture.shape[1] // size
    cells = picture[: rows * size, : columns * size].reshape(rows, size, columns, size, 4)
    return np.ascontiguousarray(cells.swapaxes(1, 2).reshape(-1, size, size, 4))
