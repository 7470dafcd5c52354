"""The training queue of the window."""

from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import jobs, trash
from studio.app.background.job_queue import JobQueue, Operation
from studio.app.background.jobs import TrainingRequest
from studio.app.background.trash import TrashedRun
from studio.app.state.runs.runs import RunList
from studio.app.state.training.training import CurrentTraining
from studio.app.state.undo import UndoHistory, UndoStep
from studio.core.errors import UsageError
from studio.core.events import Event, RunFinished
from studio.engine.runs import queue
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import RunSummary
from studio.engine.runs.queue import RunQueued


class TrainingQueue(QObject):
    """Edits the training queue, and starts the queued runs one after the other while `is_on` is True.

    Each listing of the runs updates the queue, because other windows and commands can change the queue. The queue waits
    while this window trains a run, but not while this window only follows a run.
    """

    changed = Signal()  # `runs` or `is_on` changed
    due = Signal(object)  # Path: start this run
    emptied = Signal(int, int)  # the last queued run has ended; numbers of finished and failed runs

    def __init__(
        self, job_queue: JobQueue, training: CurrentTraining, runs: RunList, history: UndoHistory, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._job_queue, self._training, self._runs, self._history = job_queue, training, runs, history
        self._started: set[Path] = set()  # runs started since `start`
        self._current: Path | None = None  # the run that the queue started last
        self._finished = self._failed = 0  # numbers of runs since `start`
        self.runs: tuple[RunSummary, ...] = ()
        self.is_on = False
        runs.listed.connect(self._on_runs_listed)
        training.state_changed.connect(self._on_training_changed)
        training.event_received.connect(self._on_training_event)

    def add(self, request: TrainingRequest, history: UndoHistory) -> None:
        """Create a run and append it to the queue, as a step of `history`, the undo history of the Train page."""
        title = f"Queueing {request.sprites.title} {request.recipe.name}"
        on_event = partial(self._on_add_event, history)
        self._job_queue.run("engine", title, partial(jobs.queue_run, request), self._on_changed, on_event)

    def move(self, run: Path, to: int) -> None:
        """Move a run to another position, counted from 0, as a step of the undo history."""
        undo = partial(self._move, run, self._position(run))
        self._do(UndoStep(f"move {self._runs.title_of(run)} in the queue", undo, partial(self._move, run, to)))

    def remove(self, run: Path) -> None:
        """Remove a run from the queue, as a step of the undo history. The run folder stays: the run can be resumed."""
        undo = partial(self._change, partial(_put_back, run, self._position(run), self.runs))
        redo = partial(self._change, partial(queue.remove, run))
        self._do(UndoStep(f"remove {self._runs.title_of(run)} from the queue", undo, redo))

    @Slot()
    def start(self) -> None:
        """Turn the queue on, which trains the queued runs after the running training."""
        self.is_on = True
        self._started.clear()
        self._finished = self._failed = 0
        self.changed.emit()
        self._runs.list_runs()

    @Slot()
    def pause(self) -> None:
        """Turn the queue off, so that no further run starts. The running training continues."""
        self.is_on = False
        self.changed.emit()

    def waiting(self) -> int:
        """Return the number of queued runs that no process trains."""
        return sum(run.standing != "training" for run in self.runs)

    def has(self, run: Path) -> bool:
        """Return whether a run is in the queue."""
        return any(queued.path == run for queued in self.runs)

    def _do(self, step: UndoStep) -> None:
        """Do an undoable action."""
        step.redo()
        self._history.add(step)

    def _position(self, run: Path) -> int:
        return next((index for index, queued in enumerate(self.runs) if queued.path == run), 0)

    def _move(self, run: Path, to: int) -> None:
        self._change(partial(queue.move, run, to, self.runs))

    def _change(self, change: Operation[None]) -> None:
        self._job_queue.run("files", "Changing the queue", change, self._on_changed, cancellable=False)

    def _on_add_event(self, history: UndoHistory, event: Event) -> None:
        if isinstance(event, RunQueued):
            trashed: list[TrashedRun] = []
            undo = partial(self._change, partial(_trash_untrained, event.path, trashed))
            redo = partial(self._change, partial(_restore, event.path, trashed))
            history.add(UndoStep(f"add {event.path.name} to the queue", undo, redo))

    def _on_changed(self, _: None) -> None:
        self._runs.list_runs()

    @Slot()
    def _on_runs_listed(self) -> None:
        self.runs = self._runs.queued
        self.changed.emit()
        if self.is_on and not self._training.owns_run() and not self._runs.is_outdated():
            self._start_next()

    def _start_next(self) -> None:
        """Start the next run. Each run is tried once, so that a run with an error does not block the queue."""
        next_run = queue.next_run(self.runs, self._started)
        if next_run is None:
            self.pause()
            self.emptied.emit(self._finished, self._failed)
            return
        self._started.add(next_run.path)
        self.due.emit(next_run.path)
        self._current = next_run.path if self._training.owns_run() else None

    @Slot(object)
    def _on_training_event(self, event: Event) -> None:
        """Count finished runs. If the user stopped a queued run in this window, remove the run from the queue."""
        if not isinstance(event, RunFinished):
            return
        if event.reason == "finished":
            self._finished += event.path == self._current
        elif self.has(event.path) and self._training.runs_in_window() and not self._training.is_closing:
            self._started.add(event.path)
            self._change(partial(queue.remove, event.path))

    @Slot()
    def _on_training_changed(self) -> None:
        training = self._training
        if training.is_busy():
            return
        if training.is_closing:
            self.pause()
        failure, run = training.failure, self._current or training.path
        self._failed += failure is not None and self._current is not None
        if run is not None and self.has(run):
            error = f"{failure.title} {failure.hint}".strip() if failure is not None and self._current else ""
            self._change(partial(_leave_queue, run, error))
        self._current = None


def _trash_untrained(run: Path, trashed: list[TrashedRun]) -> Generator[Event, None, None]:
    """Move an added run to the trash and store it in `trashed`; without a trash, only remove it from the queue.

    Yields notices. Raises UsageError if the run has trained meanwhile, and RunError.
    """
    if RunDir(run).progress().step or RunDir(run).saved_step():
        raise UsageError(f"'{run.name}' has trained meanwhile.", "To remove it, move it to the trash on the Runs page.")
    trashed[:] = yield from trash.trash_runs([run])
    if not trashed:
        queue.remove(run)


def _restore(run: Path, trashed: Sequence[TrashedRun]) -> Generator[Event, None, None]:
    """Move a run back from the trash and append it to the queue; yields notices. Raises RunError."""
    if not trashed or (yield from trash.restore_runs(trashed)):
        queue.append(run)


def _put_back(run: Path, to: int, before: Sequence[RunSummary]) -> None:
    """Add a removed run to the queue again, at index `to`. before: the queue before the removal. Raises RunError."""
    queue.append(run)
    queue.move(run, to, before)


def _leave_queue(run: Path, error: str) -> None:
    """Remove an ended run from the queue. error: why the run failed to start; empty if it started."""
    if error:
        queue.mark_failed(run, error)
    queue.remove_if_ended(run)
