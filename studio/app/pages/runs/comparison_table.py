"""A table that compares runs: a row for each value, a column for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStackedWidget, QTableView, QWidget

from studio.app.widgets import factory

if TYPE_CHECKING:
    from studio.engine.runs.analysis.comparison import ComparisonRow

_WIDEST = 280  # logical pixels of a column; the tooltip shows longer texts in full
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_Index = QModelIndex | QPersistentModelIndex


class ComparisonTable(QWidget):
    """A table of values by run, or a message. Row titles stay visible while the columns scroll."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.view = QTableView()
        self.note = factory.caption("")
        self._model = _ComparisonModel(self)
        self._stack = QStackedWidget()
        self._nothing = factory.caption("")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._set_up_view()
        factory.set_name_and_tip(self.view, name, tip)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._nothing)
        self.setLayout(factory.column(self._stack, self.note))

    def show_rows(self, runs: Sequence[str], rows: Sequence[ComparisonRow], note: str = "") -> None:
        """Show these rows. runs: the runs' names. note: a text below the table."""
        self._model.show_rows(runs, rows)
        self._stack.setCurrentIndex(0)
        self._say(note)

    def show_message(self, message: str) -> None:
        self._model.show_rows((), ())
        self._nothing.setText(message)
        self._stack.setCurrentIndex(1)
        self._say("")

    def _say(self, note: str) -> None:
        self.note.setText(note)
        self.note.setVisible(bool(note))

    def _set_up_view(self) -> None:
        self.view.setModel(self._model)
        self.view.setShowGrid(False)
        self.view.setTabKeyNavigation(False)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setCornerButtonEnabled(False)
        across, down = self.view.horizontalHeader(), self.view.verticalHeader()
        across.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        across.setMaximumSectionSize(_WIDEST)
        down.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        down.setMinimumSectionSize(0)
        down.setDefaultSectionSize(self.fontMetrics().height() + factory.GRID)
        for header in (across, down):
            header.setDefaultAlignment(_LEFT)
            header.setHighlightSections(False)
            header.setSectionsClickable(False)


class _ComparisonModel(QAbstractTableModel):
    """Table model with a row for each value and a column for each run.

    If a row names the better direction, an extra first column shows it.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._runs: Sequence[str] = ()
        self._rows: Sequence[ComparisonRow] = ()
        self._before = 0  # columns before the runs' columns

    def show_rows(self, runs: Sequence[str], rows: Sequence[ComparisonRow]) -> None:
        """Show these rows. If only values have changed, keep the scroll position."""
        titles = [row.title for row in rows]
        is_same = (list(self._runs), [row.title for row in self._rows]) == (list(runs), titles)
        if not is_same:
            self.beginResetModel()
        self._runs, self._rows = runs, rows
        self._before = int(any(row.better for row in rows))
        if not is_same:
            self.endResetModel()
        elif rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, self.columnCount() - 1))

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._runs) + self._before

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        if orientation == Qt.Orientation.Vertical:
            return self._rows[section].title
        return self._runs[section - self._before] if section >= self._before else ""

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self._rows[index.row()], index.column() - self._before
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return row.marked()[column] if column >= 0 else row.better
        if role == Qt.ItemDataRole.FontRole and column in row.best:
            bold = QFont()
            bold.setBold(True)
            return bold
        return None
