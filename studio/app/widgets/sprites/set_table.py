"""A table of sets: a row per character, a column per view and frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRect,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import QBrush, QColor, QContextMenuEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView

from studio.app import keys, theme
from studio.app.widgets import factory
from studio.app.widgets.input import SelectionDrag, ZoomWheel
from studio.app.widgets.sprites.cell_view import NO_INDEX, Index, prepare_cell_table
from studio.app.widgets.sprites.grid import SpriteGrid, draw_state
from studio.app.widgets.sprites.set_header import CellNamer, SetHeader
from studio.core.formatting import count, number
from studio.data.sets.layout import GAP, NO_SETS, SetLayout

_WIDEST = 200  # logical pixels for set names
_MARGIN = 8  # logical pixels beside a set's name
_LONGEST = 50  # number of longest names to measure
_SELECTED = QStyle.StateFlag.State_Selected.value
_TEXTS = (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole)
_Role = Qt.ItemDataRole


class SetModel(QAbstractTableModel):
    """Table model for sets. layout: shown and hidden sets. shown: indices of the shown sets, int64 [n], ascending."""

    def __init__(self, grid: SpriteGrid) -> None:
        super().__init__(grid)
        self._sprites = grid.model
        self.layout = NO_SETS
        self.shown: NDArray[np.int64] = np.zeros(0, np.int64)

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.shown)

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.layout.cells)

    def sprite(self, row: int, column: int) -> int:
        """Return the sprite of a cell, or GAP."""
        return int(self.layout.table[self.shown[row], column])

    def is_missing(self, row: int, column: int) -> bool:
        """Return whether a gap means a missing cell, and not the end of a set with fewer frames."""
        return bool(self.layout.missing[self.shown[row], column])

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return the flags of a cell: the keyboard reaches gaps, but only sprites can be selected."""
        is_sprite = self.sprite(index.row(), index.column()) != GAP
        return Qt.ItemFlag.ItemIsEnabled | (Qt.ItemFlag.ItemIsSelectable if is_sprite else Qt.ItemFlag.NoItemFlags)

    def data(self, index: Index, role: int = _Role.DisplayRole) -> str | None:
        """Return the set, the cell and the sprite's name and class for the tooltip and screen readers."""
        if role not in _TEXTS:
            return None
        row, column = index.row(), index.column()
        name, cell, sprite = self.layout.sets[self.shown[row]], self.layout.cells[column], self.sprite(row, column)
        if sprite != GAP:
            return f"{name}, {cell}: {self._sprites.about(sprite)}"
        return f"{name} has no {cell}." if self.is_missing(row, column) else f"{name} has fewer frames."

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _Role.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            return self.layout.cells[section] if role in (_Role.DisplayRole, _Role.AccessibleTextRole) else None
        return self.layout.sets[self.shown[section]] if role in (_Role.DisplayRole, *_TEXTS) else None


