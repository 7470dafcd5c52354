"""A grid of sprites that stays smooth at 100,000."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
    Slot,
)  # fmt: skip
from PySide6.QtGui import QColor, QFontMetrics, QKeySequence, QPainter, QPen, QShortcut, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from studio.app import theme
from studio.app.widgets.painting import draw_sprite
from studio.core.events import Rgba

ZOOMS = range(1, 9)
_MARGIN = 4  # logical pixels around a sprite
_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class SpriteModel(QAbstractListModel):
    """Rows are the visible sprites; nothing is made for a sprite until it is drawn."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.names: Sequence[str] = ()
        self.captions: Sequence[str] = ()
        self.classes: Sequence[str] = ()
        self.visible: NDArray[np.int64] = np.zeros(0, np.int64)

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        """How many sprites the filter leaves."""
        return 0 if parent.isValid() else len(self.visible)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The caption, or name and class as tool tip and for screen readers."""
        number = int(self.visible[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return self.captions[number] if self.captions else ""
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            texts = [texts[number] for texts in (self.names, self.classes) if texts]
            return " – ".join(text for text in texts if text)
        return None


class SpriteDelegate(QStyledItemDelegate):
    """Draws one sprite, its caption, and whether it is selected."""

    def __init__(self, model: SpriteModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model
        self.zoom = 2

    def cell(self, metrics: QFontMetrics) -> QSize:
        """Room for a sprite and its caption, in logical pixels."""
        side = self._model.rgba.shape[1] * self.zoom + 2 * _MARGIN
        text = metrics.height() if self._model.captions else 0
        return QSize(max(side, 20 if not text else 64), max(side, 20) + text)

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """The same for all: the view asks once."""
        return self.cell(QFontMetrics(option.font))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw the sprite of a row."""
        area: QRect = option.rect
        state: QStyle.StateFlag = option.state
        colours = theme.colours()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area.adjusted(1, 1, -1, -1), QColor(colours.accent))
        side = self._model.rgba.shape[1] * self.zoom
        left, top = area.x() + (area.width() - side) // 2, area.y() + _MARGIN
        draw_sprite(painter, QRect(left, top, side, side), self._model.rgba[self._model.visible[index.row()]])
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DotLine))
            painter.drawRect(area.adjusted(1, 1, -2, -2))
        caption = index.data()
        if caption:
            painter.setPen(QColor(colours.on_accent if state & QStyle.StateFlag.State_Selected else colours.muted))
            line = QRect(area.x() + 2, top + side, area.width() - 4, area.bottom() - top - side)
            text = painter.fontMetrics().elidedText(caption, Qt.TextElideMode.ElideMiddle, line.width())
            painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)


class _List(QListView):
    """A list view that hands Ctrl+wheel on as zoom."""

    zoomed = Signal(int)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with Ctrl, scroll without."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoomed.emit(1 if event.angleDelta().y() > 0 else -1)
            event.accept()
        else:
            super().wheelEvent(event)


class SpriteGrid(QWidget):
    """Thumbnails at whole-number zoom. An index is always the position in the array given to `set_sprites`.

    activated: double click or Enter on the sprite of that index.
    """

    activated = Signal(int)
    selection_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = SpriteModel(self)
        self._delegate = SpriteDelegate(self._model, self)
        self.view = _List(self)
        self._set_up_view()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view)
        self.view.zoomed.connect(self._zoom_by)
        self.view.activated.connect(self._activate)
        self.view.selectionModel().selectionChanged.connect(self._tell_selection)
        for keys, slot in (
            (QKeySequence.StandardKey.ZoomIn, self.zoom_in),
            (QKeySequence.StandardKey.ZoomOut, self.zoom_out),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    def set_sprites(
        self, rgba: Rgba, names: Sequence[str] = (), captions: Sequence[str] = (), classes: Sequence[str] = ()
    ) -> None:
        """Show `rgba` uint8 [N, S, S, 4] (not copied: must not change). Texts: none, or one a sprite.

        Captions stand under the sprites; names and classes make the tool tip.
        """
        self._model.beginResetModel()
        self._model.rgba, self._model.names, self._model.captions = rgba, names, captions
        self._model.classes, self._model.visible = classes, np.arange(len(rgba), dtype=np.int64)
        self._model.endResetModel()
        self._fit_cells()
        self.selection_changed.emit()

    def set_visible(self, indices: NDArray[np.int64] | Sequence[int] | None) -> None:
        """Show only these sprites, in this order; None shows all. The selection is cleared."""
        self._model.beginResetModel()
        chosen = np.arange(len(self._model.rgba)) if indices is None else np.asarray(indices)
        self._model.visible = chosen.astype(np.int64)
        self._model.endResetModel()
        self.selection_changed.emit()

    def visible_count(self) -> int:
        """How many sprites the filter leaves."""
        return len(self._model.visible)

    def selected(self) -> list[int]:
        """Indices of the selected sprites, ascending."""
        return sorted(int(self._model.visible[index.row()]) for index in self.view.selectionModel().selectedIndexes())

    def select(self, indices: Sequence[int]) -> None:
        """Select exactly these sprites (those that are visible) and scroll to the first."""
        selection = self.view.selectionModel()
        selection.clearSelection()
        rows = np.flatnonzero(np.isin(self._model.visible, indices))
        for row in rows:
            selection.select(self._model.index(int(row)), QItemSelectionModel.SelectionFlag.Select)
        if len(rows):
            self.view.scrollTo(self._model.index(int(rows[0])))

    def zoom(self) -> int:
        """Screen pixels (logical) a sprite pixel."""
        return self._delegate.zoom

    def set_zoom(self, zoom: int) -> None:
        """Set the zoom, 1 to 8."""
        self._delegate.zoom = min(max(zoom, ZOOMS[0]), ZOOMS[-1])
        self._fit_cells()

    @Slot()
    def zoom_in(self) -> None:
        """One step larger."""
        self._zoom_by(1)

    @Slot()
    def zoom_out(self) -> None:
        """One step smaller."""
        self._zoom_by(-1)

    @Slot(int)
    def _zoom_by(self, steps: int) -> None:
        self.set_zoom(self.zoom() + steps)

    def _set_up_view(self) -> None:
        """Uniform items, a grid and batches: without them 100,000 items take ten seconds to lay out."""
        self.view.setModel(self._model)
        self.view.setItemDelegate(self._delegate)
        self.view.setViewMode(QListView.ViewMode.IconMode)
        self.view.setUniformItemSizes(True)
        self.view.setLayoutMode(QListView.LayoutMode.Batched)
        self.view.setBatchSize(2000)
        self.view.setResizeMode(QListView.ResizeMode.Adjust)
        self.view.setMovement(QListView.Movement.Static)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setAccessibleName("Sprites")
        self.view.setToolTip("The sprites; Ctrl and the mouse wheel make them larger or smaller.")

    def _fit_cells(self) -> None:
        self.view.setGridSize(self._delegate.cell(self.view.fontMetrics()))
        self.view.verticalScrollBar().setSingleStep(self.view.gridSize().height() // 2)
        self.view.viewport().update()

    @Slot(QModelIndex)
    def _activate(self, index: QModelIndex) -> None:
        self.activated.emit(int(self._model.visible[index.row()]))

    @Slot()
    def _tell_selection(self) -> None:
        self.selection_changed.emit()
