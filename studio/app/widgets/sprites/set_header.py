"""The header above a table of sets: views in the upper line, frames in the lower line, both renamed in place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHeaderView, QLineEdit, QTableView, QToolTip

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import KeyCommands, PlaceTips
from studio.data.sets.renaming import Axis

_PADDING = 4  # logical pixels beside and around a text
_WIDEST = 96  # logical pixels of a column widened for a name
_EDITOR, _BUBBLE = 112, 320  # smallest width of the name field, and width of the reason below


class CellNamer(Protocol):
    """Knows the editable names of views and frames, and renames views and frames."""

    def shown_name(self, axis: Axis, name: str) -> str:
        """Return a view's or frame's new name from the running import, or else the name itself."""

    def why_fixed(self, axis: Axis, name: str) -> str:
        """Return why the user can't edit a name, as a sentence; '' for an editable name."""

    def rename(self, axis: Axis, name: str, text: str) -> str:
        """Replace a name, and further names for a text with commas. Return why the text is refused; '' if accepted."""


class HeaderCell(NamedTuple):
    """A name in the header: a view's name over several columns, or a frame's name over a column."""

    axis: Axis
    name: str  # in the table
    shown: str  # in the header
    first: int  # first and last column under the name
    last: int


class SetHeader(QHeaderView):
    """A header in two lines. A double click edits a name in place; Tab goes on to the next name of the same kind.

    view_pressed: first and last column of the view that the user pressed.
    """

    view_pressed = Signal(int, int)

    def __init__(self, table: QTableView, namer: CellNamer) -> None:
        super().__init__(Qt.Orientation.Horizontal, table)
        self._table, self._namer = table, namer
        self._cells: list[tuple[str, str]] = []  # row and column by cell
        self.view_ends: frozenset[int] = frozenset()  # every view's last column, without the last view
        self._views: list[HeaderCell] = []
        self._frames: list[HeaderCell] = []  # empty if each view has a single, nameless frame
        self._edited: HeaderCell | None = None
        self._double_clicked: HeaderCell | None = None
        self._editor = NameEditor(self, table)
        self.setSectionsClickable(True)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setMinimumSectionSize(1)
        self._editor.finished.connect(self._on_finished)
        self._editor.cancelled.connect(self.close_editor)
        self.sectionResized.connect(self._place_editor)
        table.horizontalScrollBar().valueChanged.connect(self._on_scrolled)
        PlaceTips(self.viewport(), self._tip_at)

    def set_cells(self, cells: Sequence[str], *, is_same: bool) -> None:
        """Show cell names, 'down/step' or 'down'. is_same: only names differ, so an open name field stays open."""
        self._cells = [(row, column) for row, _, column in (cell.partition("/") for cell in cells)]
        if not is_same:
            self.close_editor()
        self.refresh_names()

    def refresh_names(self) -> None:
        """Show the names again, after some names changed."""
        named = any(column for _, column in self._cells)
        self._views, at = [], 0
        for row, group in groupby(row for row, _ in self._cells):
            end = at + len(list(group))
            self._views.append(HeaderCell("rows", row, self._namer.shown_name("rows", row), at, end - 1))
            at = end
        shown = {name: self._namer.shown_name("columns", name) for name in {column for _, column in self._cells}}
        frames = ((at, column) for at, (_, column) in enumerate(self._cells) if named)
        self._frames = [HeaderCell("columns", column, shown[column], at, at) for at, column in frames]
        self.view_ends = frozenset(view.last for view in self._views[:-1])
        if self._edited is not None:
            self._edited = self._cell_of(self._edited.axis, self._edited.first)
        self.updateGeometry()
        self.viewport().update()

    def column_width(self, cell: int) -> int:
        """Return a column width in logical pixels with room for short names. cell: least width."""
        metrics = self.fontMetrics()
        widths = [metrics.horizontalAdvance(frame.shown) for frame in self._frames]
        widths += [metrics.horizontalAdvance(view.shown) // (1 + view.last - view.first) for view in self._views]
        return max(cell, min(max(widths, default=0) + 2 * _PADDING, _WIDEST))

    def edit_name(self, axis: Axis, column: int) -> None:
        """Edit the name of the view or frame of a column in place, or say why that is impossible."""
        cell = self._cell_of(axis, column)
        if cell is None:
            return
        if reason := self._namer.why_fixed(axis, cell.name):
            QToolTip.showText(self.viewport().mapToGlobal(self._rect(cell).bottomLeft()), reason, self)
            return
        self._edited = cell
        self._editor.setAccessibleName("Name of the view" if axis == "rows" else "Name of the frame")
        self._editor.setText(cell.shown)
        self._editor.selectAll()
        self._editor.show_reason("")
        self._table.scrollTo(self._table.model().index(max(0, self._table.rowAt(0)), column))
        self._place_editor()
        self._editor.show()
        self._editor.setFocus()

    @Slot()
    def close_editor(self) -> None:
        """Close the field without renaming."""
        if self._edited is None:
            return
        self._edited = None
        self._editor.show_reason("")
        if self._editor.hasFocus():
            self._table.setFocus()
        self._editor.hide()

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self._line() * (2 if self._frames else 1) + 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a pressed view's columns, or a pressed frame's column."""
        cell = self._cell_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None and cell.axis == "rows":
            self.view_pressed.emit(cell.first, cell.last)
        else:
            super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._double_clicked = self._cell_at(event.position().toPoint())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Edit a double-clicked name once the button is up: the release would hide a tooltip."""
        super().mouseReleaseEvent(event)
        cell, self._double_clicked = self._double_clicked, None
        if cell is not None:
            self.edit_name(cell.axis, cell.first)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, current = theme.colours(), self._table.currentIndex().column()
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), QColor(colours.window))
            for cell in (*self._views, *self._frames):
                area = self._rect(cell)
                if area.right() < 0 or area.left() > self.viewport().width():
                    continue
                is_current = cell.first <= current <= cell.last and self._table.hasFocus()
                painter.setPen(QColor(colours.text if is_current or cell.axis == "rows" else colours.muted))
                shown = area.intersected(self.viewport().rect()).adjusted(_PADDING, 0, -_PADDING, 0)
                text = painter.fontMetrics().elidedText(cell.shown, Qt.TextElideMode.ElideRight, shown.width())
                if text != "…":
                    painter.drawText(shown, Qt.AlignmentFlag.AlignCenter, text)
                if cell.axis == "rows" and cell is not self._views[-1]:
                    painter.setPen(QPen(QColor(colours.border), 1))
                    painter.drawLine(area.right(), 0, area.right(), self.viewport().height())

    def _line(self) -> int:
        """Return the height of a line in logical pixels."""
        return self.fontMetrics().height() + 2 * _PADDING

    def _rect(self, cell: HeaderCell) -> QRect:
        """Return the rectangle of a name in the viewport."""
        left = self.sectionViewportPosition(cell.first)
        right = self.sectionViewportPosition(cell.last) + self.sectionSize(cell.last)
        return QRect(left, self._line() if cell.axis == "columns" else 0, right - left, self._line())

    def _cell_of(self, axis: Axis, column: int) -> HeaderCell | None:
        listed = self._views if axis == "rows" else self._frames
        return next((cell for cell in listed if cell.first <= column <= cell.last), None)

    def _cell_at(self, point: QPoint) -> HeaderCell | None:
        axis: Axis = "columns" if point.y() >= self._line() else "rows"
        return self._cell_of(axis, self.logicalIndexAt(point))

    def _tip_at(self, point: QPoint) -> str:
        cell = self._cell_at(point)
        if cell is None:
            return ""
        what, key = ("view", "F2") if cell.axis == "rows" else ("frame", "Shift+F2")
        reason = self._namer.why_fixed(cell.axis, cell.name)
        return f"{cell.shown}: {reason or f'rename this {what} by double-click or {key}.'}"

    @Slot()
    def _place_editor(self) -> None:
        """Move the field over its name, and the reason below the field."""
        if self._edited is not None:
            self._editor.place(self._rect(self._edited).intersected(self.viewport().rect()))

    @Slot()
    def _on_scrolled(self) -> None:
        self.viewport().update()  # the names of views stay in sight
        self._place_editor()

    @Slot(int, bool)
    def _on_finished(self, step: int, stays: bool) -> None:
        """Rename, and edit the neighbour at `step`. stays: keep the field open if the name is impossible."""
        cell = self._edited
        if cell is None:
            return
        text = self._editor.text()
        reason = self._namer.rename(cell.axis, cell.name, text) if text.strip() != cell.shown else ""
        if reason and stays:
            self._editor.show_reason(reason)
            return
        self.refresh_names()
        self.close_editor()
        column = cell.first - 1 if step < 0 else cell.last + 1
        if step and (cell.axis == "rows" or self._cell_of("rows", column) == self._cell_of("rows", cell.first)):
            self.edit_name(cell.axis, column)


