"""The user's given tiles for tile sets, and the file that keeps given tiles between sessions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal

from studio.app.background import set_jobs
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import JobEnded
from studio.app.state.window_file import WindowFile
from studio.core import paths
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Event
from studio.data.tiles.given_file import GivenSets, given_from_bytes, given_to_bytes
from studio.data.tiles.layout import TileSetSpec

_MOST_SETS = 20  # sets with given tiles; beyond this number, the longest unchanged set is forgotten


class GivenTiles(QObject):
    """Holds the given tiles of each tile set, and reads files of tiles."""

    changed = Signal()  # the given tiles of a set changed
    reading_changed = Signal()  # `is_reading` may have changed
    read = Signal(object)  # list of (file name, uint8 [H, W, 4]): the images in files
    refused = Signal(str)  # reason why a file can't be read

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._file = WindowFile(paths.home() / "given-tiles.npz", given_from_bytes, given_to_bytes)
        self._sets: GivenSets = self._file.stored or {}
        self._unread = 0  # running calls of `read_files`

    def of(self, spec: TileSetSpec, size: int) -> Rgba | None:
        """Return the given tiles of a set, uint8 [N, S, S, 4], transparent where missing; None without given tiles."""
        given = self._sets.get(_key(spec, size))
        if given is None or not given[: spec.tile_count, ..., 3].any():
            return None
        missing = max(0, spec.tile_count - len(given))  # tiles of further variants
        return np.pad(given[: spec.tile_count], ((0, missing), (0, 0), (0, 0), (0, 0)))

    def give(self, spec: TileSetSpec, tiles: Rgba) -> None:
        """Replace the given tiles of a set by uint8 [N, S, S, 4], transparent where missing; further variants stay."""
        key = _key(spec, tiles.shape[1])
        further = self._sets.get(key, tiles)[len(tiles) :]
        sets = {other: given for other, given in self._sets.items() if other != key}
        sets[key] = np.concatenate([tiles, further])
        self._sets = {other: given for other, given in [*sets.items()][-_MOST_SETS:] if given[..., 3].any()}
        self.changed.emit()

    def store(self) -> None:
        """Store the given tiles for the next session. Raises OSError."""
        self._file.store(self._sets or None)

    def release(self) -> None:
        """Unlock the file of the given tiles for other windows."""
        self._file.release()

    def read_files(self, chosen: Sequence[Path]) -> None:
        """Read image files; emit `read` or `refused`."""
        read = partial(set_jobs.read_cells, chosen)
        self._job_queue.run("files", f"Opening {chosen[0].name}", read, self._on_read, self._on_event)
        self._count_unread(1)

    def is_reading(self) -> bool:
        """Return whether files are being read."""
        return self._unread > 0

    def _count_unread(self, change: int) -> None:
        """Add to the number of running calls of `read_files`. change: 1 or -1."""
        self._unread += change
        self.reading_changed.emit()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, JobEnded):
            self._count_unread(-1)

    def _on_read(self, found: tuple[list[set_jobs.CellFile], BadInputError | None]) -> None:
        files, error = found
        if error is not None:
            self.refused.emit(f"{error.title} {error.hint}")
        else:
            self.read.emit([(file.name, rgba) for file in files for _, rgba in file.frames])


def _key(spec: TileSetSpec, size: int) -> tuple[TileSetSpec, int]:
    """Return the key of a set, equal for corner and dual-grid tiles and all variants. size: side of a tile."""
    return dataclasses.replace(spec, kind="blob" if spec.kind == "blob" else "corner", variants=1), size
