"""Where things are: the bundled assets, and the folders in which the studio keeps runs and caches."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_APP = "Sprite Training Studio"
_PACKAGE = Path(__file__).resolve().parents[1]


def assets() -> Path:
    """The folder of icons and demo sprites: inside an installed package, beside it in a checkout."""
    installed = _PACKAGE / "assets"
    return installed if installed.is_dir() else _PACKAGE.parent / "assets"


def demo_sprites() -> Path:
    """The folder of the bundled demo sprites."""
    return assets() / "demo" / "demo sprites"


def home() -> Path:
    """The folder that holds everything that the studio keeps; STUDIO_HOME names another one."""
    chosen = os.environ.get("STUDIO_HOME")
    return Path(chosen) if chosen else platformdirs.user_data_path(_APP, appauthor=False)


def runs() -> Path:
    """The folder of runs that were not given a place of their own."""
    return home() / "runs"


def logs() -> Path:
    """The folder of what each process has noted down; it can be deleted at any time."""
    return home() / "logs"


def features() -> Path:
    """The folder of what was learnt to measure quality with, by training data."""
    return home() / "features"


def lab() -> Path:
    """The folder of what experiments have found out."""
    return home() / "lab"


def cache() -> Path:
    """The folder of packed imports; it can be deleted at any time."""
    return home() / "cache"
