"""Locate the bundled assets and the studio's data folders, and store the user's choice for the runs folder."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from pathlib import Path

import platformdirs

from studio.core import files

_APP = "Sprite Training Studio"
_RUNS = "runs"
_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def assets() -> Path:
    """Return the folder of icons, demo sprites and the guide, of an installed package or a source checkout."""
    installed = _PACKAGE / "assets"
    return installed if installed.is_dir() else _PACKAGE.parent / "assets"


def demo_sprites() -> Path:
    """Return the folder of the bundled demo sprites."""
    return assets() / "demo" / "demo sprites"


def demo_characters() -> Path:
    """Return the folder of the bundled demo characters: a sheet per character, a direction per row of frames."""
    return assets() / "demo" / "demo characters"


def home() -> Path:
    """Return the folder of all the studio's data: STUDIO_HOME, or the user's data folder."""
    chosen = os.environ.get("STUDIO_HOME")
    return Path(chosen) if chosen else platformdirs.user_data_path(_APP, appauthor=False)


def default_runs() -> Path:
    """Return the runs folder for users without a choice."""
    return home() / _RUNS


def runs() -> Path:
    """Return the folder for new runs: the user's choice, or the default."""
    return runs_folders()[0]


def runs_folders() -> list[Path]:
    """Return the folder for new runs, then former runs folders. A damaged file counts as no choice."""
    try:
        found = json.loads(runs_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        found = []
    entries = [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []
    chosen = [entry for entry in entries if entry and "\0" not in entry]
    return [home() / entry for entry in dict.fromkeys([*chosen, _RUNS])]  # an absolute path replaces the home


def runs_file() -> Path:
    """Return the JSON file that lists the folders of runs, the folder for new runs first."""
    return home() / "runs_folders.json"


def choose_runs_folder(folder: Path) -> None:
    """Use a folder for new runs; forget former folders without runs. Raises OSError if the choice can't be stored."""
    known = [other for other in runs_folders() if not _is_same(other, folder) and _may_hold_runs(other)]
    entries = [_RUNS if _is_same(each, default_runs()) else str(each) for each in (folder, *known)]
    home().mkdir(parents=True, exist_ok=True)
    files.write_atomic(runs_file(), json.dumps(entries, indent=2).encode())


def why_unusable_for_runs(folder: Path) -> str:
    """Return why runs can't go into `folder`, as a sentence; '' for a usable folder. Writes and deletes a test file."""
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


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one folder. On macOS and Windows, the letters' case may differ."""
    try:
        return one.samefile(other)
    except OSError:
        return one == other


def _may_hold_runs(folder: Path) -> bool:
    """Return whether the folder holds runs, or can't tell because its drive is missing or unreadable."""
    try:
        if not folder.is_dir():
            return not folder.parent.is_dir()
        return any(os.path.lexists(path / "run.json") for path in folder.iterdir())
    except OSError:
        return True


def logs() -> Path:
    """Return the folder for process logs. Deleting the folder does no harm."""
    return home() / "logs"


def features() -> Path:
    """Return the folder for networks that compute quality features, one file per training set."""
    return home() / "features"


def edits() -> Path:
    """Return the folder for the user's edits to sprites, one file per sprite folder."""
    return home() / "edits"


def import_settings() -> Path:
    """Return the folder for the window's import settings, one file per set of opened paths."""
    return home() / "import-settings"


def lab() -> Path:
    """Return the folder for Lab results."""
    return home() / "lab"


def lessons() -> Path:
    """Return the folder for answers to lessons, with a folder per learner."""
    return home() / "lessons"


def pasted() -> Path:
    """Return the folder for pasted images."""
    return home() / "pasted"


def cache() -> Path:
    """Return the folder for the import cache. Deleting the folder does no harm."""
    return home() / "cache"
