"""Moves runs to the system's trash and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background import trash
from studio.app.background.job_events import UndoOffered
from studio.app.background.job_queue import JobQueue
from studio.app.background.trash import TrashedRun
from studio.app.state.runs.runs import SHORT_JOB, RunList
from studio.core.events import Notice
from studio.core.formatting import count


class RunTrash(QObject):
    """Moves runs to the system's trash, and back with `undo`."""

    restored = Signal(object)  # list of Path: these runs came back; the list of runs follows
    noticed = Signal(object)  # Notice or UndoOffered
    withdrawn = Signal(object)  # UndoOffered: the offer has expired

    def __init__(self, job_queue: JobQueue, runs: RunList, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._runs = job_queue, runs
        self._trashed: list[list[TrashedRun]] = []  # groups of runs for `undo`, newest last
        self._offer: UndoOffered | None = None

    def move(self, paths: Sequence[Path]) -> None:
        """Move runs to the system's trash."""
        title = f"Moving {count(len(paths), 'run')} to the trash"
        self._job_queue.run("files", title, lambda: trash.trash_runs(paths), self._on_trashed, **SHORT_JOB)

    def can_undo(self) -> bool:
        """Return whether `undo` can restore runs."""
        return bool(self._trashed)

    @Slot()
    def undo(self) -> None:
        """Restore the runs that were last moved to the trash."""
        if self._trashed:
            self._withdraw_offer()
            runs = self._trashed.pop()
            restore = trash.restore_runs
            self._job_queue.run("files", "Restoring runs", lambda: restore(runs), self._on_restored, **SHORT_JOB)

    def _on_trashed(self, trashed: list[TrashedRun]) -> None:
        if not trashed:
            return
        self._withdraw_offer()
        runs = f"'{self._runs.title_of(trashed[0].path)}'" if len(trashed) == 1 else count(len(trashed), "run")
        title = f"Moved {runs} to the trash."
        if any(run.trash_path is None for run in trashed):
            self.noticed.emit(Notice("info", title, "To restore, open the system's trash."))
        else:
            self._trashed.append(trashed)
            self._offer = UndoOffered("info", title, "To restore, press Undo (Ctrl+Z).")
            self.noticed.emit(self._offer)
        self._runs.list_runs()

    def _on_restored(self, folders: list[Path]) -> None:
        if folders:
            self.restored.emit(folders)
            self._runs.list_runs()

    def _withdraw_offer(self) -> None:
        if self._offer is not None:
            self.withdrawn.emit(self._offer)
            self._offer = None
