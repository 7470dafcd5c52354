"""All runs that were ever made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from studio.app.background import job_events, jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.core.events import Event
from studio.engine.runs.history import HistoryRead, RunReader
from studio.engine.runs.listing import RunsListed

if TYPE_CHECKING:
    from studio.engine.runs.listing import RunSummary


class RunList(QObject):
    """Lists runs, reads their curves and samples, and moves them to the trash.

    listed: `runs` is new. read: (HistoryRead). trashed: (Path). saved: (FilesSaved).
    """

    listed = Signal()
    read = Signal(object)
    trashed = Signal(object)
    saved = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._listing: Job | None = None
        self._again = False
        self._reader = RunReader()  # used in the files' thread alone
        self.runs: tuple[RunSummary, ...] = ()

    def list_runs(self) -> None:
        """Look at the runs' folders again."""
        if self._listing is not None:
            self._again = True
        else:
            self._listing = self._job_queue.start(
                "files", "Looking for runs", jobs.list_runs(), self._receive_list, cancellable=False
            )

    def read_runs(self, paths: Sequence[Path]) -> None:
        """Read curves and samples; `read` comes for each run."""
        self._job_queue.start("files", "Reading runs", jobs.read_runs(self._reader, paths), self._receive)

    def save_report(self, paths: Sequence[Path], target: Path) -> None:
        """Write a page of HTML about these runs."""
        self._job_queue.start("files", "Writing the report", jobs.save_run_report(paths, target), self._receive)

    def save_event_logs(self, paths: Sequence[Path], folder: Path) -> None:
        """Write the history of these runs for TensorBoard."""
        self._job_queue.start("files", "Writing for TensorBoard", jobs.save_event_logs(paths, folder), self._receive)

    def trash_run(self, path: Path) -> None:
        """Move a run to the system's trash."""
        self._job_queue.start("files", f"Moving {path.name} to the trash", jobs.trash_run(path), self._receive)

    def usable(self, recipe: str) -> list[RunSummary]:
        """The runs of a recipe that have learnt something, the newest first."""
        return [
            run
            for run in self.runs
            if run.record is not None and run.record.recipe == recipe and run.progress is not None and run.progress.step
        ]

    def interrupted(self) -> RunSummary | None:
        """The newest run that ended without being stopped."""
        return next((run for run in self.runs if run.standing == "interrupted"), None)

    def _receive_list(self, event: Event) -> None:
        if isinstance(event, RunsListed):
            self.runs = event.runs
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
        elif isinstance(event, job_events.RunTrashed):
            self.trashed.emit(event.path)
            self.list_runs()
