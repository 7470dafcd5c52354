"""Previews of the edited sprite: at actual size, and tiled."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.sprites.painting import as_image, checkerboard
from studio.core.arrays import Rgba

_SIDE = 104  # logical pixels
_TILES, _FEWEST_TILES = 3, 2


class Preview(QWidget):
    """A sprite, or 3 x 3 copies, at the largest whole zoom up to `zoom` that fits `side` logical pixels.

    If 3 x 3 don't fit, 2 x 2 are shown; larger sprites are scaled down. Copies are never cropped.
    """

    def __init__(self, name: str, tip: str, *, tiles: int = 1, zoom: int = 1, side: int = _SIDE) -> None:
        super().__init__()
        self._most_tiles, self._zoom, self._side = tiles, zoom, side
        self._sprite: Rgba = np.zeros((1, 1, 4), np.uint8)
        factory.set_name_and_tip(self, name, tip)
        self._fit()

    def show_sprite(self, sprite: Rgba) -> None:
        """Show uint8 [S, S, 4]."""
        is_other = sprite.shape != self._sprite.shape
        self._sprite = np.ascontiguousarray(sprite)
        if is_other:
            self._fit()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        ratio = self.devicePixelRatioF()
        tiles, each = self._tiles(ratio)
        painter = QPainter(self)
        painter.scale(1 / ratio, 1 / ratio)
        image = as_image(self._sprite)
        painter.fillRect(QRect(0, 0, tiles * each, tiles * each), checkerboard(ratio))
        for number in range(tiles**2):
            row, column = divmod(number, tiles)
            painter.drawImage(QRect(column * each, row * each, each, each), image)

    def _tiles(self, ratio: float) -> tuple[int, int]:
        """Return how many copies of the sprite fit in a row, and the side of a copy in device pixels.

        ratio: device pixels per logical pixel.
        """
        size, room = len(self._sprite), int(self._side * ratio)
        tiles = self._most_tiles if self._most_tiles * size <= room else min(self._most_tiles, _FEWEST_TILES)
        zoom = min(room // tiles // size, round(self._zoom * max(1.0, ratio)))
        return tiles, size * zoom or room // tiles

    def _fit(self) -> None:
        tiles, each = self._tiles(self.devicePixelRatioF())
        side = round(tiles * each / self.devicePixelRatioF())
        self.setFixedSize(side, side)


def tiled() -> Preview:
    return Preview("Tiled", "The sprite tiled, to check its seams.", tiles=_TILES, zoom=2)
