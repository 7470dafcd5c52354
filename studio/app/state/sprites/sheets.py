"""Sheets that are looked at before they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background import job_events, sprite_jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.core.events import Event, Events, JobFailed

if TYPE_CHECKING:
    from studio.data.importing.sheet_preview import Sheet
    from studio.data.options import Grid


class SheetReader(QObject):
    """Reads one sheet at a time and finds its packed sprites, each beside the window.

    seen: `sheet` has been read. unseen: (title, hint) why it can't be. packed: `boxes` has an answer, or `trouble` says
    why there is none.
    """

    seen = Signal()
    packed = Signal()
    unseen = Signal(str, str)

    def __init__(self, job_queue: JobQueue, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self._gap = -1  # that was asked for last
        self._boxes: dict[int, NDArray[np.int64]] = {}  # of this sheet, by gap
        self.sheet: Sheet | None = None
        self.trouble = ""

    def read(self, paths: Sequence[Path], name: str, grid: Grid | None) -> None:
        """Read the sheet of that name; there is none until it is there. grid: recognised in it already."""
        self.forget()
        self._ask(f"Opening {name}", sprite_jobs.look_at_sheet(paths, name, grid))

    def boxes(self, gap: int) -> NDArray[np.int64] | None:
        """The boxes of packed sprites: int [n, 4], left, top, right and bottom. None: they are being looked for."""
        if self.sheet is not None and gap not in self._boxes and gap != self._gap:
            self._gap = gap
            self._ask("Looking for sprites", sprite_jobs.find_packed(self.sheet, gap))
        return self._boxes.get(gap)

    def forget(self) -> None:
        """Let go of the sheet and of what is being done with it."""
        self._job_queue.give_up(self._job)
        self._job, self.sheet, self._gap = None, None, -1
        self._boxes = {}

    def _ask(self, title: str, events: Events) -> None:
        self._job_queue.give_up(self._job)
        self.trouble = ""
        self._job = self._job_queue.start("files", title, events, self._receive)
        self._job_queue.prioritize(self._job)  # ahead of a long import: the user waits for the sheet

    def _receive(self, event: Event) -> None:
        if isinstance(event, job_events.SheetSeen):
            self.sheet = event.sheet
            self.seen.emit()
        elif isinstance(event, job_events.PackedSeen):
            self._boxes[self._gap] = event.boxes
            self.packed.emit()
        elif isinstance(event, job_events.SheetUnseen | JobFailed) and self.sheet is None:
            self.unseen.emit(event.title, event.hint)
        elif isinstance(event, job_events.SheetUnseen | JobFailed):
            self.trouble = f"{event.title} {event.hint}".strip()
            self.packed.emit()
        elif isinstance(event, JobEnded):
            self._job = None
            if event.outcome == "cancelled":  # in the status bar
                self._give_up()

    def _give_up(self) -> None:
        """Say that there will be no answer, and ask again when one is wanted anew."""
        if self.sheet is None:
            self.unseen.emit("Opening the sheet was cancelled.", "Go back and open it again to see it.")
        else:
            self.trouble = "Looking for the sprites was cancelled: change a setting to look again."
            self.packed.emit()
            self._gap = -1
