"""Import a run's sprites from the run folder."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from studio.core.events import Event, Notice
from studio.core.threads import run_in_thread
from studio.data.import_result import ImportResult
from studio.data.options import ImportOptions, ReadOptions, settings_of_reading
from studio.data.reading.finding import Root
from studio.data.store import packed

_NAME, _RECORD = "data.safetensors", "run.json"


def sprites_file(roots: Sequence[Root]) -> Path | None:
    """Return the imported path if it is a run's file of sprites, and the only path; otherwise None."""
    path = roots[0].path
    return path if len(roots) == 1 and path.name == _NAME and path.is_file() else None


def load_run_sprites(
    path: Path, options: ImportOptions
) -> Generator[Event, None, tuple[ImportResult, Mapping[str, Any]]]:
    """Load a run's sprites; return the sprites and the run's `Sprites.origin`. Raises BadInputError for a damaged file.

    A run's sprites keep their canvas and classes. Yields a Notice about options without an effect.
    """
    sprites, _ = yield from run_in_thread(packed.load_in_slices(path), 0, "sprites loaded")
    if settings_of_reading(options) != settings_of_reading(ReadOptions()):
        title = "A run's sprites keep their canvas, slicing and classes."
        yield Notice("info", title, "Open their folder to change how the files are read.")
    origin = _origin_in(path.with_name(_RECORD))
    sizes = {(sprites.size, sprites.size): len(sprites)}
    return ImportResult(sprites, (), (), sizes, sprites.size, ()), origin


def _origin_in(record: Path) -> Mapping[str, Any]:
    """Return the origin of a run's sprites; empty for a missing or damaged record."""
    try:
        origin = json.loads(record.read_bytes())["data_origin"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    return origin if isinstance(origin, dict) else {}
