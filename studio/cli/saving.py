"""Save sprites from the command line: choose the format by name or suffix, and write the files."""

from __future__ import annotations

from pathlib import Path

from studio.cli.reporting import Reporter
from studio.core.discovery import find_plugin
from studio.core.errors import UsageError
from studio.core.events import Notice
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.formats import sprite_export_for, sprite_exports
from studio.exports.sprites.png_files import save_png_files


def format_for(out: Path, name: str, *, is_tile_set: bool = False) -> SpriteExport | None:
    """Return the format called `name`, or the format for the suffix of `out`; None for a folder. Raises UsageError."""
    if not name:
        return sprite_export_for(out, is_tile_set=is_tile_set) if names_file(out) else None
    form = find_plugin(sprite_exports(), name, "format for sprites")
    if form.saves_tiles and not is_tile_set:
        raise UsageError(f"Only tile sets can be saved as {name}.", "Draw a tile set, or choose another format.")
    return form


def save_sprites(sprites: SpriteSet, out: Path, form: SpriteExport | None, reporter: Reporter) -> list[Path]:
    """Save sprites in a format, or without a format as PNG files in the folder `out`; report and return the files."""
    written = save_png_files(out, sprites) if form is None else form.write(sprites, out)
    for note in () if form is None else form.notes(sprites):
        reporter.show(Notice("info", note))
    reporter.write_json({"type": "FilesSaved", "paths": written})
    return written


def names_file(out: Path) -> bool:
    """Return whether `out` names a file: it has a suffix and is not an existing folder."""
    return bool(out.suffix) and not out.is_dir()
