"""Magenta as the colour of transparent pixels: where it is a ground, and where it is a colour of the drawing."""

from __future__ import annotations

import numpy as np

from studio.data.images.magenta import clear_magenta, has_magenta_ground
from tests.data.making import Pixels, sprite

MAGENTA = (255, 0, 255, 255)


def on_magenta(rgba: Pixels) -> Pixels:
    """The picture with its transparent pixels in magenta."""
    return np.where(rgba[..., 3:] > 0, rgba, np.array(MAGENTA, np.uint8))


def test_a_magenta_ground_is_opaque_and_reaches_the_border() -> None:
    assert has_magenta_ground(on_magenta(sprite(1, 16)))
    assert not has_magenta_ground(sprite(1, 16))
    opaque = sprite(1, 16)[1:-1, 1:-1].copy()
    opaque[3:11, 3:11] = MAGENTA  # a gem inside the drawing
    assert not has_magenta_ground(opaque)
    opaque[0, 0] = MAGENTA
    assert has_magenta_ground(opaque)
    some = on_magenta(sprite(1, 16))
    some[5, 5, 3] = 200
    assert not has_magenta_ground(some)
    few = np.full((16, 16, 4), 255, np.uint8)
    few[0, :12] = MAGENTA
    assert not has_magenta_ground(few)
    near = on_magenta(sprite(1, 16))
    near[..., 0] = np.minimum(near[..., 0], 254)
    assert not has_magenta_ground(near)
    assert not has_magenta_ground(np.zeros((0, 0, 4), np.uint8))


def test_magenta_is_cleared_in_opaque_pictures() -> None:
    rgba = on_magenta(sprite(2, 16))
    clear_magenta(rgba)
    assert np.array_equal(rgba, sprite(2, 16))
    soft = sprite(2, 16)
    soft[4, 4] = MAGENTA
    before = soft.copy()
    clear_magenta(soft)
    assert np.array_equal(soft, before)
