"""The sprites that are open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from studio.app import answers, colour_jobs, jobs
from studio.app.dispatcher import Dispatcher
from studio.app.worker import Job, JobEnded
from studio.core import places
from studio.core.events import Event, Progress
from studio.data.importing import ImportOptions, SpritesImported

if TYPE_CHECKING:
    from studio.data.sprites import Sprites


class Importing(QObject):
    """Opens files and folders, and holds what came of the last ones.

    started: an import began. progressed: (Progress). imported: (SpritesImported). palette_found: (PaletteFound).
    ended: the import is over, in whatever way.
    """

    started = Signal()
    progressed = Signal(object)
    imported = Signal(object)
    palette_found = Signal(object)
    ended = Signal()

    def __init__(self, dispatcher: Dispatcher, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dispatcher = dispatcher
        self._job: Job | None = None
        self._asked: tuple[tuple[Path, ...], ImportOptions] = ((), ImportOptions())
        self.paths: tuple[Path, ...] = ()  # of `result`
        self.options = ImportOptions()
        self.result: SpritesImported | None = None

    @property
    def sprites(self) -> Sprites | None:
        """The sprites that are open."""
        return self.result.sprites if self.result else None

    def is_busy(self) -> bool:
        """Whether an import is under way."""
        return self._job is not None

    def open_paths(self, paths: Sequence[Path], options: ImportOptions | None = None) -> None:
        """Import files and folders; what was open stays until the new sprites are there."""
        self.cancel()
        self._asked = (tuple(paths), options or ImportOptions())
        title = f"Opening {paths[0].name}" if len(paths) == 1 else f"Opening {len(paths)} files and folders"
        self._job = self._dispatcher.start("files", title, jobs.import_sprites(*self._asked), self._receive)
        self.started.emit()

    def open_demo(self) -> None:
        """Import the sprites that come with the studio."""
        self.open_paths([places.demo_sprites()])

    def change_options(self, options: ImportOptions) -> None:
        """Import the same files anew, in another way."""
        if self.paths:
            self.open_paths(self.paths, options)

    def cancel(self) -> None:
        """End the import that is under way; what was open stays."""
        if self._job is not None:
            self._dispatcher.cancel(self._job)
            self._job = None
            self.ended.emit()

    def _receive(self, event: Event) -> None:
        job = self._job
        if job is None:
            return  # cancelled: the rest of its mail is of no interest
        if isinstance(event, Progress):
            self.progressed.emit(event)
        elif isinstance(event, SpritesImported):
            self.result, (self.paths, self.options) = event, self._asked
            self.imported.emit(event)
            self._dispatcher.start(
                "files", "Looking at the colours", colour_jobs.find_palette(event.sprites), self._receive_palette
            )
        elif isinstance(event, JobEnded):
            self._job = None
            self.ended.emit()

    def _receive_palette(self, event: Event) -> None:
        if isinstance(event, answers.PaletteFound) and event.sprites is self.sprites:
            self.palette_found.emit(event)
