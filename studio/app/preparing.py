"""What is done ahead, so that a training finds it done."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from studio.app import jobs
from studio.app.dispatcher import Dispatcher
from studio.app.doctor import Doctor
from studio.app.importing import Importing
from studio.app.training import Training
from studio.app.worker import Job, JobEnded
from studio.app.workshop import Workshop
from studio.core.events import Event
from studio.data.findings import Examined
from studio.data.sprites import Sprites

_TITLE = "Getting to know the sprites"


class Preparing(QObject):
    """Learns to see the open sprites while the engine has nothing else to do: it takes seconds, once for each set.

    What turns out to be odd among them goes to the doctor. A training does without, or learns it in between, which
    takes it minutes; so this begins at once, and gives way.
    """

    def __init__(
        self, dispatcher: Dispatcher, importing: Importing, doctor: Doctor, workshop: Workshop, training: Training,
        parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._doctor = doctor
        self._dispatcher, self._importing, self._workshop, self._training = dispatcher, importing, workshop, training
        self._job: Job | None = None
        self._seen: Sprites | None = None  # those that were learnt last
        importing.imported.connect(self._refresh)
        workshop.ready.connect(self._refresh)
        workshop.devices_found.connect(self._refresh)
        training.state_changed.connect(self._refresh)

    @Slot()
    def _refresh(self) -> None:
        """Begin when all is there and nothing trains; end when something does, or for other sprites."""
        sprites, workshop = self._importing.sprites, self._workshop
        device = workshop.device(workshop.fastest)
        recipe = workshop.drawing_recipe()
        if self._job is not None:
            self._dispatcher.cancel(self._job)
        elif sprites is None or device is None or recipe is None:
            return
        elif sprites is not self._seen and not self._training.is_busy():
            self._seen = sprites
            events = jobs.get_to_know(sprites, recipe.Config(), device)
            self._job = self._dispatcher.start("engine", _TITLE, events, self._receive, background=True)

    def _receive(self, event: Event) -> None:
        if isinstance(event, Examined):
            self._doctor.add(event)
        elif isinstance(event, JobEnded):
            self._job = None
            self._seen = None if event.outcome == "cancelled" else self._seen
            self._refresh()
