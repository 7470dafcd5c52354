"""A table of cells, the views and frames of characters, with marks for given, locked and corrected cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygon,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QHeaderView,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from studio.app import theme
from studio.app.widgets import pasted
from studio.app.widgets.input import SelectionDrag, ZoomWheel
from studio.app.widgets.sprites.cell_view import NO_INDEX, Index, prepare_cell_table
from studio.app.widgets.sprites.grid import draw_state
from studio.app.widgets.sprites.painting import draw_sprite
from studio.app.widgets.sprites.set_table import draw_gap
from studio.core.arrays import Mask, Rgba

_MARGIN = 4  # logical pixels between a cell's edge and its sprite
_CORNER, _ICON = 8, 14  # logical pixels: mark of a given cell, and largest icon of a locked or corrected cell
_FRAME = 2  # logical pixels around the table
_HIGHEST = 320  # logical pixels; a higher table scrolls
_WIDEST_NAME, _BESIDE_NAME = 120, 28  # logical pixels: names of rows, and room beside them
_SELECTED = QStyle.StateFlag.State_Selected.value
_NONE = np.zeros(0, np.bool_)
_TEXTS = (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole)
_Role = Qt.ItemDataRole


@dataclass(frozen=True, eq=False)
class CellContent:
    """The cells that a table shows."""

    sprites: Rgba  # uint8 [N, S, S, 4]
    table: NDArray[np.int64]  # [R, K], the sprite at each row and column, or -1 for no cell
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    names: tuple[str, ...]  # of each sprite, for tooltips
    given: Mask  # bool [N], marks
    locked: Mask
    painted: Mask

    @classmethod
    def empty(cls) -> CellContent:
        """Return a content without cells."""
        return cls(np.zeros((0, 1, 1, 4), np.uint8), np.zeros((0, 0), np.int64), (), (), (), _NONE, _NONE, _NONE)

    def about(self, sprite: int) -> str:
        """Return a cell's name and marks as text."""
        words = [self.names[sprite]]
        words += [word for word, mask in (("given", self.given), ("locked", self.locked)) if mask[sprite]]
        words += ["corrected"] if self.painted[sprite] else []
        words += [] if self.sprites[sprite, ..., 3].any() else ["empty"]
        return ", ".join(words)


class CellModel(QAbstractTableModel):
    """Table model of a `CellContent`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.content = CellContent.empty()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else self.content.table.shape[0]

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else self.content.table.shape[1]

    def sprite(self, index: Index) -> int:
        """Return the sprite of a cell; -1 for no cell."""
        return int(self.content.table[index.row(), index.column()])

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or self.sprite(index) < 0:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsDropEnabled

    def data(self, index: Index, role: int = _Role.DisplayRole) -> str | None:
        """Return a cell's name and marks for the tooltip and screen readers."""
        sprite = self.sprite(index)
        return self.content.about(sprite) if role in _TEXTS and sprite >= 0 else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _Role.DisplayRole) -> Any:
        names = self.content.columns if orientation == Qt.Orientation.Horizontal else self.content.rows
        return names[section] if role in (_Role.DisplayRole, *_TEXTS) else None


class CellDelegate(QStyledItemDelegate):
    """Draws a cell: a sprite or, for an empty cell, hatching; and marks."""

    def __init__(self, table: QTableView, model: CellModel) -> None:
        super().__init__(table)
        self._model = model
        self.drop_at = QModelIndex()  # the cell under dragged images
        self.edited = -1  # the sprite in the cell editor

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        content, sprite, area = self._model.content, self._model.sprite(index), option.rect
        if sprite < 0:
            return
        is_empty = not content.sprites[sprite, ..., 3].any()
        state = option.state.value
        draw_state(painter, area, state & ~_SELECTED if is_empty else state)
        inner = area.adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        if is_empty:
            draw_gap(painter, area)
        else:
            draw_sprite(painter, inner, content.sprites[sprite])
        if content.given[sprite]:
            _draw_corner(painter, area)
        for mask, icon, corner in (
            (content.locked, "lock", inner.bottomRight()),
            (content.painted, "pencil", inner.bottomLeft()),
        ):
            if mask[sprite]:
                _draw_icon(painter, icon, corner, area.center())
        if index == self.drop_at or sprite == self.edited or (is_empty and state & _SELECTED):
            painter.setPen(QPen(QColor(theme.colours().accent), 2))
            painter.drawRect(area.adjusted(1, 1, -2, -2))


