"""The map of a run's sprites, and sprites decoded from points of the map."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background.job_queue import JobQueue
from studio.app.background.model_jobs import ModelCache, SavedModel, with_model
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import embedding_map, model
from studio.core.events import Event, Events, Progress
from studio.engine.devices.types import CodesDecoded, Device, MapReady


class SpriteMap(QObject):
    """Computes a map that places a run's similar sprites close together, and decodes latent codes into sprites."""

    changed = Signal()  # a computation started or ended
    progressed = Signal(object)  # Progress
    made = Signal()  # `shown` is a new map
    decoded = Signal(object)  # uint8 [S, S, 4], the sprite for a recently requested code

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._cache = ModelCache()
        self._making: Job | None = None
        self._decoding: Job | None = None
        self._wanted: NDArray[np.float32] | None = None  # the latest code, decoded after the running job
        self._requested: tuple[SavedModel, Device] | None = None  # source of the map in progress
        self._source: tuple[SavedModel, Device] | None = None  # source of `shown`
        self.shown: MapReady | None = None

    def is_busy(self) -> bool:
        """Return whether a map is being computed."""
        return self._making is not None

    def make(self, source: SavedModel, device: Device) -> None:
        """Compute the map of a run's sprites with the checkpoint `source`, then emit `made`."""
        self._job_queue.abandon(self._making)
        self._requested = (source, device)

        def make_map(trained: model.TrainedModel) -> Events:
            return embedding_map.make_map(trained, source.path)

        operation = partial(with_model, self._cache, source, device, make_map)
        self._making = self._job_queue.start("engine", "Mapping sprites", operation, self._on_event)
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the computation; the previous map stays."""
        if self._making is not None:
            self._job_queue.cancel(self._making)

    def decode(self, code: NDArray[np.float32]) -> None:
        """Decode a latent code, float32 [D], into a sprite, then emit `decoded`. Only the latest code waits."""
        self._wanted = code
        if self._decoding is None:
            self._decode_next()

    def _decode_next(self) -> None:
        if self._wanted is None or self._source is None:
            return
        codes, self._wanted = self._wanted[None], None  # [1, D]

        def decode(trained: model.TrainedModel) -> Events:
            return embedding_map.decode(trained, codes)

        operation = partial(with_model, self._cache, *self._source, decode)
        self._decoding = self._job_queue.start("engine", "Drawing the sprite", operation, self._on_decode_event)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progressed.emit(event)
        elif isinstance(event, MapReady):
            self._job_queue.abandon(self._decoding)  # the code belongs to the previous model
            self._decoding = self._wanted = None
            self.shown, self._source = event, self._requested
            self.made.emit()
        elif isinstance(event, JobEnded):
            self._making = None
            self.changed.emit()

    def _on_decode_event(self, event: Event) -> None:
        if isinstance(event, CodesDecoded):
            self.decoded.emit(event.sprites[0])
        elif isinstance(event, JobEnded):
            self._decoding = None
            self._decode_next()
