"""Requests to a model: generate, predict, export, distil; and saving the results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, SignalInstance

from studio.app.background import model_jobs, set_jobs
from studio.app.background.job_events import RunCheckpoints, SpritesColoured
from studio.app.background.job_queue import JobQueue, WorkerName
from studio.app.background.model_jobs import EditRequest, ModelCache, SavedModel
from studio.app.background.set_jobs import SetRequest, SetsCompleted
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import exporting, generate, model, provenance
from studio.core import events, paths
from studio.core.arrays import Rgba
from studio.core.config import Config
from studio.core.events import Classified, Event, Events, JobFailed, Notice, NumbersPredicted, Progress
from studio.core.formatting import count
from studio.data import import_result
from studio.data.colour.recolouring import ColourMode
from studio.data.importing.class_moves import load_edits
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.sampling.settings import GenerateSettings


class Inference(QObject):
    """Runs one request to a model at a time; a new request cancels the running one."""

    busy_changed = Signal()  # a request started or ended
    progressed = Signal(object)  # Progress
    generated = Signal(object)  # SpritesColoured
    completed = Signal(object)  # SetsCompleted
    example_found = Signal(str, object)  # name and cells, uint8 [C, S, S, 4], of a character from a run
    predicted = Signal(object, object)  # Sprites, and Classified or NumbersPredicted
    exported = Signal(object)  # Exported
    failed = Signal(object)  # JobFailed: the request failed
    checkpoints_listed = Signal(object)  # RunCheckpoints
    distilled = Signal(object)  # Distilled
    neighbours_found = Signal(object)  # NearestSprites
    verified = Signal(object)  # Verified

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._cache = ModelCache()
        self._job: Job | None = None
        self._recolouring: Job | None = None
        self._neighbour_search: Job | None = None
        self._predicted: Sprites | None = None  # the sprites of the last prediction
        self._signals: dict[type[Event], SignalInstance] = {
            Progress: self.progressed,
            SpritesColoured: self.generated,
            SetsCompleted: self.completed,
            RunCheckpoints: self.checkpoints_listed,
            events.Exported: self.exported,
            events.Distilled: self.distilled,
            events.Verified: self.verified,
            JobFailed: self.failed,
        }

    def is_busy(self) -> bool:
        """Return whether a request is running."""
        return self._job is not None

    def generate(
        self, source: SavedModel | Control, device: Device, settings: GenerateSettings,
        colours: ColourMode | None = None, request: EditRequest | None = None,
    ) -> None:  # fmt: skip
        """Generate sprites, then emit `generated`.

        colours: replaces the colours of the settings. request: the sprites to edit; None starts from noise.
        """
        chosen = colours or ColourMode(settings.true_pixels)
        job = partial(model_jobs.generate, self._cache, source, device, settings, chosen, request)
        self._begin("engine", "Generating", job)

    def complete(self, source: SavedModel | Control, device: Device, requests: Sequence[SetRequest]) -> None:
        """Draw the missing cells of characters, or new characters, then emit `completed`."""
        self._begin("engine", "Drawing", partial(set_jobs.complete_sets, self._cache, source, device, requests))

    def find_example(self, run: Path, number: int) -> None:
        """Read a character of a run's sprites, then emit `example_found`. number: counts through the characters."""
        job = partial(set_jobs.example_set, self._cache, run, number)
        self._job_queue.run("engine", "Reading an example", job, self._on_example_read, quiet=True)

    def recolour(self, colours: ColourMode, labels: NDArray[np.int64] | None = None) -> None:
        """Recolour recently generated sprites, then emit `generated`.

        labels: the labels array of the sprites to recolour, compared by identity; None for the latest sprites.
        """
        self._job_queue.abandon(self._recolouring)
        job = partial(model_jobs.recolour, self._cache, colours, labels)
        self._recolouring = self._job_queue.start("engine", "Changing colours", job, self._on_event)

    def find_neighbours(self, run: Path, sprite: Rgba) -> None:
        """Find the training sprites of a run nearest to `sprite`, uint8 [S, S, 4]; cancel the previous search."""
        self._job_queue.abandon(self._neighbour_search)
        job, found = partial(model_jobs.find_neighbours, self._cache, run, sprite), self.neighbours_found.emit
        self._neighbour_search = self._job_queue.run("engine", "Finding similar sprites", job, found, quiet=True)

    def predict(
        self, source: SavedModel | Control, device: Device, files: Sequence[Path], options: ImportOptions
    ) -> None:
        """Import sprites from files and predict their classes or numbers with a model, then emit `predicted`.

        options: import options, with the model's sprite size as canvas.
        """
        on_event = partial(self._on_import_event, source, device)
        self._begin("files", "Reading sprites", partial(_import_for_model, files, options), on_event)

    def distil(self, source: SavedModel, device: Device) -> None:
        """Distil a model into a network that draws faster."""
        self._begin("engine", "Preparing fast mode", partial(model_jobs.distil, source, device))

    def export(
        self, source: SavedModel | Control, device: Device, format_name: str, target: Path, config: Config
    ) -> None:
        """Export a model and verify the written file. config: the settings of the format."""

        def use(trained: model.TrainedModel) -> Events:
            return exporting.export(trained, format_name, target, config)

        self._begin("engine", "Exporting", partial(model_jobs.with_model, self._cache, source, device, use))

    def verify(self, path: Path) -> None:
        """Check whether a file is unchanged and belongs to its run, then emit `verified`."""
        self._job_queue.start("engine", f"Verifying {path.name}", lambda: provenance.verify(path), self._on_event)

    def list_checkpoints(self, run: Path) -> None:
        """List the checkpoints of a run, then emit `checkpoints_listed`."""
        job, listed = partial(model_jobs.list_checkpoints, run), self.checkpoints_listed.emit
        self._job_queue.run("engine", "Listing checkpoints", job, listed, quiet=True)

    def cancel(self) -> None:
        """Cancel the running request."""
        if self._job is not None:
            self._job_queue.cancel(self._job)

    def _begin(
        self, worker: WorkerName, title: str, job: Callable[[], Events],
        on_event: Callable[[Event], None] | None = None,
    ) -> None:  # fmt: skip
        """Cancel the running request and start a new request."""
        self._job_queue.abandon(self._job)
        on_job_event = partial(self._on_request_event, on_event or self._on_event)
        self._job = self._job_queue.start(worker, title, job, on_job_event, kind=title)
        self.busy_changed.emit()

    def _on_request_event(self, on_event: Callable[[Event], None], event: Event) -> None:
        if isinstance(event, JobEnded):
            self._job = None
            self.busy_changed.emit()
        else:
            on_event(event)

    def _on_import_event(self, source: SavedModel | Control, device: Device, event: Event) -> None:
        """Forward an event of the import. When the sprites are imported, start the prediction."""
        if not isinstance(event, SpritesImported):
            self._on_event(event)
            return
        self._predicted = event.sprites
        rgba = event.sprites.rgba

        def predict(trained: model.TrainedModel) -> Events:
            return generate.predict(trained, rgba)

        self._begin("engine", "Predicting", lambda: model_jobs.with_model(self._cache, source, device, predict))

    def _on_example_read(self, found: tuple[str, Rgba]) -> None:
        self.example_found.emit(*found)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Classified | NumbersPredicted):
            self.predicted.emit(self._predicted, event)
        elif (signal := self._signals.get(type(event))) is not None:
            signal.emit(event)


def _import_for_model(sources: Sequence[Path], options: ImportOptions) -> Events:
    """Import sprites for a prediction and warn about skipped files."""
    edits = load_edits(sources, options)
    with contextlib.closing(import_sprites(sources, options, paths.cache(), edits)) as imported:
        for event in imported:
            if isinstance(event, SpritesImported) and event.quarantine:
                title = f"No prediction for {count(len(event.quarantine), 'skipped file')}."
                yield Notice("warning", title, f"{import_result.most_common_reasons(event.quarantine)}.")
            yield event