def _draw_corner(painter: QPainter, area: QRect) -> None:
    """Draw a folded corner, with a border visible on all sprites."""
    corner, colours = area.topRight(), theme.colours()
    painter.setPen(QPen(QColor(colours.surface), 1))
    painter.setBrush(QColor(colours.good))
    painter.drawPolygon(QPolygon([corner + QPoint(-_CORNER, 0), corner, corner + QPoint(0, _CORNER)]))
    painter.setBrush(Qt.BrushStyle.NoBrush)


def _draw_icon(painter: QPainter, icon: str, corner: QPoint, centre: QPoint) -> None:
    """Draw an icon on a small ground in a corner of a cell. centre: of the cell, towards which the icon extends."""
    side = min(_ICON, abs(corner.x() - centre.x()))
    left = corner.x() - side + 1 if corner.x() > centre.x() else corner.x()
    box = QRect(left, corner.y() - side + 1, side, side)
    ground = QColor(theme.colours().window)
    ground.setAlpha(215)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    painter.drawRoundedRect(box, 3, 3)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    theme.icon(icon).paint(painter, box.adjusted(1, 1, -1, -1))


class CellTable(QTableView):
    """A table of cells. Cells are numbered as the sprites of the content.

    opened: a cell, by double click or Enter. drag: of the selected cells, if enabled. focused: the table has received
    the focus.
    """

    opened = Signal(int)
    selection_changed = Signal()
    focused = Signal()
    zoomed = Signal(int)  # zoom steps by Ctrl+wheel
    resized = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.drag = SelectionDrag(self)
        self._side = 0
        ZoomWheel(self).zoomed.connect(self.zoomed)
        self._cells = CellModel(self)
        self._delegate = CellDelegate(self, self._cells)
        self.setModel(self._cells)
        self.setItemDelegate(self._delegate)
        prepare_cell_table(self)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._name_headers()
        self.activated.connect(self._on_activated)
        self.selectionModel().selectionChanged.connect(self.selection_changed)
        self.selectionModel().currentChanged.connect(self.selection_changed)

    def _name_headers(self) -> None:
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setMinimumSectionSize(1)
            header.setHighlightSections(False)
            header.setTextElideMode(Qt.TextElideMode.ElideRight)

    def content(self) -> CellContent:
        return self._cells.content

    def show_cells(self, content: CellContent, edited: int = -1) -> None:
        """Show cells; the selection stays if the table keeps its shape. edited: sprite in the cell editor, or -1."""
        before, self._cells.content = self._cells.content, content
        self._delegate.edited = edited
        if before.table.shape != content.table.shape or before.columns != content.columns:
            self._cells.beginResetModel()
            self._cells.endResetModel()
            self.selection_changed.emit()
        self.viewport().update()
        self.verticalHeader().viewport().update()
        self.horizontalHeader().viewport().update()

    def set_side(self, side: int, column: int = 0) -> None:
        """Draw sprites at this side in logical pixels. column: smallest width of a column."""
        self._side = side
        self.verticalHeader().setDefaultSectionSize(side + 2 * _MARGIN)
        self.horizontalHeader().setDefaultSectionSize(max(side + 2 * _MARGIN, column))
        names = self.verticalHeader()
        metrics = names.fontMetrics()
        widest = max(map(metrics.horizontalAdvance, self._cells.content.rows), default=0)
        names.setFixedWidth(min(widest + _BESIDE_NAME, _WIDEST_NAME))
        self.updateGeometry()

    def selected(self) -> list[int]:
        """Return the selected cells, ascending."""
        return sorted(cell for index in self.selectedIndexes() if (cell := self._cells.sprite(index)) >= 0)

    def spans(self) -> list[int]:
        """Return the selected cells, as a drag needs."""
        return self.selected()

    def current(self) -> int:
        """Return the current cell; -1 for none."""
        index = self.currentIndex()
        return self._cells.sprite(index) if index.isValid() else -1

    def select(self, cells: list[int]) -> None:
        """Select exactly these cells; the first becomes the current cell."""
        self.clearSelection()
        for number, cell in enumerate(cells):
            for row, column in np.argwhere(self._cells.content.table == cell).tolist():
                index = self._cells.index(row, column)
                if not number:
                    self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
                self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.Select)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if not self.currentIndex().isValid() and self._cells.rowCount():
            self.setCurrentIndex(self._cells.index(0, 0))
        self.focused.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        super().keyPressEvent(event)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            event.accept()  # Enter opens the cell; it must not press the default button of a dialog as well

    def keyboardSearch(self, search: str) -> None:
        """Ignore typed letters, which are keys of commands."""

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        sprite = self._cells.sprite(index)
        if sprite >= 0:
            self.opened.emit(sprite)


