"""Drives the real window through one training and watches its heartbeat."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Qt, QTimer, Slot

from studio.app.application import Studio
from studio.core.events import Event, RunFinished, SamplesReady

_SETTLED_S = 5.0  # the first seconds of a training may stutter


class Driver(QObject):
    """Starts a training as soon as sprites and devices are there; closes the window when it is done."""

    def __init__(self, studio: Studio, steps: int, heartbeat: bool) -> None:
        super().__init__(studio)
        self.seconds = 0.0
        self.gaps_s: list[float] = []
        self._studio, self._steps = studio, steps
        self._started_s = self._beat_s = 0.0
        self._poll, self._beat = QTimer(self), QTimer(self)
        self._poll.timeout.connect(self._try_to_start)
        self._poll.start(50)
        self._beat.setTimerType(Qt.TimerType.PreciseTimer)
        self._beat.timeout.connect(self._count_beat)
        if heartbeat:
            self._beat.start(10)
        studio.session.training.event_received.connect(self._hear)
        studio.session.training.state_changed.connect(self._leave_when_done)

    @Slot()
    def _try_to_start(self) -> None:
        session = self._studio.session
        device = session.catalog.device("cpu")
        if device is None or session.open_sprites.sprites is None or not session.catalog.recipes:
            return
        self._poll.stop()
        self._studio.window.show_page("train")
        recipe = session.catalog.recipes["generator"]
        session.training.start(session.open_sprites.sprites, recipe, recipe.Config(steps=self._steps), device)

    @Slot(object)
    def _hear(self, event: Event) -> None:
        if isinstance(event, SamplesReady) and not self._started_s:
            self._started_s = time.perf_counter()
        elif isinstance(event, RunFinished):
            self.seconds = time.perf_counter() - self._started_s
            self._beat.stop()

    @Slot()
    def _leave_when_done(self) -> None:
        if self.seconds and not self._studio.session.training.is_busy():
            self._studio.window.close()  # sooner, it would ask whether to stop the training

    @Slot()
    def _count_beat(self) -> None:
        now = time.perf_counter()
        if self._started_s and self._beat_s and now - self._started_s > _SETTLED_S:
            self.gaps_s.append(now - self._beat_s)
        self._beat_s = now
