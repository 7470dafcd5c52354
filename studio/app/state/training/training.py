"""The training of the moment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_events import RunDescribed
from studio.app.background.job_queue import JobQueue
from studio.app.background.jobs import TrainingRequest
from studio.app.background.model_jobs import SavedModel
from studio.app.background.worker import JobEnded
from studio.app.state.training.trainers import TRAINING, ProcessTrainer, State, Trainer, WatchedRun, WindowTrainer
from studio.core.events import (
    Advised,
    Blocked,
    CheckpointSaved,
    Event,
    Events,
    JobFailed,
    LossChunk,
    RunFinished,
    RunStarted,
    SamplesReady,
    Validated,
)
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs.analysis.advice import advice_for
from studio.engine.runs.history import HistoryRead

if TYPE_CHECKING:
    from studio.engine.runs.folder import RunRecord

_QUIET_CPU_S, _QUIET_GPU_S = 1.0, 0.1
_STOP_POLL_MS = 500


class CurrentTraining(QObject):
    """Starts, watches, pauses and stops the one training that is on show, and knows how it stands.

    A run that other processes train is watched, and asked through its folder; nothing else of it is different.
    state_changed: `state` is another one, or paused for another reason. event_received: (Event), all that the training
    says, in its order. halt_withdrawn: (Halted), which holds no longer.
    """

    state_changed = Signal()
    event_received = Signal(object)
    unblocked = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._trainer: Trainer | None = None
        self.state: State = "idle"
        self.control: Control | None = None  # of the live model
        self.device: Device | None = None  # perhaps one of another machine
        self.title = ""
        self.path: Path | None = None  # of the run that trains, or trained last
        self.record: RunRecord | None = None
        self.chunk: LossChunk | None = None  # the newest
        self.samples: SamplesReady | None = None
        self.heldout: Mapping[str, float] = {}  # the newest figures on held-out sprites
        self.advice: Advised | None = None
        self.has_checkpoint = False
        self.halted: Blocked | None = None  # why it is paused, if nobody wanted that
        self.failure: JobFailed | None = None  # what ended the run
        self.end: RunFinished | None = None  # how it has ended otherwise
        self.is_closing = False  # it is being ended because the window closes
        self._stop_poll = QTimer(self)  # active while the run is paused
        self._stop_poll.setInterval(_STOP_POLL_MS)
        self._stop_poll.timeout.connect(self._on_stop_poll)

    def is_busy(self) -> bool:
        """Whether a run is open."""
        return self.state != "idle"

    def runs_in_window(self) -> bool:
        """Whether the open run is trained in this process: what ends the window ends it."""
        return self.is_busy() and self.watched is None

    def owns_run(self) -> bool:
        """Whether the open run is this window's, trained here or by processes that it has started: no other is begun
        meanwhile. One that is only watched is let go when another begins.
        """
        return self.runs_in_window() or (self.watched is not None and self.watched.processes > 0)

    @property
    def watched(self) -> WatchedRun | None:
        """What is known of the processes that train the open run; None where this one does, and where none is open."""
        return self._trainer.watched if self._trainer is not None else None

    def is_live(self) -> bool:
        """Whether there is a live model to use."""
        return self.runs_in_window() and self.state in ("training", "paused") and self.record is not None

    def model(self) -> SavedModel | Control | None:
        """The model to use: the live one, the newest checkpoint of a run that is watched, the best of one that has
        ended; None: there is none yet.
        """
        if self.runs_in_window():
            return self.control if self.is_live() else None
        if self.path is None or not self.has_checkpoint or not self.path.is_dir():
            return None
        return SavedModel(self.path, "last" if self.is_busy() else "best")

    def wakeup_interval_s(self) -> float:
        """Shortest time between two wakings of the window: each holds up a training on the same cores."""
        return _QUIET_CPU_S if self.device is not None and self.device.kind == "cpu" else _QUIET_GPU_S

    def why_no_pause(self) -> str:
        """Why the training can't be paused, or go on; empty when it can."""
        return self._trainer.why_no_pause(self.state) if self._trainer is not None else "Nothing is being trained."

    def why_no_stop(self) -> str:
        """Why the training can't be stopped; empty when it can."""
        return self._trainer.why_no_stop(self.state) if self._trainer is not None else "Nothing is being trained."

    def start(self, request: TrainingRequest) -> None:
        """Train a new run; do nothing while the window has a run."""
        if self.owns_run():
            return
        self.withdraw_messages()
        title = f"{request.sprites.title} {request.recipe.name}"
        if request.processes > 1:
            self._fresh_processes(title, request.device).prepare_and_launch(title, request)
        else:
            control = self._fresh_control(title, request.device)
            self._train_here(control, jobs.train(request, control))
        self._set_state("starting")

    def resume_run(self, path: Path, device: Device, more_min: float = 0.0, processes: int = 1) -> None:
        """Go on with a run, for so many minutes more if any, by so many processes as in `start`; nothing happens while
        the window has one.
        """
        if self.owns_run():
            return
        if processes > 1:
            self._fresh_processes(path.name, device).launch(path, processes, device.kind, more_min)
        else:
            control = self._fresh_control(path.name, device)
            self._train_here(control, jobs.resume(path, device, control, more_min))
        self._set_state("starting")

    def watch(self, path: Path) -> None:
        """Show a run that others train; nothing happens while the window has one."""
        if not self.owns_run():
            self._fresh_processes(path.name, None).watch(path)
            self._set_state("starting")
            self.path = path  # not before, as with any other run

    def withdraw_messages(self) -> None:
        """Withdraw the messages of earlier trainings when the user starts a run; queued runs leave them on show."""
        self._job_queue.withdraw(TRAINING)

    @Slot()
    def detach(self) -> None:
        """Show no more of a run that others train: it goes on."""
        if self.watched is not None and self._trainer is not None:
            self._trainer.detach()
            self._trainer = None
            self._set_state("idle")

    def pause(self) -> None:
        """Hold the training after its current tick; the model stays and can be used."""
        if self._trainer is not None and self.state in ("starting", "training") and not self.why_no_pause():
            self._set_state(self._trainer.pause())

    def resume(self) -> None:
        """Go on after a pause."""
        if self._trainer is not None and self.state == "paused":
            self._set_state(self._trainer.resume())

    def stop(self) -> None:
        """End the run after its current tick, its work saved; `state` is idle when that is done.

        It is 'paused' again, and `halted` says why, when that can't be done for now.
        """
        self.is_closing = False
        if self._trainer is not None and not self.why_no_stop():
            self._set_state(self._trainer.stop())

    def give_up(self) -> None:
        """End the run also when its work can't be saved: what its last checkpoint holds is kept."""
        if self.control is not None:
            self.control.give_up = True
            self.stop()

    def leave(self, *, insists: bool) -> None:
        """End the run, as `give_up` does if the user `insists`: the window closes. A queued one keeps its place."""
        end = self.give_up if insists else self.stop
        end()
        self.is_closing = True

    def sample_now(self) -> None:
        """Ask for live samples at the next tick."""
        if self._trainer is not None:
            self._trainer.sample_now()

    def save_now(self) -> None:
        """Ask for a checkpoint after the next tick."""
        if self._trainer is not None:
            self._trainer.save_now()

    def _fresh(self, title: str, device: Device | None) -> None:
        self.detach()
        self.device, self.title = device, title
        self.control = None
        self.path = self.record = self.chunk = self.samples = self.advice = None
        self.heldout = {}
        self.halted = self.failure = self.end = None
        self.has_checkpoint = self.is_closing = False

    def _fresh_control(self, title: str, device: Device) -> Control:
        self._fresh(title, device)
        self.control = Control()
        return self.control

    def _fresh_processes(self, title: str, device: Device | None) -> ProcessTrainer:
        self._fresh(title, device)
        self._trainer = trainer = ProcessTrainer(self._job_queue, self._receive, self._on_run_created, self)
        return trainer

    def _train_here(self, control: Control, events: Events) -> None:
        self._job_queue.set_wakeup_interval(self.wakeup_interval_s())
        self._trainer = WindowTrainer(self._job_queue, self.title, events, control, self._receive)

    def _receive(self, event: Event) -> None:
        self._note(event)
        self.event_received.emit(event)
        if isinstance(event, JobEnded):
            if self._trainer is not None:
                self._trainer.detach()
            self._trainer = self.control = None
            self._set_state("idle")
        elif self._trainer is not None:
            self._set_state(self._trainer.state_after(event, self.state), is_news=isinstance(event, Blocked))

    def _note(self, event: Event) -> None:
        """Keep what an event says."""
        match event:
            case LossChunk():
                self.chunk = event
            case SamplesReady():
                self.samples = event
            case Validated():
                self.heldout = event.metrics
            case Advised():
                self.advice = event
            case HistoryRead():
                self._recall(event)
            case RunStarted():
                self._on_run_created(event.path)
            case RunDescribed():
                self._describe(event.record)
            case CheckpointSaved():
                self.has_checkpoint = True
            case Blocked():
                self.halted = event
            case JobFailed():
                self.failure = event
            case RunFinished():
                self.end = event

    def _on_run_created(self, folder: Path) -> None:
        self.path, self.title = folder, folder.name

    def _recall(self, read: HistoryRead) -> None:
        self.advice = advice_for(read.history, read.used_up)
        self.samples = read.samples[-1] if read.samples else None
        self.heldout = {name: float(curve.values[-1]) for name, curve in read.history.validation.items()}
        self.has_checkpoint = bool(read.history.checkpoints)

    def _describe(self, record: RunRecord) -> None:
        self.record = record
        if self.device is None:
            kind = record.device.partition(":")[0]
            self.device = Device(record.device, kind, record.device_name, 0, 0)

    @Slot()
    def _on_stop_poll(self) -> None:
        """Stop the paused run if another process has asked for that: the paused job can't read the request itself."""
        if self.control is not None and self.control.is_paused and self.control.stop:
            self.stop()

    def _set_state(self, state: State, *, is_news: bool = False) -> None:
        """is_news: it is told also where it is the same."""
        if self.halted is not None and state != "paused":
            self.unblocked.emit(self.halted)
            self.halted = None
        if state != self.state or is_news:
            self.state = state
            if state == "paused":
                self._stop_poll.start()
            else:
                self._stop_poll.stop()
            self.state_changed.emit()
