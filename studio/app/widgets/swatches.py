"""A palette as colour swatches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QModelIndex, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractItemView, QFrame, QSizePolicy

from studio.app import theme
from studio.app.widgets.sprites.cell_view import CellView, TextRows
from studio.core import formatting
from studio.core.arrays import Rgba

_SIDE, _GAP = 14, 2
_CELL = QSize(_SIDE + _GAP, _SIDE + _GAP)
_TAKE = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
_WIDE = 12  # columns, if there is room


def hex_code(colour: Rgba) -> str:
    """Return the hex code, such as '#be4a2f'. colour: uint8 [3] or [4]."""
    return f"#{colour[:3].tobytes().hex()}"


class Swatches(CellView):
    """Wrapping colours with tooltips. colour_pressed: index of a swatch clicked or chosen by key, if `choosable`."""

    colour_pressed = Signal(int)

    def __init__(self, *, choosable: bool = False) -> None:
        self._rows = TextRows()
        super().__init__(self._rows)
        self._colours: Rgba = np.zeros((0, 4), np.uint8)
        self._texts: Sequence[str] = ()
        self._marked = -1
        self.setFrameShape(QFrame.Shape.NoFrame)
        theme.set_role(self, "flat")
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Palette")
        self.resize_cells(_CELL)
        if choosable:
            self.clicked.connect(self._on_swatch_clicked)
            self.viewport().setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def set_palette(self, colours: Rgba, texts: Sequence[str] = ()) -> None:
        """Show colours uint8 [K, 4] or [K, 3], and clear the mark. texts: a text for each colour, or none."""
        self._colours, self._texts, self._marked = colours, texts, -1
        self._rows.set_rows(len(colours), self._text_of)
        self.setAccessibleDescription(formatting.count(len(colours), "colour"))
        self.updateGeometry()

    def mark(self, position: int) -> None:
        """Draw a ring around a swatch; -1 removes the ring."""
        self._marked = position
        self.viewport().update()

    def heightForWidth(self, width: int) -> int:
        return self.cells(width).lines * _CELL.height()

    def sizeHint(self) -> QSize:
        width = _WIDE * _CELL.width()
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """Return a column's width; the height follows from the width."""
        return QSize(_CELL.width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw each swatch with a thin border, to separate it from the page."""
        colours, cells, area = theme.colours(), self.cells(), event.rect()
        focused = self.currentIndex().row() if self.hasFocus() else -1
        with QPainter(self.viewport()) as painter:
            for first, last in cells.runs(area.left(), area.top(), area.right(), area.bottom()):
                for position in range(first, last + 1):
                    swatch = QRect(*cells.place(position), _SIDE, _SIDE)
                    painter.setPen(QColor(colours.border))
                    painter.setBrush(QColor(*self._colours[position][:3].tolist()))
                    painter.drawRect(swatch.adjusted(0, 0, -1, -1))
                    if position in (self._marked, focused):
                        _draw_ring(painter, swatch, dotted=position != self._marked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _TAKE and self.currentIndex().isValid():
            self._on_swatch_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _text_of(self, position: int) -> str:
        text, code = self._texts[position] if self._texts else "", hex_code(self._colours[position])
        return f"{code} – {text}" if text else code

    @Slot(QModelIndex)
    def _on_swatch_clicked(self, index: QModelIndex) -> None:
        self.colour_pressed.emit(index.row())


def _draw_ring(painter: QPainter, swatch: QRect, *, dotted: bool) -> None:
    """Draw a ring in text and background colours, visible on all swatches."""
    colours = theme.colours()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(colours.surface), 1))
    painter.drawRect(swatch.adjusted(2, 2, -3, -3))
    style = Qt.PenStyle.DotLine if dotted else Qt.PenStyle.SolidLine
    painter.setPen(QPen(QColor(colours.text), 2, style, j=Qt.PenJoinStyle.MiterJoin))
    painter.drawRect(swatch.adjusted(1, 1, -1, -1))
