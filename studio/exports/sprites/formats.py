"""The formats for sprites that there are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import studio.exports.sprites
from studio.core.discovery import discover
from studio.core.errors import UsageError
from studio.exports.sprites.base import SpriteExport


@cache
def sprite_exports() -> dict[str, SpriteExport]:
    """Every format that sprites can be saved in, by its name; the first is proposed."""
    return discover(studio.exports.sprites, SpriteExport)  # type: ignore[type-abstract]


def sprite_export_for(path: Path, *, plays: bool = False) -> SpriteExport:
    """The first format with the ending of `path`; with `plays` of those that show one sprite after another.

    Raises UsageError that lists the endings there are.
    """
    forms = [form for form in sprite_exports().values() if form.plays or not plays]
    for form in forms:
        if form.suffix == path.suffix.lower():
            return form
    *others, last = dict.fromkeys(form.suffix for form in forms)
    what = "An animation is" if plays else "Sprites are"
    title = f"{what} not saved as {path.suffix or path.name!r}."
    raise UsageError(title, f"Let the name end in {', '.join(others)} or {last}.")
