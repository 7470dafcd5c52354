"""Choose the folder for new runs. Former folders stay known, so that their runs stay listed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from studio.core import files, paths


def choose(folder: Path) -> None:
    """Use a folder for new runs; forget former folders without runs. Raises OSError if the choice can't be stored."""
    known = [other for other in paths.runs_folders() if other != folder and _may_hold_runs(other)]
    home = paths.home()
    entries = [str(each.relative_to(home) if each == paths.default_runs() else each) for each in (folder, *known)]
    home.mkdir(parents=True, exist_ok=True)
    files.write_atomic(paths.runs_file(), json.dumps(entries, indent=2).encode())


def why_unusable(folder: Path) -> str:
    """Return why no runs can be saved in `folder`, as a sentence; '' if they can. Writes a test file and deletes it."""
    if not folder.is_absolute():
        return f"Enter a full path, for example {Path.home() / 'runs'}."
    if os.path.lexists(folder / "run.json"):
        return "This folder is a run: choose the folder around it."
    if reason := files.why_unwritable(folder / "run"):
        return reason
    existing = next(parent for parent in (folder, *folder.parents) if os.path.lexists(parent))
    try:
        with tempfile.TemporaryFile(dir=existing):
            return ""
    except OSError as error:
        return f"{existing} can't be written: {error.strerror or error}."


def _may_hold_runs(folder: Path) -> bool:
    """Return whether the folder holds runs, or can't tell because its drive is missing or unreadable."""
    try:
        if not folder.is_dir():
            return not folder.parent.is_dir()
        return any(os.path.lexists(path / "run.json") for path in folder.iterdir())
    except OSError:
        return True
