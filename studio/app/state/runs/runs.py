"""All runs that were ever made."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import job_events, jobs, run_jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.core.errors import StudioError
from studio.core.events import Event, Events, Notice
from studio.core.formatting import count
from studio.engine.runs.history import HistoryRead, RunReader
from studio.engine.runs.listing import RunsListed

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary

_log = logging.getLogger(__name__)


class RunList(QObject):
    """Lists runs, reads their curves and samples, notes what is said of them, moves them to the trash and back.

    listed: `runs` is new, and so is `queued`. read: (HistoryRead). saved: (FilesSaved). restored: (a tuple of Path)
    they are back from the trash; `listed` follows. noticed and withdrawn: (UndoOffered) there is something to undo, and
    no longer.
    """

    listed = Signal()
    read = Signal(object)
    saved = Signal(object)
    restored = Signal(object)
    noticed = Signal(object)
    withdrawn = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._listing: Job | None = None
        self._again = False
        self._reader = RunReader()  # used in the files' thread alone
        self.runs: tuple[RunSummary, ...] = ()
        self.are_known = False  # until they were listed once
        self.queued: tuple[RunSummary, ...] = ()  # those of them that are in the queue, in its order
        self._trashed: list[tuple[job_events.Trashed, ...]] = []  # what can be undone, the newest last
        self._offer: job_events.UndoOffered | None = None

    def list_runs(self) -> None:
        """Look at the runs' folders again."""
        if self._listing is not None:
            self._again = True
        else:
            self._listing = self._start_at_once(
                "Looking for runs", jobs.list_runs(), self._receive_list, cancellable=False
            )

    def read_runs(self, paths: Sequence[Path]) -> None:
        """Read curves and samples; `read` comes for each run."""
        self._start_at_once("Reading runs", jobs.read_runs(self._reader, paths), self._receive)

    def save_report(self, paths: Sequence[Path], target: Path) -> None:
        """Write a page of HTML about these runs."""
        self._job_queue.start("files", "Writing the report", jobs.save_run_report(paths, target), self._receive)

    def save_event_logs(self, paths: Sequence[Path], folder: Path) -> None:
        """Write the history of these runs for TensorBoard."""
        self._job_queue.start("files", "Writing for TensorBoard", jobs.save_event_logs(paths, folder), self._receive)

    def at(self, path: Path) -> RunSummary | None:
        """The run in this folder, if it is listed."""
        return next((run for run in self.runs if run.path == path), None)

    def title_of(self, path: Path) -> str:
        """What a run is called."""
        run = self.at(path)
        return path.name if run is None else run.title

    def change_notes(
        self,
        path: Path,
        *,
        name: str | None = None,
        note: str | None = None,
        starred: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """Say this of a run, before whatever else is done with files; what is None stays."""
        events = run_jobs.change_notes(path, name, note, starred, tags)
        self._start_at_once(f"Noting it of {path.name}", events, self._receive, cancellable=False)

    def change_notes_now(self, path: Path, *, note: str | None, tags: Sequence[str] | None) -> None:
        """Say this of a run before the window closes, which ends all jobs."""
        try:
            for event in run_jobs.change_notes(path, None, note, None, tags):
                self._receive(event)
        except StudioError as error:  # nobody is there any more to be told
            _log.warning("%s", error)

    def trash_runs(self, paths: Sequence[Path]) -> None:
        """Move runs to the system's trash."""
        title = f"Moving {count(len(paths), 'run')} to the trash"
        self._start_at_once(title, run_jobs.trash_runs(paths), self._receive, cancellable=False)

    def can_undo(self) -> bool:
        """Whether there are runs to be taken back from the trash."""
        return bool(self._trashed)

    @Slot()
    def undo(self) -> None:
        """Take the runs back that were moved to the trash last."""
        if self._trashed:
            self._withdraw()
            events = run_jobs.restore_runs(self._trashed.pop())
            self._start_at_once("Taking back from the trash", events, self._receive, cancellable=False)

    def usable(self, recipe: str) -> list[RunSummary]:
        """Return the runs of a recipe with a saved checkpoint, newest first."""
        return [run for run in self.runs if run.record is not None and run.record.recipe == recipe and run.saved_step]

    def interrupted(self) -> RunSummary | None:
        """The newest run that ended without being stopped; those in the queue go on with the queue."""
        return next((run for run in self.runs if run.standing == "interrupted" and run not in self.queued), None)

    def is_outdated(self) -> bool:
        """Whether the runs were asked for again while they were being listed."""
        return self._again

    def _start_at_once(
        self, title: str, events: Events, receive: Callable[[Event], None], *, cancellable: bool = True
    ) -> Job:
        """Start a short job ahead of other file jobs, which take minutes for an import."""
        job = self._job_queue.start("files", title, events, receive, cancellable=cancellable)
        self._job_queue.prioritize(job)
        return job

    def _receive_list(self, event: Event) -> None:
        if isinstance(event, job_events.QueueListed):
            self.queued = event.runs
        elif isinstance(event, RunsListed):
            self.runs, self.are_known = event.runs, True
            self.listed.emit()
        elif isinstance(event, JobEnded):
            self._listing = None
            if self._again:
                self._again = False
                self.list_runs()

    def _receive(self, event: Event) -> None:
        if isinstance(event, HistoryRead):
            self.read.emit(event)
        elif isinstance(event, job_events.FilesSaved):
            self.saved.emit(event)
        elif isinstance(event, job_events.NotesChanged):
            self._take_notes(event)
        elif isinstance(event, job_events.RunsTrashed):
            self._offer_undo(event.runs)
            self.list_runs()
        elif isinstance(event, job_events.RunsRestored):
            self.restored.emit(event.paths)
            self.list_runs()

    def _take_notes(self, changed: job_events.NotesChanged) -> None:
        """The list says so at once; nothing else in it is new."""
        self.runs = tuple(
            dataclasses.replace(run, notes=changed.notes) if run.path == changed.path else run for run in self.runs
        )
        self.listed.emit()

    def _offer_undo(self, trashed: tuple[job_events.Trashed, ...]) -> None:
        self._withdraw()
        is_one = len(trashed) == 1
        what = f"'{self.title_of(trashed[0].path)}' is" if is_one else f"{count(len(trashed), 'run')} are"
        again = "it" if is_one else "them"
        if any(run.place is None for run in trashed):
            self.noticed.emit(Notice("info", f"{what} in the trash.", f"The system's trash gives {again} back."))
            return
        self._trashed.append(trashed)
        hint = f"Undo or Ctrl+Z takes {again} back; later, the system's trash does."
        self._offer = job_events.UndoOffered("info", f"{what} in the trash.", hint)
        self.noticed.emit(self._offer)

    def _withdraw(self) -> None:
        """An offer to undo is good for the newest alone."""
        if self._offer is not None:
            self.withdrawn.emit(self._offer)
            self._offer = None
