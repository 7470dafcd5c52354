"""The sprites that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from studio.app import answers, colour_jobs, import_jobs
from studio.app.dispatcher import Dispatcher
from studio.app.worker import Job, JobEnded
from studio.core import places
from studio.core.events import Event, Progress
from studio.data.importing import ImportOptions, SpritesImported

if TYPE_CHECKING:
    from studio.data.sprites import Sprites


@dataclass(frozen=True)
class Choice:
    """A change of the options that can be taken back: what it is called, and the options before and after it."""

    title: str
    before: ImportOptions
    after: ImportOptions


@dataclass(frozen=True)
class Opening:
    """What is opened and how. past: the choices that hold, the last one last. future: those taken back, next first."""

    paths: tuple[Path, ...] = ()
    options: ImportOptions = field(default_factory=ImportOptions)
    past: tuple[Choice, ...] = ()
    future: tuple[Choice, ...] = ()


class Importing(QObject):
    """Opens files and folders, and holds what came of the last ones.

    started: other files are being read. progressed: (Progress). imported: (SpritesImported).
    palette_found: (PaletteFound). only_sheets: (OnlySheets) there was nothing but sheets; what was open stays.
    ended: the import is over, in whatever way.
    """

    started = Signal()
    progressed = Signal(object)
    imported = Signal(object)
    palette_found = Signal(object)
    only_sheets = Signal(object)
    ended = Signal()

    def __init__(self, dispatcher: Dispatcher, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dispatcher = dispatcher
        self._job: Job | None = None
        self._looking: Job | None = None  # at the colours
        self._asked: Opening | None = None  # that of the job
        self.opened = Opening()  # that of `result`
        self.result: SpritesImported | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files and folders that are open."""
        return self.opened.paths

    @property
    def options(self) -> ImportOptions:
        """How they were read and mended."""
        return self.opened.options

    @property
    def newest(self) -> Opening:
        """What is being opened, else what is open: a choice that is made now changes that."""
        return self._asked or self.opened

    @property
    def sprites(self) -> Sprites | None:
        """The sprites that are open."""
        return self.result.sprites if self.result else None

    def is_busy(self) -> bool:
        """Whether an import is under way."""
        return self._job is not None

    def open_paths(self, paths: Sequence[Path], options: ImportOptions | None = None) -> None:
        """Import files and folders; what was open stays until the new sprites are there."""
        self._begin(Opening(tuple(paths), options or ImportOptions()))
        self.started.emit()

    def open_demo(self) -> None:
        """Import the sprites that come with the studio."""
        self.open_paths([places.demo_sprites()])

    def change_options(self, options: ImportOptions, title: str = "Change of settings") -> None:
        """Import the same files anew, in another way, which `undo` takes back."""
        now = self.newest
        if now.paths and options != now.options:
            self._begin(Opening(now.paths, options, (*now.past, Choice(title, now.options, options))))

    def undo(self) -> None:
        """Take the last choice back."""
        now = self.newest
        if now.past:
            self._begin(Opening(now.paths, now.past[-1].before, now.past[:-1], (now.past[-1], *now.future)))

    def redo(self) -> None:
        """Make the choice that was taken back last once more."""
        now = self.newest
        if now.future:
            self._begin(Opening(now.paths, now.future[0].after, (*now.past, now.future[0]), now.future[1:]))

    def cancel(self) -> None:
        """End the import that is under way; what was open stays."""
        if self._job is not None:
            self._dispatcher.give_up(self._job)
            self._job = self._asked = None
            self.ended.emit()

    def _begin(self, asked: Opening) -> None:
        self.cancel()
        self._asked, paths = asked, asked.paths
        title = f"Opening {paths[0].name}" if len(paths) == 1 else f"Opening {len(paths)} files and folders"
        events = import_jobs.open_sprites(paths, asked.options)
        self._job = self._dispatcher.start("files", title, events, self._receive)

    def _receive(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progressed.emit(event)
        elif isinstance(event, SpritesImported):
            self.result, self.opened = event, self.newest
            self.imported.emit(event)
            self._dispatcher.give_up(self._looking)
            colours, receive = colour_jobs.find_palette(event.sprites), self._receive_palette
            self._looking = self._dispatcher.start("files", "Looking at the colours", colours, receive, background=True)
        elif isinstance(event, answers.OnlySheets):
            self.only_sheets.emit(event)
        elif isinstance(event, JobEnded):
            self._job = self._asked = None
            self.ended.emit()

    def _receive_palette(self, event: Event) -> None:
        if isinstance(event, answers.PaletteFound):
            self.palette_found.emit(event)
