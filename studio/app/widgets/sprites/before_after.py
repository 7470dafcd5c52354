"""A sprite before and after a change."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Rgba

_ARROW = 24  # logical pixels between the pictures


class BeforeAfter(QWidget):
    """Shows a sprite before and after a change, at the same zoom."""

    def __init__(self) -> None:
        super().__init__()
        self._before: Rgba | None = None
        self._after: Rgba | None = None  # None while the change is being computed
        self._side = 96  # logical pixels
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        factory.set_name_and_tip(self, "Before and after", "The sprite before and after the change.")

    def sizeHint(self) -> QSize:
        return QSize(2 * self._side + _ARROW, self._side + self.fontMetrics().height())

    def set_side(self, side: int) -> None:
        """Set the side of each picture in logical pixels."""
        if side != self._side:
            self._side = side
            self.updateGeometry()

    def set_pair(self, before: Rgba | None, after: Rgba | None, description: str = "") -> None:
        """Show uint8 [S, S, 4] before and after. description: of the difference, for screen readers."""
        self._before, self._after = before, after
        self.setAccessibleDescription(description)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, side = QPainter(self), self._side
        painter.setPen(QColor(theme.colours().muted))
        for left, words, sprite in ((0, "Before", self._before), (side + _ARROW, "After", self._after)):
            box = QRect(left, 0, side, side)
            if sprite is not None:
                draw_sprite(painter, box, sprite)
            else:
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "…")
            caption = QRect(left, side, side, self.height() - side)
            painter.drawText(caption, Qt.AlignmentFlag.AlignCenter, words)
        painter.drawText(QRect(side, 0, _ARROW, side), Qt.AlignmentFlag.AlignCenter, "→")
