"""The colours of a set."""

from __future__ import annotations

import numpy as np
import pytest

from studio.data.colour import palette
from studio.data.colour.palette import display_order, oklab, palette_of
from tests.data.making import Pixels


def drawn(*counts: tuple[tuple[int, int, int, int], int]) -> Pixels:
    """One sprite of 8 x 8 with so many pixels of each colour, the rest transparent."""
    flat = np.zeros((64, 4), np.uint8)
    start = 0
    for colour, count in counts:
        flat[start : start + count] = colour
        start += count
    return flat.reshape(1, 8, 8, 4)


def test_most_used_first_and_only_opaque_ones() -> None:
    rgba = np.concatenate(
        [drawn(((1, 2, 3, 255), 5), ((9, 9, 9, 254), 30)), drawn(((7, 0, 0, 255), 9), ((1, 2, 3, 255), 6))]
    )
    colours, counts = palette_of(rgba, 10)
    assert colours.tolist() == [[1, 2, 3, 255], [7, 0, 0, 255]] and counts.tolist() == [11, 9]
    assert colours.dtype == np.uint8 and counts.dtype == np.int64
    assert palette_of(rgba, 1)[0].tolist() == [[1, 2, 3, 255]]
    rgba = drawn(((3, 0, 0, 255), 4), ((1, 0, 0, 255), 4), ((2, 0, 0, 255), 4))
    for view in (rgba, rgba[:, ::-1, ::-1]):  # as many of each
        assert palette_of(view, 8)[0][:, 0].tolist() == [1, 2, 3]
    for nothing in (rgba[:0], np.zeros_like(rgba)):
        colours, counts = palette_of(nothing, 4)
        assert colours.shape == (0, 4) and counts.shape == (0,) and display_order(colours).shape == (0,)


def test_large_sets_are_sampled_the_same_way_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palette, "_MOST_PIXELS", 64 * 10)
    rgba = drawn(((1, 2, 3, 255), 40), ((4, 5, 6, 255), 20)).repeat(100, axis=0)
    colours, counts = palette_of(rgba, 8)
    assert colours.tolist() == [[1, 2, 3, 255], [4, 5, 6, 255]] and counts.tolist() == [4000, 2000]


def test_display_order_groups_hues() -> None:
    names = ["white", "red", "black", "blue", "dark red", "grey", "dark blue"]
    values = [(255,) * 3, (255, 0, 0), (0,) * 3, (0, 0, 255), (90, 0, 0), (128,) * 3, (0, 0, 90)]
    colours = np.array([(*value, 255) for value in values], np.uint8)
    order = [names[index] for index in display_order(colours)]
    assert order[:3] == ["black", "grey", "white"]
    assert order.index("red") == order.index("dark red") + 1 and order.index("blue") == order.index("dark blue") + 1
    assert sorted(order) == sorted(names)


def test_oklab_against_its_author() -> None:
    colours = np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]], np.uint8)
    expected = [[1, 0, 0], [0, 0, 0], [0.62796, 0.22486, 0.12585], [0.45201, -0.03246, -0.31153]]
    assert np.abs(oklab(colours) - np.array(expected)).max() < 1e-3
