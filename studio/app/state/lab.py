"""The experiments of the Lab page: one at a time, on the open sprites or a run, and what was found out before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_queue import JobQueue
from studio.app.background.late_import import LateModule
from studio.app.background.model_jobs import SavedModel
from studio.app.background.worker import Job, JobEnded
from studio.app.state.catalog import EngineCatalog
from studio.app.state.runs.runs import RunList
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.setup import TrainingSetup
from studio.app.state.training.training import CurrentTraining
from studio.core.config import Value, settings_of
from studio.core.events import Event, Events, Progress
from studio.lab import results
from studio.lab.outcome import Outcome
from studio.lab.results import ExperimentDone, Result

if TYPE_CHECKING:
    from studio.lab import report, running
    from studio.lab.experiments import base
    from studio.lab.experiments.base import Experiment
else:
    report, running = LateModule("studio.lab.report"), LateModule("studio.lab.running")
    base = LateModule("studio.lab.experiments.base")

_log = logging.getLogger(__name__)


class Lab(QObject):
    """Runs experiments with what a training would take: sprites, recipe, settings and device; or on a run.

    A training is paused for an experiment and goes on after it.

    changed: an experiment began or ended. progressed: the running one went on. outcome_changed: it has found out more.
    listed: `results` are others. done: (Result). saved: (list of Path).
    """

    changed = Signal()
    progressed = Signal()
    outcome_changed = Signal()
    listed = Signal()
    done = Signal(object)
    saved = Signal(object)

    def __init__(
        self, job_queue: JobQueue, catalog: EngineCatalog, setup: TrainingSetup, devices: DeviceChoice,
        training: CurrentTraining, runs: RunList, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._runs, self._devices = runs, devices
        self._job_queue, self._catalog, self._setup, self._training = job_queue, catalog, setup, training
        self._job: Job | None = None
        self._training_goes_on = False  # once the experiment has ended
        self.running: Experiment | None = None
        self.progress: Progress | None = None
        self.outcome = Outcome()  # of the running one, up to now
        self.results: list[Result] = []  # the newest first
        training.state_changed.connect(self._on_training_changed)

    def problem(self, experiment: Experiment, source: SavedModel | None = None) -> str:
        """Why this experiment can't be started, in a sentence; empty when it can. source: what it is to look into."""
        if self.running is not None:
            return f"'{self.running.title}' is under way."
        device = self._devices.device
        if problem := self._setup.problem() if experiment.subject == "sprites" else self._lacks(experiment, source):
            return problem
        return experiment.obstacle(device) if device is not None else "Devices are still being looked for."

    def start(self, experiment: Experiment, source: SavedModel | None = None) -> None:
        """Run it, unless there is a `problem`. source: the run and the checkpoint that it is to look into."""
        if self.problem(experiment, source):
            return
        operation = self._on_sprites(experiment) if source is None else self._inside(experiment, source)
        if self._training.runs_in_window() and self._training.state in ("starting", "training"):
            self._training_goes_on = True
            self._training.pause()
        self.running, self.progress, self.outcome = experiment, None, Outcome()
        self._job = self._job_queue.start("engine", f"Experiment: {experiment.title}", operation, self._on_event)
        self.changed.emit()

    def _lacks(self, experiment: Experiment, source: SavedModel | None) -> str:
        """What is missing, or doesn't fit, of the run that is to be looked into."""
        if source is None:
            return "Train a model first: there is no run to look into yet."
        run = self._runs.at(source.path)
        recipe = self._catalog.recipes.get(run.record.recipe) if run is not None and run.record is not None else None
        return "The run can't be read." if recipe is None else experiment.unsupported_reason(recipe)

    def _on_sprites(self, experiment: Experiment) -> Callable[[], Events]:
        request = self._setup.request()
        assert request is not None, "there is no problem"
        sprites, recipe, config, device, *_ = request

        def run() -> Events:
            context = base.ExperimentContext.of(recipe, config, sprites, device, experiment.seconds)
            return running.run_experiment(experiment, context)

        return run

    def _inside(self, experiment: Experiment, source: SavedModel) -> Callable[[], Events]:
        device = self._devices.device
        assert device is not None, "there is no problem"
        return lambda: running.look_inside(experiment, source.path, source.checkpoint, device, experiment.seconds)

    def cancel(self) -> None:
        """End the running experiment; nothing of it is kept."""
        if self._job is not None:
            self._job_queue.cancel(self._job)

    def list_results(self) -> None:
        """Read the saved results of this window and of the command line."""
        self._job_queue.run("files", "Loading results", results.kept, self._on_results_read, background=True)

    def save_report(self, path: Path, chosen: list[Result]) -> None:
        """Write an HTML report about these results."""
        self._job_queue.run(
            "files", "Writing report", lambda: report.save_report(path, chosen, replace=True), self._on_report_saved
        )

    def suggestion(self, result: Result) -> tuple[str, str]:
        """What to do with a result ('Use 128 as batch size'), and why that can't be done now; both may be empty."""
        recipe, config = self._setup.recipe, self._setup.config
        words = " and ".join(f"{_in_words(value)} as {name}" for name, value in _named(result, self._catalog).items())
        if not words:
            return "", ""
        if recipe is None or config is None or recipe.name != result.recipe:
            return f"Use {words}", f"It was found for the recipe '{result.recipe}': choose that on the Train page."
        if all(getattr(config, name) == value for name, value in result.outcome.suggests.items()):
            return f"Use {words}", "The settings have it already."
        return f"Use {words}", ""

    def use(self, result: Result) -> None:
        """Change the settings as a result suggests."""
        config = self._setup.config
        if config is not None and not self.suggestion(result)[1]:
            self._setup.set_config(config.replace(**result.outcome.suggests))

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progress = event
            self.progressed.emit()
        elif isinstance(event, Outcome):
            self.outcome = event
            self.outcome_changed.emit()
        elif isinstance(event, ExperimentDone):
            self.results.insert(0, event.result)
            self.listed.emit()
            self.done.emit(event.result)
        elif isinstance(event, JobEnded):
            self._job = self.running = self.progress = None
            goes_on, self._training_goes_on = self._training_goes_on, False
            if goes_on:
                self._training.resume()
            self.changed.emit()

    def _on_results_read(self, read: tuple[list[Result], list[str]]) -> None:
        found, problems = read
        for problem in problems:
            _log.warning("%s", problem)
        if found != self.results:
            self.results = found
            self.listed.emit()

    def _on_report_saved(self, path: Path) -> None:
        self.saved.emit([path])

    @Slot()
    def _on_training_changed(self) -> None:
        """A training that goes on would be measured with the experiment, and slowed by it."""
        goes_on = self._training.owns_run() and self._training.state in ("starting", "training")
        if self.running is not None and goes_on:
            self._training_goes_on = False
            self.cancel()


def _named(result: Result, catalog: EngineCatalog) -> dict[str, Value]:
    """What a result suggests, by the settings' names for people."""
    recipe = catalog.recipes.get(result.recipe)
    labels = {item.name: item.label for item in settings_of(recipe.Config)} if recipe is not None else {}
    named = {labels.get(name, name.replace("_", " ")): value for name, value in result.outcome.suggests.items()}
    return {name if name[:2].isupper() else f"{name[:1].lower()}{name[1:]}": value for name, value in named.items()}


def _in_words(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
