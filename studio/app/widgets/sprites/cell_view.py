"""A list view of equal cells. Computes positions by arithmetic, so a million cells cost no more than a few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelection,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QAccessible, QAccessibleEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QTableView

_FARTHEST = 2**31 - 1 - 2**16  # largest scroll position in Qt's 32-bit pixels
Index = QModelIndex | QPersistentModelIndex
NO_INDEX = QModelIndex()
_TEXTS = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole)
_Move: TypeAlias = QAbstractItemView.CursorAction
_Hint: TypeAlias = QAbstractItemView.ScrollHint


def prepare_cell_table(table: QTableView) -> None:
    """Let a table of sprites scroll by pixels, select several cells and leave the Tab key to the page."""
    table.setShowGrid(False)
    table.setTabKeyNavigation(False)
    table.setCornerButtonEnabled(False)
    table.setSelectionMode(QTableView.SelectionMode.ExtendedSelection)
    table.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
    table.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
    table.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerPixel)


class TextRows(QAbstractListModel):
    """List model with a text in each row, for display, tooltips and screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._text_of: Callable[[int], str] = str

    def set_rows(self, count: int, text_of: Callable[[int], str]) -> None:
        """Replace the rows. text_of: returns a row's text."""
        self.beginResetModel()
        self._count, self._text_of = count, text_of
        self.endResetModel()

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else self._count

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        return self._text_of(index.row()) if role in _TEXTS else None


