"""What a classifier takes for what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QToolTip, QVBoxLayout, QWidget

from studio.app import theme

_SMALLEST, _LARGEST = 14, 36  # logical pixels a cell
_NAMES = 150


class ConfusionMatrix(QWidget):
    """A row a true class: its name, its accuracy, and what it was taken for; darker is more of the row."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._names: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Confusion matrix")

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show int64 [K, K] counts of [true class, predicted class]."""
        self._counts, self._names = counts, tuple(class_names)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """All classes at their smallest readable size."""
        side = max(_SMALLEST, self.fontMetrics().height()) * max(1, len(self._names))
        return QSize(_NAMES + side + 16, side + 16)

    def minimumSizeHint(self) -> QSize:
        """The same: below it, the view scrolls."""
        return self.sizeHint()

    def describe(self, true: int, predicted: int) -> str:
        """A cell in words: 'sword taken for potion: 3 of 41'."""
        count, total = int(self._counts[true, predicted]), int(self._counts[true].sum())
        if true == predicted:
            return f"{self._names[true]} recognised: {count:,} of {total:,}"
        return f"{self._names[true]} taken for {self._names[predicted]}: {count:,} of {total:,}"

    def cell_at(self, position: QPoint) -> tuple[int, int] | None:
        """The (true, predicted) classes under a position; None outside the matrix."""
        side = self._side()
        column, row = (position.x() - _NAMES) // side, position.y() // side
        if position.x() >= _NAMES and 0 <= row < len(self._names) and column < len(self._names):
            return row, column
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Names and accuracies to the left, cells to the right."""
        painter, colours, side = QPainter(self), theme.colours(), self._side()
        metrics = painter.fontMetrics()
        for row, name in enumerate(self._names):
            total = int(self._counts[row].sum())
            accuracy = f"{100 * self._counts[row, row] / total:.0f} %" if total else "–"
            line = QRect(0, row * side, _NAMES - 8, side)
            text = metrics.elidedText(name, Qt.TextElideMode.ElideLeft, line.width() - 44)
            painter.setPen(QColor(colours.text))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
            painter.setPen(QColor(colours.muted))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, accuracy)
            for column in range(len(self._names)):
                share = self._counts[row, column] / total if total else 0.0
                colour = colours.accent if row == column else colours.error
                ground = theme.mix(colours.surface, colours.text, 0.05)
                cell = QRect(_NAMES + column * side, row * side, side - 1, side - 1)
                # The square root lifts rare confusions out of the ground: they are what one looks for.
                painter.fillRect(cell, QColor(theme.mix(ground, colour, float(share) ** 0.5)))

    def event(self, event: QEvent) -> bool:
        """A tool tip of its own for each cell."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            cell = self.cell_at(event.pos())
            QToolTip.showText(event.globalPos(), self.describe(*cell) if cell else "", self)
            return True
        return super().event(event)

    def _side(self) -> int:
        count = max(1, len(self._names))
        room = min(self.height() - 16, self.width() - _NAMES - 16)
        return min(_LARGEST, max(_SMALLEST, self.fontMetrics().height(), room // count))


class ConfusionView(QWidget):
    """A confusion matrix and the accuracy of each class; it scrolls when there are many."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.matrix = ConfusionMatrix()
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(self.matrix)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show int64 [K, K] counts of [true class, predicted class]."""
        self.matrix.set_confusion(counts, class_names)

    def clear(self) -> None:
        """Show nothing."""
        self.matrix.set_confusion(np.zeros((0, 0), np.int64), ())
