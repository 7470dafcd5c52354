"""Palette files, and the search for sprites that use a colour."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import model
from studio.core.arrays import Rgba
from studio.core.events import Event
from studio.data.colour.colour_counts import find_sprites_with_colour
from studio.data.colour.palette import Palette
from studio.data.palettes import files
from studio.data.sprites import Sprites
from studio.engine.runs.folder import RunDir


class PaletteTools(QObject):
    """Reads and writes palettes and finds the sprites that use a colour, each in a job."""

    found = Signal(object, object, object)  # Sprites, colour uint8 [4], indices int64 [n] of sprites with this colour
    search_ended = Signal()  # the search was cancelled or has failed
    loaded = Signal(object, object)  # Path, Palette
    saved = Signal(object)  # list of Path
    style_read = Signal(object, object)  # run folder, uint8 [K, 3]: colours of its training sprites, most used first

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._search: Job | None = None

    def find(self, sprites: Sprites, colour: Rgba) -> None:
        """Search for the sprites that use a colour, uint8 [4]; cancel a running search."""
        self.cancel_search()
        search = partial(find_sprites_with_colour, sprites.rgba, colour)
        on_found, on_event = partial(self.found.emit, sprites, colour), self._on_search_event
        self._search = self._job_queue.run("files", "Searching for a colour", search, on_found, on_event)

    def cancel_search(self) -> None:
        """Cancel the running search."""
        self._job_queue.abandon(self._search)
        self._search = None

    def load(self, path: Path) -> None:
        """Read a palette file of any format; refuse a palette without visible colours."""

        def read() -> Palette:
            palette = files.load_palette(path)
            palette.visible()
            return palette

        self._job_queue.run("files", f"Opening {path.name}", read, partial(self.loaded.emit, path))

    def save(self, path: Path, palette: Palette) -> None:
        """Write a palette in the format of the suffix of `path`."""
        save = partial(files.save_palette, path, palette, replace=True)
        self._job_queue.run("files", "Saving palette", save, self._on_saved)

    def read_style(self, run: Path) -> None:
        """Read the palette of a run's training sprites."""

        def read() -> NDArray[np.uint8]:
            folder = RunDir(run)
            return model.load_style(folder, folder.record()).palette

        self._job_queue.run("files", "Reading the palette of the run", read, partial(self.style_read.emit, run))

    def _on_search_event(self, event: Event) -> None:
        if isinstance(event, JobEnded):
            self._search = None
            if event.outcome != "done":
                self.search_ended.emit()

    def _on_saved(self, path: Path) -> None:
        self.saved.emit([path])
