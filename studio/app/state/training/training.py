"""The open training run: start, pause, stop and follow it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_events import RunDescribed
from studio.app.background.job_queue import JobQueue
from studio.app.background.jobs import TrainingRequest
from studio.app.background.model_jobs import SavedModel
from studio.app.background.worker import JobEnded
from studio.app.state.training.trainers import TRAINING, ProcessTrainer, State, Trainer, WatchedRun, WindowTrainer
from studio.core import events
from studio.core.events import Event, Events
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs.analysis.advice import advice_for
from studio.engine.runs.folder import RunRecord
from studio.engine.runs.history import HistoryRead

_QUIET_CPU_S, _QUIET_GPU_S = 1.0, 0.1
_STOP_POLL_MS = 500


class TrainingState(QObject):
    """The open run, or else the last run, as far as its events tell."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trainer = Trainer()
        self.state: State = "idle"
        self.control: Control | None = None  # while the run trains in this window
        self.device: Device | None = None  # may belong to another machine
        self.title = ""
        self.path: Path | None = None  # folder of the run
        self.record: RunRecord | None = None
        self.chunk: events.LossChunk | None = None  # the latest losses
        self.samples: events.SamplesReady | None = None
        self.heldout: Mapping[str, float] = {}  # the latest validation metrics
        self.advice: events.Advised | None = None
        self.has_checkpoint = False
        self.blocked: events.Blocked | None = None  # why the run paused by itself
        self.failure: events.JobFailed | None = None  # the error that ended the run
        self.end: events.RunFinished | None = None  # the end of a run without an error
        self.is_closing = False  # the run stops because the window closes

    def is_busy(self) -> bool:
        """Return whether a run is open."""
        return self.state != "idle"

    def runs_in_window(self) -> bool:
        """Return whether the open run trains in this process, and so ends with the window."""
        return self.is_busy() and self.watched is None

    def owns_run(self) -> bool:
        """Return whether this window trains the open run, itself or in processes that it launched.

        If so, this window can't start another run. False for a followed run that another program trains.
        """
        return self.runs_in_window() or (self.watched is not None and self.watched.processes > 0)

    @property
    def watched(self) -> WatchedRun | None:
        """The state of the training processes; None without a run, or for a training in this window."""
        return self._trainer.watched

    def is_live(self) -> bool:
        """Return whether the model of a training in this window can already draw and predict."""
        return self.runs_in_window() and self.state in ("training", "paused") and self.record is not None

    def model(self) -> SavedModel | Control | None:
        """Return the model for drawing and predicting; None if the open or last run has none yet.

        This is the live model of a run in this window, the last checkpoint of a run in other processes, or the best
        checkpoint of an ended run.
        """
        if self.runs_in_window():
            return self.control if self.is_live() else None
        if self.path is None or not self.has_checkpoint or not self.path.is_dir():
            return None
        return SavedModel(self.path, "last" if self.is_busy() else "best")

    def wakeup_interval_s(self) -> float:
        """Return the minimum time between two wake-ups of the main thread, which slow a training on the CPU."""
        return _QUIET_CPU_S if self.device is not None and self.device.kind == "cpu" else _QUIET_GPU_S

    def why_no_pause(self) -> str:
        """Return why the training can't be paused or resumed; empty if it can."""
        return self._trainer.why_no_pause(self.state)

    def why_no_stop(self) -> str:
        """Return why the training can't be stopped; empty if it can."""
        return self._trainer.why_no_stop(self.state)

    def _reset(self, title: str, device: Device | None) -> None:
        """Forget the last run, before a run with this title starts."""
        self.device, self.title = device, title
        self.control = self.path = self.record = self.chunk = self.samples = self.advice = None
        self.heldout = {}
        self.blocked = self.failure = self.end = None
        self.has_checkpoint = self.is_closing = False

    def _store_event(self, event: events.Event) -> None:
        """Update the attributes, such as `samples` and `failure`, from an event."""
        match event:
            case events.LossChunk():
                self.chunk = event
            case events.SamplesReady():
                self.samples = event
            case events.Validated():
                self.heldout = event.metrics
            case events.Advised():
                self.advice = event
            case HistoryRead():
                self.advice = advice_for(event.history, event.used_up)
                self.samples = event.samples[-1] if event.samples else None
                curves = event.history.validation.items()
                self.heldout = {name: float(curve.values[-1]) for name, curve in curves}
                self.has_checkpoint = bool(event.history.checkpoints)
            case events.RunStarted():
                self._on_run_created(event.path)
            case RunDescribed():
                self.record, device = event.record, event.record.device
                if self.device is None:
                    self.device = Device(device, device.partition(":")[0], event.record.device_name, 0, 0)
            case events.CheckpointSaved():
                self.has_checkpoint = True
            case events.Blocked():
                self.blocked = event
            case events.JobFailed():
                self.failure = event
            case events.RunFinished():
                self.end = event

    def _on_run_created(self, folder: Path) -> None:
        self.path, self.title = folder, folder.name


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
            self._set_state(self._trainer.state_after(event, self.state), is_news=isinstance(event, events.Blocked))

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
