"""The view of a sprite grid: fast with 100,000 items, where a list view of Qt is not."""

from __future__ import annotations

from PySide6.QtCore import QAbstractItemModel, QItemSelection, QItemSelectionModel, QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QRegion, QWheelEvent
from PySide6.QtWidgets import QAbstractItemDelegate, QAbstractItemView, QListView, QWidget

_NOTCH = 120  # what one click of a wheel turns; touchpads send many smaller turns


class SpriteList(QListView):
    """A list view for very many items of one size. `zoomed`: the steps that Ctrl and the wheel ask for."""

    zoomed = Signal(int)

    def __init__(self, model: QAbstractItemModel, delegate: QAbstractItemDelegate, parent: QWidget) -> None:
        """Uniform items, a grid and batches: without them 100,000 items take ten seconds to lay out."""
        super().__init__(parent)
        self._turned = 0
        self._wanted_row = -1  # to be at the top as soon as the batches of the layout have come to it
        self.setModel(model)
        self.setItemDelegate(delegate)
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setUniformItemSizes(True)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setBatchSize(2000)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMovement(QListView.Movement.Static)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName("Sprites")
        self.setToolTip("The sprites; Ctrl and the mouse wheel make them larger or smaller.")
        self.verticalScrollBar().rangeChanged.connect(self._go_on)
        self.verticalScrollBar().actionTriggered.connect(self._stay)

    def resize_cells(self, size: QSize) -> None:
        """Make all cells that large; the sprites at the top stay there."""
        if size != self.gridSize():
            top = self.indexAt(QPoint(size.width() // 2, self.gridSize().height() // 2))
            self.setGridSize(size)
            self.verticalScrollBar().setSingleStep(size.height() // 2)
            self.show_row(top.row() if self.verticalScrollBar().value() else -1)

    def show_row(self, row: int) -> None:
        """Scroll to that row, now or when the layout has come to it."""
        self._wanted_row = row
        self._go_on()

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

    def selectAll(self) -> None:
        """Select everything as one range; Qt would go through the items one by one."""
        model, selection = self.model(), QItemSelection()
        if model.rowCount():
            selection.select(model.index(0, 0), model.index(model.rowCount() - 1, 0))
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def visualRegionForSelection(self, selection: QItemSelection) -> QRegion:
        """All that is seen: cheaper to draw than to look at each of 100,000 items, as Qt does."""
        return QRegion(self.viewport().rect())

    @Slot()
    def _go_on(self) -> None:
        """Scroll to the wanted row, if it has been laid out; its place follows from the size of the cells."""
        if self._wanted_row < 0:
            return
        across = max(1, self.viewport().width() // max(1, self.gridSize().width()))
        place = self._wanted_row // across * self.gridSize().height()
        lines = -(-self.model().rowCount() // across)
        end = lines * self.gridSize().height() - self.viewport().height()
        if self.isVisible() and self.verticalScrollBar().maximum() >= min(place, end):
            self._wanted_row = -1
            self.verticalScrollBar().setValue(place)

    @Slot()
    def _stay(self) -> None:
        """The user scrolls: no jump any more."""
        self._wanted_row = -1
