"""Loads sprite sheets for the preview of slicing."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.core.errors import BadInputError
from studio.core.events import Event, JobFailed
from studio.data.importing import sheet_preview
from studio.data.importing.sheet_preview import SheetPreview
from studio.data.options import SheetGrid

T = TypeVar("T")


class SheetLoader(QObject):
    """Loads one sprite sheet at a time, and finds the sprites of a sheet without a grid. Work runs in jobs."""

    loaded = Signal()  # `sheet` has changed
    boxes_changed = Signal()  # `boxes` has a result, or `error` says why the search failed
    failed = Signal(str, str)  # title and hint: the sheet can't be loaded

    def __init__(self, job_queue: JobQueue, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self._gap = -1  # the gap of the running or last search
        self._boxes: dict[int, NDArray[np.int64]] = {}  # results for this sheet, by gap
        self.sheet: SheetPreview | None = None
        self.error = ""

    def load(self, paths: Sequence[Path], name: str, grid: SheetGrid | None) -> None:
        """Load the sheet `name` from the imported `paths`. grid: the grid that the import detected, if any."""
        self.close()
        self._run(f"Opening {name}", lambda: sheet_preview.load_sheet_preview(paths, name, grid), self._on_sheet_read)

    def boxes(self, gap: int) -> NDArray[np.int64] | None:
        """Return the boxes of the sprites on the sheet, int [n, 4]: left, top, and exclusive right and bottom.

        gap: transparent pixels inside a sprite. Returns None, and searches in the background, for a new gap.
        """
        if self.sheet is not None and gap not in self._boxes and gap != self._gap:
            self._gap = gap
            sheet = self.sheet
            self._run("Finding sprites", lambda: sheet_preview.find_packed(sheet, gap), self._on_boxes_found)
        return self._boxes.get(gap)

    def close(self) -> None:
        """Close the sheet and cancel its job."""
        self._job_queue.abandon(self._job)
        self._job, self.sheet, self._gap = None, None, -1
        self._boxes = {}

    def _run(
        self, title: str, find: Callable[[], Generator[Event, None, T]], on_found: Callable[[T | BadInputError], None]
    ) -> None:
        self._job_queue.abandon(self._job)
        self.error = ""
        operation = partial(_result_or_error, find)
        self._job = self._job_queue.run("files", title, operation, on_found, self._on_event, urgent=True)

    def _on_sheet_read(self, read: SheetPreview | BadInputError) -> None:
        if isinstance(read, BadInputError):
            self._fail(read.title, read.hint)
        else:
            self.sheet = read
            self.loaded.emit()

    def _on_boxes_found(self, boxes: NDArray[np.int64] | BadInputError) -> None:
        if isinstance(boxes, BadInputError):
            self._fail(boxes.title, boxes.hint)
        else:
            self._boxes[self._gap] = boxes
            self.boxes_changed.emit()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, JobFailed):
            self._fail(event.title, event.hint)
        elif isinstance(event, JobEnded):
            self._job = None
            if event.outcome == "cancelled":  # by the user, in the status bar
                self._on_cancelled()

    def _on_cancelled(self) -> None:
        """Report the cancelled job as an error. A later call of `boxes` searches again."""
        if self.sheet is None:
            self._fail("Opening was cancelled.", "Go back and open the sheet again.")
        else:
            self._fail("Search cancelled. Change a setting to search again.")
            self._gap = -1

    def _fail(self, title: str, hint: str = "") -> None:
        if self.sheet is None:
            self.failed.emit(title, hint)
        else:
            self.error = f"{title} {hint}".strip()
            self.boxes_changed.emit()


def _result_or_error(find: Callable[[], Generator[Event, None, T]]) -> Generator[Event, None, T | BadInputError]:
    """Return the result of `find`, or its BadInputError for the slicing view to show."""
    try:
        return (yield from find())
    except BadInputError as error:
        return error
