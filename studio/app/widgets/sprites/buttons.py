"""Rows of clickable sprites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Rgba

_SIDE = 40  # logical pixels


class SpriteButton(QAbstractButton):
    """A button that shows a sprite."""

    def __init__(self) -> None:
        super().__init__()
        self._sprite: Rgba = np.zeros((1, 1, 4), np.uint8)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_sprite(self, sprite: Rgba, name: str, tip: str) -> None:
        """Show uint8 [S, S, 4]."""
        self._sprite = sprite
        factory.set_name_and_tip(self, name, tip)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            draw_sprite(painter, self.rect().adjusted(3, 3, -3, -3), self._sprite)
            if self.underMouse() or self.hasFocus():
                painter.setPen(QPen(QColor(theme.colours().accent), 2))
                painter.drawRoundedRect(QRect(1, 1, self.width() - 2, self.height() - 2), 4, 4)


class SpriteButtons(QWidget):
    """A wrapping row of sprite buttons. chosen: index of the pressed button."""

    chosen = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._buttons: list[SpriteButton] = []
        self._group = QButtonGroup(self)
        self._group.setExclusive(False)
        self._flow = FlowLayout(factory.GRID // 2, factory.GRID // 2)
        self.setLayout(self._flow)
        self.setAccessibleName(name)
        self._group.idClicked.connect(self.chosen)

    def show_sprites(self, rgba: Rgba, names: Sequence[str], tips: Sequence[str]) -> None:
        """Show uint8 [N, S, S, 4] with names and tooltips."""
        while len(self._buttons) < len(rgba):
            button = SpriteButton()
            self._group.addButton(button, len(self._buttons))
            self._flow.addWidget(button)
            self._buttons.append(button)
        for index, button in enumerate(self._buttons):
            button.setVisible(index < len(rgba))
            if index < len(rgba):
                button.show_sprite(rgba[index], names[index], tips[index])
        self.updateGeometry()
