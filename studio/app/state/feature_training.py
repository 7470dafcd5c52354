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

TITLE = "Analysing sprites"
_ABOUT = (
    "Trains a small network that compares sprites. The Doctor uses it to find unusual sprites, and trainings use it to "
    "measure quality. If you cancel, the next training trains this network."
)


class FeatureTraining(QObject):
    """Trains the network that computes quality features, while no training or experiment runs.

    The job takes seconds, once for the pixels of a set; inside a training, the same work would take minutes. The
    sprite doctor receives the outliers that the network finds. The job ends when a training or an experiment starts, or
    when the user cancels it. After a cancellation, the job does not start again for the same sprites.
    """

    def __init__(
        self, job_queue: JobQueue, open_sprites: OpenSprites, doctor: SpriteDoctor, catalog: EngineCatalog,
        devices: DeviceChoice, training: CurrentTraining, lab: Lab, parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._job_queue, self._open_sprites, self._doctor = job_queue, open_sprites, doctor
        self._catalog, self._devices, self._training, self._lab = catalog, devices, training, lab
        self._job: Job | None = None
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
        if sprites is None or sprites.rgba is not self._seen:
            self._refresh()

    @Slot()
    def _refresh(self) -> None:
        """Cancel the running job, or start a job if sprites, recipe and device are known and no run trains."""
        sprites, recipe, device = self._open_sprites.sprites, self._catalog.drawing_recipe(), self._devices.device
        if self._job is not None:
            self._seen = None
            self._job_queue.cancel(self._job)
        elif sprites is None or device is None or recipe is None:
            return
        elif sprites.rgba is not self._seen and not self._training.owns_run() and self._lab.running is None:
            self._seen = sprites.rgba
            self._job = self._job_queue.start(
                "engine", TITLE, lambda: outliers.find_outliers(sprites, recipe.Config(), device),
                self._on_event, background=True, cancellable=True, about=_ABOUT,
            )  # fmt: skip

    def _on_event(self, event: Event) -> None:
        if isinstance(event, SpritesChecked):
            self._doctor.add(event)
        elif isinstance(event, JobEnded):
            self._job = None
            self._refresh()
