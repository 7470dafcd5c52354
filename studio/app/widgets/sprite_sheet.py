"""A few sprites, as large as whole-number zoom allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from studio.app import theme
from studio.app.widgets.painting import draw_sprite, factor_for
from studio.core.events import Rgba

_GAP = 6


class SpriteSheetView(QWidget):
    """Up to some hundred sprites in a grid that fills the widget at the largest whole factor. Cheap to update."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self._captions: tuple[str, ...] = ()
        self._placeholder = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Samples")

    def sizeHint(self) -> QSize:
        """Room for two rows of eight sprites of 32 pixels at twice their size."""
        return QSize(8 * 70, 2 * 70 + 20)

    def minimumSizeHint(self) -> QSize:
        """Room for the sprites at their own size."""
        return QSize(8 * 34, 2 * 34)

    def set_sprites(self, rgba: Rgba, captions: Sequence[str] = ()) -> None:
        """Show `rgba` uint8 [N, S, S, 4]; captions stand under the sprites. An empty array clears the view."""
        self._rgba, self._captions = rgba, tuple(captions)
        self.setAccessibleDescription(", ".join(self._captions) or f"{len(rgba)} sprites")
        self.update()

    def set_placeholder(self, text: str) -> None:
        """The text shown while there are no sprites."""
        self._placeholder = text
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw all sprites, or the placeholder."""
        painter = QPainter(self)
        painter.setPen(QColor(theme.colours().muted))
        if not len(self._rgba):
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 16, -16, -16), flags, self._placeholder)
            return
        for number, box in enumerate(self._boxes()):
            draw_sprite(painter, QRect(box.x(), box.y(), box.width(), box.width()), self._rgba[number])
            if self._captions:
                line = QRect(box.x() - 2, box.y() + box.width(), box.width() + 4, box.height() - box.width())
                text = self._captions[number].rpartition("/")[2]
                text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, line.width())
                painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)

    def event(self, event: QEvent) -> bool:
        """The whole caption as a tool tip: under a sprite it may be cut."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self._captions:
            under = [
                caption for caption, box in zip(self._captions, self._boxes(), strict=True) if box.contains(event.pos())
            ]
            QToolTip.showText(event.globalPos(), under[0] if under else "", self)
            return True
        return super().event(event)

    def _boxes(self) -> list[QRect]:
        """Where each sprite and its caption go: with the columns that let sprites be largest and leave least empty."""
        count, size = self._rgba.shape[:2]
        text = self.fontMetrics().height() if self._captions else 0
        ratio, best, columns = self.devicePixelRatioF(), (0.0, 0), max(1, self.width() // (size + _GAP))
        for candidate in range(1, count + 1):
            across = self.width() // candidate - _GAP
            down = self.height() // math.ceil(count / candidate) - _GAP - text
            side = factor_for(min(across, down), size, ratio)
            empty = -count % candidate
            if side <= min(across, down) and (side, -empty) > best:
                best, columns = (side, -empty), candidate
        side = math.ceil(best[0] or size)
        rows = math.ceil(count / columns)
        left = max(0, (self.width() - columns * (side + _GAP) + _GAP) // 2)
        top = max(0, (self.height() - rows * (side + _GAP + text) + _GAP) // 2)
        places = [divmod(number, columns) for number in range(count)]
        return [
            QRect(left + column * (side + _GAP), top + row * (side + _GAP + text), side, side + text)
            for row, column in places
        ]
