"""The sprites that are open, and what deserves a look among them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.job_events import OnlySheets
from studio.app.background.job_queue import JobQueue
from studio.app.background.late_import import LateModule
from studio.app.background.worker import Job, JobEnded
from studio.app.state.settings import Settings
from studio.core import paths
from studio.core.errors import UsageError
from studio.core.events import Event, Events, Progress
from studio.data.colour.colour_counts import ColourCounts, count_colours
from studio.data.doctor.findings import Finding, Fix, SpritesChecked, exclude_fix, list_findings
from studio.data.importing.importing import (
    SHEET_GROUPS,
    ImportOptions,
    NothingUsableError,
    SpritesImported,
    import_sprites,
)
from studio.data.rights import Rights

if TYPE_CHECKING:
    from studio.data.doctor import checks
    from studio.data.sprites import Sprites
else:
    checks = LateModule("studio.data.doctor.checks")


@dataclass(frozen=True)
class OptionsChange:
    """A change of the options that can be taken back: what it is called, and the options before and after it."""

    title: str
    before: ImportOptions
    after: ImportOptions


@dataclass(frozen=True)
class ImportState:
    """What is opened and how. past: the choices that hold, the last one last. future: those taken back, next first."""

    paths: tuple[Path, ...] = ()
    options: ImportOptions = field(default_factory=ImportOptions)
    past: tuple[OptionsChange, ...] = ()
    future: tuple[OptionsChange, ...] = ()


class OpenSprites(QObject):
    """Imports files and folders, and holds the sprites that the last import brought.

    started: other files are being read. progressed: (Progress). imported: (SpritesImported).
    colours_counted: (ColourCounts). only_sheets: (OnlySheets) there was nothing but sheets; what was open stays.
    ended: the import is over, in whatever way.
    """

    started = Signal()
    progressed = Signal(object)
    imported = Signal(object)
    colours_counted = Signal(object)
    only_sheets = Signal(object)
    ended = Signal()

    def __init__(self, job_queue: JobQueue, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._settings = settings
        self._job: Job | None = None
        self._counting: Job | None = None  # of the colours
        self._asked: ImportState | None = None  # that of the job
        self.opened = ImportState()  # that of `result`
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
    def latest(self) -> ImportState:
        """What is being opened, else what is open: a choice that is made now changes that."""
        return self._asked or self.opened

    @property
    def sprites(self) -> Sprites | None:
        """The sprites that are open."""
        return self.result.sprites if self.result else None

    @property
    def rights(self) -> Rights:
        """What the user says of the rights in what is open."""
        known = Rights.for_sources(self.paths)
        try:
            return known.replace(**self._settings.values(self._rights_key()))
        except (UsageError, TypeError):  # the file was changed by hand
            return known

    def set_rights(self, rights: Rights) -> None:
        """Remember what the user says, also for when the same files are opened again."""
        self._settings.set_values(self._rights_key(), rights.to_json())

    def _rights_key(self) -> str:
        return f"rights-{hashlib.sha256(repr(self.paths).encode('utf-8', 'replace')).hexdigest()[:16]}"

    def is_busy(self) -> bool:
        """Whether an import is under way."""
        return self._job is not None

    def open_paths(self, paths: Sequence[Path], options: ImportOptions | None = None) -> None:
        """Import files and folders; what was open stays until the new sprites are there."""
        self._begin(ImportState(tuple(paths), options or ImportOptions()))
        self.started.emit()

    def open_demo(self) -> None:
        """Import the sprites that come with the studio."""
        self.open_paths([paths.demo_sprites()])

    def change_options(self, options: ImportOptions, title: str = "Change of settings") -> None:
        """Import the same files anew, in another way, which `undo` takes back."""
        now = self.latest
        if now.paths and options != now.options:
            self._begin(ImportState(now.paths, options, (*now.past, OptionsChange(title, now.options, options))))

    def undo(self) -> None:
        """Take the last choice back."""
        now = self.latest
        if now.past:
            self._begin(ImportState(now.paths, now.past[-1].before, now.past[:-1], (now.past[-1], *now.future)))

    def redo(self) -> None:
        """Make the choice that was taken back last once more."""
        now = self.latest
        if now.future:
            self._begin(ImportState(now.paths, now.future[0].after, (*now.past, now.future[0]), now.future[1:]))

    def cancel(self) -> None:
        """End the import that is under way; what was open stays."""
        if self._job is not None:
            self._job_queue.abandon(self._job)
            self._job = self._asked = None
            self.ended.emit()

    def _begin(self, asked: ImportState) -> None:
        self.cancel()
        self._asked, paths = asked, asked.paths
        title = f"Opening {paths[0].name}" if len(paths) == 1 else f"Opening {len(paths)} files and folders"
        events = _import_or_find_sheets(paths, asked.options)
        self._job = self._job_queue.start("files", title, events, self._on_event, kind="Opening")

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progressed.emit(event)
        elif isinstance(event, SpritesImported):
            self.result, self.opened = event, self.latest
            self.imported.emit(event)
            self._job_queue.abandon(self._counting)
            rgba = event.sprites.rgba
            self._counting = self._job_queue.run(
                "files", "Counting colours", lambda: count_colours(rgba), self._on_colours_counted, background=True
            )
        elif isinstance(event, OnlySheets):
            self.only_sheets.emit(event)
        elif isinstance(event, JobEnded):
            self._job = self._asked = None
            self.ended.emit()

    def _on_colours_counted(self, use: ColourCounts) -> None:
        self.colours_counted.emit(use)


def _import_or_find_sheets(sources: Sequence[Path], options: ImportOptions) -> Events:
    """Import sprites; yield `OnlySheets` if there are none but sheets that were not sliced."""
    try:
        yield from import_sprites(sources, options, paths.cache())
    except NothingUsableError as error:
        sheets = tuple(item for item in error.left_out if item.group in SHEET_GROUPS)
        if not sheets or options.sheets != "as they are" or options.other_sizes == "leave out":
            raise
        yield OnlySheets(tuple(sources), sheets, error.sheets)


class SpriteDoctor(QObject):
    """Examines what was imported, and mends it by changing the import's options. changed: `findings` are new."""

    changed = Signal()

    def __init__(self, job_queue: JobQueue, open_sprites: OpenSprites, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._open_sprites = job_queue, open_sprites
        self._job: Job | None = None
        self._examined: list[SpritesChecked] = []
        self.findings: tuple[Finding, ...] = ()
        open_sprites.imported.connect(self._on_imported)

    @property
    def is_checking(self) -> bool:
        """Whether more may be found in a moment."""
        return self._job is not None

    def add(self, examined: SpritesChecked) -> None:
        """Take in what was found elsewhere, if it is about the open sprites."""
        if examined.sprites is self._open_sprites.sprites:
            self._examined.append(examined)
            self._refresh()

    def apply(self, fix: Fix) -> None:
        """Change the import as a fix says."""
        self._open_sprites.change_options(self._open_sprites.latest.options.replace(**fix.changes), fix.title)

    def exclude(self, names: list[str]) -> None:
        """Leave sprites out of the import."""
        self.apply(exclude_fix(names, self._open_sprites.latest.options))

    @Slot()
    def _on_imported(self) -> None:
        self._job_queue.abandon(self._job)
        self._examined = []
        sprites = self._open_sprites.sprites
        assert sprites is not None
        options = self._open_sprites.options
        self._job = self._job_queue.start(
            "files",
            "Checking sprites",
            lambda: checks.run_checks(sprites, options, paths.cache()),
            self._on_event,
            background=True,
        )
        self._refresh()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, SpritesChecked):
            self.add(event)
        elif isinstance(event, JobEnded):
            self._job = None
            self.changed.emit()

    def _refresh(self) -> None:
        found = self._open_sprites.result
        assert found is not None
        self.findings = list_findings(found, self._open_sprites.options, self._examined)
        self.changed.emit()
