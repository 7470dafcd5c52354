"""Cells that mirror each other are found in the pixels, whatever they are called."""

from __future__ import annotations

import numpy as np

from studio.recipes.set_mirrors import NO_PARTNER, find_partners


def _cells(seed: int = 0) -> np.ndarray:
    """Ten sets: a symmetric front, its two steps, a left and a right view, and a view without a mirror image."""
    rng = np.random.default_rng(seed)
    half = rng.integers(1, 255, (10, 8, 4, 4))
    side, step, odd = (rng.integers(1, 255, (10, 8, 8, 4)) for _ in range(3))
    front = np.concatenate([half, half[:, :, ::-1]], 2)
    right = side[:, :, ::-1].copy()
    right[:2, 0] = 7  # two of ten are no exact mirror images
    cells = np.stack([front, step, step[:, :, ::-1], side, right, odd], 1).astype(np.uint8)
    cells[..., 3] = 255
    return cells


def test_partners_are_found() -> None:
    partners, exact = find_partners(_cells(), np.ones((10, 6), np.bool_))
    assert partners.tolist() == [0, 2, 1, 4, 3, NO_PARTNER]
    np.testing.assert_allclose(exact, [1, 1, 1, 0.8, 0.8, 0])


def test_missing_cells_do_not_count() -> None:
    there = np.ones((10, 6), np.bool_)
    there[:2, 4] = False
    assert find_partners(_cells(), there)[1][3] == 1
    there[:, 4] = False
    assert find_partners(_cells(), there)[0].tolist() == [0, 2, 1, NO_PARTNER, NO_PARTNER, NO_PARTNER]
