"""A palette as colour swatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractListModel, QModelIndex, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractItemView, QFrame, QSizePolicy

from studio.app import theme
from studio.app.widgets.sprites.cell_view import NO_INDEX, CellView, Index
from studio.core import formatting
from studio.core.arrays import Rgba

_SIDE, _GAP = 14, 2
_CELL = QSize(_SIDE + _GAP, _SIDE + _GAP)
_TAKE = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
_WIDE = 12  # columns, if there is room
_TEXTS = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole)


def hex_code(colour: Rgba) -> str:
    """Return the hex code, such as '#be4a2f'. colour: uint8 [3] or [4]."""
    return f"#{colour[:3].tobytes().hex()}"


class _Colours(QAbstractListModel):
    """List model with a colour in each row."""

    def __init__(self) -> None:
        super().__init__()
        self.colours: Rgba = np.zeros((0, 4), np.uint8)
        self.texts: Sequence[str] = ()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.colours)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the hex code and the colour's text."""
        if role not in _TEXTS:
            return None
        texts = self.texts[index.row()] if self.texts else ""
        code = hex_code(self.colours[index.row()])
        return f"{code} – {texts}" if texts else code


class Swatches(CellView):
    """Colours in wrapping rows. Tooltips show the hex code and a text.

    colour_pressed: index of the swatch that was clicked or chosen with Space or Enter; needs `choosable`.
    """

    colour_pressed = Signal(int)

    def __init__(self, *, choosable: bool = False) -> None:
        colours = _Colours()
        super().__init__(colours)
        self._colours = colours
        self._colours.setParent(self)
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
        self._colours.beginResetModel()
        self._colours.colours, self._colours.texts, self._marked = colours, texts, -1
        self._colours.endResetModel()
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
                    painter.setBrush(QColor(*self._colours.colours[position][:3].tolist()))
                    painter.drawRect(swatch.adjusted(0, 0, -1, -1))
                    if position in (self._marked, focused):
                        _draw_ring(painter, swatch, dotted=position != self._marked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _TAKE and self.currentIndex().isValid():
            self._on_swatch_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

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
