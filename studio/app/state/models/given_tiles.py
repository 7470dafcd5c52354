"""The tiles that the user gives for a tile set, for each kind of set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from studio.app.background import set_jobs
from studio.app.background.job_queue import JobQueue
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.data.tiles.layout import TileSetSpec

_Kind = tuple[bool, int, int, int]  # is a blob, terrains, variants, side of a tile in pixels


class GivenTiles(QObject):
    """Holds the given tiles until the window closes, and reads files of tiles."""

    changed = Signal()  # the given tiles of a set
    read = Signal(object)  # list of (name, uint8 [H, W, 4]): images in files
    refused = Signal(str)  # why a file can't be read

    def __init__(self, job_queue: JobQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job_queue = job_queue
        self._sets: dict[_Kind, Rgba] = {}

    def of(self, spec: TileSetSpec, size: int) -> Rgba | None:
        """Return the given tiles of a set, uint8 [N, S, S, 4], transparent where missing; None without given tiles."""
        return self._sets.get(_kind(spec, size))

    def give(self, spec: TileSetSpec, tiles: Rgba) -> None:
        """Replace the given tiles of a set by uint8 [N, S, S, 4], transparent where missing."""
        kind = _kind(spec, tiles.shape[1])
        if tiles[..., 3].any():
            self._sets[kind] = tiles
        else:
            self._sets.pop(kind, None)
        self.changed.emit()

    def read_files(self, chosen: Sequence[Path]) -> None:
        """Read image files; emit `read` or `refused`."""
        read = partial(set_jobs.read_cells, chosen)
        self._job_queue.run("files", f"Opening {chosen[0].name}", read, self._on_read)

    def _on_read(self, found: tuple[list[set_jobs.CellFile], BadInputError | None]) -> None:
        files, error = found
        if error is not None:
            self.refused.emit(f"{error.title} {error.hint}")
        else:
            self.read.emit([(file.name, rgba) for file in files for _, rgba in file.frames])


def _kind(spec: TileSetSpec, size: int) -> _Kind:
    return spec.kind == "blob", len(spec.terrains), spec.variants, size
