"""The columns of a sheet of sprites."""

from __future__ import annotations

import numpy as np
import pytest

from studio.exports.sprites.base import SpriteSet


@pytest.mark.parametrize(
    ("count", "width", "is_animation", "columns", "expected"),
    [
        (12, 16, True, None, 12),
        (12, 16, False, None, 8),
        (12, 16, True, 3, 3),
        (100, 256, True, None, 64),  # a wider row would exceed the textures of game engines
        (2, 20_000, True, None, 1),
        (0, 16, True, None, 1),
    ],
)
def test_an_animation_is_one_row_unless_columns_are_chosen(
    count: int, width: int, is_animation: bool, columns: int | None, expected: int
) -> None:
    sprites = np.zeros((count, 1, width, 4), np.uint8)
    assert SpriteSet(sprites, is_animation=is_animation, columns=columns).sheet_columns() == expected
