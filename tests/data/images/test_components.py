"""Connected components of masks."""

from __future__ import annotations

import numpy as np
import pytest

from studio.data.images.components import label_components


@pytest.mark.parametrize(("diagonal", "count"), [(True, 2), (False, 3)])
def test_corners_connect_only_diagonally(diagonal: bool, count: int) -> None:
    filled = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]], bool)
    label = label_components(filled, diagonal=diagonal)
    assert ((label == -1) == ~filled).all() and len(np.unique(label[filled])) == count
    assert label[0, 0] == label[0, 1] and (label[0, 1] == label[1, 2]) == diagonal


def test_empty_mask_has_no_components() -> None:
    assert (label_components(np.zeros((3, 5), bool), diagonal=True) == -1).all()
