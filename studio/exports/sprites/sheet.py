"""Save sprites as a PNG sheet with exact pixels, and their positions as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studio.exports.png import sheet_files
from studio.exports.sprites.base import SpriteExport, SpriteSet


class Sheet(SpriteExport):
    name = "sheet"
    title = "Sheet (PNG and JSON)"
    suffix = ".png"
    companions = (".json",)
    help = "A PNG of all sprites with exact pixels, and their positions as JSON for Aseprite and game engines."
    order = 1

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        return sheet_files(
            target, sprites.sprites, sprites.sheet_columns(), sprites.names, sprites.classes, sprites.about,
            sprites.durations_ms(),
        )  # fmt: skip
