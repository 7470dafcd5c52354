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


def forms_for(*, plays: bool = False, is_tile_set: bool = False) -> list[SpriteExport]:
    """Return the formats for some sprites, for an animation (`plays`), or for a tile set. Tile formats come first."""
    forms = [form for form in sprite_exports().values() if form.plays or not plays]
    forms.sort(key=lambda form: not form.saves_tiles)
    return [form for form in forms if is_tile_set or not form.saves_tiles]


def sprite_export_for(path: Path, *, plays: bool = False, is_tile_set: bool = False) -> SpriteExport:
    """Return the first of `forms_for` with the suffix of `path`. Raises UsageError for an unknown suffix."""
    forms = forms_for(plays=plays, is_tile_set=is_tile_set)
    for form in forms:
        if form.suffix == path.suffix.lower():
            return form
    if any(form.suffix == path.suffix.lower() for form in forms_for(is_tile_set=True)) and not plays:
        title = f"Only tile sets can be saved as {path.suffix}."
        raise UsageError(title, "Draw a tile set, or use a name that ends in .png.")
    *others, last = dict.fromkeys(form.suffix for form in forms)
    what = "An animation" if plays else "Sprites"
    title = f"{what} can't be saved as {path.suffix or path.name!r}."
    raise UsageError(title, f"Use a name that ends in {', '.join(others)} or {last}.")
