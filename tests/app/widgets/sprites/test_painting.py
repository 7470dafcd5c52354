"""Sprites painted on screen, compared pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.widgets.sprites.painting import draw_sprite, factor_for
from studio.core.arrays import Rgba


def _drawn(sprite: Rgba, box: QRect, ratio: float) -> Rgba:
    """Return the device pixels of a 60 x 60 image with `sprite` drawn into `box`."""
    side = round(60 * ratio)
    image = QImage(side, side, QImage.Format.Format_RGBA8888)
    image.setDevicePixelRatio(ratio)
    image.fill(0)
    painter = QPainter(image)
    draw_sprite(painter, box, sprite)
    painter.end()
    return np.frombuffer(image.constBits(), np.uint8).reshape(side, image.bytesPerLine() // 4, 4)[:, :side].copy()


@pytest.mark.parametrize("ratio", [1.0, 2.0, 1.5])
def test_whole_device_pixels(qapp: QApplication, ratio: float) -> None:
    sprite = np.random.default_rng(0).integers(0, 256, (8, 8, 4), dtype=np.uint8)
    sprite[..., 3] = 255
    drawn = _drawn(sprite, QRect(10, 10, 40, 40), ratio)
    factor = int(40 * ratio) // 8
    expected = sprite.repeat(factor, 0).repeat(factor, 1)
    rows, columns = np.nonzero(drawn[..., 3])
    area = drawn[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    assert np.array_equal(area, expected)


def test_transparent_pixels_show_the_checkerboard(qapp: QApplication) -> None:
    theme.apply(qapp, "light")
    drawn = _drawn(np.zeros((8, 8, 4), np.uint8), QRect(0, 0, 32, 32), 1.0)
    found = {"#" + bytes(colour[:3]).hex() for colour in drawn[:32, :32].reshape(-1, 4)}
    assert found == {theme.LIGHT.checker_a, theme.LIGHT.checker_b}
    assert tuple(drawn[0, 0]) != tuple(drawn[0, 8]) and tuple(drawn[0, 0]) == tuple(drawn[8, 8])


@pytest.mark.parametrize(
    ("box", "pixels", "ratio", "side"),
    [(40, 16, 1.0, 32), (40, 16, 2.0, 40), (10, 16, 1.0, 16), (47, 16, 1.5, 128 / 3)],
)
def test_sprite_side_in_logical_pixels(box: int, pixels: int, ratio: float, side: float) -> None:
    assert factor_for(box, pixels, ratio) == pytest.approx(side)


def test_sprite_larger_than_the_box_is_shrunk(qapp: QApplication) -> None:
    sprite = np.zeros((80, 80, 4), np.uint8)
    sprite[..., 3] = 255
    sprite[:, ::2, 0] = 255  # the mean of two columns
    drawn = _drawn(sprite, QRect(10, 10, 40, 40), 1.0)
    rows, columns = np.nonzero(drawn[..., 3])
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (10, 49, 10, 49)
    assert np.abs(drawn[11:49, 11:49, 0].astype(int) - 128).max() <= 2


def test_wide_picture_in_a_box_of_its_shape_is_not_shrunk(qapp: QApplication) -> None:
    picture = np.zeros((12, 60, 4), np.uint8)
    picture[..., 3] = 255
    picture[:, ::2, 0] = 255
    drawn = _drawn(picture, QRect(0, 0, 60, 12), 1.0)
    assert (drawn[:12, :, 0] == picture[..., 0]).all()
