"""Runs outside the studio's own folder, remembered so that the list of runs shows them too. No torch here."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from filelock import FileLock, Timeout

from studio.core import files, places

_MOST = 1000


def known_runs() -> list[Path]:
    """The remembered run folders, the newest first; some may be gone or on a drive that is unplugged."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(entry) for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def remember(run: Path) -> None:
    """Add a run folder to the list, unless it lies in the studio's own. A list that can't be written stops nothing."""
    path = run.resolve()
    if path.parent == places.runs().resolve():
        return
    with contextlib.suppress(OSError, Timeout):
        places.home().mkdir(parents=True, exist_ok=True)
        with FileLock(places.home() / ".known_runs.lock", timeout=2):
            entries = [str(path), *(str(other) for other in known_runs() if other != path)]
            files.write_atomic(_file(), json.dumps(entries[:_MOST], indent=2).encode())


def _file() -> Path:
    return places.home() / "known_runs.json"
