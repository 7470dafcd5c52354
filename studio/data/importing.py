"""Dropped files and folders -> `Sprites`, as a generator of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from studio.core.events import Event
from studio.data.imported import (
    NOTE_GROUPS,
    QUARANTINE_GROUPS,
    ImportOptions,
    Quarantined,
    SpritesImported,
)

__all__ = ["NOTE_GROUPS", "QUARANTINE_GROUPS", "ImportOptions", "Quarantined", "SpritesImported", "import_sprites"]


def import_sprites(paths: Sequence[Path], options: ImportOptions, cache_dir: Path | None = None) -> Iterator[Event]:
    """Read every sprite under `paths`: Progress at least every 50 ms, Notice where useful, SpritesImported last.

    Closing the generator stops the import within 200 ms, also while a file hangs. Files on disk are never changed.
    With `cache_dir`, unchanged files are not read again. Raises BadInputError when a path does not exist or nothing
    usable was found.
    """
    raise NotImplementedError
    yield Event()
