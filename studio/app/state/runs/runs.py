"""The list of runs, and the trash: move runs to the system's trash, and restore them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from studio.app.background import jobs, trash
from studio.app.background.job_queue import JobOptions, JobQueue
from studio.app.background.trash import TrashedRun, TrashMissing
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import run_report
from studio.app.state.undo import UndoHistory, UndoStep
from studio.core import paths
from studio.core.events import ClassPredictions, Event, Notice
from studio.core.formatting import count
from studio.engine.runs import listing
from studio.engine.runs.analysis.confused import confused_sprites
from studio.engine.runs.history import HistoryRead, RunReader
from studio.engine.runs.listing import RunsListed, RunSummary
from studio.engine.runs.notes import RunNotes, folder_name
from studio.engine.runs.queue import queued_runs

SHORT_JOB: JobOptions = {"urgent": True, "cancellable": False}  # urgent: don't wait for an import of minutes


class RunList(QObject):
    """Lists the runs, loads their curves and samples, and saves reports about them."""

    listed = Signal()  # `runs` and `queued` changed
    read = Signal(object)  # HistoryRead
    saved = Signal(object)  # list of Path
    confused_found = Signal(object)  # ConfusedSprites

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._listing: Job | None = None
        self._list_again = False
        self._reader = RunReader()  # used on the files thread only
        self.runs: tuple[RunSummary, ...] = ()
        self.are_known = False  # True after the first listing
        self.queued: tuple[RunSummary, ...] = ()  # in queue order

    def list_runs(self) -> None:
        """Read the list of runs again in a job; `listed` follows."""
        if self._listing is not None:
            self._list_again = True
        else:
            self._listing = self._job_queue.run(
                "files", "Listing runs", _list_runs, self._on_listed, self._on_list_event,
                urgent=True, cancellable=False, quiet=True,
            )  # fmt: skip

    def read_runs(self, paths: Sequence[Path]) -> None:
        """Load curves and samples of runs; `read` follows once per run."""
        events = partial(jobs.read_runs, self._reader, paths)
        self._job_queue.start("files", "Loading runs", events, self._on_read_event, urgent=True)

    def find_confused(
        self, run: Path, predictions: ClassPredictions, true: int, predicted: int, attribute: str = ""
    ) -> None:
        """Load the validation sprites behind a cell of the confusion matrix; `confused_found` follows.

        attribute: the attribute if `true` and `predicted` are attribute values; '' for classes.
        """
        find = partial(confused_sprites, run, predictions, true, predicted, attribute)
        self._job_queue.run("files", "Loading sprites", find, self.confused_found.emit, urgent=True)

    def save_report(self, paths: Sequence[Path], target: Path) -> None:
        """Write an HTML report about runs."""
        runs = listing.runs_by_name(paths)
        self._job_queue.start(
            "files", "Writing report", lambda: run_report.report(runs, target, replace=True), self._on_report_event
        )

    def save_event_logs(self, paths: Sequence[Path], folder: Path) -> None:
        """Write TensorBoard logs of runs into `folder`."""
        write = partial(jobs.save_event_logs, paths, folder)
        self._job_queue.run("files", "Exporting to TensorBoard", write, self.saved.emit)

    def choose_folder(self, folder: Path) -> str:
        """Save new runs in `folder` from now on; runs in former folders stay listed.

        Returns '' on success, otherwise the reason for refusing the folder, as a sentence.
        """
        reason = paths.why_unusable_for_runs(folder)
        if not reason and folder != paths.runs():
            try:
                paths.choose_runs_folder(folder)
            except OSError as error:
                return f"The choice can't be stored: {error.strerror or error}."
            self.list_runs()
        return reason

    def at(self, path: Path) -> RunSummary | None:
        """Return the listed run in the folder `path`; None for an unlisted folder."""
        return next((run for run in self.runs if run.path == path), None)

    def title_of(self, path: Path) -> str:
        """Return a run's display name."""
        run = self.at(path)
        return folder_name(path) if run is None else run.title

    def set_notes(self, path: Path, notes: RunNotes) -> None:
        """Change a listed run's notes without reading the runs again."""
        self.runs = tuple(dataclasses.replace(run, notes=notes) if run.path == path else run for run in self.runs)
        self.listed.emit()

    def usable(self, recipe: str) -> list[RunSummary]:
        """Return a recipe's runs with a saved checkpoint, newest first."""
        return [run for run in self.runs if run.record is not None and run.record.recipe == recipe and run.saved_step]

    def interrupted(self) -> RunSummary | None:
        """Return the newest interrupted run outside the queue; None without an interrupted run."""
        return next((run for run in self.runs if run.standing == "interrupted" and run not in self.queued), None)

    def is_outdated(self) -> bool:
        """Return whether `runs` is outdated and the next listing waits."""
        return self._list_again

    def _on_listed(self, found: tuple[tuple[RunSummary, ...], tuple[RunSummary, ...]]) -> None:
        self.runs, self.queued = found
        self.are_known = True
        self.listed.emit()

    def _on_list_event(self, event: Event) -> None:
        if isinstance(event, JobEnded):
            self._listing = None
            if self._list_again:
                self._list_again = False
                self.list_runs()

    def _on_read_event(self, event: Event) -> None:
        if isinstance(event, HistoryRead):
            self.read.emit(event)

    def _on_report_event(self, event: Event) -> None:
        if isinstance(event, run_report.ReportSaved):
            self.saved.emit([event.path])


