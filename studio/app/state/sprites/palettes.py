"""Palette files, and the search for sprites that use a colour."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.state.late import model
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError, StudioError
from studio.core.events import Event
from studio.data.colour.colour_counts import find_sprites_with_colour
from studio.data.colour.palette import Palette
from studio.data.colour.ramps import Ramp, Ramps, dark_to_light, find_ramps, ramps_of_sprites
from studio.data.palettes import files
from studio.data.sprites import Sprites
from studio.engine.runs.folder import RunDir

_WHOLE = "all colours"  # name of a ramp


class PaletteTools(QObject):
    """Reads and writes palettes and finds the sprites that use a colour, each in a job."""

    found = Signal(object, object, object)  # Sprites, colour uint8 [4], indices int64 [n] of sprites with this colour
    search_ended = Signal()  # the search was cancelled or has failed
    loaded = Signal(object, object)  # Path, Palette
    saved = Signal(object)  # list of Path
    ramps_loaded = Signal(str, object)  # palette name, and ramps or a StudioError
    ramps_found = Signal(object, object, object)  # sprites uint8 [N, S, S, 4], their Ramps, other sprites' Ramps
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

    def find_ramps(self, rgba: Rgba, others: Rgba | None) -> None:
        """Find the ramps of sprites, uint8 [N, S, S, 4], and of other sprites; no ramps without opaque pixels."""

        def find() -> tuple[Ramps, Ramps]:
            return _ramps(rgba), _ramps(others) if others is not None else ()

        self._job_queue.run("files", "Finding ramps", find, partial(self._on_ramps_found, rgba), urgent=True)

    def _on_ramps_found(self, rgba: Rgba, found: tuple[Ramps, Ramps]) -> None:
        self.ramps_found.emit(rgba, *found)

    def load_ramps(self, path: Path) -> None:
        """Read the ramps of a palette file. A file with several ramps gets a first ramp with all colours."""

        def read() -> tuple[str, Sequence[Ramp] | StudioError]:
            try:
                palette = files.load_palette(path)
                colours = palette.visible()
            except StudioError as error:
                return path.name, error
            ramps = find_ramps(colours)
            whole = [Ramp(_WHOLE, dark_to_light(colours))] if len(ramps) > 1 else []
            return palette.name, [*whole, *ramps]

        self._job_queue.run("files", f"Opening {path.name}", read, self._on_ramps_loaded)

    def _on_ramps_loaded(self, loaded: tuple[str, Sequence[Ramp] | StudioError]) -> None:
        self.ramps_loaded.emit(*loaded)

    def load(self, path: Path) -> None:
        """Read a palette file of any format; refuse a palette without visible colours."""

        def read() -> Palette:
            palette = files.load_palette(path)
            palette.visible()
            return palette

        self._job_queue.run("files", f"Opening {path.name}", read, partial(self.loaded.emit, path))

    def save(self, path: Path, palette: Palette) -> None:
        """Write a palette; the suffix of `path` chooses the format."""
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


def _ramps(rgba: Rgba) -> Ramps:
    try:
        return ramps_of_sprites(rgba)
    except BadInputError:
        return ()
