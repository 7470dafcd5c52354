"""A confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QHelpEvent, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, qGray
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QToolTip, QVBoxLayout, QWidget

from studio.app import theme
from studio.app.widgets import factory

_SMALLEST, _LARGEST = 14, 44  # logical pixels a cell
_LONGEST_NAME, _ACCURACY, _PAD = 130, 48, 8
_READS_NUMBERS = 28  # from this side on, a cell has room for its count
_TO_GREY = np.array([11, 16, 5]) / 32  # as qGray weighs red, green and blue
_EMPTY = "What is taken for what appears here with the first check on held-out sprites."
_HOW_TO_READ = "A row a true class, a column what it was taken for. Point at a cell, or use the arrow keys."
_MOVES = {
    Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0), Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1),
}  # fmt: skip


class ConfusionMatrix(QWidget):
    """A row a true class: its name, its accuracy, and what it was taken for; stronger is more of the row.

    cell_described: the cell that the mouse or the keyboard is at, in words; empty when it is at none.
    cell_reached: the place of the cell that the keyboard is at.
    """

    cell_described = Signal(str)
    cell_reached = Signal(QRect)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._names: tuple[str, ...] = ()
        self._cell: tuple[int, int] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName("Confusion matrix")

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show int64 [K, K] counts of [true class, predicted class]."""
        self._counts, self._names = counts, tuple(class_names)
        kept = self._cell if self._cell is not None and max(self._cell) < len(self._names) else None
        self.point_at(kept)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """All classes at their smallest readable size."""
        side = max(_SMALLEST, self.fontMetrics().height()) * max(1, len(self._names))
        return QSize(self._header().width() + side + _PAD, self._header().height() + side + _PAD)

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
        header, seen = self._header(), position - _scrolled(self)
        inside = position - QPoint(header.width(), header.height())
        row, column = inside.y() // self._side(), inside.x() // self._side()
        under_header = seen.x() < header.width() or seen.y() < header.height()
        return None if under_header or max(row, column) >= len(self._names) else (row, column)

    def cell_rect(self, row: int, column: int) -> QRect:
        """Where a cell is."""
        side, header = self._side(), self._header()
        return QRect(header.width() + column * side, header.height() + row * side, side, side)

    def point_at(self, cell: tuple[int, int] | None) -> None:
        """Frame a cell and say what is in it."""
        self._cell = cell
        text = self.describe(*cell) if cell else ""
        self.setAccessibleDescription(text)
        self.cell_described.emit(text)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrow keys go from cell to cell."""
        move = _MOVES.get(Qt.Key(event.key()))
        if move is None or not self._names:
            super().keyPressEvent(event)
            return
        last = len(self._names) - 1
        row, column = (self._cell[0] + move[0], self._cell[1] + move[1]) if self._cell else (0, 0)
        cell = (min(max(row, 0), last), min(max(column, 0), last))
        self.point_at(cell)
        self.cell_reached.emit(self.cell_rect(*cell))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say what is under the mouse."""
        cell = self.cell_at(event.position().toPoint())
        if cell != self._cell:
            self.point_at(cell)

    def event(self, event: QEvent) -> bool:
        """A tool tip of its own for each cell; nothing is pointed at when the mouse has left."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            cell = self.cell_at(event.pos())
            QToolTip.showText(event.globalPos(), self.describe(*cell) if cell else "", self)
            return True
        if event.type() in (QEvent.Type.Leave, QEvent.Type.FocusOut):
            self.point_at(None)
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The cells, and over them names that stay where one scrolls."""
        painter = QPainter(self)
        if not self._names:
            return
        self._paint_cells(painter)
        if self._cell is not None:
            painter.setPen(QColor(theme.colours().text))
            painter.drawRect(self.cell_rect(*self._cell).adjusted(0, 0, -2, -2))
        header, scrolled = self._header(), _scrolled(self)
        ground = self.palette().window()
        painter.fillRect(QRect(scrolled.x(), 0, header.width(), self.height()), ground)
        first = QRect(scrolled.x(), header.height(), header.width(), self._side())
        _paint_rows(painter, self._counts, self._names, first)
        painter.fillRect(QRect(0, scrolled.y(), self.width(), header.height()), ground)
        _paint_columns(painter, self._names, QRect(header.width(), scrolled.y(), self._side(), header.height()))
        painter.fillRect(QRect(scrolled, header), ground)

    def _paint_cells(self, painter: QPainter) -> None:
        """One picture of a pixel a cell, enlarged: 3,600 rectangles would take too long beside a training."""
        side, count, first = self._side(), len(self._names), self.cell_rect(0, 0).topLeft()
        shares = self._counts / np.maximum(1, self._counts.sum(1, keepdims=True))
        pixels = _cell_colours(shares)
        image = QImage(pixels.data, count, count, 4 * count, QImage.Format.Format_RGBX8888)
        painter.drawImage(QRect(first, QSize(count * side, count * side)), image)
        painter.setPen(self.palette().window().color())
        for rect in range(1, count + 1):
            along, end = rect * side - 1, count * side - 1
            painter.drawLine(first + QPoint(along, 0), first + QPoint(along, end))
            painter.drawLine(first + QPoint(0, along), first + QPoint(end, along))
        if side < _READS_NUMBERS:
            return
        inks = [QColor(theme.colours().on_accent), QColor(theme.colours().text)]
        for row, column in np.argwhere(self._counts):
            grey = float(pixels[row, column, :3] @ _TO_GREY)
            distances = [abs(qGray(ink.rgb()) - grey) for ink in inks]
            painter.setPen(inks[0] if distances[0] > distances[1] else inks[1])
            cell = self.cell_rect(int(row), int(column))
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, str(self._counts[row, column]))

    def _header(self) -> QSize:
        """How wide the names of the rows are with their accuracies, and how high those of the columns."""
        longest = max((self.fontMetrics().horizontalAdvance(name) for name in self._names), default=0)
        name = min(_LONGEST_NAME, longest)
        return QSize(name + _ACCURACY + 2 * _PAD, name + _PAD)

    def _side(self) -> int:
        header = self._header()
        room = min(self.height() - header.height(), self.width() - header.width()) - _PAD
        return min(_LARGEST, max(_SMALLEST, self.fontMetrics().height(), room // max(1, len(self._names))))


def _scrolled(widget: QWidget) -> QPoint:
    """The corner of a widget that is seen, when the view around it has scrolled."""
    return QPoint(max(0, -widget.x()), max(0, -widget.y())) if widget.parentWidget() else QPoint()


def _cell_colours(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """uint8 [K, K, 4]. The square root lifts rare confusions out of the ground: they are what one looks for."""
    colours = theme.colours()
    ground, wrong, right = (
        np.array(QColor(name).getRgb(), np.float64)
        for name in (theme.mix(colours.surface, colours.text, 0.05), colours.error, colours.accent)
    )
    strongest = np.where(np.eye(len(shares), dtype=bool)[..., None], right, wrong)
    return np.round(ground + (strongest - ground) * np.sqrt(shares)[..., None]).astype(np.uint8)


def _paint_rows(painter: QPainter, counts: NDArray[np.int64], names: Sequence[str], first: QRect) -> None:
    """Name and accuracy of each true class; `first` is the place of the first."""
    colours, metrics = theme.colours(), painter.fontMetrics()
    for row, name in enumerate(names):
        total = int(counts[row].sum())
        accuracy = f"{100 * counts[row, row] / total:.0f} %" if total else "–"
        line = first.translated(0, row * first.height()).adjusted(0, 0, -_PAD, 0)
        text = metrics.elidedText(name, Qt.TextElideMode.ElideLeft, line.width() - _ACCURACY)
        painter.setPen(QColor(colours.text))
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.setPen(QColor(colours.muted))
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, accuracy)


def _paint_columns(painter: QPainter, names: Sequence[str], first: QRect) -> None:
    """The names of what classes are taken for, upwards; `first` is the place of the first."""
    painter.setPen(QColor(theme.colours().muted))
    for column, name in enumerate(names):
        rect = first.translated(column * first.width(), 0)
        text = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideLeft, first.height() - _PAD)
        painter.save()
        painter.translate(rect.left(), rect.bottom() - _PAD // 2)
        painter.rotate(-90)
        painter.drawText(QRect(0, 0, first.height(), first.width()), Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()


class ConfusionView(QWidget):
    """A confusion matrix and the accuracy of each class; it scrolls when there are many."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.matrix = ConfusionMatrix()
        self._hint = _EMPTY
        self._caption = factory.caption(_EMPTY)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the matrix takes the keys
        self._area.setWidget(self.matrix)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, _PAD, 0, 0)
        layout.addWidget(self._caption)
        layout.addWidget(self._area, 1)
        self.matrix.cell_described.connect(self._on_cell_described)
        for bar in (self._area.horizontalScrollBar(), self._area.verticalScrollBar()):
            bar.valueChanged.connect(self._on_scrolled)
        self.matrix.cell_reached.connect(self._on_cell_reached)

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show int64 [K, K] counts of [true class, predicted class]."""
        self._hint = _HOW_TO_READ if len(class_names) else _EMPTY
        self.matrix.set_confusion(counts, class_names)

    def clear(self) -> None:
        """Show nothing."""
        self.set_confusion(np.zeros((0, 0), np.int64), ())

    @Slot(str)
    def _on_cell_described(self, text: str) -> None:
        self._caption.setText(text or self._hint)

    @Slot()
    def _on_scrolled(self) -> None:
        """The names stay where they are while the cells move: all is to be drawn anew."""
        self.matrix.update()

    @Slot(QRect)
    def _on_cell_reached(self, cell: QRect) -> None:
        hidden = self.matrix.cell_rect(0, 0).topLeft()  # what the names cover
        middle = cell.center()
        self._area.ensureVisible(middle.x(), middle.y(), hidden.x() + cell.width(), hidden.y() + cell.height())
