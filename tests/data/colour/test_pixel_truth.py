from __future__ import annotations

import numpy as np
import pytest

from studio.data.colour.true_pixels import pixel_truth

RED, BLUE = (255, 0, 0, 255), (0, 0, 255, 255)


def _sprites(*rows: list[tuple[int, int, int, int]]) -> np.ndarray:
    """One sprite of 2x2 for each row of four pixels."""
    return np.array(rows, dtype=np.uint8).reshape(-1, 2, 2, 4)


def test_figures_are_counted_by_hand() -> None:
    reference = _sprites([RED, RED, BLUE, (9, 9, 9, 0)])  # what can't be seen is no colour of the palette
    soft = (255, 0, 0, 100)
    sprites = _sprites([RED, soft, (9, 9, 9, 255), (0, 0, 0, 0)], [BLUE, BLUE, BLUE, RED])
    found = pixel_truth(sprites, reference)
    assert found.half_transparent == pytest.approx(1 / 7)
    assert found.off_palette == pytest.approx(1 / 7)
    assert found.colours == 2.0  # red and grey; blue and red


def test_what_can_not_be_seen_is_not_counted() -> None:
    found = pixel_truth(np.zeros((2, 2, 2, 4), np.uint8), _sprites([RED, RED, BLUE, BLUE]))
    assert (found.half_transparent, found.off_palette, found.colours) == (0, 0, 0)
