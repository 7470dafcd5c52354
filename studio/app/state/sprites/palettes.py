"""Palettes from files and into them, and the sprites that use a colour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from studio.app.background import job_events, sprite_jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.core.arrays import Rgba
from studio.core.events import Event

if TYPE_CHECKING:
    from studio.data.colour.palette import Palette
    from studio.data.sprites import Sprites


class PaletteTools(QObject):
    """Reads and writes palettes and finds the sprites that use a colour, each in a job.

    found: (ColourFound) the sprites that use a colour. unfound: there will be no answer. loaded: (PaletteLoaded).
    saved: (FilesSaved). styled: (StyleRead) the colours of a run's sprites.
    """

    found = Signal(object)
    unfound = Signal()
    loaded = Signal(object)
    saved = Signal(object)
    styled = Signal(object)

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._looking: Job | None = None

    def find(self, sprites: Sprites, colour: Rgba) -> None:
        """Look for the sprites that use a colour uint8 [4]; a search that is under way ends."""
        self.stop_looking()
        events = sprite_jobs.find_colour(sprites, colour)
        self._looking = self._job_queue.start("files", "Looking for a colour", events, self._receive_found)

    def stop_looking(self) -> None:
        """Give up on the search that is under way."""
        self._job_queue.give_up(self._looking)
        self._looking = None

    def load(self, path: Path) -> None:
        """Read a palette file of any kind."""
        self._job_queue.start("files", f"Opening {path.name}", sprite_jobs.load_palette(path), self._receive_loaded)

    def save(self, path: Path, palette: Palette) -> None:
        """Write a palette as what the suffix of `path` says."""
        self._job_queue.start("files", "Saving a palette", sprite_jobs.save_palette(path, palette), self._receive_saved)

    def read_style(self, run: Path) -> None:
        """Ask for the palette that a run's sprites have."""
        self._job_queue.start("files", "Looking at a run's colours", sprite_jobs.read_style(run), self._receive_style)

    def _receive_found(self, event: Event) -> None:
        if isinstance(event, job_events.ColourFound):
            self.found.emit(event)
        elif isinstance(event, JobEnded):
            self._looking = None
            if event.outcome != "done":  # cancelled in the status bar, or failed
                self.unfound.emit()

    def _receive_loaded(self, event: Event) -> None:
        if isinstance(event, job_events.PaletteLoaded):
            self.loaded.emit(event)

    def _receive_saved(self, event: Event) -> None:
        if isinstance(event, job_events.FilesSaved):
            self.saved.emit(event)

    def _receive_style(self, event: Event) -> None:
        if isinstance(event, job_events.StyleRead):
            self.styled.emit(event)
