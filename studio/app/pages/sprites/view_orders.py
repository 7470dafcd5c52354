"""Usual orders of views, offered for sheets whose four rows have no names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QPushButton, QWidget

from studio.app import theme
from studio.app.pages.sprites.slice_texts import has_names
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Rgba
from studio.data.sets.layout import GAP, find_cell
from studio.data.sprites import Sprites

# Names from the top row down, and who uses this order.
_ORDERS = (
    (("down", "left", "right", "up"), "RPG Maker"),
    (("down", "up", "left", "right"), ""),
    (("up", "left", "down", "right"), "Universal LPC"),
)
_SIDE, _SMALL_SIDE, _PADDING, _BETWEEN = 32, 24, 6, 6  # logical pixels: a picture, space around and between pictures


class ViewOrders(QWidget):
    """A button for each usual order of views, with the first frames of a character. chosen: 'down,left,right,up'."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.buttons = tuple(_OrderButton(names, user) for names, user in _ORDERS)
        for button in self.buttons:
            button.clicked.connect(self._on_clicked)
        question = factory.text("Which names fit your first character? For others, double-click row1 in the table.")
        flow = factory.panel(FlowLayout(factory.GRID, factory.GRID, *self.buttons))
        self.setLayout(factory.column(question, flow))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show smaller pictures if the buttons don't fit into one row."""
        super().resizeEvent(event)
        needed = sum(button.full_width() + factory.GRID for button in self.buttons)
        for button in self.buttons:
            button.set_side(_SIDE if needed <= self.width() else _SMALL_SIDE)

    def show_sprites(self, sprites: Sprites) -> bool:
        """Show the first frames of a character with unnamed views. Return False for other sprites."""
        sets = sprites.sets
        if sets.kind != "sheets" or len(sets.rows) != len(_ORDERS[0][0]) or has_names(sets):
            return False
        first = [find_cell(sets.cells, row) for row in sets.rows]
        whole = np.flatnonzero((sets.table[:, first] != GAP).all(axis=1))
        character = sets.table[int(whole[0]) if len(whole) else 0, first]
        pictures = [sprites.rgba[sprite] if sprite != GAP else None for sprite in character.tolist()]
        for button in self.buttons:
            button.set_pictures(pictures)
        return True

    @Slot()
    def _on_clicked(self) -> None:
        button = self.sender()
        assert isinstance(button, _OrderButton)
        self.chosen.emit(",".join(button.names))


class _OrderButton(QPushButton):
    """A button with names of views below pictures. user: a program with this order, or ''."""

    def __init__(self, names: Sequence[str], user: str) -> None:
        super().__init__()
        self.names = names
        self._pictures: Sequence[Rgba | None] = ()
        self._side = _SIDE
        listed = ", ".join(names)
        tip = f"Name the views {listed}{f', as in {user}' if user else ''}. Undo restores the row numbers."
        factory.set_name_and_tip(self, listed, tip)

    def set_pictures(self, pictures: Sequence[Rgba | None]) -> None:
        """Show a picture of each view, uint8 [S, S, 4], or None for a gap."""
        self._pictures = pictures
        self.update()

    def set_side(self, side: int) -> None:
        """Set the side of a picture in logical pixels."""
        if side != self._side:
            self._side = side
            self.updateGeometry()

    def full_width(self) -> int:
        """Return the width with large pictures."""
        return self._width(_SIDE)

    def sizeHint(self) -> QSize:
        return QSize(self._width(self._side), self._side + self.fontMetrics().height() + 2 * _PADDING)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        left, painter = _PADDING, QPainter(self)
        painter.setPen(QColor(theme.colours().text))
        for number, (name, width) in enumerate(zip(self.names, self._columns(self._side), strict=True)):
            picture = self._pictures[number] if number < len(self._pictures) else None
            if picture is not None:
                draw_sprite(painter, QRect(left, _PADDING, width, self._side), picture)
            below = QRect(left, _PADDING + self._side, width, self.height() - self._side - _PADDING)
            painter.drawText(below, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, name)
            left += width + _BETWEEN

    def _columns(self, side: int) -> list[int]:
        """Return the widths of the pictures with their names, in logical pixels."""
        return [max(side, self.fontMetrics().horizontalAdvance(name) + 1) for name in self.names]

    def _width(self, side: int) -> int:
        return sum(self._columns(side)) + _BETWEEN * (len(self.names) - 1) + 2 * _PADDING