class NameEditor(QLineEdit):
    """A field for a name in a header, with the reason for a refused name below.

    finished: by Enter or Tab, with the step to the next name (-1, 0 or 1) and True; or by leaving, with 0 and False.
    cancelled: by Esc.
    """

    finished = Signal(int, bool)
    cancelled = Signal()

    def __init__(self, header: QHeaderView, table: QTableView) -> None:
        super().__init__(header.viewport())
        self._header, self._table = header, table
        tip = "Type a name, or several names separated by commas. Enter renames, Tab goes on, Esc cancels."
        factory.set_name_and_tip(self, "Name", tip)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setTextMargins(0, 0, 0, 0)
        self._bubble = QFrame(table)
        self._reason = factory.FieldError(self, tip)
        theme.set_role(self._bubble, "card")
        self._bubble.setAutoFillBackground(True)
        self._bubble.setLayout(factory.column(self._reason, margin=factory.GRID))
        self._bubble.hide()
        KeyCommands(self, {}, {"Return": self.accept, "Enter": self.accept, "Esc": self.cancelled.emit})
        self.textEdited.connect(self._on_text_edited)
        self.hide()

    def place(self, area: QRect) -> None:
        """Move the field over a name, an area of the header's viewport, and the reason below the field."""
        room = self._header.viewport()
        width = max(area.width(), _EDITOR)
        left = max(0, min(area.center().x() - width // 2, room.width() - width))
        self.setGeometry(left, area.top(), width, area.height())
        self._place_bubble()

    def show_reason(self, reason: str) -> None:
        """Show why a name is refused; '' hides the reason."""
        self._reason.show_reason(reason)
        self._bubble.setVisible(bool(reason))
        self._bubble.raise_()
        self._place_bubble()

    def _place_bubble(self) -> None:
        across = min(_BUBBLE, self._header.viewport().width())
        self._bubble.resize(across, self._bubble.heightForWidth(across))
        below = self.mapTo(self._table, QPoint(0, self.height() + _PADDING))
        self._bubble.move(min(below.x(), self._table.width() - self._bubble.width()), below.y())

    @Slot()
    def _on_text_edited(self) -> None:
        self.show_reason("")

    @Slot()
    def accept(self) -> None:
        self.finished.emit(0, True)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Go to the next or previous name by Tab."""
        self.finished.emit(1 if forward else -1, True)
        return True

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        kept = (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason)
        if event.reason() not in kept and self.isVisible():
            self.finished.emit(0, False)
