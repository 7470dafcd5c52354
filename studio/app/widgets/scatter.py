"""What a regression says of held-out sprites, set against what is true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRect, QSize, Qt, Slot
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy, QToolTip, QWidget

from studio.app import parts, theme
from studio.core import wording

_DOT, _NEAR, _PAD = 5, 12, 8  # logical pixels: across a dot, how near counts as pointed at, around the plot
_SMALLEST = 140  # logical pixels
_TRUE, _SAID = "true", "predicted"


class _Dots(QWidget):
    """A dot a sprite: to the right what is true, upwards what is predicted; on the diagonal both are the same."""

    def __init__(self) -> None:
        super().__init__()
        self._points: NDArray[np.float32] = np.zeros((2, 0), np.float32)
        self._ends = (0.0, 1.0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Predicted and true")

    def set_points(self, points: NDArray[np.float32]) -> None:
        """Show float32 [2, N], predicted and true; those whose true number is not known are left out."""
        self._points = points[:, np.isfinite(points).all(0)]
        low, high = (float(end(self._points, initial=start)) for end, start in ((np.min, np.inf), (np.max, -np.inf)))
        self._ends = (low, high) if low < high else (low - 0.5, low + 0.5) if low == high else (0.0, 1.0)
        self.setAccessibleDescription(f"{wording.count(self._points.shape[1], 'sprite')}, one dot each.")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(2 * _SMALLEST, 2 * _SMALLEST)

    def minimumSizeHint(self) -> QSize:
        """Below it the dots would say nothing."""
        return QSize(_SMALLEST, _SMALLEST)

    def words_at(self, position: QPointF) -> str:
        """What is said of the sprite whose dot is there; empty where there is none."""
        if not self._points.shape[1]:
            return ""
        x, y = self._places()
        distances = np.hypot(x - position.x(), y - position.y())
        nearest = int(distances.argmin())
        said, true = self._points[:, nearest].tolist()
        return wording.beside(said, true) if distances[nearest] <= _NEAR else ""

    def event(self, event: QEvent) -> bool:
        """A tool tip for each dot."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The diagonal, the dots, and the ends of both axes."""
        colours, area = theme.colours(), self._area()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(area, QColor(colours.surface))
        painter.setPen(QColor(colours.border))
        painter.drawRect(area)
        painter.setPen(QColor(colours.muted))
        painter.drawLine(area.bottomLeft(), area.topRight())
        dots = QColor(colours.accent)
        dots.setAlphaF(0.5)  # where many lie over one another it is darker
        painter.setBrush(dots)
        painter.setPen(Qt.PenStyle.NoPen)
        for x, y in zip(*(places.tolist() for places in self._places()), strict=True):
            painter.drawEllipse(QPointF(x, y), _DOT / 2, _DOT / 2)
        self._label(painter, area)

    def _label(self, painter: QPainter, area: QRect) -> None:
        painter.setPen(QColor(theme.colours().muted))
        low, high = (wording.decimal(end) for end in self._ends)
        below = QRect(area.left(), area.bottom() + _PAD // 2, area.width(), painter.fontMetrics().height())
        for words, place in ((low, Qt.AlignmentFlag.AlignLeft), (_TRUE, Qt.AlignmentFlag.AlignHCenter)):
            painter.drawText(below, place, words)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, high)
        painter.translate(area.left() - _PAD // 2 - painter.fontMetrics().height(), area.bottom())
        painter.rotate(-90)
        beside = QRect(0, 0, area.height(), painter.fontMetrics().height())
        for words, place in ((_SAID, Qt.AlignmentFlag.AlignHCenter), (high, Qt.AlignmentFlag.AlignRight)):
            painter.drawText(beside, place, words)

    def _area(self) -> QRect:
        """The square of the plot."""
        labels = self.fontMetrics().height() + _PAD
        side = max(1, min(self.width(), self.height()) - labels - _PAD)
        return QRect(labels, _PAD // 2, side, side)

    def _places(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the dots are, x and y, each [N]."""
        area, (low, high) = self._area(), self._ends
        said, true = (self._points.astype(np.float64) - low) / (high - low)
        return area.left() + true * area.width(), area.bottom() - said * area.height()


class Scatter(QWidget):
    """The dots of one number, and where there are several a choice of which."""

    def __init__(self) -> None:
        super().__init__()
        self._pairs: NDArray[np.float32] = np.zeros((2, 0, 0), np.float32)
        self.choice = QComboBox()
        self.dots = _Dots()
        parts.describe(self.choice, "Number", "Which of the numbers the dots show.")
        self.setLayout(parts.column(self.choice, self.dots, spacing=parts.GRID // 2))
        self.choice.currentIndexChanged.connect(self._show_chosen)

    def set_pairs(self, pairs: NDArray[np.float32], names: Sequence[str]) -> None:
        """Show float32 [2, N, T], what is predicted and what is true of N sprites, of T numbers with these names."""
        self._pairs = pairs
        if [self.choice.itemText(place) for place in range(self.choice.count())] != list(names):
            self.choice.blockSignals(True)
            self.choice.clear()
            self.choice.addItems(list(names))
            self.choice.blockSignals(False)
            self.choice.setVisible(len(names) > 1)
        self._show_chosen()

    @Slot()
    def _show_chosen(self) -> None:
        self.dots.set_points(self._pairs[:, :, max(0, self.choice.currentIndex())])
