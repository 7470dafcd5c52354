"""A sheet as PNG, every pixel as it is, and the JSON that says where its sprites lie."""

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
    help = "One picture of all sprites, exact, with a list of their places that Aseprite and engines read."
    order = 1

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        return sheet_files(
            target,
            sprites.sprites,
            sprites.columns,
            sprites.names,
            sprites.classes,
            sprites.about,
            sprites.durations_ms(),
        )
