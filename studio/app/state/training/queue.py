"""The queue of trainings, as the window works through it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import queue_jobs
from studio.app.background.job_events import QueueChanged
from studio.app.background.job_queue import JobQueue
from studio.app.state.runs.runs import RunList
from studio.app.state.training.training import CurrentTraining
from studio.core.config import TrainingConfig
from studio.core.events import Event, Events, RunFinished
from studio.data.sprites import Sprites
from studio.engine.devices.types import Device, ParentSource
from studio.engine.runs.queue import RunQueued, next_run

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary
    from studio.recipes.base import Recipe


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
        runs.listed.connect(self._take_list)
        training.state_changed.connect(self._follow_training)
        training.event_received.connect(self._hear)

    def add(
        self, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, source: ParentSource
    ) -> None:
        """Make a new run that waits."""
        events = queue_jobs.add(sprites, recipe, config, device, source)
        self._job_queue.start("engine", f"Queueing {sprites.title} {recipe.name}", events, self._receive)

    def move(self, run: Path, to: int) -> None:
        """Give a run another place, counted from 0."""
        self._change(queue_jobs.move(run, to, self.runs))

    def remove(self, run: Path) -> None:
        """Take a run out of the queue; it is kept, and can be resumed."""
        self._change(queue_jobs.remove(run))

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

    def _change(self, events: Events) -> None:
        self._job_queue.start("files", "Changing the queue", events, self._receive, cancellable=False)

    @Slot()
    def _take_list(self) -> None:
        self.runs = self._runs.queued
        self.changed.emit()
        if self.is_on and not self._training.has_own_run() and not self._runs.is_outdated():
            self._go_on()

    def _go_on(self) -> None:
        """Have the next run trained. Each has one turn, so that none that can't be begun holds up the others."""
        following = next_run(self.runs, self._passed)
        if following is None:
            self.pause()
            self.emptied.emit(self._finished, self._failed)
            return
        self._passed.add(following.path)
        self.due.emit(following.path)
        self._taken = following.path if self._training.has_own_run() else None

    @Slot(object)
    def _hear(self, event: Event) -> None:
        """A run that the user has stopped leaves the queue; where others work through it, that is their business."""
        if not isinstance(event, RunFinished):
            return
        if event.reason == "finished":
            self._finished += event.path == self._taken
        elif self.has(event.path) and self._training.is_here() and not self._training.is_left:
            self._passed.add(event.path)
            self.remove(event.path)

    @Slot()
    def _follow_training(self) -> None:
        training = self._training
        if training.is_busy():
            return
        if training.is_left:
            self.pause()
        failure, run = training.failure, self._taken or training.path
        self._failed += failure is not None and self._taken is not None
        if run is not None and self.has(run):
            why = f"{failure.title} {failure.hint}".strip() if failure is not None and self._taken else ""
            self._change(queue_jobs.settle(run, why))
        self._taken = None

    def _receive(self, event: Event) -> None:
        if isinstance(event, RunQueued | QueueChanged):
            self._runs.list_runs()
