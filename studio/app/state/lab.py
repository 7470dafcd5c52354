"""The experiments of the Lab page and their saved results."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_queue import JobQueue, ignore
from studio.app.background.model_jobs import SavedModel
from studio.app.background.worker import Job, JobEnded
from studio.app.state.catalog import EngineCatalog
from studio.app.state.late import experiments, lab_report, running
from studio.app.state.runs.runs import RunList
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.setup import TrainingSetup
from studio.app.state.training.training import CurrentTraining
from studio.core.config import labelled_text, settings_of
from studio.core.events import Event, Events, Progress
from studio.lab import results
from studio.lab.outcome import Outcome
from studio.lab.results import ExperimentDone, Result

_log = logging.getLogger(__name__)


class Lab(QObject):
    """Runs one experiment at a time, on the open sprites and the chosen settings, or on a trained model.

    A training in this window pauses during the experiment.
    """

    changed = Signal()  # an experiment started or ended
    progressed = Signal()  # the experiment reported progress
    outcome_changed = Signal()  # `outcome` has new intermediate results
    listed = Signal()  # `results` changed
    done = Signal(object)  # Result
    saved = Signal(object)  # list of Path

    def __init__(
        self, job_queue: JobQueue, catalog: EngineCatalog, open_sprites: OpenSprites, setup: TrainingSetup,
        devices: DeviceChoice, training: CurrentTraining, runs: RunList, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._open_sprites, self._runs, self._devices = open_sprites, runs, devices
        self._job_queue, self._catalog, self._setup, self._training = job_queue, catalog, setup, training
        self._job: Job | None = None
        self._receive: Callable[[Event], None] = ignore  # receives each event of the running job
        self._resumes_training = False  # after the experiment
        self.running: experiments.Experiment | None = None
        self.progress: Progress | None = None
        self.outcome = Outcome()  # intermediate results of the running experiment
        self.results: list[Result] = []  # newest first
        training.state_changed.connect(self._on_training_changed)

    def problem(self, experiment: experiments.Experiment, source: SavedModel | None = None) -> str:
        """Return why this experiment can't start; empty if it can. source: the model to examine."""
        if self.running is not None:
            return f"'{self.running.title}' is running."
        needs_sprites, device = experiment.subject == "sprites", self._devices.device
        if problem := self._setup_problem(experiment) if needs_sprites else self._model_problem(experiment, source):
            return problem
        return experiment.obstacle(device) if device is not None else "Searching for devices…"

    def start(self, experiment: experiments.Experiment, source: SavedModel | None = None) -> None:
        """Start an experiment, unless `problem` returns a reason against it. source: the model to examine."""
        if self.problem(experiment, source):
            return
        operation = self._on_sprites(experiment) if source is None else self._inside(experiment, source)
        self.launch(experiment, f"Experiment: {experiment.title}", operation)

    def launch(
        self, experiment: experiments.Experiment, title: str, operation: Callable[[], Events],
        receive: Callable[[Event], None] = ignore,
    ) -> None:  # fmt: skip
        """Run an experiment or a lesson; the window's training pauses meanwhile. receive: called with each event."""
        if self._training.runs_in_window() and self._training.state in ("starting", "training"):
            self._resumes_training = True
            self._training.pause()
        self.running, self.progress, self.outcome, self._receive = experiment, None, Outcome(), receive
        self._job = self._job_queue.start("engine", title, operation, self._on_event)
        self.changed.emit()

    def _setup_problem(self, experiment: experiments.Experiment) -> str:
        """Return why an experiment can't train on the open sprites; empty if it can.

        An experiment with a recipe and settings of its own ignores the user's.
        """
        if problem := self._setup.missing():
            return problem
        recipe, config = self._setup.recipe, self._setup.config
        assert recipe is not None and config is not None, "`missing` returns a reason without a recipe"
        chosen = experiment.choose_recipe(recipe, config)
        invalid = self._setup.invalid() if chosen == (recipe, config) else ""
        return invalid or experiment.unsupported_reason(chosen[0]) or self._setup.unsuitable(chosen[0])

    def _model_problem(self, experiment: experiments.Experiment, source: SavedModel | None) -> str:
        """Return why an experiment can't examine a model; empty if it can."""
        if source is None:
            return "Train a model first."
        run = self._runs.at(source.path)
        recipe = self._catalog.recipes.get(run.record.recipe) if run is not None and run.record is not None else None
        return "The run can't be read." if recipe is None else experiment.unsupported_reason(recipe)

    def _on_sprites(self, experiment: experiments.Experiment) -> Callable[[], Events]:
        sprites, device = self._open_sprites.sprites, self._devices.device
        recipe, config = self._setup.recipe, self._setup.config
        assert sprites is not None and device is not None, "call `problem` first"
        assert recipe is not None and config is not None, "call `problem` first"

        def run() -> Events:
            context = experiment.context(recipe, config, sprites, device, experiment.seconds)
            return running.run_experiment(experiment, context)

        return run

    def _inside(self, experiment: experiments.Experiment, source: SavedModel) -> Callable[[], Events]:
        device = self._devices.device
        assert device is not None, "call `problem` first"
        return lambda: running.examine_run(experiment, source.path, source.checkpoint, device, experiment.seconds)

    def cancel(self) -> None:
        """Cancel the running experiment and discard its results."""
        if self._job is not None:
            self._job_queue.cancel(self._job)

    def list_results(self) -> None:
        """Load the saved results, including results from the command line."""
        on_read = partial(self._on_results_read, self.results)
        self._job_queue.run("files", "Loading results", results.load_results, on_read, background=True)

    def save_report(self, path: Path, chosen: list[Result]) -> None:
        """Write an HTML report about these results."""
        self._job_queue.run(
            "files", "Writing report", lambda: lab_report.save_report(path, chosen, replace=True), self.announce_saved
        )

    def suggestion(self, result: Result) -> tuple[str, str]:
        """Return the settings that a result suggests, as text, and why they can't be used.

        The text is empty if the result suggests no settings; the reason is empty if they can be used.
        """
        recipe, config = self._setup.recipe, self._setup.config
        suggested = _labelled_suggestions(result, self._catalog)
        words = ", ".join(f"{name}: {text}" for name, text in suggested.items())
        if not words:
            return "", ""
        if recipe is None or config is None or recipe.name != result.recipe:
            return words, f"Choose the recipe '{result.recipe}' on the Train page first."
        if all(getattr(config, name) == value for name, value in result.outcome.suggests.items()):
            return words, "The Train page already has these settings."
        return words, ""

    def use(self, result: Result) -> None:
        """Change the settings of the next training as a result suggests."""
        config = self._setup.config
        if config is not None and not self.suggestion(result)[1]:
            self._setup.edit_config(config.replace(**result.outcome.suggests))

    def _on_event(self, event: Event) -> None:
        self._receive(event)
        if isinstance(event, Progress):
            self.progress = event
            self.progressed.emit()
        elif isinstance(event, Outcome):
            self.outcome = event
            self.outcome_changed.emit()
        elif isinstance(event, ExperimentDone):
            self.results = [event.result, *self.results]
            self.listed.emit()
            self.done.emit(event.result)
        elif isinstance(event, JobEnded):
            self._job = self.running = self.progress = None
            resumes, self._resumes_training = self._resumes_training, False
            if resumes:
                self._training.resume()
            self.changed.emit()

    def _on_results_read(self, before: list[Result], read: tuple[list[Result], list[str]]) -> None:
        """Show the loaded results. before: value of `results` before the load; if it has changed, load again."""
        if self.results is not before:
            self.list_results()
            return
        found, problems = read
        for problem in problems:
            _log.warning("%s", problem)
        if found != self.results:
            self.results = found
            self.listed.emit()

    def announce_saved(self, path: Path) -> None:
        """Tell that a report or page was saved."""
        self.saved.emit([path])

    @Slot()
    def _on_training_changed(self) -> None:
        """Cancel the running experiment when a training starts or resumes, which would distort measurements."""
        is_training = self._training.owns_run() and self._training.state in ("starting", "training")
        if self.running is not None and is_training:
            self._resumes_training = False
            self.cancel()


def _labelled_suggestions(result: Result, catalog: EngineCatalog) -> dict[str, str]:
    """Return the values of the settings that a result suggests, as texts by the labels of the settings."""
    recipe = catalog.recipes.get(result.recipe)
    known = {item.name: item for item in settings_of(recipe.Config)} if recipe is not None else {}
    return dict(labelled_text(name, value, known.get(name)) for name, value in result.outcome.suggests.items())