class SetDelegate(QStyledItemDelegate):
    """Draws a cell: the sprite like the grid, missing cells hatched. chosen: bool [N], selected sprites."""

    def __init__(self, grid: SpriteGrid, model: SetModel, header: SetHeader) -> None:
        super().__init__(grid)
        self._sprites, self._model, self._header = grid.delegate, model, header
        self.chosen: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell. Keep this method fast: a table has thousands of cells."""
        area, state, row, column = option.rect, option.state.value, index.row(), index.column()
        sprite = self._model.sprite(row, column)
        if sprite != GAP:
            self._sprites.draw(painter, area, sprite, state)
            if sprite < len(self.chosen) and self.chosen[sprite] and not state & _SELECTED:  # in several cells
                painter.setPen(QPen(QColor(theme.colours().accent), 1))
                painter.drawRect(area.adjusted(1, 1, -2, -2))
        else:
            draw_state(painter, area, state)
            if self._model.is_missing(row, column):
                draw_gap(painter, area)
        if column in self._header.view_ends:
            painter.setPen(QPen(QColor(theme.colours().border), 1))
            painter.drawLine(area.topRight(), area.bottomRight())


def draw_gap(painter: QPainter, area: QRect) -> None:
    """Draw a hatched square in the middle of a cell."""
    side = min(area.width(), area.height()) - 2 * _MARGIN
    box = QRect(0, 0, side, side)
    box.moveCenter(area.center())
    colour = QColor(theme.colours().muted)
    painter.setPen(QPen(colour, 1, Qt.PenStyle.DotLine))
    colour.setAlpha(110)
    painter.setBrush(QBrush(colour, Qt.BrushStyle.BDiagPattern))
    painter.drawRect(box)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def _count(sets: int) -> str:
    return count(sets, "character")


class SetTable(QTableView):
    """Another view of a sprite grid, with the grid's selection, zoom, drags, keys, menu and large view.

    A sprite may fill several cells, because frames with equal pixels share a sprite.
    """

    def __init__(self, grid: SpriteGrid, namer: CellNamer) -> None:
        """Create a hidden table for `grid.show_instead`."""
        super().__init__(grid)
        self.hide()
        self._grid, self._rows, self._header = grid, SetModel(grid), SetHeader(self, namer)
        self._delegate = SetDelegate(grid, self._rows, self._header)
        self._leads, self._follows = False, False
        self._corner = factory.ElidedLabel("muted")
        self._corner.setParent(self)
        self.setModel(self._rows)
        self.setHorizontalHeader(self._header)
        self.setItemDelegate(self._delegate)
        prepare_cell_table(self)
        names = self.verticalHeader()
        names.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        names.setMinimumSectionSize(1)
        names.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        names.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        names.setHighlightSections(False)
        factory.set_name_and_tip(self, "Characters", "A row for each character, a column for each view and frame.")
        grid.zoom.changed.connect(self._fit_cells)
        grid.selection_changed.connect(self._on_grid_selection_changed)
        grid.menu_requested.connect(self.open_menu)
        drag = SelectionDrag(self)
        drag.is_enabled = grid.view.drag.is_enabled
        drag.begun.connect(grid.view.drag.begun)
        ZoomWheel(self).zoomed.connect(grid.zoom.step)
        self._header.view_pressed.connect(self._on_view_pressed)
        self.activated.connect(self._on_activated)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)
        keys.fixed_shortcut("F2", self, self.rename_view)
        keys.fixed_shortcut("Shift+F2", self, self.rename_frame)

    def show_sets(self, layout: SetLayout) -> bool:
        """Show every set in the grid's sprites. Return True if only cell names changed; the selection then stays."""
        old = self._rows.layout
        is_same = layout.sets == old.sets and np.array_equal(layout.table, old.table)
        if is_same:
            self._rows.layout = layout
        else:
            self._show(layout, np.arange(len(layout)))
        self._header.set_cells(layout.cells, is_same=is_same)
        self._fit_cells()
        return is_same

    def show_sets_with(self, sprites: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Show the sets that contain a sprite of `sprites`; None for every set. Return the sprites in the shown sets.

        Returns int64 [n], in the table's order, without repeats.
        """
        layout = self._rows.layout
        shown = np.arange(len(layout))
        if sprites is not None:
            shown = np.flatnonzero(np.isin(layout.table, sprites).any(axis=1))
        if not np.array_equal(shown, self._rows.shown):
            self._show(layout, shown)
        self._refresh_corner()
        filled = layout.table[shown]
        filled = filled[filled != GAP]
        _, first = np.unique(filled, return_index=True)
        order: NDArray[np.int64] = filled[np.sort(first)].astype(np.int64)
        return order

    def _show(self, layout: SetLayout, shown: NDArray[np.int64]) -> None:
        top = self.verticalScrollBar().value()
        self._rows.beginResetModel()
        self._rows.layout, self._rows.shown = layout, shown
        self._rows.endResetModel()
        self.verticalScrollBar().setValue(top)

    @Slot()
    def rename_view(self) -> None:
        """Edit the name of the current cell's view."""
        self._header.edit_name("rows", max(0, self.currentIndex().column()))

    @Slot()
    def rename_frame(self) -> None:
        """Edit the name of the current cell's frame."""
        self._header.edit_name("columns", max(0, self.currentIndex().column()))

    @Slot()
    def open_menu(self) -> None:
        """Select the current cell, and open the grid's context menu at the cell."""
        index = self.currentIndex()
        if not index.isValid() or self._rows.sprite(index.row(), index.column()) == GAP:
            return
        if not self.selectionModel().isSelected(index):
            self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.scrollTo(index)
        self._grid.menu.open_at(self.viewport().mapToGlobal(self.visualRect(index).center()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu for the sprite under the mouse, or for the current sprite by the Menu key."""
        index = self.indexAt(self.viewport().mapFromGlobal(event.globalPos()))
        event.accept()
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.open_menu()
        elif self.selectionModel().isSelected(index):  # the press has selected the sprite
            self._grid.menu.open_at(event.globalPos())

    def keyboardSearch(self, search: str) -> None:
        """Ignore typed letters, because commands use letter keys."""

    def updateGeometries(self) -> None:
        """Lay out the headers, and the number of sets in the corner between the headers."""
        super().updateGeometries()
        frame, names = self.frameWidth(), self.verticalHeader()
        self._corner.setGeometry(frame + _MARGIN, frame, names.width() - 2 * _MARGIN, self._header.height())

    def _refresh_corner(self) -> None:
        layout, shown = self._rows.layout, len(self._rows.shown)
        text = _count(len(layout)) if shown == len(layout) else f"{number(shown)} of {number(len(layout))}"
        gaps = f" {count(layout.gaps, 'cell')} missing." if layout.gaps else ""
        self._corner.show_text(text, f"{_count(len(layout))}.{gaps}")

    @Slot()
    def _fit_cells(self) -> None:
        """Fit rows and columns to the zoom and the names, and keep the top left cell."""
        cell: QSize = self._grid.delegate.cell(self.fontMetrics())
        width = self._header.column_width(cell.width())
        sides = (
            (self.verticalScrollBar(), self.verticalHeader(), cell.height()),
            (self.horizontalScrollBar(), self._header, width),
        )
        starts = [bar.value() / header.defaultSectionSize() for bar, header, _ in sides]
        for _, header, side in sides:
            header.setDefaultSectionSize(side)
        self._fit_names()
        for (bar, _, side), start in zip(sides, starts, strict=True):
            bar.setValue(round(start * side))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_names()

    def _fit_names(self) -> None:
        """Fit the width for set names: at most a quarter of the table, but enough for the number of sets."""
        names, longest = self.verticalHeader(), sorted(self._rows.layout.sets, key=len)[-_LONGEST:]
        across = names.fontMetrics().horizontalAdvance
        width = max(map(across, longest), default=0) + 3 * _MARGIN
        corner = across(_count(len(self._rows.layout))) + 3 * _MARGIN
        names.setFixedWidth(max(min(width, _WIDEST, self.width() // 4), corner))
        self.updateGeometries()

    @Slot()
    def _on_selection_changed(self) -> None:
        """Select the sprites of the selected cells in the grid."""
        self.viewport().update()
        if self._follows:
            return
        model, index = self._rows, self.currentIndex()
        chosen = np.zeros(self._rows.layout.table.shape, np.bool_)
        selection = self.selectionModel().selection()
        for part in (selection.at(at) for at in range(selection.size())):
            rows = model.shown[part.top() : part.bottom() + 1]
            chosen[rows, part.left() : part.right() + 1] = True
        sprites = np.unique(model.layout.table[chosen])
        sprites = sprites[sprites != GAP]
        self._leads = True
        if index.isValid() and (current := model.sprite(index.row(), index.column())) in sprites:
            self._grid.go_to(current)
        if len(sprites) != 1:
            self._grid.select(sprites.tolist())
        self._leads = False
        self._refresh_chosen()

    @Slot()
    def _on_grid_selection_changed(self) -> None:
        """Select the cells of the sprites selected in the grid."""
        if self._leads:
            return
        self._refresh_chosen()
        model, sprites = self._rows, self._grid.selected()
        cells = np.isin(model.layout.table[model.shown], sprites) if sprites else np.zeros((0, 0), np.bool_)
        self._follows = True
        if len(sprites) == 1 and cells.any():
            at = self.currentIndex()
            row, column = divmod(int(cells.argmax()), cells.shape[1])
            if not (at.isValid() and cells[at.row(), at.column()]):
                at = model.index(row, column)
            self.selectionModel().setCurrentIndex(at, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        else:
            self._select_cells(cells)
        self._follows = False

    def _select_cells(self, cells: NDArray[np.bool_]) -> None:
        """Select exactly these cells: bool [rows, columns], or empty."""
        selection = QItemSelection()
        for row in np.flatnonzero(cells.any(axis=1)).tolist():
            edges = np.flatnonzero(np.diff(np.concatenate([[0], cells[row].view(np.int8), [0]])))
            for first, end in edges.reshape(-1, 2).tolist():
                selection.select(self._rows.index(row, first), self._rows.index(row, end - 1))
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def _refresh_chosen(self) -> None:
        chosen = np.zeros(len(self._grid.model.rgba), np.bool_)
        chosen[self._grid.selected()] = True
        self._delegate.chosen = chosen
        self.viewport().update()

    @Slot(int, int)
    def _on_view_pressed(self, first: int, last: int) -> None:
        cells = np.zeros((self._rows.rowCount(), self._rows.columnCount()), np.bool_)
        cells[:, first : last + 1] = True
        self._select_cells(cells)

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        sprite = self._rows.sprite(index.row(), index.column())
        if sprite != GAP and self._grid.go_to(sprite):
            self._grid.activated.emit(sprite)
