"""Sprites with a model's predictions: class probabilities or numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.sprites.cell_view import Index, TextRows
from studio.app.widgets.sprites.painting import draw_sprite
from studio.core.arrays import Rgba
from studio.core.formatting import predicted_and_true

_SPRITE, _BARS, _GAP = 64, 200, 8
_MOST_CLASSES, _MOST_NUMBERS = 3, 4  # bars beside a sprite
_MARK = 2  # pixels
Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class _PredictionBar:
    """A prediction, drawn as a bar. what: class or number. much: value as text. share: length of the bar, 0 to 1.

    true: position of the true value, 0 to 1; NaN if unknown.
    """

    what: str
    much: str
    share: float
    true: float = math.nan


class _PredictionDelegate(QStyledItemDelegate):
    """Delegate that draws a sprite with its prediction bars. top: number of bars for each sprite."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.bars: Callable[[int], list[_PredictionBar]] = lambda row: []
        self.top = _MOST_CLASSES

    def text_of(self, row: int) -> str:
        """Return a row's predictions as text."""
        return ", ".join(f"{bar.what} {bar.much}" for bar in self.bars(row))

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(_SPRITE + _BARS + 3 * _GAP, _SPRITE + _GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw the sprite on the left, and a bar for each prediction on the right."""
        colours, metrics, row = theme.colours(), painter.fontMetrics(), index.row()
        left, top = option.rect.x() + _GAP, option.rect.y() + _GAP // 2
        draw_sprite(painter, QRect(left, top, _SPRITE, _SPRITE), self.rgba[row])
        height = _SPRITE // self.top
        for number, prediction in enumerate(self.bars(row)[: self.top]):
            line = QRect(left + _SPRITE + _GAP, top + number * height, _BARS, height - 2)
            painter.fillRect(line, QColor(theme.mix(colours.surface, colours.text, 0.06)))
            bar = QRect(line.x(), line.y(), round(line.width() * prediction.share), line.height())
            painter.fillRect(bar, QColor(theme.mix(colours.surface, colours.accent, 0.45)))
            if not math.isnan(prediction.true):
                end = line.x() + round((line.width() - _MARK) * prediction.true)
                painter.fillRect(QRect(end, line.y(), _MARK, line.height()), QColor(colours.accent))
            painter.setPen(QColor(colours.text))
            inner = line.adjusted(6, 0, -6, 0)
            room = inner.width() - metrics.horizontalAdvance(prediction.much) - 8
            text = metrics.elidedText(prediction.what, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, prediction.much)


class PredictionsView(QWidget):
    """Sprites with bars for the most probable classes, or for numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._rows, self._delegate = TextRows(), _PredictionDelegate(self)
        self.view = QListView(self)
        self.view.setModel(self._rows)
        self.view.setItemDelegate(self._delegate)
        self.view.setViewMode(QListView.ViewMode.IconMode)
        self.view.setUniformItemSizes(True)
        self.view.setResizeMode(QListView.ResizeMode.Adjust)
        self.view.setMovement(QListView.Movement.Static)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.view.setSpacing(4)
        self.view.setAccessibleName("Predictions")
        self.setLayout(factory.column(self.view))

    def set_classes(self, rgba: Rgba, probabilities: Numbers, class_names: Sequence[str]) -> None:
        """Show sprites uint8 [N, S, S, 4] with probabilities float32 [N, K]."""

        def bars(row: int) -> list[_PredictionBar]:
            best = np.argsort(-probabilities[row], kind="stable")[:_MOST_CLASSES]
            shares = [(class_names[i], float(probabilities[row, i])) for i in best]
            return [_PredictionBar(name, f"{100 * share:.0f} %", share) for name, share in shares]

        self._show(rgba, bars, _MOST_CLASSES)

    def set_numbers(self, rgba: Rgba, numbers: Numbers, names: Sequence[str], true: Numbers) -> None:
        """Show sprites uint8 [N, S, S, 4] with predicted and true numbers float32 [N, T], NaN for unknown.

        Bars scale from the lowest to the highest shown number; a mark shows the true number.
        """
        both = np.concatenate([numbers, np.where(np.isnan(true), numbers, true)])
        lowest = both.min(0, initial=np.inf)
        spread = np.maximum(both.max(0, initial=-np.inf) - lowest, 1e-30)

        def bars(row: int) -> list[_PredictionBar]:
            ends = ((np.stack([numbers[row], true[row]], 1) - lowest[:, None]) / spread[:, None]).tolist()
            rows = zip(names, numbers[row].tolist(), true[row].tolist(), ends, strict=True)
            return [_PredictionBar(name, predicted_and_true(number, known), *end) for name, number, known, end in rows]

        self._show(rgba, bars, min(_MOST_NUMBERS, max(2, len(names))))

    def _show(self, rgba: Rgba, bars: Callable[[int], list[_PredictionBar]], top: int) -> None:
        self._delegate.rgba, self._delegate.bars, self._delegate.top = rgba, bars, top
        self._rows.set_rows(len(rgba), self._delegate.text_of)
