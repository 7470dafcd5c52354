"""The open sprites: importing files, and undoable changes of import options."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from studio.app.background.job_events import OnlySheets, StoredOptionsFollowed
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.sprites.import_job import ImportState, SavedEdits, import_as_stored
from studio.app.state.undo import UndoHistory, UndoStep, change_title
from studio.core import paths
from studio.core.events import Event, Progress
from studio.core.formatting import lower_first
from studio.data.colour.colour_counts import count_colours
from studio.data.doctor.findings import Fix
from studio.data.importing.importing import ImportOptions, SpritesImported
from studio.data.reading.finding import locate_sprites
from studio.data.sprites import Sprites


@dataclass(frozen=True, eq=False)
class OptionsChange(UndoStep):
    """An undoable change of the import options."""

    before: ImportOptions


class OpenSprites(QObject):
    """Imports files and folders, and holds the imported sprites."""

    started = Signal()  # an import of new files started
    progressed = Signal(object)  # Progress
    imported = Signal(object)  # SpritesImported
    colours_counted = Signal(object)  # ColourCounts; not after an import that changed no pixels
    only_sheets = Signal(object)  # OnlySheets: the files contain only sheets; the open sprites stay
    ended = Signal()  # an import ended, failed or was cancelled
    located = Signal(object)  # list of Path: the files found by `locate`

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self._counting: Job | None = None  # counts the colours
        self._requested: ImportState | None = None  # the running import
        self._saved_edits = SavedEdits()
        self.history = UndoHistory(self)  # changes of options and edits after opening
        self._opened_steps = self.history.steps()  # history steps behind `result`
        self.opened = ImportState()  # paths, options and edits behind `result`
        self.result: SpritesImported | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The open files and folders."""
        return self.opened.paths

    @property
    def options(self) -> ImportOptions:
        """The import options of the open sprites."""
        return self.opened.options

    @property
    def latest(self) -> ImportState:
        """The state of the running import, or else of the open sprites. The next change starts from this state."""
        return self._requested or self.opened

    @property
    def sprites(self) -> Sprites | None:
        """The imported sprites; None before an import."""
        return self.result.sprites if self.result else None

    def was_reopened(self) -> bool:
        """Return whether the import followed stored options, without a change since then."""
        return self.opened.memory == "follow"

    def is_busy(self) -> bool:
        """Return whether an import is running."""
        return self._job is not None

    def open_paths(self, paths: Sequence[Path], options: ImportOptions | None = None) -> None:
        """Import files and folders; the open sprites stay until the import is done.

        options: None for the options that the user chose for these paths, in this or an earlier session.
        """
        state = ImportState(tuple(paths), memory="follow")
        self.import_state(state if options is None else state.with_options(options))
        self.history.clear()
        self.started.emit()

    def open_demo(self) -> None:
        """Import the bundled demo sprites."""
        self.open_paths([paths.demo_sprites()])

    def change_options(self, options: ImportOptions, title: str = "") -> None:
        """Import the open files with new options; add a step to `history`. title: the step's; '' for a default."""
        now = self.latest
        if now.paths and options != now.options:
            change = title or change_title(now.options, options)
            undo, redo = partial(self._import_with, now.options), partial(self._import_with, options)
            redo()
            self.history.add(OptionsChange(change, undo, redo, now.options))

    def apply_fix(self, fix: Fix) -> None:
        """Import the open files with the fix's changes of the options."""
        self.change_options(self.latest.options.replace(**fix.changes), fix.undo_title or lower_first(fix.title))

    def locate(self, names: Sequence[str], paths: Sequence[Path] | None = None) -> None:
        """Find the files with sprites of these names, and emit `located`. paths: None for the open sprites' paths."""
        if paths is None and self.sprites is not None:  # open sprites from a run keep the paths of the run's import
            paths = [Path(path) for path in self.sprites.origin["paths"]]
        find = partial(locate_sprites, paths or self.paths, names)
        self._job_queue.run("files", "Finding files", find, self.located.emit)

    def cancel(self) -> None:
        """Cancel the running import; the open sprites stay."""
        self._abandon_import()
        self.history.restore(self._opened_steps)

    def import_state(self, requested: ImportState) -> None:
        """Import with these paths, options and edits; cancel a running import. Adds no step to `history`."""
        self._abandon_import()
        self._requested, paths = requested, requested.paths
        title = f"Opening {paths[0].name}" if len(paths) == 1 else f"Opening {len(paths)} files and folders"
        events = import_as_stored(requested, self._saved_edits, self.sprites)
        self._job = self._job_queue.start("files", title, events, self._on_event, kind="Opening")

    def _abandon_import(self) -> None:
        if self._job is not None:
            self._job_queue.abandon(self._job)
            self._job = self._requested = None
            self.ended.emit()

    def _import_with(self, options: ImportOptions) -> None:
        """Import the latest files with these options."""
        self.import_state(self.latest.with_options(options))

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.progressed.emit(event)
        elif isinstance(event, StoredOptionsFollowed):
            self._requested = replace(self.latest, options=event.options)
        elif isinstance(event, SpritesImported):
            has_same_pixels = self.sprites is not None and event.sprites.rgba is self.sprites.rgba
            self.result, self._opened_steps = event, self.history.steps()
            self.opened = self._requested = self.latest.with_loaded(event.edits)
            self.imported.emit(event)
            if has_same_pixels:
                return
            self._job_queue.abandon(self._counting)
            count, counted = partial(count_colours, event.sprites.rgba), self.colours_counted.emit
            self._counting = self._job_queue.run("files", "Counting colours", count, counted, background=True)
        elif isinstance(event, OnlySheets):
            self.only_sheets.emit(event)
        elif isinstance(event, JobEnded):
            self._job = self._requested = None
            self.history.restore(self._opened_steps)  # a failed import changes nothing
            self.ended.emit()
