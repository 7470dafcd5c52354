"""The Runs page: a table of all runs."""

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QLineEdit, QSplitter, QStackedWidget

from studio.app import keys
from studio.app.pages.base import Page
from studio.app.pages.runs.actions import RunActions
from studio.app.pages.runs.compare import Comparison
from studio.app.pages.runs.free_dialog import FreeSpaceDialog
from studio.app.pages.runs.notes import RunNotesRow
from studio.app.pages.runs.queue_panel import QueuePanel
from studio.app.pages.runs.table_view import RunTableView
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.wrapping import WrappingPanel
from studio.core.formatting import count, memory
from studio.engine.runs.maintenance.disk_use import SpaceFreed

_EMPTY = "No runs yet. Start one on the Train page."
_LOOKING = "Loading runs…"
_NO_MATCH = "No run matches the filter."
_LEAST_TABLE = 16 * factory.GRID  # logical pixels; height of the table's header and three runs
_LIST_MS = 5000  # interval while a run trains


class RunsPage(Page):
    """A table of runs, and below it the selected runs' curves and samples."""

    topic = "runs"

    model_requested = Signal(object)  # run folder: use this run's model

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.history = session.run_history
        self.filter = QLineEdit(placeholderText="Filter", clearButtonEnabled=True)
        self.filter.setMaximumWidth(200)
        about = "Show runs with these words in a column or note; 'tag:boss' finds a tag."
        factory.set_name_and_tip(self.filter, "Filter", about)
        self.starred = factory.tool_button("star", "Starred", "Show only starred runs.")
        self.starred.setCheckable(True)
        free = self._on_free_space_clicked
        self.free = factory.button("Free space…", "Delete old checkpoints and caches.", slot=free)
        self.table = RunTableView(session)
        self.actions_row = RunActions(session)
        self.notes = RunNotesRow(session)
        self.queue = QueuePanel(session)
        self.comparison = Comparison(session)
        self._disk_use = factory.text("", "muted", wrap=False)
        self.show_all = factory.button("Clear filter", "Show all runs.", slot=self._clear_filter)
        self._no_match = factory.panel(factory.row(factory.text(_NO_MATCH, "muted", wrap=False), self.show_all, 1))
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._stack = QStackedWidget()
        self._empty = factory.caption(_LOOKING)
        self.list_timer = QTimer(self, interval=_LIST_MS)
        self.list_timer.start()
        self._lay_out()
        self._connect()
        self._refresh_table()

    def before_show(self) -> None:
        """List the runs again, since the command line may have added some."""
        self.session.runs.list_runs()
        self.session.run_space.measure_again()

    def save_state(self) -> None:
        self.session.settings.set_layout("runs", self._splitter.saveState())
        self.comparison.save_state()

    def save_before_close(self) -> None:
        """Store half-typed notes and the splitter positions. Raises OSError."""
        self.notes.store(now=True)
        self.save_state()

    @Slot()
    def export_model(self) -> bool:
        """Open the export dialog for the selected run's best model. Return False if not possible."""
        return self.actions_row.export_model()

    def _lay_out(self) -> None:
        margin = 3 * factory.GRID
        head = factory.row(factory.title("Runs"), self._disk_use, 1, self.free, self.starred, self.filter)
        runs = factory.row(self.table, self.queue, spacing=2 * factory.GRID, grows=0)
        above = WrappingPanel(factory.column(self._no_match, runs, self.notes, self.actions_row))
        self.table.setMinimumHeight(_LEAST_TABLE)
        layout = self.session.settings.layout("runs")
        factory.fill_splitter(self._splitter, (above, self.comparison), (380, 300), layout)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, self._empty, 1)))
        self._stack.addWidget(factory.scroll_area(self._splitter))  # a low window scrolls; the plot keeps its height
        margins = margin, factory.GRID, margin, factory.GRID
        self.setLayout(factory.column(head, self._stack, spacing=2 * factory.GRID, margin=margins))

    def _connect(self) -> None:
        self.filter.textChanged.connect(self._on_filter_changed)
        self.starred.toggled.connect(self._on_filter_changed)
        keys.shortcut("star", self, self.table.toggle_stars)
        keys.shortcut("trash", self.table, self.actions_row.trash_by_key, Qt.ShortcutContext.WidgetShortcut)
        self.table.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self.actions_row.train_requested.connect(self._on_train_requested)
        self.actions_row.use_requested.connect(self.model_requested)
        self.comparison.save_requested.connect(self._on_save_plot)
        self.comparison.edit_requested.connect(self._on_edit_requested)
        self.comparison.filmstrip.save_requested.connect(self._on_save_timelapse)
        self.list_timer.timeout.connect(self._on_list_timer)
        self.session.runs.listed.connect(self._refresh_table)
        self.session.run_space.measured.connect(self._refresh_disk_use)
        self.session.run_space.freed.connect(self._on_freed)
        self.session.catalog.ready.connect(self._refresh_table)

    @Slot()
    def _on_list_timer(self) -> None:
        """List the runs again while a running training is visible."""
        if self.isVisible() and any(run.standing == "training" for run in self.session.runs.runs):
            self.session.runs.list_runs()

    @Slot()
    def _refresh_table(self) -> None:
        self.table.refresh()
        self._stack.setCurrentIndex(1 if self.session.runs.runs else 0)
        self._empty.setText(_EMPTY if self.session.runs.are_known else _LOOKING)
        self._on_selection_changed()
        if self.isVisible():
            self.session.run_space.measure()
        self._refresh_disk_use()

    @Slot()
    def _on_selection_changed(self) -> None:
        chosen = self.table.selected()
        self.actions_row.set_runs(chosen)
        self.notes.show_runs(chosen)
        self._no_match.setVisible(not self.table.model().rowCount())
        self.comparison.show_runs(chosen)

    @Slot()
    def _on_edit_requested(self) -> None:
        self.page_requested.emit("generate")

    @Slot()
    def _on_train_requested(self) -> None:
        self.page_requested.emit("train")

    @Slot()
    def _on_filter_changed(self) -> None:
        self.table.apply_filter(self.filter.text(), starred=self.starred.isChecked())
        self._on_selection_changed()  # Qt does not report the deselection of removed rows

    @Slot()
    def _clear_filter(self) -> None:
        self.starred.setChecked(False)
        self.filter.clear()

    @Slot()
    def _refresh_disk_use(self) -> None:
        """Show the disk space of the runs measured so far."""
        space, runs = self.session.run_space, self.session.runs.runs
        known = any(run.path in space.uses for run in runs)
        self._disk_use.setText(f"{count(len(runs), 'run')}, {memory(space.total_bytes())} on disk" if known else "")

    @Slot()
    def _on_free_space_clicked(self) -> None:
        FreeSpaceDialog(self.session, self.table.selected(), self).open()

    @Slot(object)
    def _on_freed(self, freed: SpaceFreed) -> None:
        self.session.notify(f"{memory(freed.size_bytes)} freed.")

    @Slot()
    def _on_save_plot(self) -> None:
        if self.comparison.plot is not None:
            self.save_plot(self.comparison.plot, "runs.png")

    @Slot()
    def _on_save_timelapse(self) -> None:
        if self.comparison.filmed is not None:
            self.save_film(self.comparison.filmed)
