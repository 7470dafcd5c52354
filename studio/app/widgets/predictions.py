"""What a classifier says of sprites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from studio.app import theme
from studio.app.widgets.painting import draw_sprite
from studio.core.events import Rgba

_SPRITE, _BARS, _GAP = 64, 200, 8
_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class _Predictions(QAbstractListModel):
    """One row a sprite."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.probabilities: NDArray[np.float32] = np.zeros((0, 1), np.float32)
        self.class_names: Sequence[str] = ()
        self.top = 3

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.rgba)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        """The most probable classes in words."""
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return None
        return ", ".join(f"{name} {100 * share:.0f} %" for name, share in self.best(index.row()))

    def best(self, row: int) -> list[tuple[str, float]]:
        """The `top` most probable classes of a sprite and their probabilities."""
        values = self.probabilities[row]
        return [(self.class_names[i], float(values[i])) for i in np.argsort(-values, kind="stable")[: self.top]]


class _PredictionDelegate(QStyledItemDelegate):
    """Draws a sprite with its bars."""

    def __init__(self, model: _Predictions, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(_SPRITE + _BARS + 3 * _GAP, _SPRITE + _GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """The sprite to the left, a bar a class to the right."""
        area: QRect = option.rect
        colours = theme.colours()
        draw_sprite(
            painter, QRect(area.x() + _GAP, area.y() + _GAP // 2, _SPRITE, _SPRITE), self._model.rgba[index.row()]
        )
        height = _SPRITE // self._model.top
        for place, (name, share) in enumerate(self._model.best(index.row())):
            line = QRect(area.x() + _SPRITE + 2 * _GAP, area.y() + _GAP // 2 + place * height, _BARS, height - 2)
            painter.fillRect(line, QColor(theme.mix(colours.surface, colours.text, 0.06)))
            bar = QRect(line.x(), line.y(), round(line.width() * share), line.height())
            painter.fillRect(bar, QColor(theme.mix(colours.surface, colours.accent, 0.45)))
            painter.setPen(QColor(colours.text))
            inner = line.adjusted(6, 0, -6, 0)
            percent = f"{100 * share:.0f} %"
            room = inner.width() - painter.fontMetrics().horizontalAdvance(percent) - 8
            text = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, percent)


class ProbabilitiesView(QWidget):
    """Each sprite with the bars of its most probable classes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = _Predictions(self)
        self.view = QListView(self)
        self.view.setModel(self._model)
        self.view.setItemDelegate(_PredictionDelegate(self._model, self))
        self.view.setViewMode(QListView.ViewMode.IconMode)
        self.view.setUniformItemSizes(True)
        self.view.setResizeMode(QListView.ResizeMode.Adjust)
        self.view.setMovement(QListView.Movement.Static)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.view.setSpacing(4)
        self.view.setAccessibleName("Classes of the sprites")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view)

    def set_predictions(
        self, rgba: Rgba, probabilities: NDArray[np.float32], class_names: Sequence[str], top: int = 3
    ) -> None:
        """Show uint8 [N, S, S, 4] sprites and float32 [N, K] probabilities."""
        self._model.beginResetModel()
        self._model.rgba, self._model.probabilities = rgba, probabilities
        self._model.class_names, self._model.top = class_names, top
        self._model.endResetModel()
