"""The queue of trainings, as the window works through it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.jobs import TrainingRequest
from studio.app.state.runs.runs import RunList
from studio.app.state.training.training import CurrentTraining
from studio.core.events import Event, RunFinished
from studio.engine.runs import queue

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary


class TrainingQueue(QObject):
    """Adds runs to the queue and orders them; while it is on, has them trained one after the other.

    What it knows comes with each listing of the runs, so that other windows and commands may change it as well. It
    waits for processes that this window has started, which train on the devices that are here, but for no other run
    that is watched: that one is let go when the next run has its turn.
    changed: `runs` or `is_on` is another. due: (Path) it is this run's turn. emptied: (int, int) the last run of a
    queue that was on has ended; so many of those that had their turn are finished, and so many have failed.
    """

    changed = Signal()
    due = Signal(object)
    emptied = Signal(int, int)

    def __init__(self, job_queue: JobQueue, training: CurrentTraining, runs: RunList, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._training, self._runs = job_queue, training, runs
        self._passed: set[Path] = set()  # those that had their turn since it was started
        self._taken: Path | None = None  # the one that is trained because it was its turn
        self._finished = self._failed = 0  # of those that had their turn
        self.runs: tuple[RunSummary, ...] = ()
        self.is_on = False
        runs.listed.connect(self._on_runs_listed)
        training.state_changed.connect(self._on_training_changed)
        training.event_received.connect(self._on_training_event)

    def add(self, request: TrainingRequest) -> None:
        """Create a run and append it to the queue."""
        title = f"Queueing {request.sprites.title} {request.recipe.name}"
        self._job_queue.run("engine", title, lambda: jobs.queue_run(request), self._on_changed)

    def move(self, run: Path, to: int) -> None:
        """Move a run to another position, counted from 0."""
        self._change(partial(queue.move, run, to, self.runs))

    def remove(self, run: Path) -> None:
        """Take a run out of the queue; its folder stays and the run can be resumed."""
        self._change(partial(queue.remove, run))

    @Slot()
    def start(self) -> None:
        """Train what waits, beginning as soon as nothing else trains."""
        self.is_on = True
        self._passed.clear()
        self._finished = self._failed = 0
        self.changed.emit()
        self._runs.list_runs()

    @Slot()
    def pause(self) -> None:
        """Begin no other run; the one that trains goes on."""
        self.is_on = False
        self.changed.emit()

    def has(self, run: Path) -> bool:
        """Whether a run is in the queue."""
        return any(one.path == run for one in self.runs)

    def _change(self, change: Callable[[], None]) -> None:
        self._job_queue.run("files", "Changing the queue", change, self._on_changed, cancellable=False)

    def _on_changed(self, _: None) -> None:
        self._runs.list_runs()

    @Slot()
    def _on_runs_listed(self) -> None:
        self.runs = self._runs.queued
        self.changed.emit()
        if self.is_on and not self._training.owns_run() and not self._runs.is_outdated():
            self._go_on()

    def _go_on(self) -> None:
        """Have the next run trained. Each has one turn, so that none that can't be begun holds up the others."""
        following = queue.next_run(self.runs, self._passed)
        if following is None:
            self.pause()
            self.emptied.emit(self._finished, self._failed)
            return
        self._passed.add(following.path)
        self.due.emit(following.path)
        self._taken = following.path if self._training.owns_run() else None

    @Slot(object)
    def _on_training_event(self, event: Event) -> None:
        """A run that the user has stopped leaves the queue; where others work through it, that is their business."""
        if not isinstance(event, RunFinished):
            return
        if event.reason == "finished":
            self._finished += event.path == self._taken
        elif self.has(event.path) and self._training.runs_in_window() and not self._training.is_closing:
            self._passed.add(event.path)
            self.remove(event.path)

    @Slot()
    def _on_training_changed(self) -> None:
        training = self._training
        if training.is_busy():
            return
        if training.is_closing:
            self.pause()
        failure, run = training.failure, self._taken or training.path
        self._failed += failure is not None and self._taken is not None
        if run is not None and self.has(run):
            why = f"{failure.title} {failure.hint}".strip() if failure is not None and self._taken else ""
            self._change(partial(_leave_queue, run, why))
        self._taken = None


def _leave_queue(run: Path, error: str) -> None:
    """Take an ended run out of the queue. error: why the run could not be started; empty if it was started."""
    if error:
        queue.mark_failed(run, error)
    queue.remove_if_ended(run)
