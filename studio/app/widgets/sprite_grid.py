"""A grid of sprites that stays smooth at 100,000."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelection,
    QItemSelectionModel,
    QItemSelectionRange,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
    Slot,
)  # fmt: skip
from PySide6.QtGui import QColor, QFontMetrics, QKeySequence, QPainter, QPen, QShortcut
from PySide6.QtWidgets import (
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from studio.app import theme
from studio.app.widgets.painting import draw_sprite
from studio.app.widgets.sprite_list import SpriteList
from studio.core.events import Rgba

ZOOMS = range(1, 9)
_MARGIN = 4  # logical pixels around a sprite
_SELECTED, _FOCUSED = QStyle.StateFlag.State_Selected.value, QStyle.StateFlag.State_HasFocus.value
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
        """Draw the sprite of a row. Called for each of some thousand sprites: no work that is not needed."""
        area: QRect = option.rect
        model, state = self._model, option.state.value
        number = model.visible[index.row()]
        if state & (_SELECTED | _FOCUSED):
            _draw_state(painter, area, state)
        side = model.rgba.shape[1] * self.zoom
        top = area.y() + _MARGIN
        draw_sprite(painter, QRect(area.x() + (area.width() - side) // 2, top, side, side), model.rgba[number])
        if model.captions:
            line = QRect(area.x() + 2, top + side, area.width() - 4, area.bottom() - top - side)
            _draw_caption(painter, line, model.captions[number], bool(state & _SELECTED))


def _draw_state(painter: QPainter, area: QRect, state: int) -> None:
    """A frame in the accent colour says selected, a dotted line where the keyboard is."""
    colours = theme.colours()
    if state & _SELECTED:
        painter.fillRect(area.adjusted(1, 1, -1, -1), QColor(colours.accent))
    if state & _FOCUSED:
        painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DotLine))
        painter.drawRect(area.adjusted(0, 0, -1, -1))


def _draw_caption(painter: QPainter, line: QRect, caption: str, selected: bool) -> None:
    colours = theme.colours()
    painter.setPen(QColor(colours.on_accent if selected else colours.muted))
    text = painter.fontMetrics().elidedText(caption, Qt.TextElideMode.ElideMiddle, line.width())
    painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)


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
        self.view = SpriteList(self._model, self._delegate, self)
        self.setFocusProxy(self.view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view)
        self.view.zoomed.connect(self._zoom_by)
        self.view.activated.connect(self._activate)
        self.view.selectionModel().selectionChanged.connect(self._tell_selection)
        for standard, other, slot in (
            (QKeySequence.StandardKey.ZoomIn, "Ctrl+=", self.zoom_in),  # the same key without Shift
            (QKeySequence.StandardKey.ZoomOut, "Ctrl+_", self.zoom_out),
        ):
            shortcut = QShortcut(self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.setKeys([*QKeySequence.keyBindings(standard), QKeySequence(other)])
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
        selection = self.view.selectionModel().selection()
        spans = [selection.at(number) for number in range(selection.size())]
        ranges = [np.arange(span.top(), span.bottom() + 1) for span in spans]
        return np.sort(self._model.visible[np.concatenate(ranges)]).tolist() if ranges else []

    def select(self, indices: Sequence[int]) -> None:
        """Select exactly these sprites (those that are visible) and scroll to the first."""
        rows = np.flatnonzero(np.isin(self._model.visible, np.asarray(indices, np.int64)))
        breaks = np.flatnonzero(np.diff(rows) > 1) + 1
        selection = QItemSelection()
        for run in np.split(rows, breaks) if len(rows) else ():
            selection.append(QItemSelectionRange(self._model.index(int(run[0])), self._model.index(int(run[-1]))))
        self.view.clearSelection()  # Qt takes a second to tell many ranges from those before
        self.view.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.Select)
        if len(rows):
            self.view.show_row(int(rows[0]))

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

    def _fit_cells(self) -> None:
        self.view.resize_cells(self._delegate.cell(self.view.fontMetrics()))
        self.view.viewport().update()

    @Slot(QModelIndex)
    def _activate(self, index: QModelIndex) -> None:
        self.activated.emit(int(self._model.visible[index.row()]))

    @Slot()
    def _tell_selection(self) -> None:
        self.selection_changed.emit()
