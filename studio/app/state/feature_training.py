"""Trains the feature network of the open sprites in advance, which saves time in a training."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.catalog import EngineCatalog
from studio.app.state.lab import Lab
from studio.app.state.late import outliers
from studio.app.state.sprites.doctor import SpriteDoctor
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.state.training.device_choice import DeviceChoice
from studio.app.state.training.training import CurrentTraining
from studio.core.arrays import Rgba
from studio.core.events import Event
from studio.data.doctor.findings import SpritesChecked
from studio.data.doctor.neighbours import Analysis

TITLE = "Analysing sprites"
_ABOUT = (
    "Trains a small network that compares sprites. The Doctor uses it to find unusual sprites, and trainings use it to "
    "measure quality. If you cancel, the next training trains this network."
)


class FeatureTraining(QObject):
    """Trains the network that computes quality features, while no training or experiment runs.

    The sprite doctor receives the outliers that the network finds. The job takes seconds; inside a training, the same
    work would take minutes. The job pauses during a training or an experiment. After exclusions, the job goes on with
    the remaining sprites; after changes of pixels, it starts again. After a cancellation by the user, it does not start
    again for the same sprites.
    """

    def __init__(
        self, job_queue: JobQueue, open_sprites: OpenSprites, doctor: SpriteDoctor, catalog: EngineCatalog,
        devices: DeviceChoice, training: CurrentTraining, lab: Lab, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._job_queue, self._open_sprites, self._doctor = job_queue, open_sprites, doctor
        self._catalog, self._devices, self._training, self._lab = catalog, devices, training, lab
        self._job: Job | None = None
        self._analysis: Analysis | None = None  # analysis by the running or last job; None after a cancellation
        self._checked: Rgba | None = None  # pixels of the job's last result
        self._seen: Rgba | None = None  # pixels of the last compared sprites, even after a cancellation
        for changed in (
            catalog.ready, catalog.devices_found, training.state_changed, lab.changed,
        ):  # fmt: skip
            changed.connect(self._refresh)
        open_sprites.imported.connect(self._on_imported)

    @Slot()
    def _on_imported(self) -> None:
        """Compare the imported sprites. A class move changes no pixels, so the network and its results stay."""
        sprites = self._open_sprites.sprites
        if sprites is None or sprites.rgba is self._seen:
            return
        if self._job is None:
            self._refresh()
        elif self._analysis is not None and self._analysis.accepts(sprites):
            self._analysis.compared, self._seen = sprites, sprites.rgba
        else:
            self._seen = None
            self._job_queue.cancel(self._job)

    @Slot()
    def _refresh(self) -> None:
        """Pause the job during a training or an experiment; start a job if sprites, recipe and device are known."""
        sprites, recipe, device = self._open_sprites.sprites, self._catalog.drawing_recipe(), self._devices.device
        must_wait = self._training.owns_run() or self._lab.running is not None
        if self._job is not None:
            (self._job_queue.pause if must_wait else self._job_queue.resume)(self._job)
        elif sprites is None or device is None or recipe is None or must_wait:
            return
        elif sprites.rgba is not self._seen:
            if self._analysis is None or not self._analysis.accepts(sprites):
                self._analysis = Analysis(sprites)
            self._analysis.compared, self._seen, self._checked = sprites, sprites.rgba, None
            analysis = self._analysis
            self._job = self._job_queue.start(
                "engine", TITLE, lambda: outliers.find_outliers(analysis, recipe.Config(), device),
                self._on_event, background=True, cancellable=True, about=_ABOUT,
            )  # fmt: skip

    def _on_event(self, event: Event) -> None:
        if isinstance(event, SpritesChecked):
            self._checked = event.sprites.rgba
            self._doctor.add(event)
        elif isinstance(event, JobEnded):
            self._job = None
            if event.outcome != "done":
                self._analysis = None
            elif self._checked is not None and self._checked is not self._seen:  # an import came too late for the job
                self._seen = None
            self._refresh()
