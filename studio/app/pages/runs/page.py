"""The Runs page: everything that was ever trained."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QSortFilterProxyModel, Qt, Signal, Slot
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLineEdit, QSplitter, QStackedWidget, QTableView

from studio.app.pages.base import Page
from studio.app.pages.runs.actions import RunActions
from studio.app.pages.runs.compare import Comparison
from studio.app.pages.runs.table import SORT_ROLE, RunTable
from studio.app.state.session import Session
from studio.app.widgets import factory

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary

_EMPTY = "Nothing has been trained yet. Every run that you start on the Train page is kept here."


class RunsPage(Page):
    """A table of runs; below it the curves and samples of those that are chosen. model_wanted: (Path) use this run."""

    model_wanted = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.filter = QLineEdit()
        self.table = QTableView()
        self.actions_row = RunActions(session)
        self.comparison = Comparison(session)
        self._rows = RunTable(self)
        self._sorted = QSortFilterProxyModel(self)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._stack = QStackedWidget()
        self._set_up_table()
        self._lay_out()
        self._connect()
        self._show_runs()

    def arrive(self) -> None:
        """Look at the runs' folders again: the command line may have trained."""
        self.session.runs.list_runs()

    def keep(self) -> None:
        """Remember the splitters."""
        self.session.settings.keep_layout("runs", self._splitter.saveState())
        self.comparison.keep()

    def selected(self) -> list[RunSummary]:
        """The chosen runs, from top to bottom."""
        rows = sorted(self.table.selectionModel().selectedRows(), key=QModelIndex.row)
        return [self._rows.at(self._sorted.mapToSource(row).row()) for row in rows]

    @Slot()
    def export_model(self) -> bool:
        """Export the chosen run's best model."""
        return self.actions_row.export_model()

    def _set_up_table(self) -> None:
        self._sorted.setSourceModel(self._rows)
        self._sorted.setSortRole(SORT_ROLE)
        self._sorted.setFilterKeyColumn(-1)
        self._sorted.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.table.setModel(self._sorted)
        self.table.setSortingEnabled(True)
        self.table.sortByColumn(8, Qt.SortOrder.DescendingOrder)
        self.table.setShowGrid(False)
        self.table.verticalHeader().hide()
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.table.setTabKeyNavigation(False)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        factory.describe(
            self.table, "Runs", "Choose one run to see it, or several to lay their curves over one another."
        )
        self.filter.setPlaceholderText("Filter")
        self.filter.setClearButtonEnabled(True)
        self.filter.setMaximumWidth(200)
        factory.describe(self.filter, "Filter", "Show only runs with this word in any column.")

    def _lay_out(self) -> None:
        margin = 3 * factory.GRID
        head = factory.row(factory.title("Runs"), 1, self.filter)
        self._splitter.addWidget(factory.panel(factory.column(self.table, self.actions_row)))
        self._splitter.addWidget(self.comparison)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setSizes([320, 360])
        self._splitter.restoreState(self.session.settings.layout("runs"))
        empty = factory.caption(_EMPTY)
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, empty, 1)))
        self._stack.addWidget(self._splitter)
        box = factory.column(head, self._stack, spacing=2 * factory.GRID)
        box.setContentsMargins(margin, margin, margin, factory.GRID)
        self.setLayout(box)

    def _connect(self) -> None:
        self.filter.textChanged.connect(self._sorted.setFilterFixedString)
        self.table.selectionModel().selectionChanged.connect(self._show_selected)
        self.actions_row.train_wanted.connect(self._go_to_training)
        self.actions_row.use_wanted.connect(self.model_wanted)
        self.comparison.save_wanted.connect(self._save_plot)
        self.comparison.filmstrip.save_wanted.connect(self._save_film)
        self.session.runs.listed.connect(self._show_runs)
        self.session.runs.trashed.connect(self._say_trashed)
        self.session.catalog.ready.connect(self._show_runs)

    @Slot()
    def _show_runs(self) -> None:
        chosen, current = {run.path for run in self.selected()}, self._path_at(self.table.currentIndex())
        self._rows.show_runs(self.session.runs.runs, self.session.catalog.recipes)
        self._stack.setCurrentIndex(1 if self.session.runs.runs else 0)
        self._choose(chosen, current)
        if not chosen and self._sorted.rowCount():
            self.table.selectRow(0)
        self._show_selected()

    def _choose(self, chosen: Collection[Path], current: Path | None) -> None:
        """Choose these runs where they are now, all at once, and give the keyboard its row back."""
        selection, flag = QItemSelection(), QItemSelectionModel.SelectionFlag
        for row in range(self._sorted.rowCount()):
            index = self._sorted.index(row, 0)
            path = self._path_at(index)
            if path in chosen:
                selection.select(index, index)
            if path == current and not self.table.currentIndex().isValid():
                self.table.selectionModel().setCurrentIndex(index, flag.NoUpdate)
        self.table.selectionModel().select(selection, flag.Select | flag.Rows)

    def _path_at(self, index: QModelIndex) -> Path | None:
        return self._rows.at(self._sorted.mapToSource(index).row()).path if index.isValid() else None

    @Slot()
    def _show_selected(self) -> None:
        chosen = self.selected()
        self.actions_row.set_runs(chosen)
        self.comparison.show_runs([run for run in chosen if run.record is not None])

    @Slot()
    def _go_to_training(self) -> None:
        self.page_wanted.emit("train")

    @Slot(object)
    def _say_trashed(self, path: Path) -> None:
        self.session.notify(f"'{path.name}' is in the trash.", "The system's trash gives it back if you miss it.")

    @Slot()
    def _save_plot(self) -> None:
        if self.comparison.plot is not None:
            self.save_plot(self.comparison.plot, "runs.png")

    @Slot()
    def _save_film(self) -> None:
        if self.comparison.filmed is not None:
            self.save_film(self.comparison.filmed)
