"""A table that compares runs: a row for each value, a column for each run."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStackedWidget, QTableWidget, QTableWidgetItem, QWidget

from studio.app.widgets import factory
from studio.engine.runs.analysis.comparison import ComparisonRow

_WIDEST = 280  # logical pixels of a column; the tooltip shows longer texts in full
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ComparisonTable(QWidget):
    """A table of values by run, or a message. Row titles stay visible while the columns scroll.

    If a row names the better direction, an extra first column shows it.
    """

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.view = QTableWidget()
        self.note = factory.caption("")
        self._shown: tuple[list[str], list[str]] = ([], [])  # the titles of the columns and rows
        self._stack = QStackedWidget()
        self._nothing = factory.caption("")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._set_up_view()
        factory.set_name_and_tip(self.view, name, tip)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._nothing)
        self.setLayout(factory.column(self._stack, self.note))

    def show_rows(self, runs: Sequence[str], rows: Sequence[ComparisonRow], note: str = "") -> None:
        """Show these rows. If only values have changed, keep the scroll position.

        runs: the runs' names. note: a text below the table.
        """
        has_direction = any(row.better for row in rows)
        titles = ["", *runs] if has_direction else list(runs), [row.title for row in rows]
        if titles != self._shown:
            self._shown = titles
            self.view.clear()
            self.view.setColumnCount(len(titles[0]))
            self.view.setRowCount(len(rows))
            for column, title in enumerate(titles[0]):
                self.view.setHorizontalHeaderItem(column, _item(title))
            for index, row in enumerate(rows):
                self.view.setVerticalHeaderItem(index, _item(row.title))
        for index, row in enumerate(rows):
            if has_direction:
                self.view.setItem(index, 0, _item(row.better))
            for number, text in enumerate(row.marked()):
                self.view.setItem(index, number + has_direction, _item(text, is_bold=number in row.best))
        self._stack.setCurrentIndex(0)
        self._show_note(note)

    def show_message(self, message: str) -> None:
        self._nothing.setText(message)
        self._stack.setCurrentIndex(1)
        self._show_note("")

    def _show_note(self, note: str) -> None:
        self.note.setText(note)
        self.note.setVisible(bool(note))

    def _set_up_view(self) -> None:
        self.view.setShowGrid(False)
        self.view.setCornerButtonEnabled(False)
        self.view.setTabKeyNavigation(False)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
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


def _item(text: str, *, is_bold: bool = False) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    item.setToolTip(text)
    if is_bold:
        font = item.font()
        font.setBold(True)
        item.setFont(font)
    return item