class GivenTable(CellTable):
    """A table that hugs its cells, accepts dropped images, and shows a prompt while all cells are empty.

    dropped: the cell, or -1 beside the cells, and the dropped QMimeData.
    """

    dropped = Signal(int, object)

    def __init__(self, prompt: str) -> None:
        """Create an empty table. prompt: shown while all cells are empty."""
        super().__init__()
        self._prompt = prompt
        self.setAcceptDrops(True)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)

    def sizeHint(self) -> QSize:
        across, down = self.horizontalHeader(), self.verticalHeader()
        width = across.length() + (down.width() if not down.isHidden() else 0)
        height = down.length() + (across.sizeHint().height() if not across.isHidden() else 0) + 2 * _FRAME
        if self.height() < height:  # the vertical scroll bar must not cover the last column
            width += self.verticalScrollBar().sizeHint().width()
        return QSize(width + 2 * _FRAME, height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().height() != event.oldSize().height():
            self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        side, whole = self._side + 2 * _MARGIN, self.sizeHint().height()
        return QSize(self.verticalHeader().width() + 2 * side, min(whole, _HIGHEST))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._cells.rowCount() and not self.content().sprites[..., 3].any():
            with QPainter(self.viewport()) as painter:
                self._draw_prompt(painter)

    def _draw_prompt(self, painter: QPainter) -> None:
        """Draw a dashed frame around the first cell, and the prompt over the other cells of the row."""
        colours, first = theme.colours(), self.visualRect(self._cells.index(0, 0))
        painter.setPen(QPen(QColor(colours.accent), 2, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(first.adjusted(3, 3, -4, -4), 4, 4)
        theme.icon("plus", "accent").paint(painter, _centred(first, min(24, first.width() // 2)))
        room = QRect(first.right() + 1, first.top(), self.viewport().width() - first.right() - 1, first.height())
        painter.fillRect(room, QColor(colours.surface))
        painter.setPen(QColor(colours.text))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap
        painter.drawText(room.adjusted(8, 0, -4, 0), flags, self._prompt)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if pasted.can_open(event.mimeData()):
            event.acceptProposedAction()
        else:
            event.ignore()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        self._mark_drop(self.indexAt(event.position().toPoint()))
        event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._mark_drop(QModelIndex())

    def dropEvent(self, event: QDropEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        self._mark_drop(QModelIndex())
        event.acceptProposedAction()
        self.dropped.emit(self._cells.sprite(index) if index.isValid() else -1, event.mimeData())

    def _mark_drop(self, index: QModelIndex) -> None:
        if index != self._delegate.drop_at:
            self._delegate.drop_at = index
            self.viewport().update()


def _centred(area: QRect, side: int) -> QRect:
    box = QRect(0, 0, side, side)
    box.moveCenter(area.center())
    return box