class CellView(QListView):
    """A QListView that computes its cells' positions. If cells resize or wrap differently, the top cell stays."""

    def __init__(self, model: QAbstractListModel) -> None:
        super().__init__()
        self.cell = QSize(1, 1)  # in logical pixels; see resize_cells
        self._top = (0, 0.0)  # top cell, and its share above the viewport
        self._placing = False  # our own scroll bar changes, not the user's
        self.setModel(model)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)

    def resize_cells(self, size: QSize) -> None:
        self.cell = size
        self.updateGeometries()
        self.viewport().update()

    def show_row(self, row: int) -> None:
        """Scroll so that this cell is in the first line."""
        self._top = (row, 0.0)
        self.updateGeometries()

    def cells(self, room: int | None = None) -> CellLayout:
        """Return the layout of the cells in the viewport, or in `room` logical pixels."""
        room = self.viewport().width() if room is None else room
        return CellLayout.within(room, self.model().rowCount(), self.cell.width(), self.cell.height())

    def reset(self) -> None:
        """Scroll to the first cell of the new items."""
        super().reset()
        self.show_row(0)

    def doItemsLayout(self) -> None:
        """Skip QListView's layout, which takes time for each item."""
        QAbstractItemView.doItemsLayout(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Skip QListView's layout."""
        QAbstractItemView.resizeEvent(self, event)

    def updateGeometries(self) -> None:
        """Set the scroll bars' ranges, and keep the top cell at the top."""
        QAbstractItemView.updateGeometries(self)
        before, self._placing = self._placing, True
        down, across, room = self.verticalScrollBar(), self.horizontalScrollBar(), self.viewport()
        down.setSingleStep(self.cell.height() // 2)
        down.setPageStep(room.height())
        across.setPageStep(room.width())
        across.setRange(0, max(0, self.cell.width() - room.width()))  # a cell may be wider than the view
        down.setRange(0, min(max(0, self.cells().lines * self.cell.height() - room.height()), _FARTHEST))
        row, share = self._top  # last, since a scroll bar changes the cells in a line
        down.setValue(min(round((row // self.cells().across + share) * self.cell.height()), _FARTHEST))
        self._placing = before

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Scroll the cells, and remember the top cell if the user scrolled."""
        if not self._placing:
            line, beyond = divmod(self.verticalOffset(), self.cell.height())
            self._top = (line * self.cells().across, beyond / self.cell.height())
        near = abs(dy) < self.viewport().height() and self.devicePixelRatioF().is_integer()
        if near and self.state() == QAbstractItemView.State.NoState:
            self.viewport().scroll(dx, dy)
        else:  # far scrolls, fractional device pixels and rubber bands need a full redraw
            self.viewport().update()

    def visualRect(self, index: Index) -> QRect:
        """Return a cell's rectangle in the viewport."""
        if not index.isValid():
            return QRect()
        x, y = self.cells().place(index.row())
        down = min(max(y - self.verticalOffset(), -_FARTHEST), _FARTHEST)
        return QRect(QPoint(x - self.horizontalOffset(), down), self.cell)

    def indexAt(self, point: QPoint) -> QModelIndex:
        """Return the cell at a point in the viewport."""
        cell = self.cells().at(point.x() + self.horizontalOffset(), point.y() + self.verticalOffset())
        return self.model().index(cell, 0) if cell >= 0 else QModelIndex()

    def moveCursor(self, action: _Move, modifiers: Qt.KeyboardModifier) -> QModelIndex:
        """Move with wrapping: left and right continue in the next line; a page keeps one old line visible."""
        cells, row = self.cells(), self.currentIndex().row()
        if not cells.count:
            return QModelIndex()
        if row < 0 or action == _Move.MoveHome:
            return self.model().index(0, 0)
        if action == _Move.MoveEnd:
            return self.model().index(cells.count - 1, 0)
        steps = {_Move.MoveLeft: -1, _Move.MoveRight: 1}
        if action in steps:
            return self.model().index(min(max(row + steps[action], 0), cells.count - 1), 0)
        page = max(1, self.viewport().height() // cells.height - 1)
        lines = {_Move.MovePageUp: -page, _Move.MovePageDown: page, _Move.MoveUp: -1, _Move.MovePrevious: -1}
        return self.model().index(cells.below(row, lines.get(action, 1)), 0)

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Report the focused cell to screen readers; QListView would use its own, empty layout."""
        QAbstractItemView.currentChanged(self, current, previous)
        if QAccessible.isActive() and current.isValid() and self.hasFocus():
            event = QAccessibleEvent(self, QAccessible.Event.Focus)
            event.setChild(current.row())
            QAccessible.updateAccessibility(event)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        """Redraw. Skips QListView, which would list each selected index for screen readers."""
        QAbstractItemView.selectionChanged(self, selected, deselected)
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.SelectionWithin))

    def scrollTo(self, index: Index, hint: _Hint = _Hint.EnsureVisible) -> None:
        """Scroll to a cell, by as little as possible unless the hint says otherwise."""
        area, room, bar = self.visualRect(index), self.viewport().height(), self.verticalScrollBar()
        above, under = area.top(), area.top() + area.height() - room
        if hint == _Hint.EnsureVisible:
            move = min(above, 0) or min(max(under, 0), above)
        else:
            move = {_Hint.PositionAtTop: above, _Hint.PositionAtBottom: under}.get(hint, (above + under) // 2)
        bar.setValue(min(max(bar.value() + move, 0), bar.maximum()))


@dataclass(frozen=True)
class CellLayout:
    """A layout of `count` cells of `width` x `height` pixels, `across` in a line, numbered in reading order from 0."""

    count: int
    width: int
    height: int
    across: int

    @classmethod
    def within(cls, room: int, count: int, width: int, height: int) -> CellLayout:
        """Return a layout with as many cells in a line as fit `room` pixels, at least one."""
        return cls(count, width, height, max(1, room // width))

    @property
    def lines(self) -> int:
        """The number of lines; the last may be short."""
        return -(-self.count // self.across)

    def place(self, cell: int) -> tuple[int, int]:
        """Return a cell's top left corner (x, y) in pixels."""
        line, column = divmod(cell, self.across)
        return column * self.width, line * self.height

    def at(self, x: int, y: int) -> int:
        """Return the cell at a pixel; -1 for no cell."""
        column, line = x // self.width, y // self.height
        cell = line * self.across + column
        return cell if 0 <= column < self.across and line >= 0 and cell < self.count else -1

    def runs(self, left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
        """Return the cells that touch a rectangle, including its edges, as ranges (first, last), ascending."""
        first, last = max(left // self.width, 0), min(right // self.width, self.across - 1)
        lines = range(max(top // self.height, 0), min(bottom // self.height, self.lines - 1) + 1)
        if first > last or not lines:
            return []
        if (first, last) == (0, self.across - 1):
            return [(lines[0] * self.across, min(lines[-1] * self.across + last, self.count - 1))]
        found = ((line * self.across + first, min(line * self.across + last, self.count - 1)) for line in lines)
        return [(start, end) for start, end in found if start <= end]

    def below(self, cell: int, lines: int) -> int:
        """Return the cell `lines` further down, or up for a negative number; clamped at the edges."""
        line, column = divmod(cell, self.across)
        line = min(max(line + lines, 0), self.lines - 1)
        return min(line * self.across + column, self.count - 1)
