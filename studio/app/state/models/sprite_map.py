"""The map of the sprites of a run, and the way between two of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background import model_jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.model_jobs import ModelCache, SavedModel
from studio.app.background.worker import Job, JobEnded
from studio.core.events import Event, Progress
from studio.engine.devices.types import CodesDecoded, Device, MapReady


class SpriteMap(QObject):
    """Makes a map at a time, and keeps it.

    changed: a map began or ended to be made. progressed: it went on. made: `shown` is another one. decoded: (Rgba), the
    sprite [S, S, 4] of the code that was asked for last, or shortly before.
    """

    changed = Signal()
    progressed = Signal(object)
    made = Signal()
    decoded = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._cache = ModelCache()
        self._making: Job | None = None
        self._decoding: Job | None = None
        self._wanted: NDArray[np.float32] | None = None  # the newest code, to be decoded once the running job has ended
        self._asked: tuple[SavedModel, Device] | None = None  # of what a map is made
        self._source: tuple[SavedModel, Device] | None = None  # of what `shown` was made
        self.shown: MapReady | None = None

    def is_busy(self) -> bool:
        """Whether a map is being made."""
        return self._making is not None

    def make(self, source: SavedModel, device: Device) -> None:
        """Make the map of a run's sprites by its model at a checkpoint."""
        self._job_queue.give_up(self._making)
        self._asked = (source, device)
        events = model_jobs.make_map(self._cache, source, device)
        self._making = self._job_queue.start("engine", "Making a map of the sprites", events, self._receive)
        self.changed.emit()

    def cancel(self) -> None:
        """Give up on the map that is being made; the one before stays."""
        if self._making is not None:
            self._job_queue.cancel(self._making)

    def decode(self, code: NDArray[np.float32]) -> None:
        """Draw the sprite of a code float32 [D]. Of those that come while one is drawn, only the last is."""
        self._wanted = code
        if self._decoding is None:
            self._decode_next()

    def _decode_next(self) -> None:
        if self._wanted is None or self._source is None:
            return
        events = model_jobs.decode(self._cache, *self._source, self._wanted[None])
        self._wanted = None
        self._decoding = self._job_queue.start("engine", "Drawing between sprites", events, self._receive_decoded)

    def _receive(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progressed.emit(event)
        elif isinstance(event, MapReady):
            self._job_queue.give_up(self._decoding)  # a code of another model means nothing to this one
            self._decoding = self._wanted = None
            self.shown, self._source = event, self._asked
            self.made.emit()
        elif isinstance(event, JobEnded):
            self._making = None
            self.changed.emit()

    def _receive_decoded(self, event: Event) -> None:
        if isinstance(event, CodesDecoded):
            self.decoded.emit(event.sprites[0])
        elif isinstance(event, JobEnded):
            self._decoding = None
            self._decode_next()
