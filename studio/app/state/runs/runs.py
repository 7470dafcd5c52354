"""All runs that were ever made."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import jobs, trash
from studio.app.background.job_events import UndoOffered
from studio.app.background.job_queue import JobOptions, JobQueue, Operation, ignore
from studio.app.background.late_import import LateModule
from studio.app.background.trash import TrashedRun
from studio.app.background.worker import Job, JobEnded
from studio.core.errors import StudioError
from studio.core.events import Event, Notice
from studio.core.formatting import count
from studio.engine.runs import listing
from studio.engine.runs.history import HistoryRead, RunReader
from studio.engine.runs.listing import RunsListed
from studio.engine.runs.notes import RunNotes, change_notes
from studio.engine.runs.queue import queued_runs

if TYPE_CHECKING:
    from studio.engine.runs.analysis import report
    from studio.engine.runs.listing import RunSummary
else:
    report = LateModule("studio.engine.runs.analysis.report")

_log = logging.getLogger(__name__)
T = TypeVar("T")


class RunList(QObject):
    """Lists runs, reads their curves and samples, notes what is said of them, moves them to the trash and back.

    listed: `runs` is new, and so is `queued`. read: (HistoryRead). saved: (list of Path). restored: (list of Path)
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
        self._trashed: list[list[TrashedRun]] = []  # what can be undone, the newest last
        self._offer: UndoOffered | None = None

    def list_runs(self) -> None:
        """Look at the runs' folders again."""
        if self._listing is not None:
            self._again = True
        else:
            self._listing = self._run_first(
                "Listing runs", _list_runs, self._on_listed, self._on_list_event, cancellable=False
            )

    def read_runs(self, paths: Sequence[Path]) -> None:
        """Read curves and samples; `read` comes for each run."""
        events = partial(jobs.read_runs, self._reader, paths)
        self._job_queue.prioritize(self._job_queue.start("files", "Loading runs", events, self._on_read_event))

    def save_report(self, paths: Sequence[Path], target: Path) -> None:
        """Write a page of HTML about these runs."""
        runs = listing.runs_by_name(paths)
        self._job_queue.start(
            "files", "Writing report", lambda: report.report(runs, target, replace=True), self._on_report_event
        )

    def save_event_logs(self, paths: Sequence[Path], folder: Path) -> None:
        """Write the history of these runs for TensorBoard."""
        self._job_queue.run(
            "files", "Exporting to TensorBoard", lambda: jobs.save_event_logs(paths, folder), self.saved.emit
        )

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
        change = partial(change_notes, path, name=name, note=note, starred=starred, tags=tags)
        self._run_first(
            f"Saving notes of {path.name}", change, partial(self._on_notes_changed, path), cancellable=False
        )

    def change_notes_now(self, path: Path, *, note: str | None, tags: Sequence[str] | None) -> None:
        """Say this of a run before the window closes, which ends all jobs."""
        try:
            self._on_notes_changed(path, change_notes(path, note=note, tags=tags))
        except StudioError as error:  # nobody is there any more to be told
            _log.warning("%s", error)

    def trash_runs(self, paths: Sequence[Path]) -> None:
        """Move runs to the system's trash."""
        title = f"Moving {count(len(paths), 'run')} to the trash"
        self._run_first(title, lambda: trash.trash_runs(paths), self._on_trashed, cancellable=False)

    def can_undo(self) -> bool:
        """Whether there are runs to be taken back from the trash."""
        return bool(self._trashed)

    @Slot()
    def undo(self) -> None:
        """Take the runs back that were moved to the trash last."""
        if self._trashed:
            self._withdraw()
            runs = self._trashed.pop()
            self._run_first("Restoring runs", lambda: trash.restore_runs(runs), self._on_restored, cancellable=False)

    def usable(self, recipe: str) -> list[RunSummary]:
        """Return the runs of a recipe with a saved checkpoint, newest first."""
        return [run for run in self.runs if run.record is not None and run.record.recipe == recipe and run.saved_step]

    def interrupted(self) -> RunSummary | None:
        """The newest run that ended without being stopped; those in the queue go on with the queue."""
        return next((run for run in self.runs if run.standing == "interrupted" and run not in self.queued), None)

    def is_outdated(self) -> bool:
        """Whether the runs were asked for again while they were being listed."""
        return self._again

    def _run_first(
        self,
        title: str,
        operation: Operation[T],
        on_success: Callable[[T], None],
        on_event: Callable[[Event], None] = ignore,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Start a short job ahead of other file jobs: an import takes minutes."""
        job = self._job_queue.run("files", title, operation, on_success, on_event, **options)
        self._job_queue.prioritize(job)
        return job

    def _on_listed(self, found: tuple[tuple[RunSummary, ...], tuple[RunSummary, ...]]) -> None:
        self.runs, self.queued = found
        self.are_known = True
        self.listed.emit()

    def _on_list_event(self, event: Event) -> None:
        if isinstance(event, JobEnded):
            self._listing = None
            if self._again:
                self._again = False
                self.list_runs()

    def _on_read_event(self, event: Event) -> None:
        if isinstance(event, HistoryRead):
            self.read.emit(event)

    def _on_report_event(self, event: Event) -> None:
        if isinstance(event, report.ReportSaved):
            self.saved.emit([event.path])

    def _on_notes_changed(self, path: Path, notes: RunNotes) -> None:
        """Change the notes in the list without reading the runs again."""
        self.runs = tuple(dataclasses.replace(run, notes=notes) if run.path == path else run for run in self.runs)
        self.listed.emit()

    def _on_trashed(self, runs: list[TrashedRun]) -> None:
        if runs:
            self._offer_undo(runs)
            self.list_runs()

    def _on_restored(self, folders: list[Path]) -> None:
        if folders:
            self.restored.emit(folders)
            self.list_runs()

    def _offer_undo(self, trashed: list[TrashedRun]) -> None:
        self._withdraw()
        is_one = len(trashed) == 1
        what = f"'{self.title_of(trashed[0].path)}' is" if is_one else f"{count(len(trashed), 'run')} are"
        again = "it" if is_one else "them"
        if any(run.trash_path is None for run in trashed):
            self.noticed.emit(Notice("info", f"{what} in the trash.", f"The system's trash gives {again} back."))
            return
        self._trashed.append(trashed)
        hint = f"Undo or Ctrl+Z takes {again} back; later, the system's trash does."
        self._offer = UndoOffered("info", f"{what} in the trash.", hint)
        self.noticed.emit(self._offer)

    def _withdraw(self) -> None:
        """An offer to undo is good for the newest alone."""
        if self._offer is not None:
            self.withdrawn.emit(self._offer)
            self._offer = None


def _list_runs() -> tuple[tuple[RunSummary, ...], tuple[RunSummary, ...]]:
    """Read all runs; return the runs, newest first, and the queued runs in the order of the queue."""
    (event,) = listing.list_runs(listing.remembered_runs())
    assert isinstance(event, RunsListed)
    return event.runs, queued_runs(event.runs)
