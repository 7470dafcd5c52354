"""The licence and credits that the user typed for sprites, stored in the settings by the imported paths."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studio.app.state.settings import Settings
from studio.core.errors import UsageError
from studio.data.rights import Rights


def load_rights(settings: Settings, paths: Sequence[Path], origin: Mapping[str, Any]) -> Rights:
    """Return the licence and credits of the imported paths: typed in this or an earlier session, or else known.

    origin: `Sprites.origin` of the imported sprites.
    """
    of_run = Rights.from_origin(origin)
    known = of_run if of_run.changed() else Rights.for_sources(paths)
    try:
        return known.replace(**settings.values(_key(paths)))
    except (UsageError, TypeError):  # the settings file was edited by hand
        return known


def store_rights(settings: Settings, paths: Sequence[Path], rights: Rights) -> None:
    """Store the licence and credits of the imported paths."""
    settings.set_values(_key(paths), rights.to_json())


def _key(paths: Sequence[Path]) -> str:
    return f"rights-{hashlib.sha256(repr(tuple(paths)).encode('utf-8', 'replace')).hexdigest()[:16]}"
