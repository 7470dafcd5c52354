"""The training of the moment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal

from studio.app.background import job_events, jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.core.config import TrainingConfig
from studio.core.events import Advised, Event, Events, Halted, JobFailed, LossChunk, RunStarted, SamplesReady, Validated
from studio.data.sprites import Sprites
from studio.engine.control import Control
from studio.engine.runs.advice import advice_on
from studio.engine.runs.history import HistoryRead
from studio.engine.types import Device, ParentSource

if TYPE_CHECKING:
    from studio.engine.runs.folder import RunRecord
    from studio.recipes.base import Recipe

State = Literal["idle", "starting", "training", "paused", "stopping"]

_QUIET_CPU_S, _QUIET_GPU_S = 1.0, 0.1


class CurrentTraining(QObject):
    """Starts, pauses and stops the one training, and knows how it stands.

    state_changed: `state` is another one, or paused for another reason. event_received: (Event), all that the training
    says, in its order. halt_withdrawn: (Halted), which holds no longer.
    """

    state_changed = Signal()
    event_received = Signal(object)
    halt_withdrawn = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self.state: State = "idle"
        self.control: Control | None = None
        self.device: Device | None = None
        self.title = ""
        self.path: Path | None = None  # of the run that trains, or trained last
        self.record: RunRecord | None = None
        self.chunk: LossChunk | None = None  # the newest
        self.samples: SamplesReady | None = None
        self.heldout: Mapping[str, float] = {}  # the newest figures on held-out sprites
        self.advice: Advised | None = None
        self.halted: Halted | None = None  # why it is paused, if nobody wanted that
        self.failure: JobFailed | None = None  # what ended the run
        self.is_left = False  # it is being ended because the window closes

    def is_busy(self) -> bool:
        """Whether a run is open."""
        return self.state != "idle"

    def is_live(self) -> bool:
        """Whether there is a live model to use."""
        return self.state in ("training", "paused") and self.record is not None

    def quiet_s(self) -> float:
        """Shortest time between two wakings of the window: each holds up a training on the same cores."""
        return _QUIET_CPU_S if self.device is not None and self.device.kind == "cpu" else _QUIET_GPU_S

    def start(
        self, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, source: ParentSource = None
    ) -> None:
        """Begin a new run; nothing happens while one is open."""
        if not self.is_busy():
            control = self._fresh(device, f"{sprites.title} {recipe.name}")
            self._run(jobs.train(sprites, recipe, config, device, control, source))

    def resume_run(self, path: Path, device: Device, more_min: float = 0.0) -> None:
        """Go on with a run, for so many minutes more if any; nothing happens while one is open."""
        if not self.is_busy():
            self._run(jobs.resume(path, device, self._fresh(device, path.name), more_min))

    def pause(self) -> None:
        """Hold the training after its current tick; the model stays and can be used."""
        if self._job is not None and self.state in ("starting", "training"):
            self._job_queue.pause(self._job)
            self._set_state("paused")

    def resume(self) -> None:
        """Go on after a pause."""
        if self._job is not None and self.state == "paused":
            self._job_queue.resume(self._job)
            self._set_state("training" if self.record else "starting")

    def stop(self) -> None:
        """End the run after its current tick, its work saved; `state` is idle when that is done.

        It is 'paused' again, and `halted` says why, when that can't be done for now.
        """
        self.is_left = False
        if self._job is None or self.control is None or self.state == "stopping":
            return
        self.control.stop = True
        self._job_queue.prioritize(self._job)
        self._set_state("stopping")

    def give_up(self) -> None:
        """End the run also when its work can't be saved: what its last checkpoint holds is kept."""
        if self.control is not None:
            self.control.give_up = True
            self.stop()

    def leave(self, *, insists: bool) -> None:
        """End the run, as `give_up` does if the user `insists`: the window closes. A queued one keeps its place."""
        end = self.give_up if insists else self.stop
        end()
        self.is_left = True

    def sample_now(self) -> None:
        """Ask for live samples at the next tick."""
        if self.control is not None:
            self.control.sample_now = True

    def _fresh(self, device: Device, title: str) -> Control:
        self.control, self.device, self.title = Control(), device, title
        self.path = self.record = self.chunk = self.samples = self.advice = None
        self.heldout = {}
        self.halted = self.failure = None
        self.is_left = False
        return self.control

    def _run(self, events: Events) -> None:
        self._job_queue.set_quiet_interval(self.quiet_s())
        self._job = self._job_queue.start("engine", f"Training {self.title}", events, self._receive, background=True)
        self._set_state("starting")

    def _receive(self, event: Event) -> None:
        if isinstance(event, LossChunk):
            self.chunk = event
        elif isinstance(event, SamplesReady):
            self.samples = event
        elif isinstance(event, Validated):
            self.heldout = event.metrics
        elif isinstance(event, Advised):
            self.advice = event
        elif isinstance(event, HistoryRead):
            self.advice = advice_on(event.history)
            self.samples = event.samples[-1] if event.samples else None
            self.heldout = {name: float(curve.values[-1]) for name, curve in event.history.validation.items()}
        elif isinstance(event, RunStarted):
            self.path, self.title = event.path, event.path.name
        elif isinstance(event, job_events.RunDescribed):
            self.record = event.record
        elif isinstance(event, Halted):
            self.halted = event
        elif isinstance(event, JobFailed):
            self.failure = event
        self.event_received.emit(event)
        if isinstance(event, job_events.RunDescribed) and self.state == "starting":
            self._set_state("training")
        elif isinstance(event, Halted):
            self.state = "paused"
            self.state_changed.emit()
        elif isinstance(event, JobEnded):
            self._job = self.control = None
            self._set_state("idle")

    def _set_state(self, state: State) -> None:
        if self.halted is not None and state != "paused":
            self.halt_withdrawn.emit(self.halted)
            self.halted = None
        if state != self.state:
            self.state = state
            self.state_changed.emit()
