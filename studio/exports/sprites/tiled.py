"""Save a tile set for Tiled: a tileset with a terrain set, its picture, and a sample map.

See doc.mapeditor.org/en/stable/reference/tmx-map-format. The three files name each other without a folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from studio.data.tiles.tile_set import ANY, CENTRE, TileKind
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.tile_sheet import TileSheet

_VERSIONS = {"version": "1.8", "tiledversion": "1.8.0"}  # versions of the format and of Tiled; readers need both
_TYPES: dict[TileKind, str] = {"corner": "corner", "dual-grid": "corner", "blob": "mixed", "edge": "edge"}
_EXCLUDED = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_WANG_ORDER = (1, 2, 5, 8, 7, 6, 3, 0)  # places of a tile in Tiled's order: clockwise from the upper side


class TiledTileSet(SpriteExport):
    name = "tiled"
    title = "Tiled tileset (.tsx, PNG and sample map)"
    suffix = ".tsx"
    companions = (".png", ".tmx")
    help = (
        "For Tiled and engines that read its files: a tileset with terrains and a sample map. Keep the files together."
    )
    order = 20
    saves_tiles = True

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        plan = TileSheet.of(sprites)
        picture, sample = (target.with_suffix(suffix) for suffix in self.companions)
        return {
            target: _document(_tileset(plan, target.stem, picture.name)),
            picture: plan.picture,
            sample: _document(_map(plan, target.name)),
        }


def _tileset(plan: TileSheet, name: str, picture: str) -> ElementTree.Element:
    """Return the tileset: the picture, the probability of each variant, and a terrain set."""
    size, grid = str(plan.size), plan.grid
    tileset = ElementTree.Element(
        "tileset", {**_VERSIONS, "name": name}, tilewidth=size, tileheight=size, tilecount=str(grid.count),
        columns=str(grid.columns),
    )  # fmt: skip
    rows = -(-grid.count // grid.columns)
    ElementTree.SubElement(
        tileset, "image", source=picture, width=str(grid.columns * plan.size), height=str(rows * plan.size)
    )
    for number, weight in enumerate(plan.tile_set.weights.tolist()):
        if weight != 1:
            ElementTree.SubElement(tileset, "tile", id=str(number), probability=f"{weight:.6g}")
    sets = ElementTree.SubElement(tileset, "wangsets")
    terrains = ElementTree.SubElement(sets, "wangset", name="Terrains", type=_TYPES[plan.tile_set.kind], tile="-1")
    for number, terrain in enumerate(plan.terrains):
        most = int((plan.points == number).sum(1).argmax())
        colour = "#{:02x}{:02x}{:02x}".format(*plan.colours[number])
        ElementTree.SubElement(terrains, "wangcolor", name=terrain, color=colour, tile=str(most), probability="1")
    for number, (points, centre) in enumerate(
        zip(plan.points[:, _WANG_ORDER].tolist(), plan.points[:, CENTRE].tolist(), strict=True)
    ):
        # Tiled ignores the centre: a lone tile in another terrain would become a variant of the other terrain.
        if set(points) != {ANY} and (plan.tile_set.by_corners or centre in points):
            ids = ",".join(str(terrain + 1) for terrain in points)  # 0: none
            ElementTree.SubElement(terrains, "wangtile", tileid=str(number), wangid=ids)
    return tileset


def _map(plan: TileSheet, tileset: str) -> ElementTree.Element:
    """Return a sample map with a single layer. tileset: file name."""
    _, index = plan.sample()
    height, width = index.shape
    sides = {"width": str(width), "height": str(height)}
    size = str(plan.size)
    root = ElementTree.Element(
        "map", _VERSIONS, orientation="orthogonal", renderorder="right-down", tilewidth=size, tileheight=size,
        infinite="0", nextlayerid="2", nextobjectid="1", **sides,
    )  # fmt: skip
    ElementTree.SubElement(root, "tileset", firstgid="1", source=tileset)
    layer = ElementTree.SubElement(root, "layer", {"id": "1", "name": "Tiles", **sides})
    data = ElementTree.SubElement(layer, "data", encoding="csv")
    data.text = "\n" + ",\n".join(",".join(map(str, row)) for row in (index + 1).tolist()) + "\n"  # 0: no tile
    return root


def _document(root: ElementTree.Element) -> bytes:
    """Encode an XML file; replace characters that XML excludes."""
    for element in root.iter():
        for key, value in element.attrib.items():
            element.set(key, _EXCLUDED.sub("_", value))
    ElementTree.indent(root, " ")
    return bytes(ElementTree.tostring(root, "UTF-8", xml_declaration=True)) + b"\n"
