"""Runs outside the studio's own folder, remembered so that the list of runs shows them too. No torch here."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from studio.core import file_systems, files, places, records

_MOST = 1000


def known_runs() -> list[Path]:
    """The remembered run folders, the newest first; some may be gone or on a drive that is unplugged."""
    try:
        return _read()
    except OSError:
        return []


def remember(run: Path) -> None:
    """Add a run folder to the list, unless it lies in the studio's own.

    A list that can't be written stops nothing, and one that can't be read is not written anew: all others are in it.
    """
    path = run.resolve()
    if path.parent == places.runs().resolve():
        return
    with contextlib.suppress(OSError):
        places.home().mkdir(parents=True, exist_ok=True)
        lock = file_systems.take_lock(places.home() / ".known_runs.lock", wait_s=2.0)
        if lock is None:
            return
        try:
            entries = [str(path), *(str(other) for other in _read() if other != path)]
            files.write_atomic(_file(), json.dumps(entries[:_MOST], indent=2).encode())
        finally:
            lock.release()


def _read() -> list[Path]:
    """What is remembered; nothing where the list is missing or damaged. Raises OSError when it can't be read."""
    try:
        found = records.parse(_file().read_bytes(), list[Any])
    except (FileNotFoundError, ValueError):
        return []
    return [Path(entry) for entry in found if isinstance(entry, str) and "\0" not in entry]


def _file() -> Path:
    return places.home() / "known_runs.json"
