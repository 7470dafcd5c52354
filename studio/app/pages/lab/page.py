"""The Lab page: lessons and experiments on training with the user's devices, and a map of the sprites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Slot
from PySide6.QtWidgets import QComboBox, QListWidget, QListWidgetItem, QSplitter, QTabWidget, QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import SavedModel
from studio.app.pages.base import Page
from studio.app.pages.lab.code_runner import CodeRunner
from studio.app.pages.lab.lessons_page import LessonsPage
from studio.app.pages.lab.map_page import MapPage
from studio.app.pages.lab.result_view import ResultView
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.input import NoSecondPress
from studio.core import formatting
from studio.core.events import Progress
from studio.lab.results import Result

if TYPE_CHECKING:
    from studio.lab.experiments.base import Experiment

_START = "Run the experiment with the Train page's sprites, recipe, settings and device."
_START_FIXED = "Run the experiment with the Train page's sprites and device, and a recipe and settings of its own."
_START_INSIDE = "Inspect the chosen run's model on the Train page's device. The run stays unchanged."
_LOADING = "Loading PyTorch…"
_NOTHING = "No results yet."
_ABOUT = "Short experiments on training and on your runs. Training pauses meanwhile."
_LEAST_LETTERS = 10
_LINES = 3  # of an experiment in the list: the title in one line, the question in two lines
_ROLE = Qt.ItemDataRole.UserRole


class LabPage(Page):
    """The Lab page: tabs with the lessons, with the experiments and their results, and with the sprite map."""

    topic = "learn"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.history = session.setup.history
        self.lessons, self.map = LessonsPage(session), MapPage(session)
        self.tabs = QTabWidget()
        factory.name_tabs(self.tabs, "Lab tabs", "Switch between lessons, experiments and the sprite map.")
        self.experiments = QListWidget()
        self.title, self.question, self.about = factory.title(""), factory.text(), factory.caption("")
        self.run_choice = ModelChoice(session, only_runs=True)
        self.start = factory.button("Start", _START, "play", "primary", self._on_start_clicked)
        tip = "Stop the experiment and discard its results."
        self.cancel = factory.button("Cancel", tip, "close", slot=session.lab.cancel)
        NoSecondPress(self.cancel)
        self.progress = factory.ProgressBar()
        self.result = ResultBox("Result", "Earlier results, newest first.")
        self.compared = ResultBox("Compare with", "Show another result's curves too.")
        tip = "Save the shown results as a single HTML file."
        self.report = factory.button("Save report…", tip, "save", slot=self._on_save_report_clicked)
        tip = "Run the code in a process of its own, for at most a minute."
        self.program = CodeRunner(session.lessons.code_run(), "Code in plain PyTorch", "Run", tip)
        self.findings = ResultView(self.program)
        self._scroll = factory.scroll_area(self._right())
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        lab = session.lab
        session.catalog.ready.connect(self._on_catalog_ready)
        session.catalog.plots_ready.connect(self.findings.make_plots)
        session.setup.changed.connect(self._refresh)
        session.open_sprites.imported.connect(self._refresh)
        self.run_choice.changed.connect(self._refresh)
        lab.changed.connect(self._refresh)
        lab.progressed.connect(self._on_progressed)
        lab.outcome_changed.connect(self._on_outcome_changed)
        lab.listed.connect(self._on_results_listed)
        lab.done.connect(self._on_experiment_done)
        self.experiments.currentRowChanged.connect(self._on_experiment_chosen)
        self.result.currentIndexChanged.connect(self._refresh_result)
        self.compared.currentIndexChanged.connect(self._refresh_result)
        self.findings.use_requested.connect(self._on_use_requested)
        self.program.start_requested.connect(self._on_run_requested)
        self._on_catalog_ready()

    def before_show(self) -> None:
        """List the results again, since the command line may have added some."""
        self.cancel.setMinimumHeight(self.start.sizeHint().height())  # the page must not jump when buttons change
        self.session.lab.list_results()
        self.run_choice.list_checkpoints()
        self.lessons.before_show()

    def save_state(self) -> None:
        self.session.settings.set_layout("lab", self._splitter.saveState())
        self.lessons.save_state()
        self.map.save_state()

    def experiment(self) -> Experiment | None:
        """Return the chosen experiment; None without a choice."""
        item = self.experiments.currentItem()
        return self.session.catalog.experiments.get(item.data(_ROLE)) if item is not None else None

    def _lay_out(self) -> None:
        factory.set_name_and_tip(self.experiments, "Experiments", "Experiments to run.")
        self.experiments.setObjectName("experiments")
        self.experiments.setWordWrap(True)
        self.experiments.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.experiments.setSpacing(2)
        self.progress.setFixedHeight(factory.GRID)
        factory.retain_size_when_hidden(self.progress)
        self.progress.hide()
        self.cancel.hide()
        left = factory.column(factory.title("Lab"), factory.caption(_ABOUT), self.experiments, margin=2 * factory.GRID)
        self.run_choice.hide()
        parts = factory.panel(left), self._scroll
        factory.fill_splitter(self._splitter, parts, (300, 900), self.session.settings.layout("lab"), stretch=1)
        self.tabs.addTab(self.lessons, "Lessons")
        self.tabs.addTab(self._splitter, "Experiments")
        self.tabs.addTab(self.map, "Sprite map")
        self.setLayout(factory.column(self.tabs))

    def _right(self) -> QWidget:
        """Create the right side: the chosen experiment with a result. Everything scrolls, for plots in a low window."""
        buttons = factory.row(self.start, self.cancel, 1, self.report)
        choices = factory.row(factory.labelled("Result", self.result), factory.labelled("Compare with", self.compared))
        start = factory.column(buttons, self.about, spacing=factory.GRID // 2)
        parts = (self.title, self.question, self.run_choice, start, self.progress, choices, self.findings)
        return factory.panel(factory.column(*parts, margin=2 * factory.GRID, grows=len(parts) - 1))

    @Slot()
    def _on_catalog_ready(self) -> None:
        self.experiments.clear()
        known = self.session.catalog.experiments.values()
        inside = [experiment for experiment in known if experiment.subject == "run"]
        for experiment in sorted(known, key=lambda each: each.subject == "run"):
            if experiment in inside[:1]:
                self.experiments.addItem(factory.list_heading("Inspect a run"))
            item = QListWidgetItem(f"{experiment.title}\n{experiment.question}", self.experiments)
            item.setData(_ROLE, experiment.name)
            item.setTextAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
            item.setSizeHint(QSize(0, 2 * factory.GRID + _LINES * self.fontMetrics().lineSpacing()))
        self.experiments.setCurrentRow(0)
        self._on_experiment_chosen()

    def _source(self) -> SavedModel | None:
        """Return the model that the chosen experiment inspects; None for experiments without a run."""
        source, experiment = self.run_choice.source(), self.experiment()
        is_inside = experiment is not None and experiment.subject == "run"
        return source if is_inside and isinstance(source, SavedModel) else None

    @Slot()
    def _on_experiment_chosen(self) -> None:
        experiment = self.experiment()
        self.run_choice.setVisible(experiment is not None and experiment.subject == "run")
        self.title.setText(experiment.title if experiment is not None else "")
        self.question.setText(experiment.question if experiment is not None else _LOADING)
        self._on_results_listed()
        self._refresh()
        self._scroll.verticalScrollBar().setValue(0)

    @Slot()
    def _refresh(self) -> None:
        experiment, lab = self.experiment(), self.session.lab
        is_running = experiment is not None and lab.running is experiment
        self.progress.setVisible(is_running)
        problem = lab.problem(experiment, self._source()) if experiment is not None else _LOADING
        factory.set_enabled(self.start, "" if is_running else problem, self._start_tip())
        factory.show_instead(*((self.cancel, self.start) if is_running else (self.start, self.cancel)))
        self.run_choice.setEnabled(not is_running)
        if not is_running:
            self.about.setText(problem or self._plan())
        self._refresh_result()

    def _start_tip(self) -> str:
        """Return the tooltip of the enabled *Start*: what the experiment takes from the Train page."""
        recipe, config, experiment = self.session.setup.recipe, self.session.setup.config, self.experiment()
        if experiment is not None and experiment.subject == "run":
            return _START_INSIDE
        if experiment is None or recipe is None or config is None:
            return _START
        return _START if experiment.choose_recipe(recipe, config) == (recipe, config) else _START_FIXED

    def _plan(self) -> str:
        """Return what Start would run: recipe and sprites, or the run, with device and duration."""
        setup, sprites, experiment = self.session.setup, self.session.open_sprites.sprites, self.experiment()
        recipe, config, device, source = setup.recipe, setup.config, self.session.device_choice.device, self._source()
        if experiment is None or recipe is None or config is None or device is None:
            return ""
        if source is not None:
            title = self.session.runs.title_of(source.path)
            what = f"{title}, {self.run_choice.checkpoints.currentText().lower() or source.checkpoint}"
        elif sprites is not None:
            own_recipe, _ = experiment.choose_recipe(recipe, config)
            what = f"{own_recipe.title}, {formatting.count(len(sprites), 'sprite')}"
        else:
            return ""
        return f"{what}, on {device.name}: about {formatting.duration(experiment.seconds)}"

    @Slot()
    def _on_start_clicked(self) -> None:
        experiment = self.experiment()
        if experiment is not None:
            self.session.lab.start(experiment, self._source())
            self._on_progressed()

    @Slot()
    def _on_progressed(self) -> None:
        if self.session.lab.running is self.experiment():
            progress = self.session.lab.progress or Progress(0, 0, "")
            self.progress.show_progress(progress)
            self.about.setText(progress.text() if progress.total else progress.what)

    @Slot()
    def _on_outcome_changed(self) -> None:
        if self.session.lab.running is self.experiment():
            self.findings.show_outcome(self.session.lab.outcome)

    @Slot(object)
    def _on_experiment_done(self, result: Result) -> None:
        """Show the new result if its experiment is still chosen."""
        experiment = self.experiment()
        if experiment is not None and experiment.name == result.experiment:
            self.result.setCurrentIndex(0)

    @Slot()
    def _on_results_listed(self) -> None:
        """List the chosen experiment's results, and keep the shown result selected."""
        experiment, known = self.experiment(), self.session.lab.results
        results = [result for result in known if experiment is not None and result.experiment == experiment.name]
        self.result.fill(results)
        self.compared.fill([None, *results])
        self._refresh_result()

    @Slot()
    def _refresh_result(self) -> None:
        """Show the chosen result with the compared result's curves, or a running experiment's results so far."""
        lab, chosen, compared = self.session.lab, self.result.chosen(), self.compared.chosen()
        is_running = lab.running is not None and lab.running is self.experiment()
        reason = "The experiment is running." if is_running else "" if self.result.count() else _NOTHING
        factory.set_enabled(self.result, reason)
        factory.set_enabled(self.compared, reason)
        factory.set_enabled(self.report, "" if chosen is not None and not is_running else _NOTHING)
        if is_running:
            self.findings.show_outcome(lab.outcome)
        elif chosen is None:
            self.findings.clear(_NOTHING)
        else:
            self.findings.show_result(chosen, None if compared is chosen else compared, *lab.suggestion(chosen))

    @Slot(str)
    def _on_run_requested(self, code: str) -> None:
        self.program.run.run(code)

    @Slot()
    def _on_use_requested(self) -> None:
        chosen = self.result.chosen()
        if chosen is not None:
            self.session.lab.use(chosen)

    @Slot()
    def _on_save_report_clicked(self) -> None:
        chosen, compared = self.result.chosen(), self.compared.chosen()
        if chosen is None:
            return
        name = f"{formatting.local_time(chosen.created)[:10]} {chosen.title}.html"
        path = dialogs.choose_save_file(self, self.session.settings, "Save report", name, "HTML page (*.html)")
        if path is not None:
            others = [] if compared is None or compared is chosen else [compared]
            self.session.lab.save_report(path, [chosen, *others])


class ResultBox(ComboBox):
    """A combo box of results."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self._results: list[Result | None] = []
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(_LEAST_LETTERS)
        factory.set_name_and_tip(self, name, tip)

    def fill(self, results: Sequence[Result | None]) -> None:
        """List results, and keep the chosen result. Emits no signals. results: None makes an entry 'None'."""
        chosen, self._results = self.chosen(), list(results)
        with QSignalBlocker(self):
            self.clear()
            self.addItems(["None" if result is None else _called(result) for result in results])
            if chosen in self._results:
                self.setCurrentIndex(self._results.index(chosen))

    def chosen(self) -> Result | None:
        """Return the chosen result; None without a result."""
        index = self.currentIndex()
        return self._results[index] if index >= 0 else None


def _called(result: Result) -> str:
    """Return a result's name: '2026-11-24 14:37, generator, demo sprites, AMD EPYC'."""
    what = result.examined() or f"{result.recipe}, {result.data_title}"
    return f"{formatting.local_time(result.created)}, {what}, {result.device_name}"