def _list_runs() -> tuple[tuple[RunSummary, ...], tuple[RunSummary, ...]]:
    """Read the runs; return the runs, newest first, and the queued runs, in queue order."""
    (event,) = listing.list_runs(listing.remembered_runs())
    assert isinstance(event, RunsListed)
    return event.runs, queued_runs(event.runs)


class RunTrash(QObject):
    """Moves runs to the system's trash, with an undo step, or deletes runs permanently."""

    restored = Signal(object)  # list of Path: restored runs; the list of runs follows
    noticed = Signal(object)  # Notice or UndoOffered
    trash_missing = Signal(object)  # tuple of Path: runs not moved, because their drive has no trash

    def __init__(self, job_queue: JobQueue, runs: RunList, history: UndoHistory, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._runs, self._history = job_queue, runs, history

    def move(self, paths: Sequence[Path]) -> None:
        """Move runs to the system's trash."""
        title = f"Moving {count(len(paths), 'run')} to the trash"
        move, on_event = trash.trash_runs, self._on_trash_event
        self._job_queue.run("files", title, lambda: move(paths), self._on_trashed, on_event, **SHORT_JOB)

    def delete(self, paths: Sequence[Path]) -> None:
        """Delete runs permanently."""
        title, delete = f"Deleting {count(len(paths), 'run')}", trash.delete_runs
        self._job_queue.run("files", title, lambda: delete(paths), self._on_deleted, **SHORT_JOB)

    def _restore(self, trashed: list[TrashedRun]) -> None:
        """Move runs back from the trash."""
        restore = trash.restore_runs
        self._job_queue.run("files", "Restoring runs", lambda: restore(trashed), self._on_restored, **SHORT_JOB)

    def _trash_again(self, restored: list[TrashedRun]) -> None:
        """Move restored runs to the trash again. Updates the list `restored`, because undo uses the list."""
        paths = [run.path for run in restored]
        title = f"Moving {count(len(paths), 'run')} to the trash"
        on_success = partial(self._on_trashed_again, restored)
        move, on_event = trash.trash_runs, self._on_trash_event
        self._job_queue.run("files", title, lambda: move(paths), on_success, on_event, **SHORT_JOB)

    def _on_trashed(self, trashed: list[TrashedRun]) -> None:
        if not trashed:
            return
        runs = f"'{self._runs.title_of(trashed[0].path)}'" if len(trashed) == 1 else count(len(trashed), "run")
        title = f"Moved {runs} to the trash."
        if any(run.trash_path is None for run in trashed):
            self.noticed.emit(Notice("info", title, "To restore, open the system's trash."))
        else:
            undo, redo = partial(self._restore, trashed), partial(self._trash_again, trashed)
            step = UndoStep(f"move {runs} to the trash", undo, redo)
            self._history.add(step)
            self.noticed.emit(self._history.offer(step, title))
        self._runs.list_runs()

    def _on_trash_event(self, event: Event) -> None:
        if isinstance(event, TrashMissing):
            self.trash_missing.emit(event.paths)

    def _on_deleted(self, folders: list[Path]) -> None:
        if folders:
            runs = f"'{self._runs.title_of(folders[0])}'" if len(folders) == 1 else count(len(folders), "run")
            self.noticed.emit(Notice("info", f"Deleted {runs} permanently."))
        self._runs.list_runs()

    def _on_trashed_again(self, restored: list[TrashedRun], trashed: list[TrashedRun]) -> None:
        restored[:] = trashed
        self._runs.list_runs()

    def _on_restored(self, folders: list[Path]) -> None:
        if folders:
            self.restored.emit(folders)
            self._runs.list_runs()
