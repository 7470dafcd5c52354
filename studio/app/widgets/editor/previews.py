"""An edited sprite as it will be seen: at its true size, and tiled."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.sprites.painting import as_image, checkerboard
from studio.core.events import Rgba

_SIDE = 112  # logical pixels
_TILES = 3


class Preview(QWidget):
    """A sprite, or 3 x 3 of it, at the largest whole zoom up to `zoom` that fits into `side` logical pixels."""

    def __init__(self, name: str, tip: str, *, tiles: int = 1, zoom: int = 1, side: int = _SIDE) -> None:
        super().__init__()
        self._tiles, self._zoom, self._side = tiles, zoom, side
        self._sprite: Rgba = np.zeros((1, 1, 4), np.uint8)
        factory.describe(self, name, tip)
        self._fit()

    def show_sprite(self, sprite: Rgba) -> None:
        """Show uint8 [S, S, 4]."""
        is_other = sprite.shape != self._sprite.shape
        self._sprite = np.ascontiguousarray(sprite)
        if is_other:
            self._fit()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw as much as there is room for."""
        ratio, size = self.devicePixelRatioF(), len(self._sprite)
        zoom = self._factor(ratio)
        painter = QPainter(self)
        painter.scale(1 / ratio, 1 / ratio)
        image = as_image(self._sprite)
        painter.fillRect(QRect(0, 0, *[self._tiles * size * zoom] * 2), checkerboard(ratio))
        for number in range(self._tiles**2):
            row, column = divmod(number, self._tiles)
            painter.drawImage(QRect(column * size * zoom, row * size * zoom, size * zoom, size * zoom), image)

    def _factor(self, ratio: float) -> int:
        """Device pixels a pixel."""
        room = int(self._side * ratio) // (self._tiles * len(self._sprite))
        return max(1, min(room, round(self._zoom * max(1.0, ratio))))

    def _fit(self) -> None:
        ratio = self.devicePixelRatioF()
        side = min(self._side, round(self._tiles * len(self._sprite) * self._factor(ratio) / ratio))
        self.setFixedSize(side, side)


def actual_size() -> Preview:
    """A sprite at its true size."""
    return Preview("True size", "The sprite at its true size: one pixel of it is one of the screen.")


def tiled() -> Preview:
    """Nine of a sprite side by side."""
    return Preview("Tiled", "Nine of it side by side, to see whether its borders meet.", tiles=_TILES, zoom=2)
