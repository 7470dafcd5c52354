"""A palette as swatches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QRect, QSize
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from studio.app import theme

_SIDE, _GAP = 14, 2


class Swatches(QWidget):
    """Colours in wrapping rows; the tool tip of each says its hex code and count."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours: NDArray[np.uint8] = np.zeros((0, 4), np.uint8)
        self._counts: Sequence[int] | NDArray[np.int64] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Palette")

    def set_palette(self, colours: NDArray[np.uint8], counts: NDArray[np.int64] | Sequence[int] = ()) -> None:
        """Show uint8 [K, 4] RGBA (or [K, 3]) and, when given, how many pixels have each."""
        self._colours, self._counts = colours, counts
        self.setAccessibleDescription(f"{len(colours)} colours")
        self.updateGeometry()
        self.update()

    def heightForWidth(self, width: int) -> int:
        """As many rows as the colours need."""
        return -(-len(self._colours) // self._columns(width)) * (_SIDE + _GAP)

    def sizeHint(self) -> QSize:
        """Twelve colours wide."""
        width = 12 * (_SIDE + _GAP)
        return QSize(width, self.heightForWidth(width))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw every swatch with a thin edge, so that none melts into the page."""
        painter = QPainter(self)
        painter.setPen(QColor(theme.colours().border))
        for number, colour in enumerate(self._colours):
            painter.setBrush(QColor(*(int(part) for part in colour[:3])))
            painter.drawRect(self._place(number).adjusted(0, 0, -1, -1))

    def event(self, event: QEvent) -> bool:
        """A tool tip of its own for each swatch."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = [n for n in range(len(self._colours)) if self._place(n).contains(event.pos())]
            QToolTip.showText(event.globalPos(), self.describe(found[0]) if found else "", self)
            return True
        return super().event(event)

    def describe(self, number: int) -> str:
        """The colour's hex code and how many pixels have it."""
        code = "#" + "".join(f"{int(part):02x}" for part in self._colours[number][:3])
        return f"{code} – {int(self._counts[number]):,} pixels" if len(self._counts) else code

    @staticmethod
    def _columns(width: int) -> int:
        return max(1, width // (_SIDE + _GAP))

    def _place(self, number: int) -> QRect:
        row, column = divmod(number, self._columns(self.width()))
        return QRect(column * (_SIDE + _GAP), row * (_SIDE + _GAP), _SIDE, _SIDE)
