"""Drawing sprites so that each of their pixels is a whole number of the screen's."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QImage, QPainter

from studio.app import theme
from studio.core.events import Rgba

_CHECKER = 8  # logical pixels a field


def draw_sprite(painter: QPainter, box: QRect, sprite: Rgba) -> None:
    """Draw uint8 [H, W, 4] centred in `box`, at the largest whole factor of device pixels, over a checkerboard.

    Drawing in logical pixels would give pixels of uneven width on scaled screens.
    """
    ratio = painter.device().devicePixelRatioF()
    height, width = sprite.shape[:2]
    factor = max(1, min(int(box.width() * ratio) // width, int(box.height() * ratio) // height))
    painter.save()
    painter.scale(1 / ratio, 1 / ratio)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    left = round(box.x() * ratio) + (round(box.width() * ratio) - factor * width) // 2
    top = round(box.y() * ratio) + (round(box.height() * ratio) - factor * height) // 2
    target = QRect(left, top, factor * width, factor * height)
    _draw_checker(painter, target, max(1, round(_CHECKER * ratio)))
    pixels = np.ascontiguousarray(sprite)  # alive until drawn: the image shares its memory
    painter.drawImage(target, QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGBA8888))
    painter.restore()


def factor_for(box: int, pixels: int, ratio: float) -> float:
    """The largest side in logical pixels that a sprite of `pixels` takes in `box` logical pixels."""
    return max(1, int(box * ratio) // pixels) * pixels / ratio


def _draw_checker(painter: QPainter, area: QRect, field: int) -> None:
    colours = theme.colours()
    painter.fillRect(area, QColor(colours.checker_a))
    second = QColor(colours.checker_b)
    for row, y in enumerate(range(area.top(), area.bottom() + 1, field)):
        for x in range(area.left() + field * (row % 2), area.right() + 1, 2 * field):
            painter.fillRect(QRect(QPoint(x, y), QPoint(x + field - 1, y + field - 1)).intersected(area), second)
