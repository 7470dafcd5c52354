"""A sheet with its cells drawn over it, and the handles that move them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QRect, Signal, Slot
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from studio.app.widgets.cell_overlay import Look, draw_boxes, draw_cells
from studio.app.widgets.grid_handles import KINDS, Handle, Kind, moved, place_of
from studio.app.widgets.sheet_area import SheetArea
from studio.data.cells import Cells
from studio.data.grids import Grid

_IN_SIGHT = 12  # logical pixels between a handle that is used and the edges


class SheetCanvas(SheetArea):
    """grid_moved: (Grid) a handle was moved; the owner answers with `show_cells`."""

    grid_moved = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: Cells | None = None
        self._boxes: NDArray[np.int64] | None = None
        self._start: Grid | None = None  # when the drag of a handle began
        self.handles = {kind: Handle(kind, self.viewport()) for kind in KINDS}
        for handle in self.handles.values():
            handle.pressed.connect(self._take)
            handle.dragged.connect(self._drag)
            handle.nudged.connect(self._nudge)
            handle.focused.connect(self._show_handle)

    def show_cells(self, cells: Cells | None) -> None:
        """Draw the cells of a grid, with its handles; None draws none."""
        self._cells, self._boxes = cells, None
        self.refresh()

    def show_boxes(self, boxes: NDArray[np.int64] | None) -> None:
        """Draw boxes: int [n, 4], left, top, right and bottom, the last two excluded; None draws none."""
        self._cells, self._boxes = None, boxes
        self.refresh()

    def paint_over(self, painter: QPainter, place: QRect, look: Look) -> None:
        """Draw the cells or boxes."""
        if self._cells is not None:
            draw_cells(painter, place, look, self._cells)
        elif self._boxes is not None:
            draw_boxes(painter, place, look, self._boxes)

    def refresh(self) -> None:
        """Put the handles where they belong, and draw anew."""
        if self._cells is None and any(handle.hasFocus() for handle in self.handles.values()):
            self.setFocus()  # which would go anywhere
        for kind, handle in self.handles.items():
            handle.setVisible(self._cells is not None)
            if self._cells is not None:
                handle.put(self.point(*place_of(kind, self._cells.grid)))
        super().refresh()

    @Slot(str)
    def _take(self, kind: Kind) -> None:
        self._start = self._cells.grid if self._cells is not None else None

    @Slot(str, QPoint)
    def _drag(self, kind: Kind, by: QPoint) -> None:
        if self._start is not None:
            scale = self.devicePixelRatioF() / self.zoom()
            self.grid_moved.emit(moved(self._start, kind, round(by.x() * scale), round(by.y() * scale)))

    @Slot(str, int, int)
    def _nudge(self, kind: Kind, across: int, down: int) -> None:
        if self._cells is not None:
            self.grid_moved.emit(moved(self._cells.grid, kind, across, down))
            self._show_handle(kind)

    @Slot(str)
    def _show_handle(self, kind: Kind) -> None:
        """Scroll to where the handle can be seen."""
        middle = self.handles[kind].geometry().center()
        seen = self.viewport().rect().adjusted(_IN_SIGHT, _IN_SIGHT, -_IN_SIGHT, -_IN_SIGHT)
        across = min(max(middle.x(), seen.left()), seen.right())
        down = min(max(middle.y(), seen.top()), seen.bottom())
        self.scroll_by(middle - QPoint(across, down))
