"""Find the file formats for sprites."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import studio.exports.sprites
from studio.core.discovery import discover
from studio.core.errors import UsageError
from studio.exports.sprites.base import SpriteExport


@cache
def sprite_exports() -> dict[str, SpriteExport]:
    """Return all formats by name; the first is the default."""
    return discover(studio.exports.sprites, SpriteExport)  # type: ignore[type-abstract]


def sprite_export_for(path: Path, *, plays: bool = False) -> SpriteExport:
    """Return the first format with the suffix of `path`, of animations if `plays`. Raises UsageError if unknown."""
    forms = [form for form in sprite_exports().values() if form.plays or not plays]
    for form in forms:
        if form.suffix == path.suffix.lower():
            return form
    *others, last = dict.fromkeys(form.suffix for form in forms)
    what = "An animation" if plays else "Sprites"
    title = f"{what} can't be saved as {path.suffix or path.name!r}."
    raise UsageError(title, f"Use a name that ends in {', '.join(others)} or {last}.")
