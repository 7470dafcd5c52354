"""What the window knows about the open training run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QObject

from studio.app.background.job_events import RunDescribed
from studio.app.background.model_jobs import SavedModel
from studio.app.state.training.trainers import State, Trainer, WatchedRun
from studio.core import events
from studio.engine.control.control import Control
from studio.engine.devices.types import Device
from studio.engine.runs.analysis.advice import advice_for
from studio.engine.runs.folder import RunRecord
from studio.engine.runs.history import HistoryRead

_QUIET_CPU_S, _QUIET_GPU_S = 1.0, 0.1


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
        self.end: events.RunFinished | None = None  # how the run ended without an error
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
