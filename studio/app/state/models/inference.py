"""Using models: generating, predicting, exporting, and saving what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background import job_events, model_jobs, sprite_jobs
from studio.app.background.job_queue import JobQueue, WorkerName
from studio.app.background.model_jobs import EditRequest, ModelCache, SavedModel, SpriteSelection
from studio.app.background.worker import Job, JobEnded
from studio.app.state.settings import Settings
from studio.core.arrays import Rgba
from studio.core.config import Config
from studio.core.events import (
    Classified,
    Distilled,
    Event,
    Events,
    Exported,
    JobFailed,
    NumbersPredicted,
    Progress,
    Verified,
)
from studio.data.colour.recolouring import ColourMode
from studio.data.importing.importing import ImportOptions, SpritesImported
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices.types import Device, GenerateSettings
from studio.exports.sprites.base import SpriteExport


class Inference(QObject):
    """Runs one request to a model at a time. busy_changed: a request started or ended. progressed: (Progress).

    generated: (SpritesColoured). predicted: (Sprites, Classified or NumbersPredicted). exported: (Exported).
    saved: (FilesSaved). failed: (JobFailed) the last request failed.
    checkpoints_listed: (CheckpointsListed). distilled: (Distilled). neighbours_found: (NeighboursFound).
    verified: (Verified).
    """

    busy_changed = Signal()
    progressed = Signal(object)
    generated = Signal(object)
    predicted = Signal(object, object)
    exported = Signal(object)
    failed = Signal(object)
    saved = Signal(object)
    checkpoints_listed = Signal(object)
    distilled = Signal(object)
    neighbours_found = Signal(object)
    verified = Signal(object)

    def __init__(self, job_queue: JobQueue, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._settings = settings
        self._shelf = ModelCache()
        self._job: Job | None = None
        self._recolouring: Job | None = None
        self._looking: Job | None = None
        self._shown: Sprites | None = None  # to the model, for its answer

    def is_busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._job is not None

    def generate(
        self,
        source: SavedModel | Control,
        device: Device,
        settings: GenerateSettings,
        colours: ColourMode | None = None,
        request: EditRequest | None = None,
    ) -> None:
        """Make new sprites, in the colours that the settings say or in others, from noise or what the request says."""
        chosen = colours or ColourMode(settings.true_pixels)
        events = model_jobs.generate(self._shelf, source, device, settings, chosen, request)
        self._begin("engine", "Generating", events)

    def recolour(self, colours: ColourMode, labels: NDArray[np.int64] | None = None) -> None:
        """Bring sprites into other colours: those that were made lately with these very labels, else the last ones."""
        self._job_queue.give_up(self._recolouring)
        self._recolouring = self._job_queue.start(
            "engine", "Changing the colours", model_jobs.recolour(self._shelf, colours, labels), self._hand_on
        )

    def find_neighbours(self, run: Path, sprite: Rgba) -> None:
        """Look for what is nearest to uint8 [S, S, 4] among the sprites that a run learns from."""
        self._job_queue.give_up(self._looking)
        events = model_jobs.find_neighbours(self._shelf, run, sprite)
        self._looking = self._job_queue.start("engine", "Looking for similar sprites", events, self._hand_on_found)

    def predict(
        self, source: SavedModel | Control, device: Device, paths: Sequence[Path], options: ImportOptions
    ) -> None:
        """Read sprites from files, with a canvas of the model's size, and ask what the model says of them."""
        look = partial(self._look, partial(model_jobs.predict, self._shelf, source, device))
        self._begin("files", "Reading sprites", sprite_jobs.read_for_model(paths, options), look)

    def distil(self, source: SavedModel, device: Device) -> None:
        """Teach a network to draw quickly what this model draws."""
        self._begin("engine", "Teaching to draw quickly", model_jobs.distil(source, device))

    def export(
        self, source: SavedModel | Control, device: Device, format_name: str, target: Path, config: Config
    ) -> None:
        """Write a model in a format with its settings, and read it back."""
        events = model_jobs.export(self._shelf, source, device, format_name, target, config)
        self._begin("engine", "Exporting", events)

    def save_files(self, folder: Path, picked: SpriteSelection) -> None:
        """Write one PNG for each sprite."""
        events = model_jobs.save_files(folder, picked.told(self._settings.tells_source()))
        self._job_queue.start("files", "Saving sprites", events, self._receive_saved)

    def save_file(self, path: Path, picked: SpriteSelection) -> None:
        """Write one sprite as this PNG file."""
        events = model_jobs.save_file(path, picked.told(self._settings.tells_source()))
        self._job_queue.start("files", "Saving the sprite", events, self._receive_saved)

    def save_sprites(self, path: Path, form: SpriteExport, picked: SpriteSelection, columns: int) -> None:
        """Write all sprites in one format."""
        events = model_jobs.save_sprites(path, form, picked.told(self._settings.tells_source()), columns)
        self._job_queue.start("files", "Saving sprites", events, self._receive_saved)

    def save_samples(
        self, run: Path, step: int, path: Path, form: SpriteExport, picked: SpriteSelection, columns: int
    ) -> None:
        """Write live samples of a run in one format."""
        if self._settings.tells_source():
            events = model_jobs.save_samples(run, step, path, form, picked, columns)
            self._job_queue.start("files", "Saving samples", events, self._receive_saved)
        else:
            self.save_sprites(path, form, picked, columns)

    def save_film(self, run: Path, path: Path, form: SpriteExport) -> None:
        """Write how a run learnt, as an animation."""
        events = model_jobs.save_film(run, path, form, self._settings.tells_source())
        self._job_queue.start("files", "Saving the film", events, self._receive_saved)

    def verify(self, path: Path) -> None:
        """Look whether a file is as it was, and belongs to its run."""
        self._job_queue.start("engine", f"Verifying {path.name}", model_jobs.verify(path), self._hand_on)

    def list_checkpoints(self, path: Path) -> None:
        """Ask for the checkpoints of a run."""
        self._job_queue.start("engine", "Looking for checkpoints", model_jobs.list_checkpoints(path), self._hand_on)

    def cancel(self) -> None:
        """Give up on the answer."""
        if self._job is not None:
            self._job_queue.cancel(self._job)

    def _begin(
        self, place: WorkerName, title: str, events: Events, receive: Callable[[Event], None] | None = None
    ) -> None:
        self._job_queue.give_up(self._job)
        receive = partial(self._receive, receive or self._hand_on)
        self._job = self._job_queue.start(place, title, events, receive, kind=title)
        self.busy_changed.emit()

    def _receive(self, receive: Callable[[Event], None], event: Event) -> None:
        if isinstance(event, JobEnded):
            self._job = None
            self.busy_changed.emit()
        else:
            receive(event)

    def _look(self, question: Callable[[Rgba], Events], event: Event) -> None:
        """Once the sprites are read, the question itself is asked."""
        if isinstance(event, SpritesImported):
            self._shown = event.sprites
            self._begin("engine", "Looking at sprites", question(event.sprites.rgba))
        else:
            self._hand_on(event)

    def _receive_saved(self, event: Event) -> None:
        if isinstance(event, job_events.FilesSaved):
            self.saved.emit(event)

    def _hand_on_found(self, event: Event) -> None:
        if isinstance(event, job_events.NeighboursFound):
            self.neighbours_found.emit(event)

    def _hand_on(self, event: Event) -> None:
        signals: dict[type[Event], Callable[[Event], None]] = {
            Progress: self.progressed.emit,
            job_events.SpritesColoured: self.generated.emit,
            Exported: self.exported.emit,
            JobFailed: self.failed.emit,
            job_events.CheckpointsListed: self.checkpoints_listed.emit,
            Distilled: self.distilled.emit,
            Verified: self.verified.emit,
        }
        if isinstance(event, Classified | NumbersPredicted):
            self.predicted.emit(self._shown, event)
        elif type(event) in signals:
            signals[type(event)](event)
