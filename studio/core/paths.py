"""Locations of the bundled assets and of the studio's data folders."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import platformdirs

_APP = "Sprite Training Studio"
_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def assets() -> Path:
    """Return the folder of icons, demo sprites and the guide, of an installed package or a source checkout."""
    installed = _PACKAGE / "assets"
    return installed if installed.is_dir() else _PACKAGE.parent / "assets"


def demo_sprites() -> Path:
    """Return the folder of the bundled demo sprites."""
    return assets() / "demo" / "demo sprites"


def home() -> Path:
    """Return the folder of all the studio's data: STUDIO_HOME, or the user's data folder."""
    chosen = os.environ.get("STUDIO_HOME")
    return Path(chosen) if chosen else platformdirs.user_data_path(_APP, appauthor=False)


def runs() -> Path:
    """Return the default folder for runs."""
    return home() / "runs"


def logs() -> Path:
    """Return the folder of the process logs. Deleting the folder is always safe."""
    return home() / "logs"


def features() -> Path:
    """Return the folder of the networks that compute quality features, one per training set."""
    return home() / "features"


def edits() -> Path:
    """Return the folder of the user's edits of sprites, one file per sprite folder."""
    return home() / "edits"


def lab() -> Path:
    """Return the folder of Lab results."""
    return home() / "lab"


def cache() -> Path:
    """Return the folder of the import cache. Deleting the folder is always safe."""
    return home() / "cache"
