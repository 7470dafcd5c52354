"""The view of the table of runs: selection, filter, stars and names."""

from collections.abc import Collection
from pathlib import Path

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, Qt, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTableView

from studio.app.pages.runs.table import HEADERS, RUN_ROLE, Column, NameDelegate, RunFilter, RunTable
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.engine.runs.listing import RunSummary

# The columns that stay longest in a narrow table come first. Star and name always stay.
_BY_IMPORTANCE = (
    Column.STATE, Column.VALIDATION, Column.RECIPE, Column.STARTED, Column.STEPS, Column.TAGS, Column.SPRITES,
    Column.TIME, Column.DISK, Column.DEVICE,
)  # fmt: skip
_EDIT_KEYS = (Qt.Key.Key_F2, Qt.Key.Key_Return, Qt.Key.Key_Enter)  # Return and Enter on macOS
_NAME_PX = 200  # smallest width of the name, unless all names are shorter
_HEADER_PX = 40  # room in a header beside its text


class RunTableView(QTableView):
    """A table of the session's runs. The selection follows the runs when the rows change.

    The name takes the free room. A narrow table hides its least important columns instead of scrolling.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._rows = RunTable(self)
        self._sorted = RunFilter(self._rows)
        self._restored: set[Path] = set()  # restored runs, to select once they are listed
        self.setModel(self._sorted)
        self.setSortingEnabled(True)
        self.sortByColumn(Column.STARTED, Qt.SortOrder.DescendingOrder)
        self.setItemDelegateForColumn(Column.NAME, NameDelegate(self))
        self.setEditTriggers(QTableView.EditTrigger.DoubleClicked | QTableView.EditTrigger.EditKeyPressed)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.ExtendedSelection)
        self.setTabKeyNavigation(False)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        header.sortIndicatorChanged.connect(self._fit_columns)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # see _fit_columns
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        factory.set_name_and_tip(self, "Runs", "Select a run to see it, or several to compare.")
        self.clicked.connect(self._on_cell_clicked)
        self._rows.renamed.connect(self._on_renamed)
        session.run_trash.restored.connect(self._on_restored)
        session.run_space.measured.connect(self.refresh_disk_use)

    def selected(self) -> list[RunSummary]:
        """Return the selected runs, from top to bottom."""
        return [row.data(RUN_ROLE) for row in sorted(self.selectionModel().selectedRows(), key=QModelIndex.row)]

    def refresh(self) -> None:
        """Show the listed runs and keep the selected runs selected, or select restored runs."""
        runs, current = self._session.runs.runs, self.currentIndex().data(RUN_ROLE)
        chosen = {run.path for run in self.selected()}
        row = min((index.row() for index in self.selectionModel().selectedRows()), default=0)
        if back := self._restored & {run.path for run in runs}:
            chosen, self._restored = back, set()
            self.clearSelection()
        self._rows.show_runs(runs, self._session.catalog.recipes)
        self._fit_columns()
        self._select_paths(chosen, current.path if current is not None else None)
        self._select_near(row)
        self.refresh_disk_use()

    def apply_filter(self, text: str, *, starred: bool) -> None:
        """Show only the runs with these words. starred: show only starred runs."""
        self._sorted.look_for(text, starred=starred)
        self._select_near(0)

    @Slot()
    def refresh_disk_use(self) -> None:
        self._rows.show_uses(self._session.run_space.uses)
        self._fit_columns()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move to the name before Qt handles an edit key, since only names can be edited."""
        current = self.currentIndex()
        if event.key() in _EDIT_KEYS and current.isValid():
            name = current.siblingAtColumn(Column.NAME)
            self.selectionModel().setCurrentIndex(name, QItemSelectionModel.SelectionFlag.NoUpdate)
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    @Slot()
    def _fit_columns(self) -> None:
        """Set the columns' widths, and hide the least important columns that don't fit; the sorted column stays."""
        sorted_by = self.horizontalHeader().sortIndicatorSection()
        order = [column for column in _BY_IMPORTANCE if column != Column.TAGS or self._has_tags()]
        order.sort(key=lambda column: column != sorted_by)  # stable: else by importance
        widths = {column: self._width_of(column) for column in (Column.STAR, Column.NAME, *order)}
        room = self.viewport().width() - widths[Column.STAR] - min(widths[Column.NAME], _NAME_PX)
        shown = {Column.STAR, Column.NAME}
        for column in order:
            room -= widths[column]
            if room < 0:
                break
            shown.add(column)
        for column in Column:
            self.setColumnHidden(column, column not in shown)
            if column in shown and column != Column.NAME:
                self.setColumnWidth(column, widths[column])

    def _has_tags(self) -> bool:
        return any(run.notes.tags for run in self._session.runs.runs)

    def _width_of(self, column: Column) -> int:
        """Return the width of a column's longest text or its header."""
        header = self.fontMetrics().horizontalAdvance(HEADERS[column]) + (_HEADER_PX if HEADERS[column] else 0)
        return max(self.sizeHintForColumn(column), header)

    @Slot()
    def toggle_stars(self) -> None:
        """Star all selected runs, or remove the star if all have one."""
        chosen = self.selected()
        starred = not all(run.notes.starred for run in chosen)
        self._session.run_notes.star([run.path for run in chosen], starred=starred)

    def _select_near(self, row: int) -> None:
        """Select a row, or the last row in a shorter table, unless a run is selected."""
        if not self.selected() and self._sorted.rowCount():
            index = self._sorted.index(min(row, self._sorted.rowCount() - 1), 0)
            flag = QItemSelectionModel.SelectionFlag
            # `selectRow` would extend the selection while the user holds Shift for a capital letter of the filter.
            self.selectionModel().setCurrentIndex(index, flag.ClearAndSelect | flag.Rows)

    def _select_paths(self, chosen: Collection[Path], current: Path | None) -> None:
        """Select these runs at their current rows, and make `current` the current row again."""
        selection, flag = QItemSelection(), QItemSelectionModel.SelectionFlag
        for row in range(self._sorted.rowCount()):
            index = self._sorted.index(row, 0)
            path = index.data(RUN_ROLE).path
            if path in chosen:
                selection.select(index, index)
            if path == current and not self.currentIndex().isValid():
                self.selectionModel().setCurrentIndex(index, flag.NoUpdate)
        self.selectionModel().select(selection, flag.Select | flag.Rows)

    @Slot(QModelIndex)
    def _on_cell_clicked(self, index: QModelIndex) -> None:
        if index.column() == Column.STAR:
            run = index.data(RUN_ROLE)
            self._session.run_notes.star([run.path], starred=not run.notes.starred)

    @Slot(object, str)
    def _on_renamed(self, path: Path, name: str) -> None:
        self._session.run_notes.rename(path, name)

    @Slot(object)
    def _on_restored(self, paths: Collection[Path]) -> None:
        self._restored = set(paths)
