"""A view of cells of one size whose layout is arithmetic: a million of them take no longer than one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget

_FARTHEST = 2**31 - 1 - 2**16  # pixels, in Qt's whole numbers: a million of the largest sprites at the largest zoom
_Index = QModelIndex | QPersistentModelIndex
_Move: TypeAlias = QAbstractItemView.CursorAction
_Hint: TypeAlias = QAbstractItemView.ScrollHint


class CellView(QListView):
    """Replaces all of a list view that knows of places; what stays is what screen readers see of a list.

    What is at the top stays there when cells change their size or their number in a line.
    """

    def __init__(self, model: QAbstractItemModel, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.cell = QSize(1, 1)  # in logical pixels; see resize_cells
        self._top = (0, 0.0)  # the cell at the top, and the share of it that is scrolled out of sight
        self._placing = False  # the scroll bars move because of us, not of the user
        self.setModel(model)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)

    def resize_cells(self, size: QSize) -> None:
        """Make all cells that large."""
        self.cell = size
        self.updateGeometries()
        self.viewport().update()

    def show_row(self, row: int) -> None:
        """Scroll so that this cell is in the first line."""
        self._top = (row, 0.0)
        self.updateGeometries()

    def cells(self) -> CellLayout:
        """The layout of this moment."""
        return CellLayout.within(
            self.viewport().width(), self.model().rowCount(), self.cell.width(), self.cell.height()
        )

    def reset(self) -> None:
        """Other items: from the first one."""
        super().reset()
        self.show_row(0)

    def doItemsLayout(self) -> None:
        """What a list view does here takes the longer the more items there are."""
        QAbstractItemView.doItemsLayout(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Without what a list view adds."""
        QAbstractItemView.resizeEvent(self, event)

    def updateGeometries(self) -> None:
        """Set the scroll bars' ranges, and keep at the top what is there."""
        QAbstractItemView.updateGeometries(self)
        before, self._placing = self._placing, True
        down, across, room = self.verticalScrollBar(), self.horizontalScrollBar(), self.viewport()
        down.setSingleStep(self.cell.height() // 2)
        down.setPageStep(room.height())
        across.setPageStep(room.width())
        across.setRange(0, max(0, self.cell.width() - room.width()))  # one cell can be wider than the view
        down.setRange(0, min(max(0, self.cells().lines * self.cell.height() - room.height()), _FARTHEST))
        row, share = self._top  # only now: a scroll bar that comes or goes changes how many cells are in a line
        down.setValue(min(round((row // self.cells().across + share) * self.cell.height()), _FARTHEST))
        self._placing = before

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Move what is seen; the user's own moves decide what is at the top."""
        if not self._placing:
            line, beyond = divmod(self.verticalOffset(), self.cell.height())
            self._top = (line * self.cells().across, beyond / self.cell.height())
        near = abs(dy) < self.viewport().height() and self.devicePixelRatioF().is_integer()
        if near and self.state() == QAbstractItemView.State.NoState:
            self.viewport().scroll(dx, dy)
        else:  # nothing stays, or not by a whole number of the screen's pixels, or a frame is drawn over the cells
            self.viewport().update()

    def visualRect(self, index: _Index) -> QRect:
        """Where a cell is in the view."""
        if not index.isValid():
            return QRect()
        x, y = self.cells().place(index.row())
        down = min(max(y - self.verticalOffset(), -_FARTHEST), _FARTHEST)
        return QRect(QPoint(x - self.horizontalOffset(), down), self.cell)

    def indexAt(self, point: QPoint) -> QModelIndex:
        """The cell under a point of the view."""
        cell = self.cells().at(point.x() + self.horizontalOffset(), point.y() + self.verticalOffset())
        return self.model().index(cell, 0) if cell >= 0 else QModelIndex()

    def moveCursor(self, action: _Move, modifiers: Qt.KeyboardModifier) -> QModelIndex:
        """Left and right go on in the line before and after; a page leaves one line of the old one in sight."""
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

    def currentChanged(self, current: _Index, previous: _Index) -> None:
        """Tell screen readers where the keyboard is; a list view would ask its own layout, which is empty."""
        QAbstractItemView.currentChanged(self, current, previous)
        if QAccessible.isActive() and current.isValid() and self.hasFocus():
            event = QAccessibleEvent(self, QAccessible.Event.Focus)
            event.setChild(current.row())
            QAccessible.updateAccessibility(event)

    def scrollTo(self, index: _Index, hint: _Hint = _Hint.EnsureVisible) -> None:
        """Bring a cell into view, with as little movement as does it unless the hint says otherwise."""
        area, room, bar = self.visualRect(index), self.viewport().height(), self.verticalScrollBar()
        above, under = area.top(), area.top() + area.height() - room
        if hint == _Hint.EnsureVisible:
            move = min(above, 0) or min(max(under, 0), above)
        else:
            move = {_Hint.PositionAtTop: above, _Hint.PositionAtBottom: under}.get(hint, (above + under) // 2)
        bar.setValue(min(max(bar.value() + move, 0), bar.maximum()))


@dataclass(frozen=True)
class CellLayout:
    """`count` cells of `width` x `height` pixels in lines of `across`, numbered in reading order from 0."""

    count: int
    width: int
    height: int
    across: int

    @classmethod
    def within(cls, room: int, count: int, width: int, height: int) -> CellLayout:
        """As many cells side by side as `room` pixels hold, one at least."""
        return cls(count, width, height, max(1, room // width))

    @property
    def lines(self) -> int:
        """The last one may be short."""
        return -(-self.count // self.across)

    def place(self, cell: int) -> tuple[int, int]:
        """The upper left corner of a cell: x and y in pixels."""
        line, column = divmod(cell, self.across)
        return column * self.width, line * self.height

    def at(self, x: int, y: int) -> int:
        """The cell that covers a pixel; -1 for none."""
        column, line = x // self.width, y // self.height
        cell = line * self.across + column
        return cell if 0 <= column < self.across and line >= 0 and cell < self.count else -1

    def runs(self, left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
        """The cells that a rectangle touches, its edges among it, as (first, last) of runs of neighbours, ascending."""
        first, last = max(left // self.width, 0), min(right // self.width, self.across - 1)
        lines = range(max(top // self.height, 0), min(bottom // self.height, self.lines - 1) + 1)
        if first > last or not lines:
            return []
        if (first, last) == (0, self.across - 1):
            return [(lines[0] * self.across, min(lines[-1] * self.across + last, self.count - 1))]
        found = ((line * self.across + first, min(line * self.across + last, self.count - 1)) for line in lines)
        return [(start, end) for start, end in found if start <= end]

    def below(self, cell: int, lines: int) -> int:
        """The cell that many lines further down, or up where `lines` is negative; at the edges the nearest there is."""
        line, column = divmod(cell, self.across)
        line = min(max(line + lines, 0), self.lines - 1)
        return min(line * self.across + column, self.count - 1)
