"""The two ways to train the open run: in this window, or in other processes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Slot

from studio.app.background import jobs
from studio.app.background.job_events import RunDescribed
from studio.app.background.job_queue import JobOptions, JobQueue, ignore
from studio.app.background.jobs import TrainingRequest
from studio.app.background.worker import Job, JobEnded, JobIdle
from studio.core.events import Blocked, Event, Events, JobFailed, RunFinished
from studio.engine.control import protocol
from studio.engine.control.control import Control
from studio.engine.control.protocol import Heartbeat
from studio.engine.control.watcher import TrainingSeen
from studio.engine.distributed.launching import TrainingProcesses

State = Literal["idle", "starting", "training", "pausing", "paused", "stopping"]

_POLL_MS = 1000  # between two reads of a run folder
TRAINING = "Training "  # job kind of trainings, followed by the run's title
_NO_TRAINING = "No training is running."
_SAVING = "Saving the run…"
_NO_HEARTBEAT = "Waiting for the training's first heartbeat."


@dataclass(frozen=True)
class WatchedRun:
    """The state of a training in other processes."""

    live: Heartbeat | None = None  # the latest heartbeat; None before the first
    silent_s: float = 0.0  # seconds since the heartbeat changed
    processes: int = 0  # number of processes that this window launched; 0 for a training started elsewhere


class Trainer:
    """Controls a training, in this window or in other processes; this base class controls no training.

    The requests `pause`, `resume` and `stop` return the new state. watched: None if the run trains in this window.
    """

    watched: WatchedRun | None = None

    def pause(self) -> State:
        """Pause the training after its current tick (a few training steps)."""
        return "idle"

    def resume(self) -> State:
        """Resume the paused training."""
        return "idle"

    def stop(self) -> State:
        """Save and end the run after its current tick (a few training steps)."""
        return "idle"

    def sample_now(self) -> None:
        """Draw samples at the next tick, within a few training steps."""

    def save_now(self) -> None:
        """Save a checkpoint after the next tick (a few training steps)."""

    def detach(self) -> None:
        """Stop receiving the training's events."""

    def state_after(self, event: Event, state: State) -> State:
        """Return the state after an event. state: the state before the event."""
        return state

    def why_no_pause(self, state: State) -> str:
        """Return why the training can't be paused or resumed; empty if it can."""
        return _NO_TRAINING

    def why_no_stop(self, state: State) -> str:
        """Return why the training can't be stopped; empty if it can."""
        return _NO_TRAINING


class WindowTrainer(Trainer):
    """Controls a training in this window, on the engine thread."""

    def __init__(
        self, job_queue: JobQueue, title: str, events: Events, control: Control, receive: Callable[[Event], None]
    ) -> None:
        self._job_queue, self._control = job_queue, control
        self._has_started = False
        kind = f"{TRAINING}{title}"
        self._job = job_queue.start("engine", f"Training {title}", events, receive, background=True, kind=kind)

    def pause(self) -> State:
        self._control.is_paused = True
        self._job_queue.pause(self._job)
        return "paused"

    def resume(self) -> State:
        self._control.is_paused = False
        self._job_queue.resume(self._job)
        return "training" if self._has_started else "starting"

    def stop(self) -> State:
        self._control.stop, self._control.is_paused = True, False
        self._job_queue.prioritize(self._job)
        return "stopping"

    def sample_now(self) -> None:
        self._control.sample_now = True

    def save_now(self) -> None:
        self._control.checkpoint_now = True

    def detach(self) -> None:
        self._job_queue.abandon(self._job)

    def state_after(self, event: Event, state: State) -> State:
        if isinstance(event, RunDescribed):
            self._has_started = True
            return "training" if state == "starting" else state
        return "paused" if isinstance(event, Blocked) else state

    def why_no_stop(self, state: State) -> str:
        return _SAVING if state == "stopping" else ""

    why_no_pause = why_no_stop


