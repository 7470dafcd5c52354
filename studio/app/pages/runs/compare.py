"""Comparison of the selected runs: curves, settings, samples and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHeaderView, QSplitter, QStackedWidget, QTabBar, QTableWidget, QTableWidgetItem, QWidget

from studio.app.pages.confusion_panel import ConfusionPanel
from studio.app.pages.runs.samples_comparison import NO_SAMPLES, SamplesComparison
from studio.app.pages.sample_menu import SampleMenu
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.sprites.filmstrip import Filmstrip
from studio.app.widgets.wrapping import WrappingPanel
from studio.core.curves import MAX_CURVES
from studio.engine.runs.analysis import comparison
from studio.engine.runs.analysis.comparison import ComparedRun, ComparisonRow
from studio.engine.runs.history import ConfusionAtStep, HistoryRead, compared_curves
from studio.engine.runs.listing import RunSummary

if TYPE_CHECKING:
    from studio.app.widgets.plot.curves_plot import CurvesPlot

_MATRIX = "Confusion matrix"
_SECTIONS = ("Curves", "Settings", "Samples", "Figures", _MATRIX)
_NO_RUN = "Select a run to see its samples."
_DAMAGED = "Repair the file ('Open folder' shows the run's files), or move the run to the trash."
_WIDEST = 280  # logical pixels of a column; the tooltip shows longer texts in full
_LEAST_MATRIX = 2 * factory.LEAST_PLOT  # logical pixels; height of the class names and several rows
_READ_DELAY_MS = 150  # wait before reading, for users who scroll with the arrow keys


class Comparison(QWidget):
    """Tabs that compare the selected runs; a single run shows its curves and samples, and its confusion matrix."""

    save_requested = Signal()  # save the plot as a file
    edit_requested = Signal()  # a sample was opened in the editor

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._runs: list[RunSummary] = []
        self._no_run = _NO_RUN  # shown without a readable run
        self._read_as: dict[Path, RunSummary] = {}  # each run's summary at the time of reading
        self._read: dict[Path, HistoryRead] = {}
        self._drawn: list[Path] = []
        self._wanted = 0  # the tab chosen last; shown again for runs that can fill it
        self.filmed: Path | None = None  # the run of the shown samples
        self.plot: CurvesPlot | None = None
        self.filmstrip = Filmstrip()
        self.filmstrip.view.set_placeholder(_NO_RUN)
        self.sample_menu = SampleMenu(self.filmstrip.view, session, self._shown_samples)
        self.sections = QTabBar(drawBase=False, expanding=False, usesScrollButtons=False)
        self._limit_note = factory.text("", "muted", wrap=False)
        self.settings = ComparisonTable("Different settings", "Settings that differ between the selected runs.")
        self.samples = SamplesComparison(session)
        self.figures = ComparisonTable("Figures", "Progress and quality of the selected runs.")
        self.confusion = ConfusionPanel(session)
        self._head = factory.panel(factory.row(self.sections, 1, self._limit_note))
        self._stack = QStackedWidget()
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self._plot_box = factory.column()
        self._read_timer = QTimer(self, singleShot=True, interval=_READ_DELAY_MS)
        self._lay_out()
        for part in (self.sample_menu, self.samples):
            part.edit_requested.connect(self.edit_requested)
        self._read_timer.timeout.connect(self._read_missing_runs)
        self.sections.currentChanged.connect(self._on_section_chosen)
        session.runs.read.connect(self._on_run_read)
        session.catalog.plots_ready.connect(self._make_plot)

    def _lay_out(self) -> None:
        WheelNeedsFocus(self.sections)
        factory.set_name_and_tip(self.sections, "Comparison", "What to compare.")
        for name in _SECTIONS:
            self.sections.addTab(name)
        parts = WrappingPanel(self._plot_box), self.filmstrip
        factory.fill_splitter(self.splitter, parts, (600, 400), self._session.settings.layout("comparison"))
        for section in (self.splitter, self.settings, self.samples, self.figures, self.confusion):
            self._stack.addWidget(section)
        self.setLayout(factory.column(self._head, self._stack, grows=1))
        self._head.hide()

    def _shown_samples(self) -> tuple[Path, int] | None:
        """Return the run folder and the step of the shown samples; None without samples."""
        step = self.filmstrip.shown_step()
        return (self.filmed, step) if self.filmed is not None and step >= 0 else None

    def save_state(self) -> None:
        self._session.settings.set_layout("comparison", self.splitter.saveState())

    def show_runs(self, runs: Sequence[RunSummary]) -> None:
        """Show these runs, except damaged runs. Runs whose summary has changed are read again."""
        readable = [run for run in runs if run.record is not None]
        problem = runs[0].problem if runs and not readable else ""
        self._no_run = f"{problem}\n\n{_DAMAGED}" if problem else _NO_RUN
        if not readable:
            self.filmstrip.view.set_placeholder(self._no_run)
        if readable[:MAX_CURVES] != self._runs:
            self._runs = readable[:MAX_CURVES]
            self._read_timer.start()
        self._limit_note.setText(f"The first {MAX_CURVES} of {len(readable)}" if len(readable) > MAX_CURVES else "")

    @Slot()
    def _read_missing_runs(self) -> None:
        if not self.isVisible():
            return  # showEvent tries again
        paths = [run.path for run in self._runs]
        self._read = {path: read for path, read in self._read.items() if path in paths}
        missing = [run.path for run in self._runs if self._has_changed(run)]
        self._read_as = {run.path: run for run in self._runs}
        if missing:
            self._session.runs.read_runs(missing)
        if paths != self._drawn:  # otherwise wait for newer values
            self._draw()

    def _has_changed(self, run: RunSummary) -> bool:
        """Return whether the run must be read again; a running training always must."""
        return run.path not in self._read or self._read_as.get(run.path) != run or run.standing == "training"

    @Slot(object)
    def _on_run_read(self, read: HistoryRead) -> None:
        if any(run.path == read.path for run in self._runs):
            self._read[read.path] = read
            self._draw()

    @Slot()
    def _make_plot(self) -> None:
        """Make the plot when first shown, since this takes 70 ms."""
        if self.plot is not None or not self.isVisible() or not self._session.catalog.plots_are_ready:
            return
        from studio.app.widgets.plot.curves_plot import CurvesPlot

        self.plot = CurvesPlot()
        self.plot.canvas.setMinimumHeight(factory.LEAST_PLOT)
        self.plot.save_requested.connect(self.save_requested)
        self._plot_box.addWidget(self.plot)
        self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._make_plot()
        self._read_as.clear()  # the command line may have evaluated a run
        self._read_timer.start()

    def _draw(self) -> None:
        """Show curves and samples of the runs read so far. Keep the zoom if the runs are the same."""
        known = [self._read[run.path] for run in self._runs if run.path in self._read]
        before, self._drawn = self._drawn, [read.path for read in known]
        if self.plot is not None:
            titles = {run.path: run.title for run in self._runs}
            curves = [(titles[read.path], compared_curves(read.history)) for read in known]
            self.plot.set_curves(curves, keep_view=self._drawn == before)
        first = self._read.get(self._runs[0].path) if self._runs else None
        filmed_before, self.filmed = self.filmed, first.path if first is not None else None
        if self.filmed != filmed_before:
            self.filmstrip.clear()
        self.filmstrip.view.set_placeholder(NO_SAMPLES if first is not None else self._no_run)
        if first is not None:
            self.filmstrip.show_film(first.samples)
        self._refresh_section()

    @Slot(int)
    def _on_section_chosen(self, index: int) -> None:
        self._wanted = index
        self._refresh_section()

    def _refresh_section(self) -> None:
        """Show the chosen tab; hidden tabs are not computed."""
        self._fit_tabs()
        section = self.sections.currentIndex() if self._head.isVisibleTo(self) else 0
        self._stack.setCurrentIndex(section)
        self._stack.setMinimumHeight(_LEAST_MATRIX if section == _SECTIONS.index(_MATRIX) else 0)
        if section == _SECTIONS.index("Settings"):
            self._show_settings()
        elif section == _SECTIONS.index(_MATRIX):
            self._show_matrix()
        elif section:
            self._show_read(_SECTIONS[section])

    def _fit_tabs(self) -> None:
        """Show only the tabs that the selected runs can fill; wait until a single run is read."""
        one = self._read.get(self._runs[0].path) if len(self._runs) == 1 else None
        if len(self._runs) == 1 and one is None:
            return
        has_matrix = one is not None and _confusion_of(self._runs[0], one) is not None
        with QSignalBlocker(self.sections):
            for index, name in enumerate(_SECTIONS[1:], 1):
                self.sections.setTabVisible(index, has_matrix if name == _MATRIX else len(self._runs) > 1)
            self.sections.setCurrentIndex(self._wanted if self.sections.isTabVisible(self._wanted) else 0)
        self._head.setVisible(len(self._runs) > 1 or has_matrix)
        self.sections.updateGeometry()  # Qt forgets it when a tab or the bar is shown

    def _show_matrix(self) -> None:
        """Show the confusion matrix of the selected run, once it is read."""
        run = self._runs[0]
        read = self._read.get(run.path)
        found = None if read is None else _confusion_of(run, read)
        if run.record is not None and found is not None:
            names, attributes = run.record.class_names, run.record.attributes
            self.confusion.show_matrix(run.path, found.counts, names, found.predictions, found.attributes, attributes)

    def _show_settings(self) -> None:
        rows = comparison.differences([run.record for run in self._runs if run.record is not None])
        if rows:
            self.settings.show_rows([run.title for run in self._runs], rows)
        else:
            self.settings.show_message(comparison.NOTHING_DIFFERS)

    def _show_read(self, section: str) -> None:
        """Show samples or figures of the runs read so far."""
        known = [
            ComparedRun(run.title, run.record, run, self._read[run.path])
            for run in self._runs
            if run.record is not None and run.path in self._read
        ]
        missing = ", ".join(f"'{run.title}'" for run in self._runs if run.path not in self._read)
        note = f"Still reading: {missing}." if missing else ""
        if section == "Samples":
            self.samples.show_runs(known, note)
        else:
            note = f"{comparison.explain_best(known) if len(known) > 1 else ''} {note}".strip()
            self.figures.show_rows([run.name for run in known], comparison.comparison_rows(known), note)


def _confusion_of(run: RunSummary, read: HistoryRead) -> ConfusionAtStep | None:
    """Return a run's confusion matrix; None if the matrix is missing or does not fit the run's classes."""
    found = read.history.confusion
    is_known = found is not None and run.record is not None and len(found.counts) == len(run.record.class_names)
    return found if is_known else None


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
        self.view.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.view.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.view.setHorizontalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        across, down = self.view.horizontalHeader(), self.view.verticalHeader()
        across.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        across.setMaximumSectionSize(_WIDEST)
        down.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        down.setMinimumSectionSize(0)
        down.setDefaultSectionSize(self.fontMetrics().height() + factory.GRID)
        for header in (across, down):
            header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
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
