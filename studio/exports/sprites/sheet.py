"""Save sprites as a PNG sheet with exact pixels, and their positions as JSON. Sets have a row for each view."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studio.exports.png import encode_png
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.sheet_plan import SheetPlan


class Sheet(SpriteExport):
    name = "sheet"
    title = "Sheet (PNG and JSON)"
    suffix = ".png"
    companions = (".json",)
    help = "A PNG of all sprites with exact pixels, and their positions as JSON for Aseprite and game engines."
    order = 1

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        plan = SheetPlan.of(sprites)
        picture = encode_png(plan.picture(sprites.sprites), sprites.about)
        return {target: picture, target.with_suffix(".json"): plan.json(target.name, sprites.about)}
