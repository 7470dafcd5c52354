"""Palettes from files and into them, and the sprites that use a colour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from studio.app import answers, colour_jobs
from studio.app.dispatcher import Dispatcher
from studio.app.worker import Job, JobEnded
from studio.core.events import Event, Notice, Rgba

if TYPE_CHECKING:
    from studio.data.palettes.base import Palette
    from studio.data.sprites import Sprites


class Palettes(QObject):
    """Work with colours that goes on beside the window.

    found: (ColourFound) the sprites that use a colour. unfound: there will be no answer. loaded: (PaletteLoaded).
    styled: (StyleRead) the colours of a run's sprites.
    """

    found = Signal(object)
    unfound = Signal()
    loaded = Signal(object)
    styled = Signal(object)

    def __init__(self, dispatcher: Dispatcher, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dispatcher = dispatcher
        self._looking: Job | None = None

    def find(self, sprites: Sprites, colour: Rgba) -> None:
        """Look for the sprites that use a colour uint8 [4]; a search that is under way ends."""
        self.stop_looking()
        events = colour_jobs.find_colour(sprites, colour)
        self._looking = self._dispatcher.start("files", "Looking for a colour", events, self._receive_found)

    def stop_looking(self) -> None:
        """Give up on the search that is under way."""
        self._dispatcher.give_up(self._looking)
        self._looking = None

    def load(self, path: Path) -> None:
        """Read a palette file of any kind."""
        self._dispatcher.start("files", f"Opening {path.name}", colour_jobs.load_palette(path), self._receive_loaded)

    def save(self, path: Path, palette: Palette) -> None:
        """Write a palette as what the suffix of `path` says."""
        self._dispatcher.start(
            "files", "Saving a palette", colour_jobs.save_palette(path, palette), self._receive_saved
        )

    def read_style(self, run: Path) -> None:
        """Ask for the palette that a run's sprites have."""
        self._dispatcher.start("files", "Looking at a run's colours", colour_jobs.read_style(run), self._receive_style)

    def _receive_found(self, event: Event) -> None:
        if isinstance(event, answers.ColourFound):
            self.found.emit(event)
        elif isinstance(event, JobEnded):
            self._looking = None
            if event.outcome != "done":  # cancelled in the status bar, or failed
                self.unfound.emit()

    def _receive_loaded(self, event: Event) -> None:
        if isinstance(event, answers.PaletteLoaded):
            self.loaded.emit(event)

    def _receive_saved(self, event: Event) -> None:
        if isinstance(event, answers.FilesSaved):
            path = event.paths[0]
            self._dispatcher.noticed.emit(Notice("info", f"Saved as {path.name}.", str(path.parent)))

    def _receive_style(self, event: Event) -> None:
        if isinstance(event, answers.StyleRead):
            self.styled.emit(event)
