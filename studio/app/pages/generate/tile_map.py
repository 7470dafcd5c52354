"""A random map of a drawn tile set, to judge the tiles before saving them."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect, Signal, Slot
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.menu import ContextMenu
from studio.app.widgets.sprites.large_view import LargeView, ShownSprite
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Rgba
from studio.data.tiles.terrain_maps import random_map
from studio.data.tiles.tile_set import TileSet

_ROWS, _COLUMNS = 16, 24  # cells of the map
_TIP = "Random map of 24 x 16 cells. Double-click for a large view."


class TileMap(QWidget):
    """A random map of a tile set, with buttons for another map and a large view. selection_changed: another map."""

    selection_changed = Signal()

    def __init__(self, side: int) -> None:
        """side: largest width of the map in logical pixels."""
        super().__init__()
        self._tile_set: TileSet | None = None
        self._seed = 0
        self.picture = _MapPicture(side)
        self.new_map = factory.button("New map", "Lay out the tiles as another random map.", "dice", slot=self._on_new)
        self.large = factory.tool_button("zoom-in", "View large", "Show the map in a large view.", self.open_large)
        self.menu = ContextMenu(self, "Map")
        self.menu.in_large_view.append(self.menu.add_button(self.new_map))
        self.setLayout(factory.column(self.picture, factory.row(self.new_map, self.large, 1, spacing=4), spacing=4))
        self.picture.double_clicked.connect(self.open_large)

    def show_tile_set(self, tile_set: TileSet) -> None:
        """Show a map of this tile set, with the seed of the last map."""
        self._tile_set = tile_set
        self._refresh()

    @Slot()
    def open_large(self) -> None:
        """Show the map in a large view."""
        if self._tile_set is not None:
            LargeView(self, self, "Map").open()

    def visible_count(self) -> int:
        return 1

    def current_row(self) -> int:
        return 0

    def go_to_row(self, row: int) -> None:
        """Do nothing: the view has a single map."""

    def shown_sprite(self, row: int) -> ShownSprite:
        """Return the map for the large view."""
        return ShownSprite(self.picture.rgba, "Map", f"{_COLUMNS} × {_ROWS} cells")

    @Slot()
    def _on_new(self) -> None:
        self._seed += 1
        self._refresh()

    def _refresh(self) -> None:
        if self._tile_set is not None:
            more = int(self._tile_set.by_corners)
            terrain_map = random_map(len(self._tile_set.terrains), _ROWS + more, _COLUMNS + more, self._seed)
            self.picture.show_map(self._tile_set.render(self._tile_set.laid_out(terrain_map, self._seed)))
            self.selection_changed.emit()


class _MapPicture(QWidget):
    """The picture of a map, scaled to a width."""

    double_clicked = Signal()

    def __init__(self, side: int) -> None:
        """side: width in logical pixels."""
        super().__init__()
        self.rgba: Rgba = np.zeros((_ROWS, _COLUMNS, 4), np.uint8)
        self._side = side
        self.setFixedSize(side, side * _ROWS // _COLUMNS)
        factory.set_name_and_tip(self, "Map", _TIP)

    def show_map(self, rgba: Rgba) -> None:
        """Show uint8 [H, W, 4]."""
        self.rgba = rgba
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        above = (self._side - self.height()) // 2
        draw_sprite(QPainter(self), QRect(0, -above, self._side, self._side), self.rgba)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.double_clicked.emit()
