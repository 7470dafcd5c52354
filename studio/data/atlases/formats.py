"""Find the atlas formats, and the files behind the links in a tile set."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

import studio.data.atlases
from studio.core.discovery import discover
from studio.core.names import escape_unprintable
from studio.data.atlases.base import AtlasFormat, base_name
from studio.data.files.source_files import SourceFile, UnreadableFile, is_tile_set

_MOST_LINKED = 1000  # files
_GODOT_ROOT = "res://"


@cache
def atlas_formats() -> tuple[AtlasFormat, ...]:
    """Return an instance of every atlas format, sorted by `AtlasFormat.order`."""
    return tuple(discover(studio.data.atlases, AtlasFormat).values())  # type: ignore[type-abstract]


def linked_files(path: Path) -> dict[Path, os.stat_result]:
    """Follow the links in a tile set or map, and in linked tile sets; return the found files with their status.

    path: any file; the result is empty for other kinds. Leaves out missing files and absolute paths.
    """
    found, waiting = dict[Path, os.stat_result](), [path]
    while waiting and len(found) < _MOST_LINKED:
        file = waiting.pop()
        for link in _links(file)[:_MOST_LINKED]:
            plain = base_name(link) if link.startswith(_GODOT_ROOT) else link.replace("\\", "/")
            target = Path(os.path.normpath(file.parent / plain))
            if plain.startswith("/") or ":" in plain or target == path or target in found:
                continue
            with suppress(OSError, ValueError):
                status = target.lstat()
                if stat.S_ISREG(status.st_mode):
                    found[target] = status
                    waiting += [target] if is_tile_set(target.name) else []
    return found


def _links(path: Path) -> list[str]:
    """Return the paths in a tile set; [] for unusable files and other kinds."""
    with suppress(OSError, UnreadableFile):
        status = path.stat()
        own = frozenset({path.name}), status.st_size, status.st_mtime_ns
        file = SourceFile(str(path), escape_unprintable(path.name), (), "", *own)
        return [link for form in atlas_formats() for link in form.links(file)]
    return []
