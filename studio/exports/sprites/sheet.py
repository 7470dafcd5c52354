"""Save sprites as a PNG sheet with exact pixels, and their positions as JSON. Sets have a row for each view.

The JSON of a tile set has the terrains of each tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studio.data.tiles.tile_set import TileSet
from studio.exports.png import encode_png
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.sheet_plan import SheetPlan


class Sheet(SpriteExport):
    name = "sheet"
    title = "Sheet (PNG and JSON)"
    suffix = ".png"
    companions = (".json",)
    help = "A PNG sheet with exact pixels, and the positions as JSON for Aseprite and game engines."
    order = 1

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        plan = SheetPlan.of(sprites)
        picture = encode_png(plan.picture(sprites.sprites), sprites.about)
        about = {**sprites.about, **_terrains(sprites.tile_set)}
        return {target: picture, target.with_suffix(".json"): plan.json(target.name, about)}


def _terrains(tiles: TileSet | None) -> dict[str, object]:
    """Return the fields of a tile set: for each tile, the terrains at its nine places, row by row (-1: any)."""
    if tiles is None:
        return {}
    weights = [round(float(weight), 6) for weight in tiles.weights]
    places = tiles.places.tolist()
    return {"tileSet": {"kind": tiles.kind, "terrains": tiles.terrains, "places": places, "weights": weights}}
