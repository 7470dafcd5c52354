"""Drawing sprites so that each of their pixels is a whole number of the screen's."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QBrush, QColor, QImage, QPainter

from studio.app import theme
from studio.core.arrays import Rgba

_CHECKER = 8  # logical pixels a field
_TILE = 8  # fields a side of the picture that the checkerboard is made of: few large copies instead of many small ones


def draw_sprite(painter: QPainter, box: QRect, sprite: Rgba) -> None:
    """Draw uint8 [H, W, 4] centred in `box`, at the largest whole factor of device pixels, over a checkerboard.

    Drawing in logical pixels would give pixels of uneven width on scaled screens. It is called thousands of times for
    one picture of a grid: every call in here counts.
    """
    ratio = painter.device().devicePixelRatioF()
    height, width = sprite.shape[:2]
    across, down = box.width() * ratio, box.height() * ratio
    factor = max(1, min(int(across) // width, int(down) // height))
    left = round(box.x() * ratio) + (round(across) - factor * width) // 2
    top = round(box.y() * ratio) + (round(down) - factor * height) // 2
    target = QRect(left, top, factor * width, factor * height)
    painter.save()
    painter.scale(1 / ratio, 1 / ratio)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.setBrushOrigin(left, top)
    painter.fillRect(target, checkerboard(ratio))
    pixels = np.ascontiguousarray(sprite)  # alive until drawn
    painter.drawImage(target, as_image(pixels))
    painter.restore()


def as_image(rgba: Rgba) -> QImage:
    """A picture of contiguous uint8 [H, W, 4], whose memory it shares."""
    height, width = rgba.shape[:2]
    return QImage(rgba.data, width, height, 4 * width, QImage.Format.Format_RGBA8888)


def checkerboard(ratio: float) -> QBrush:
    """What shows through sprites, for a painter in device pixels, of which `ratio` are a logical one."""
    colours = theme.colours()
    return _checker(colours.checker_a, colours.checker_b, max(1, round(_CHECKER * ratio)))


def factor_for(box: int, pixels: int, ratio: float) -> float:
    """The largest side in logical pixels that a sprite of `pixels` takes in `box` logical pixels."""
    return max(1, int(box * ratio) // pixels) * pixels / ratio


@lru_cache(maxsize=8)
def _checker(first: str, second: str, field: int) -> QBrush:
    """A brush of squares of `field` device pixels."""
    image = QImage(_TILE * field, _TILE * field, QImage.Format.Format_RGB32)
    image.fill(QColor(first))
    painter = QPainter(image)
    for row in range(_TILE):
        for column in range(row % 2, _TILE, 2):
            painter.fillRect(column * field, row * field, field, field, QColor(second))
    painter.end()
    return QBrush(image)
