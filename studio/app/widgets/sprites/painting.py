"""Draws sprites at a whole number of device pixels for each sprite pixel, and large sprites at a fraction."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter

from studio.app import theme
from studio.core.arrays import Rgba

_CHECKER = 8  # side of a square in logical pixels
_TILE = 8  # squares on a side of the brush image; a large image is copied fewer times


def draw_sprite(painter: QPainter, box: QRect, sprite: Rgba) -> None:
    """Draw uint8 [H, W, 4] centred in `box` over a checkerboard, at the largest whole zoom in device pixels.

    A sprite larger than the box is shrunk, smoothly, to 1/2, 1/3, 1/4 ... of its size.

    Logical pixels would give uneven sprite pixels on scaled screens. Called thousands of times, so keep it fast.
    """
    ratio = painter.device().devicePixelRatioF()
    target, pixels = fit_sprite(box, ratio, sprite)
    painter.save()
    painter.scale(1 / ratio, 1 / ratio)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.setBrushOrigin(target.topLeft())
    painter.fillRect(target, checkerboard(ratio))
    painter.drawImage(target, as_image(pixels))
    painter.restore()


def fit_sprite(box: QRect, ratio: float, sprite: Rgba) -> tuple[QRect, Rgba]:
    """Return where `draw_sprite` places a sprite, in device pixels, and the contiguous pixels to draw there.

    box: in logical pixels. ratio: device pixels for a logical pixel. sprite: uint8 [H, W, 4].
    """
    height, width = sprite.shape[:2]
    across, down = box.width() * ratio, box.height() * ratio
    divisor = max(shrink_divisor(box.width(), width, ratio), shrink_divisor(box.height(), height, ratio))
    if divisor > 1:
        sprite = shrunk(sprite, divisor)
        height, width = sprite.shape[:2]
    factor = max(1, min(int(across) // width, int(down) // height))
    left = round(box.x() * ratio) + (round(across) - factor * width) // 2
    top = round(box.y() * ratio) + (round(down) - factor * height) // 2
    return QRect(left, top, factor * width, factor * height), np.ascontiguousarray(sprite)


def shrink_divisor(box: int, pixels: int, ratio: float) -> int:
    """Return the smallest n such that a sprite shrunk to 1/n fits a box.

    box: available side in logical pixels. pixels: the sprite's side. ratio: device pixels for a logical pixel.
    """
    return -(-pixels // max(1, int(box * ratio)))


def shrunk(sprite: Rgba, divisor: int) -> Rgba:
    """Return uint8 [H, W, 4] at 1/`divisor` of its size, each pixel the mean of `divisor` x `divisor` pixels."""
    height, width = (max(1, side // divisor) for side in sprite.shape[:2])
    pixels, smooth = np.ascontiguousarray(sprite), Qt.TransformationMode.SmoothTransformation
    image = as_image(pixels).scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)
    image = image.convertToFormat(QImage.Format.Format_RGBA8888)
    return np.frombuffer(image.constBits(), np.uint8).reshape(height, width, 4).copy()


def as_image(rgba: Rgba) -> QImage:
    """Return a QImage of contiguous uint8 [H, W, 4] that shares the array's memory."""
    height, width = rgba.shape[:2]
    return QImage(rgba.data, width, height, 4 * width, QImage.Format.Format_RGBA8888)


def checkerboard(ratio: float) -> QBrush:
    """Return a checkerboard brush for transparent pixels. ratio: device pixels for a logical pixel."""
    colours = theme.colours()
    return _checker(colours.checker_a, colours.checker_b, max(1, round(_CHECKER * ratio)))


def side_for(box: int, pixels: int, ratio: float) -> float:
    """Return the sprite width in logical pixels that `draw_sprite` uses: a whole zoom, or 1/2, 1/3, ... of the sprite.

    box: available side in logical pixels. pixels: the sprite's side. ratio: device pixels for a logical pixel.
    """
    side = factor_for(box, pixels, ratio)
    return side if side <= box else -(-pixels // shrink_divisor(box, pixels, ratio)) / ratio


def factor_for(box: int, pixels: int, ratio: float) -> float:
    """Return a sprite's side in logical pixels at the largest whole zoom that fits.

    box: available side in logical pixels. pixels: the sprite's side. ratio: device pixels for a logical pixel.
    """
    return max(1, int(box * ratio) // pixels) * pixels / ratio


@lru_cache(maxsize=8)
def _checker(first: str, second: str, field: int) -> QBrush:
    """Return a checkerboard brush of two colours, with squares of `field` device pixels."""
    image = QImage(_TILE * field, _TILE * field, QImage.Format.Format_RGB32)
    image.fill(QColor(first))
    painter = QPainter(image)
    for row in range(_TILE):
        for column in range(row % 2, _TILE, 2):
            painter.fillRect(column * field, row * field, field, field, QColor(second))
    painter.end()
    return QBrush(image)
