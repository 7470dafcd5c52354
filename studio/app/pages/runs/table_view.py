"""The view of the table of runs: selection, filter, stars and names."""

from collections.abc import Collection
from pathlib import Path

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, Qt, Slot
from PySide6.QtWidgets import QHeaderView, QTableView

from studio.app.pages.runs.table import RUN_ROLE, Column, NameDelegate, RunFilter, RunTable
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.engine.runs.listing import RunSummary


class RunTableView(QTableView):
    """A table of the session's runs. The selection follows the runs when the rows change."""

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
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
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
        self.setColumnHidden(Column.TAGS, not any(run.notes.tags for run in runs))
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

    @Slot()
    def toggle_stars(self) -> None:
        """Star all selected runs, or remove the star if all have one."""
        chosen = self.selected()
        starred = not all(run.notes.starred for run in chosen)
        self._session.runs.star([run.path for run in chosen], starred=starred)

    def _select_near(self, row: int) -> None:
        """If no run is selected, select this row, or the last row of a shorter table."""
        if not self.selected() and self._sorted.rowCount():
            self.selectRow(min(row, self._sorted.rowCount() - 1))

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
            self._session.runs.star([run.path], starred=not run.notes.starred)

    @Slot(object, str)
    def _on_renamed(self, path: Path, name: str) -> None:
        self._session.runs.rename(path, name)

    @Slot(object)
    def _on_restored(self, paths: Collection[Path]) -> None:
        self._restored = set(paths)