class ProcessTrainer(QObject, Trainer):
    """Follows a training in other processes and controls it through files in the run folder.

    A request takes effect when the training's heartbeat confirms it. The files thread reads the folder, so that the
    engine thread stays free.
    """

    def __init__(
        self, job_queue: JobQueue, receive: Callable[[Event], None], on_run_created: Callable[[Path], None],
        parent: QObject,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._job_queue, self._receive, self._on_run_created = job_queue, receive, on_run_created
        self._job: Job | None = None
        self._processes: TrainingProcesses | None = None  # launched by this window
        self._kind = ""  # device kind of the launched processes
        self._run: Path | None = None  # None until the run folder exists
        self._is_pause_requested = self._is_stop_requested = self._has_ended = False
        self.watched: WatchedRun = WatchedRun()
        self._timer = QTimer(self, singleShot=True, interval=_POLL_MS)
        self._timer.timeout.connect(self._on_timeout)

    def watch(self, run: Path) -> None:
        """Follow a run that trains in another process."""
        self._run = run
        self._start_watching(jobs.watch(run), run.name)

    def launch(self, run: Path, count: int, kind: str, more_min: float = 0.0) -> None:
        """Launch torchrun with `count` processes, each on a device of `kind`, and follow the run."""
        self._run, self.watched = run, WatchedRun(processes=count)
        self._processes = TrainingProcesses(run, count, kind, more_min)
        self._start_watching(jobs.launch(self._processes), run.name)

    def prepare_and_launch(self, title: str, request: TrainingRequest) -> None:
        """Create a run, then launch the processes that train it."""
        self.watched, self._kind = WatchedRun(processes=request.processes), request.device.kind
        prepare, on_event = partial(jobs.prepare_run, request), self._on_prepare_event
        self._job = self._job_queue.run("engine", f"Preparing {title}", prepare, self._on_prepared, on_event)

    def _on_prepared(self, run: Path) -> None:
        self._run = run
        self._on_run_created(run)

    def _on_prepare_event(self, event: Event) -> None:
        if isinstance(event, JobEnded) and self._run is not None and not self._is_stop_requested:
            self.launch(self._run, self.watched.processes, self._kind)
        else:
            self._receive(event)

    def _start_watching(self, events: Events, title: str) -> None:
        options: JobOptions = {"background": True, "urgent": True, "kind": f"{TRAINING}{title}"}
        self._job = self._job_queue.start("files", f"Watching {title}", events, self._on_watch_event, **options)

    def pause(self) -> State:
        self._is_pause_requested = True
        self._send_request(pause=True)
        return "pausing"

    def resume(self) -> State:
        self._is_pause_requested = False
        self._send_request(pause=False)
        return "paused"

    def stop(self) -> State:
        self._is_stop_requested = True
        if self._run is None and self._job is not None:
            self._job_queue.cancel(self._job)
        elif self._processes is not None and self.watched.live is None:  # the processes read no requests yet
            self._processes.terminate()
        else:
            self._send_request(stop=True)
        return "stopping"

    def sample_now(self) -> None:
        self._send_request(sample=True)

    def save_now(self) -> None:
        self._send_request(save=True)

    def detach(self) -> None:
        self._timer.stop()
        self._job_queue.abandon(self._job)
        self.deleteLater()

    def state_after(self, event: Event, state: State) -> State:
        if not isinstance(event, TrainingSeen):
            return state
        live = event.live
        if live is not None and live.halted:
            return "paused"
        if self._has_ended or self._is_stop_requested or (live is not None and live.is_stopping):
            return "stopping"
        if live is None:
            return "starting"
        return "paused" if live.is_paused else "pausing" if self._is_pause_requested else "training"

    def why_no_pause(self, state: State) -> str:
        if state in ("stopping", "pausing"):
            return _SAVING if state == "stopping" else "Waiting for the training to pause."
        if self.watched.live is None:
            return _NO_HEARTBEAT
        return "" if self.watched.live.can_pause else "Pause this run in the window that trains it."

    def why_no_stop(self, state: State) -> str:
        if state == "stopping":
            return _SAVING
        return _NO_HEARTBEAT if self.watched.live is None and not self.watched.processes else ""

    def _send_request(self, **request: bool) -> None:
        if self._run is not None:
            send, title = partial(protocol.send_request, self._run, **request), f"Sending request to {self._run.name}"
            self._job_queue.run("files", title, send, ignore, self._on_request_event, cancellable=False, urgent=True)

    def _on_request_event(self, event: Event) -> None:
        if isinstance(event, JobFailed):  # the request was not written; the window shows the error
            self._is_pause_requested = self._is_stop_requested = False

    def _on_watch_event(self, event: Event) -> None:
        if isinstance(event, TrainingSeen):
            self.watched = WatchedRun(event.live, event.silent_s, self.watched.processes)
            if event.live is None or event.live.is_paused:  # the request took effect, or was lost
                self._is_pause_requested = False
        elif isinstance(event, RunFinished):
            self._has_ended = True
        elif isinstance(event, JobIdle):
            self._timer.start()
        self._receive(event)

    @Slot()
    def _on_timeout(self) -> None:
        if self._job is not None:
            self._job_queue.prioritize(self._job)
