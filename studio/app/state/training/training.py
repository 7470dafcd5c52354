"""The open training run: start, pause, stop and follow it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.jobs import TrainingRequest
from studio.app.background.worker import JobEnded
from studio.app.state.training.trainers import TRAINING, ProcessTrainer, State, Trainer, WindowTrainer
from studio.app.state.training.training_state import TrainingState
from studio.core.events import Blocked, Event, Events
from studio.engine.control.control import Control
from studio.engine.devices.types import Device

_STOP_POLL_MS = 500


class CurrentTraining(TrainingState):
    """The run that the Train page shows: starts, pauses, stops and follows the run.

    The run trains in this window, or in other processes that are controlled through files in the run folder.
    """

    state_changed = Signal()  # `state` changed, or the reason of a pause
    event_received = Signal(object)  # Event of the training, in order
    unblocked = Signal(object)  # Blocked: the reason of this automatic pause is gone

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._stop_poll = QTimer(self, interval=_STOP_POLL_MS)  # active while the run is paused
        self._stop_poll.timeout.connect(self._on_stop_poll)

    def start(self, request: TrainingRequest) -> None:
        """Train a new run; do nothing if this window already trains a run."""
        if self.owns_run():
            return
        self.withdraw_messages()
        title = f"{request.sprites.title} {request.recipe.name}"
        if request.processes > 1:
            self._new_process_trainer(title, request.device).prepare_and_launch(title, request)
        else:
            self._train_here(title, request.device, partial(jobs.train, request))
        self._set_state("starting")

    def resume_run(self, path: Path, device: Device, more_min: float = 0.0, processes: int = 1) -> None:
        """Resume a run with `more_min` additional minutes; do nothing if this window already trains a run."""
        if self.owns_run():
            return
        if processes > 1:
            self._new_process_trainer(path.name, device).launch(path, processes, device.kind, more_min)
        else:
            self._train_here(path.name, device, lambda control: jobs.resume(path, device, control, more_min))
        self._set_state("starting")

    def watch(self, path: Path) -> None:
        """Follow a run in another process; do nothing if this window already trains a run."""
        if not self.owns_run():
            self._new_process_trainer(path.name, None).watch(path)
            self._set_state("starting")
            self.path = path  # set after the state, like for other runs

    def withdraw_messages(self) -> None:
        """Remove the messages of earlier trainings, because the user starts a run."""
        self._job_queue.withdraw(TRAINING)

    @Slot()
    def detach(self) -> None:
        """Stop following a run in another process; the run continues."""
        if self.watched is not None:
            self._end_trainer()

    def pause(self) -> None:
        """Pause the training after its current tick (a few training steps); the model stays loaded and can be used."""
        if self.state in ("starting", "training") and not self.why_no_pause():
            self._set_state(self._trainer.pause())

    def resume(self) -> None:
        """Resume the paused training."""
        if self.state == "paused":
            self._set_state(self._trainer.resume())

    def stop(self) -> None:
        """Save and end the run after its current tick (a few training steps); `state` then becomes idle.

        If saving fails for now, `state` becomes paused again and `blocked` says why.
        """
        self.is_closing = False
        if not self.why_no_stop():
            self._set_state(self._trainer.stop())

    def stop_without_saving(self) -> None:
        """End the run even without saving; only the last checkpoint remains."""
        if self.control is not None:
            self.control.give_up = True
            self.stop()

    def stop_for_close(self, *, force: bool) -> None:
        """End the run because the window closes; a queued run stays queued. force: end the run even without saving."""
        if force:
            self.stop_without_saving()
        else:
            self.stop()
        self.is_closing = True

    def sample_now(self) -> None:
        """Draw samples at the next tick, within a few training steps."""
        self._trainer.sample_now()

    def save_now(self) -> None:
        """Save a checkpoint after the next tick (a few training steps)."""
        self._trainer.save_now()

    def _new_process_trainer(self, title: str, device: Device | None) -> ProcessTrainer:
        self.detach()
        self._reset(title, device)
        self._trainer = trainer = ProcessTrainer(self._job_queue, self._receive, self._on_run_created, self)
        return trainer

    def _train_here(self, title: str, device: Device, train: Callable[[Control], Events]) -> None:
        self.detach()
        self._reset(title, device)
        self.control = Control()
        self._job_queue.set_wakeup_interval(self.wakeup_interval_s())
        self._trainer = WindowTrainer(self._job_queue, title, train(self.control), self.control, self._receive)

    def _receive(self, event: Event) -> None:
        self._store_event(event)
        self.event_received.emit(event)
        if isinstance(event, JobEnded):
            self.control = None
            self._end_trainer()
        else:
            self._set_state(self._trainer.state_after(event, self.state), is_news=isinstance(event, Blocked))

    def _end_trainer(self) -> None:
        self._trainer.detach()
        self._trainer = Trainer()
        self._set_state("idle")

    @Slot()
    def _on_stop_poll(self) -> None:
        """Stop the paused run if another process requested the stop, because paused jobs read no requests."""
        if self.control is not None and self.control.is_paused and self.control.stop:
            self.stop()

    def _set_state(self, state: State, *, is_news: bool = False) -> None:
        """Change the state. is_news: emit `state_changed` even for an equal state."""
        if self.blocked is not None and state != "paused":
            self.unblocked.emit(self.blocked)
            self.blocked = None
        if state != self.state or is_news:
            self.state = state
            if state == "paused":
                self._stop_poll.start()
            else:
                self._stop_poll.stop()
            self.state_changed.emit()
