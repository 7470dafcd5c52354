"""Measure the disk space of runs, and delete files to free space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import free_space
from studio.app.state.runs.runs import RunList
from studio.core.events import Event, Events
from studio.engine.runs.listing import RunSummary
from studio.engine.runs.maintenance import disk_use
from studio.engine.runs.maintenance.disk_use import DiskUse, Removable, SpaceFound, SpaceFreed, UseMeasured


class RunSpace(QObject):
    """Measures the disk space of runs, and deletes files to free space."""

    measured = Signal()  # `uses` changed
    found = Signal(object)  # SpaceFound
    freed = Signal(object)  # SpaceFreed
    ended = Signal()  # after a search or a deletion, also a failed or cancelled job

    def __init__(self, job_queue: JobQueue, runs: RunList, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue, self._runs = job_queue, runs
        self._measuring: Job | None = None
        self._working: Job | None = None
        self._known: dict[Path, RunSummary] = {}  # summaries from the last measurement
        self.uses: dict[Path, DiskUse] = {}

    def measure(self) -> None:
        """Measure the disk space of new runs, and of runs with changes since the last measurement."""
        listed = {run.path: run for run in self._runs.runs}
        self._known = {path: run for path, run in self._known.items() if path in listed}
        missing = [path for path, run in listed.items() if self._has_grown(run)]
        if missing and self._measuring is None:
            self._known.update({path: listed[path] for path in missing})
            self._measuring = self._job_queue.start(
                "files", "Measuring disk use", disk_use.measure_use(missing), self._on_use_event, background=True
            )

    def measure_again(self) -> None:
        """Measure every run again, because exports and the command line may have added files."""
        self._known = {}
        self.measure()

    def total_bytes(self) -> int:
        """Return the total bytes of the measured runs."""
        return disk_use.total_bytes(self.uses[run.path] for run in self._runs.runs if run.path in self.uses)

    def is_busy(self) -> bool:
        """Return whether a search or a deletion is running."""
        return self._working is not None

    def find(self, paths: Sequence[Path], *, with_cache: bool) -> None:
        """Find deletable files of runs. with_cache: include the import cache."""
        self._run("Searching for files to delete", lambda: free_space.find_space(paths, with_cache=with_cache))

    def free(self, items: Sequence[Removable]) -> None:
        """Delete files from a result of `find`."""
        self._run("Freeing space", lambda: free_space.free_space(items))

    def _has_grown(self, run: RunSummary) -> bool:
        known = self._known.get(run.path)
        return known is None or (known.progress, known.standing) != (run.progress, run.standing)

    def _run(self, title: str, operation: Callable[[], Events]) -> None:
        """Start a job on the engine thread, because finding a run's best checkpoint needs torch."""
        self._job_queue.abandon(self._working)
        self._working = self._job_queue.start("engine", title, operation, self._on_event)

    def _on_use_event(self, event: Event) -> None:
        if isinstance(event, UseMeasured):
            self.uses.update(event.uses)
            self.measured.emit()
        elif isinstance(event, JobEnded):
            self._measuring = None
            self.measure()  # measure runs added meanwhile

    def _on_event(self, event: Event) -> None:
        if isinstance(event, SpaceFound):
            self.found.emit(event)
        elif isinstance(event, SpaceFreed):
            self.freed.emit(event)
            self.measure_again()
        elif isinstance(event, JobEnded):
            self._working = None
            self.ended.emit()
            if event.outcome != "done":  # some files may be deleted already
                self.measure_again()
