"""A confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, qGray
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import ARROWS, PlaceTips

_SMALLEST, _LARGEST = 14, 44  # side of a cell in logical pixels
_LONGEST_NAME, _ACCURACY, _PAD = 130, 48, 8
_READS_NUMBERS = 28  # smallest side of a cell that shows its count
_TO_GREY = np.array([11, 16, 5]) / 32  # the weights of Qt's qGray
_CHOOSE = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_EMPTY = "The confusion matrix appears after the first validation."
_HOW_TO_READ = "Rows: true class. Columns: predicted."


class ConfusionMatrix(QWidget):
    """A confusion matrix: a row for each true class, with its name and accuracy. Stronger colours are larger shares.

    cell_described: a text about the cell under the mouse or the keyboard cursor; '' outside. cell_reached: the
    rectangle of the cell that the keyboard moved to. cell_chosen: the true and the predicted class of the clicked cell,
    or of the keyboard's cell on Enter.
    """

    cell_described = Signal(str)
    cell_reached = Signal(QRect)
    cell_chosen = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self._counts: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._names: tuple[str, ...] = ()
        self._cell: tuple[int, int] | None = None
        self._chosen: tuple[int, int] | None = None  # framed until `set_chosen`
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName("Confusion matrix")
        self.setAccessibleDescription(_HOW_TO_READ)
        PlaceTips(self, self._tip_at)

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show counts int64 [K, K] of [true class, predicted class]."""
        self._counts, self._names = counts, tuple(class_names)
        self._cell, self._chosen = (
            cell if cell is not None and max(cell) < len(self._names) else None for cell in (self._cell, self._chosen)
        )
        self.point_at(self._cell)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size for all classes at the smallest readable cell."""
        side = max(_SMALLEST, self.fontMetrics().height()) * max(1, len(self._names))
        return QSize(self._header().width() + side + _PAD, self._header().height() + side + _PAD)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def count(self, true: int, predicted: int) -> int:
        """Return the number of sprites in a cell."""
        return int(self._counts[true, predicted])

    def describe(self, true: int, predicted: int) -> str:
        """Return a cell as text: 'sword predicted as potion: 3 of 41'."""
        count, total = self.count(true, predicted), int(self._counts[true].sum())
        if true == predicted:
            return f"{self._names[true]} correct: {count:,} of {total:,}"
        return f"{self._names[true]} predicted as {self._names[predicted]}: {count:,} of {total:,}"

    def cell_at(self, position: QPoint) -> tuple[int, int] | None:
        """Return (true, predicted) at a position; None outside the matrix."""
        header, seen = self._header(), position - _scrolled(self)
        inside = position - QPoint(header.width(), header.height())
        row, column = inside.y() // self._side(), inside.x() // self._side()
        under_header = seen.x() < header.width() or seen.y() < header.height()
        return None if under_header or max(row, column) >= len(self._names) else (row, column)

    def cell_rect(self, row: int, column: int) -> QRect:
        side, header = self._side(), self._header()
        return QRect(header.width() + column * side, header.height() + row * side, side, side)

    def point_at(self, cell: tuple[int, int] | None) -> None:
        """Frame a cell and describe it; None clears the frame."""
        self._cell = cell
        text = self.describe(*cell) if cell else ""
        self.setAccessibleDescription(text or _HOW_TO_READ)
        self.cell_described.emit(text)
        self.update()

    def chosen(self) -> tuple[int, int] | None:
        """Return the true and the predicted class of the framed cell; None without a frame."""
        return self._chosen

    def set_chosen(self, cell: tuple[int, int] | None) -> None:
        """Frame the cell whose sprites are shown; None clears the frame."""
        self._chosen = cell
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _CHOOSE and self._cell is not None:
            self.cell_chosen.emit(*self._cell)
            return
        move = ARROWS.get(Qt.Key(event.key()))
        if move is None or not self._names:
            super().keyPressEvent(event)
            return
        last, (across, down) = len(self._names) - 1, move
        row, column = (self._cell[0] + down, self._cell[1] + across) if self._cell else (0, 0)
        cell = (min(max(row, 0), last), min(max(column, 0), last))
        self.point_at(cell)
        self.cell_reached.emit(self.cell_rect(*cell))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().toPoint())
        if cell != self._cell:
            self.point_at(cell)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().toPoint())
        if cell is not None and event.button() == Qt.MouseButton.LeftButton:
            self.point_at(cell)
            self.cell_chosen.emit(*cell)
        else:
            super().mousePressEvent(event)

    def _tip_at(self, point: QPoint) -> str:
        cell = self.cell_at(point)
        return self.describe(*cell) if cell else ""

    def event(self, event: QEvent) -> bool:
        """Clear the frame when the mouse or the focus leaves."""
        if event.type() in (QEvent.Type.Leave, QEvent.Type.FocusOut):
            self.point_at(None)
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the cells, and over them the names, which don't scroll."""
        painter = QPainter(self)
        if not self._names:
            return
        self._paint_cells(painter)
        for cell, width in ((self._chosen, 2), (self._cell, 1)):
            if cell is not None:
                painter.setPen(QPen(QColor(theme.colours().text), width))
                painter.drawRect(self.cell_rect(*cell).adjusted(width - 1, width - 1, -2, -2))
        header, scrolled = self._header(), _scrolled(self)
        ground = self.palette().window()
        painter.fillRect(QRect(scrolled.x(), 0, header.width(), self.height()), ground)
        first = QRect(scrolled.x(), header.height(), header.width(), self._side())
        _paint_rows(painter, self._counts, self._names, first)
        painter.fillRect(QRect(0, scrolled.y(), self.width(), header.height()), ground)
        _paint_columns(painter, self._names, QRect(header.width(), scrolled.y(), self._side(), header.height()))
        painter.fillRect(QRect(scrolled, header), ground)

    def _paint_cells(self, painter: QPainter) -> None:
        """Draw the cells as an enlarged image: 3,600 rectangles would slow a training down."""
        side, count, first = self._side(), len(self._names), self.cell_rect(0, 0).topLeft()
        shares = self._counts / np.maximum(1, self._counts.sum(1, keepdims=True))
        pixels = _cell_colours(shares)
        image = QImage(pixels.data, count, count, 4 * count, QImage.Format.Format_RGBX8888)
        painter.drawImage(QRect(first, QSize(count * side, count * side)), image)
        for line in range(1, count + 1):
            along, end = line * side - 1, count * side
            for gap in (QRect(along, 0, 1, end), QRect(0, along, end, 1)):  # a pen would leave slivers at 200 %
                painter.fillRect(gap.translated(first), self.palette().window())
        inks = [QColor(theme.colours().text), QColor(theme.colours().on_accent)]
        for row, column in np.argwhere(self._counts) if side >= _READS_NUMBERS else ():
            grey = float(pixels[row, column, :3] @ _TO_GREY)
            painter.setPen(max(inks, key=lambda ink: abs(qGray(ink.rgb()) - grey)))  # the ink with more contrast
            cell = self.cell_rect(int(row), int(column))
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, str(self._counts[row, column]))

    def _header(self) -> QSize:
        """Return the width of the row names with accuracies, and the height of the column names."""
        longest = max((self.fontMetrics().horizontalAdvance(name) + 2 for name in self._names), default=0)  # rounding
        name = min(_LONGEST_NAME, longest)
        return QSize(name + _ACCURACY + 2 * _PAD, name + _PAD)

    def _side(self) -> int:
        header = self._header()
        room = min(self.height() - header.height(), self.width() - header.width()) - _PAD
        return min(_LARGEST, max(_SMALLEST, self.fontMetrics().height(), room // max(1, len(self._names))))


def _scrolled(widget: QWidget) -> QPoint:
    """Return the visible top left corner of a widget in a scroll area."""
    return QPoint(max(0, -widget.x()), max(0, -widget.y())) if widget.parentWidget() else QPoint()


def _cell_colours(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the cells' colours, uint8 [K, K, 4]. Square roots of the shares make rare confusions visible."""
    colours = theme.colours()
    names = (theme.mix(colours.surface, colours.text, 0.05), colours.error, colours.accent)
    ground, wrong, right = (np.array(QColor(name).getRgb(), np.float64) for name in names)
    strongest = np.where(np.eye(len(shares), dtype=bool)[..., None], right, wrong)
    return np.round(ground + (strongest - ground) * np.sqrt(shares)[..., None]).astype(np.uint8)


def _paint_rows(painter: QPainter, counts: NDArray[np.int64], names: Sequence[str], first: QRect) -> None:
    """Draw each true class's name and accuracy. first: rectangle of the first row."""
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
    """Draw the predicted classes' names, rotated upwards. first: rectangle of the first column."""
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
    """A scrollable confusion matrix with a caption."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = ConfusionMatrix()
        self._hint = _EMPTY
        self._caption = factory.caption(_EMPTY)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the matrix handles the keys
        self._area.setWidget(self.matrix)
        self.setLayout(factory.column(self._caption, self._area, margin=(0, _PAD, 0, 0), grows=1))
        self.matrix.cell_described.connect(self._on_cell_described)
        for bar in (self._area.horizontalScrollBar(), self._area.verticalScrollBar()):
            bar.valueChanged.connect(self._on_scrolled)
        self.matrix.cell_reached.connect(self._on_cell_reached)

    def set_confusion(self, counts: NDArray[np.int64], class_names: Sequence[str]) -> None:
        """Show counts int64 [K, K] of [true class, predicted class]."""
        self._hint = _HOW_TO_READ if len(class_names) else _EMPTY
        self.matrix.set_confusion(counts, class_names)

    def clear(self) -> None:
        self.set_confusion(np.zeros((0, 0), np.int64), ())

    @Slot(str)
    def _on_cell_described(self, text: str) -> None:
        self._caption.setText(text or self._hint)

    @Slot()
    def _on_scrolled(self) -> None:
        """Redraw everything, since the names stay in place while the cells move."""
        self.matrix.update()

    @Slot(QRect)
    def _on_cell_reached(self, cell: QRect) -> None:
        hidden = self.matrix.cell_rect(0, 0).topLeft()  # covered by the names
        middle = cell.center()
        self._area.ensureVisible(middle.x(), middle.y(), hidden.x() + cell.width(), hidden.y() + cell.height())
