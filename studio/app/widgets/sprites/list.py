"""The list view of a sprite grid: selection and drawing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractListModel, QItemSelection, QItemSelectionModel, QModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QAbstractItemDelegate, QAbstractItemView, QStyle, QStyleOptionViewItem

from studio.app import theme
from studio.app.widgets.input import SelectionDrag, ZoomWheel
from studio.app.widgets.sprites.cell_view import CellView

_CORNER = 2  # pixels; keeps the cells off the frame's rounded corners
_VEIL = 40  # alpha of the rubber band's fill, of 255
_State = QStyle.StateFlag


class SpriteList(CellView):
    """A list view for a million items; only visible items cost time.

    zoomed: zoom steps by Ctrl+wheel. drag: of the selection, if enabled. Other drags select items.
    """

    zoomed = Signal(int)

    def __init__(self, model: QAbstractListModel, delegate: QAbstractItemDelegate) -> None:
        super().__init__(model)
        self.drag = SelectionDrag(self)
        ZoomWheel(self).zoomed.connect(self.zoomed)
        self._rubber_band = QRect()  # rubber band, relative to the first cell
        self._spans: NDArray[np.int64] | None = None
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # lets Qt scroll by copying pixels
        self.setViewportMargins(*4 * (_CORNER,))
        self.setItemDelegate(delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setAccessibleName("Sprites")
        self.setToolTip("Ctrl+scroll to zoom.")

    def spans(self) -> NDArray[np.int64]:
        """Return the selected rows as ascending ranges: int64 [n, 2], first and last row of each range."""
        if self._spans is None:
            selection = self.selectionModel().selection()
            ranges = [selection.at(number) for number in range(selection.size())]
            found = np.array([(run.top(), run.bottom()) for run in ranges], np.int64).reshape(-1, 2)
            self._spans = found[found[:, 0].argsort()]
        return self._spans

    def go_to(self, row: int) -> None:
        """Select only this row, make it current and scroll to it."""
        chosen = QItemSelectionModel.SelectionFlag.ClearAndSelect
        self.selectionModel().setCurrentIndex(self.model().index(row, 0), chosen)

    def select_rows(self, rows: NDArray[np.int64]) -> None:
        """Select exactly these rows, int64 [n], ascending, and scroll to the first."""
        model, selection = self.model(), QItemSelection()
        for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else ():
            selection.select(model.index(int(run[0]), 0), model.index(int(run[-1]), 0))
        self.clearSelection()  # else Qt takes a second to compare many ranges
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.Select)
        if len(rows):
            self.show_row(int(rows[0]))

    def selectAll(self) -> None:
        """Select all rows as a single range; Qt would visit each item."""
        model, selection = self.model(), QItemSelection()
        if model.rowCount():
            selection.select(model.index(0, 0), model.index(model.rowCount() - 1, 0))
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def setSelection(self, rect: QRect, command: QItemSelectionModel.SelectionFlag) -> None:
        """Select the items in the rubber band, or with Shift all items between two cells."""
        left, right = sorted((rect.left(), rect.right()))
        top, bottom = sorted((rect.top(), rect.bottom()))
        model, selection = self.model(), QItemSelection()
        if self.state() == QAbstractItemView.State.DragSelectingState:
            x, y = self.horizontalOffset(), self.verticalOffset()
            self._rubber_band = QRect(left + x, top + y, right - left + 1, bottom - top + 1)
            for first, last in self.cells().runs(left + x, top + y, right + x, bottom + y):
                selection.select(model.index(first, 0), model.index(last, 0))
            self.viewport().update()
        else:
            ends = sorted((self.indexAt(rect.topLeft()), self.indexAt(rect.bottomRight())), key=QModelIndex.row)
            if ends[0].isValid():
                selection.select(*ends)
        self.selectionModel().select(selection, command)

    def reset(self) -> None:
        self._spans = None
        super().reset()

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        self._spans = None
        super().selectionChanged(selected, deselected)

    def visualRegionForSelection(self, selection: QItemSelection) -> QRegion:
        """Return the whole viewport; cheaper to redraw than to visit each item."""
        return QRegion(self.viewport().rect())

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            for area in event.region():  # type: ignore[attr-defined]  # the stubs lack it
                self._draw_cells(painter, area)
            if self.state() == QAbstractItemView.State.DragSelectingState:
                self._draw_rubber_band(painter)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Remove the rubber band."""
        super().mouseReleaseEvent(event)
        self.viewport().update()

    def keyboardSearch(self, search: str) -> None:
        """Ignore typed letters, since Qt would read all names."""

    def _selected(self, first: int, last: int) -> list[bool]:
        """Return a flag for each row from `first` to `last`: whether it is selected."""
        spans, rows = self.spans(), np.arange(first, last + 1)
        if not len(spans):
            return [False] * len(rows)
        before = spans[np.maximum(np.searchsorted(spans[:, 0], rows, "right") - 1, 0)]
        found: list[bool] = ((before[:, 0] <= rows) & (rows <= before[:, 1])).tolist()
        return found

    def _draw_cells(self, painter: QPainter, area: QRect) -> None:
        cells, x, y = self.cells(), self.horizontalOffset(), self.verticalOffset()
        model, delegate, option = self.model(), self.itemDelegate(), QStyleOptionViewItem()
        self.initViewItemOption(option)
        focused = self.currentIndex().row() if self.hasFocus() else -1
        painter.fillRect(area, QColor(theme.colours().surface))
        for first, last in cells.runs(area.left() + x, area.top() + y, area.right() + x, area.bottom() + y):
            for row, selected in enumerate(self._selected(first, last), first):
                left, top = cells.place(row)
                option.rect = QRect(left - x, top - y, cells.width, cells.height)
                state = _State.State_Selected if selected else _State.State_None
                option.state = state | _State.State_HasFocus if row == focused else state
                delegate.paint(painter, option, model.index(row, 0))

    def _draw_rubber_band(self, painter: QPainter) -> None:
        accent = QColor(theme.colours().accent)
        painter.setPen(QPen(accent, 1))
        accent.setAlpha(_VEIL)
        painter.setBrush(accent)
        frame = self._rubber_band.translated(-self.horizontalOffset(), -self.verticalOffset())
        painter.drawRect(frame.adjusted(0, 0, -1, -1))
