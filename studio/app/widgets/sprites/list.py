"""The view of a sprite grid: what it selects and draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractItemModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRect,
    Qt,
    Signal,
)  # fmt: skip
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QRegion,
    QWheelEvent,
)  # fmt: skip
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QApplication,
    QStyle,
    QStyleOptionViewItem,
    QWidget,
)

from studio.app import theme
from studio.app.widgets.sprites.cell_view import CellView

_NOTCH = 120  # what one click of a wheel turns; touchpads send many smaller turns
_CORNER = 2  # pixels between the cells and the rounded frame, whose corners they would cover
_VEIL = 40  # of 255: how much of the accent colour lies over the sprites in the frame that is drawn
_State = QStyle.StateFlag


class SpriteList(CellView):
    """A list of very many items, of which the visible ones alone cost anything.

    zoomed: the steps that Ctrl and the wheel ask for. drag_begun: of what is selected, where `can_drag`; a drag from
    elsewhere selects.
    """

    zoomed = Signal(int)
    drag_begun = Signal()

    def __init__(self, model: QAbstractItemModel, delegate: QAbstractItemDelegate, parent: QWidget) -> None:
        super().__init__(model, parent)
        self.can_drag = False
        self._pressed: QMouseEvent | None = None  # on what is selected: this may become a drag
        self._turned = 0
        self._frame = QRect()  # that the mouse draws to select, from the first cell's corner
        self._spans: NDArray[np.int64] | None = None
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # only then Qt moves what stays in sight
        self.setViewportMargins(*4 * (_CORNER,))
        self.setItemDelegate(delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setAccessibleName("Sprites")
        self.setToolTip("The sprites; Ctrl and the mouse wheel make them larger or smaller.")

    def spans(self) -> NDArray[np.int64]:
        """The selected rows as runs of neighbours, ascending: first and last of each, int64 [n, 2]."""
        if self._spans is None:
            selection = self.selectionModel().selection()
            ranges = [selection.at(number) for number in range(selection.size())]
            found = np.array([(run.top(), run.bottom()) for run in ranges], np.int64).reshape(-1, 2)
            self._spans = found[found[:, 0].argsort()]
        return self._spans

    def selectAll(self) -> None:
        """Select everything as one range; Qt would go through the items one by one."""
        model, selection = self.model(), QItemSelection()
        if model.rowCount():
            selection.select(model.index(0, 0), model.index(model.rowCount() - 1, 0))
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def setSelection(self, rect: QRect, command: QItemSelectionModel.SelectionFlag) -> None:
        """Select what the frame touches; with Shift, by mouse or keys, all from the one cell to the other."""
        left, right = sorted((rect.left(), rect.right()))
        top, bottom = sorted((rect.top(), rect.bottom()))
        model, selection = self.model(), QItemSelection()
        if self.state() == QAbstractItemView.State.DragSelectingState:
            x, y = self.horizontalOffset(), self.verticalOffset()
            self._frame = QRect(left + x, top + y, right - left + 1, bottom - top + 1)
            for first, last in self.cells().runs(left + x, top + y, right + x, bottom + y):
                selection.select(model.index(first, 0), model.index(last, 0))
            self.viewport().update()
        else:
            ends = sorted((self.indexAt(rect.topLeft()), self.indexAt(rect.bottomRight())), key=QModelIndex.row)
            if ends[0].isValid():
                selection.select(*ends)
        self.selectionModel().select(selection, command)

    def reset(self) -> None:
        """Nothing is selected any more."""
        self._spans = None
        super().reset()

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        """Draw it. A list view would also list every index of the selection for a screen reader."""
        self._spans = None
        QAbstractItemView.selectionChanged(self, selected, deselected)
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.SelectionWithin))

    def visualRegionForSelection(self, selection: QItemSelection) -> QRegion:
        """All that is seen: cheaper to draw than to look at each item, as Qt does."""
        return QRegion(self.viewport().rect())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the cells that need it, and the frame over them."""
        with QPainter(self.viewport()) as painter:
            for area in event.region():  # type: ignore[attr-defined]  # the stubs lack it
                self._draw_cells(painter, area)
            if self.state() == QAbstractItemView.State.DragSelectingState:
                self._draw_frame(painter)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """On what is selected, wait whether it is dragged: pressed on, it would be selected alone."""
        index, modifiers = self.indexAt(event.position().toPoint()), event.modifiers()
        is_plain = event.button() == Qt.MouseButton.LeftButton and modifiers == Qt.KeyboardModifier.NoModifier
        if self.can_drag and is_plain and self.selectionModel().isSelected(index):
            self._pressed = event.clone()
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Begin to drag, or draw the frame."""
        if self._pressed is None:
            super().mouseMoveEvent(event)
        elif (event.position() - self._pressed.position()).manhattanLength() >= QApplication.startDragDistance():
            self._pressed = None
            self.drag_begun.emit()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The frame has done its work; a press that became no drag is one after all."""
        if self._pressed is not None:
            super().mousePressEvent(self._pressed)
            self._pressed = None
        super().mouseReleaseEvent(event)
        self.viewport().update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with Ctrl, scroll without."""
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event)
            return
        self._turned += event.angleDelta().y()
        steps = int(self._turned / _NOTCH)
        self._turned -= steps * _NOTCH
        if steps:
            self.zoomed.emit(steps)
        event.accept()

    def keyboardSearch(self, search: str) -> None:
        """Nothing: Qt would ask every item for its name at each letter."""

    def _selected(self, first: int, last: int) -> list[bool]:
        """Whether each of these rows is selected."""
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

    def _draw_frame(self, painter: QPainter) -> None:
        accent = QColor(theme.colours().accent)
        painter.setPen(QPen(accent, 1))
        accent.setAlpha(_VEIL)
        painter.setBrush(accent)
        frame = self._frame.translated(-self.horizontalOffset(), -self.verticalOffset())
        painter.drawRect(frame.adjusted(0, 0, -1, -1))
