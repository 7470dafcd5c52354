"""Read tile sets of Tiled: .tsx files, and .tmx maps with embedded tile sets.

A tile has its class in Tiled; without a class, the names of its terrains: 'grass + water'. Image collections give a
class to each image. Properties of a tile become attributes. The sprites are the tiles in the picture of a tile set. The
cells of maps, which may flip tiles, and the probabilities of tiles are ignored.
https://doc.mapeditor.org/en/stable/reference/tmx-map-format/
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar
from xml.etree.ElementTree import Element

from studio.data.atlases.base import (
    AtlasFormat,
    Box,
    Region,
    read_description,
    whole_number,
    whole_numbers,
    write_example_sheet,
)
from studio.data.atlases.picture_list import DescribedPicture, PictureList, TileGrid, class_path
from studio.data.atlases.xml_tree import parse_xml
from studio.data.attributes.columns import MOST_ATTRIBUTES, pair
from studio.data.files.source_files import SourceFile

_NO_ATTRIBUTES = frozenset({"name", "class", "type"})  # properties with another meaning
_CELLS = "data"  # element with the tiles of a map's layer


class TiledTileSet(PictureList, AtlasFormat):
    """Reads the tile sets in .tsx and .tmx files. A .tsx file with TypeScript is ignored."""

    name = "tiled"
    suffixes: ClassVar = (".tsx", ".tmx")

    def pictures(self, data: bytes, name: str) -> Iterator[DescribedPicture]:
        if b"<tileset" not in data:
            return
        root = parse_xml(data, name, skipped=_CELLS)
        for tile_set in [root] if root.tag == "tileset" else root.findall("tileset"):
            yield from _pictures(tile_set, name)

    def links(self, file: SourceFile) -> Sequence[str]:
        pictures = super().links(file)
        if not self.is_own(file.file_name):
            return pictures
        data = read_description(file, file.file_name)
        root = parse_xml(data, file.file_name, skipped=_CELLS) if b"<tileset" in data else Element("map")
        return [*pictures, *(source for each in root.findall("tileset") if (source := each.get("source")))]

    def example(self, folder: Path) -> Path:
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<tileset version="1.10" name="gems" tilewidth="8" tileheight="8" tilecount="2" columns="2">\n'
            ' <image source="gems.png" width="16" height="8"/>\n'
            "</tileset>\n"
        )
        (folder / "gems.tsx").write_text(text)
        return write_example_sheet(folder)


def _pictures(tile_set: Element, name: str) -> Iterator[DescribedPicture]:
    """Yield the picture of a tile set, or all pictures of an image collection."""
    names, attributes = _tile_names(tile_set), _attributes(tile_set)
    image = tile_set.find("image")
    if image is None:
        for tile in tile_set.findall("tile"):
            image, index = tile.find("image"), whole_number(tile.get("id"))
            if index is not None and image is not None and image.get("source"):
                name_of_tile, own = names.get(index, f"tile {index}"), attributes.get(index, ())
                region = Region(name_of_tile, _part(tile), zero_fills=True, attributes=own)
                yield DescribedPicture(image.get("source", ""), regions=(region,), clear_colour=_clear_colour(image))
    elif image.get("source"):
        sizes = [tile_set.get(key, 0) for key in ("tilewidth", "tileheight", "margin", "spacing")]
        width, height, margin, spacing = whole_numbers(sizes, 4) or (0, 0, 0, 0)
        margins, gaps = (margin, margin), (spacing, spacing)
        grid = TileGrid(name, (width, height), margins, gaps, names=names, attributes=attributes)
        size = whole_numbers([image.get("width"), image.get("height")], 2)
        pair = (size[0], size[1]) if size else None
        yield DescribedPicture(image.get("source", ""), grid, size=pair, clear_colour=_clear_colour(image))


def _part(tile: Element) -> Box | None:
    """Return the box of a tile in its image, for image collections. A width or height of 0 covers the whole image."""
    numbers = whole_numbers([tile.get(key, 0) for key in ("x", "y", "width", "height")], 4)
    return Box(*numbers) if numbers else None


def _clear_colour(image: Element) -> tuple[int, int, int] | None:
    digits = image.get("trans", "").removeprefix("#")
    if len(digits) != 6 or not set(digits) <= set(string.hexdigits):
        return None
    red, green, blue = bytes.fromhex(digits)
    return red, green, blue


def _tile_names(tile_set: Element) -> dict[int, str]:
    """Return region names like 'grass + water/tile 3' by tile number, for tiles with a name, a class or terrains."""
    classes = _terrains(tile_set)
    titles: dict[int, str] = {}
    for tile in tile_set.findall("tile"):
        index = whole_number(tile.get("id"))
        if index is None:
            continue
        titles[index] = _property(tile, "name")
        own = tile.get("class") or tile.get("type") or _property(tile, "class") or _property(tile, "type")
        if own:
            classes[index] = [own]
    return {
        index: class_path(classes.get(index, ()), titles.get(index) or f"tile {index}")
        for index in titles.keys() | classes.keys()
    }


def _attributes(tile_set: Element) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return the attributes of tiles by tile number: all properties except names and classes."""
    found = dict[int, tuple[tuple[str, str], ...]]()
    for tile in tile_set.findall("tile"):
        index, properties = whole_number(tile.get("id")), tile.findall("properties/property")[:MOST_ATTRIBUTES]
        named = ((each.get("name", ""), each.get("value", "")) for each in properties)
        pairs = (pair(name, value) for name, value in named if name.lower() not in _NO_ATTRIBUTES)
        if index is not None and (own := tuple(each for each in pairs if each is not None)):
            found[index] = own
    return found


def _property(tile: Element, name: str) -> str:
    found = (each for each in tile.iterfind("properties/property") if each.get("name", "").lower() == name)
    return next((each.get("value", "").strip() for each in found), "")


def _terrains(tile_set: Element) -> dict[int, list[str]]:
    """Return the terrain names of tiles by tile number. The first terrain set with a tile decides."""
    found: dict[int, list[str]] = {}
    for wang_set in tile_set.iterfind("wangsets/wangset"):
        names = ["", *(each.get("name", "") for each in wang_set.findall("wangcolor"))]
        for tile in wang_set.findall("wangtile"):
            _add(found, tile.get("tileid"), tile.get("wangid", ""), names)
    names = [each.get("name", "") for each in tile_set.iterfind("terraintypes/terrain")]
    for tile in tile_set.findall("tile") if names else ():  # Tiled before 1.5
        _add(found, tile.get("id"), tile.get("terrain", ""), names)
    return found


def _add(found: dict[int, list[str]], tile: str | None, numbers: str, names: list[str]) -> None:
    """Store the terrains of a tile. numbers: indices into `names`, separated by commas."""
    index = whole_number(tile)
    places = {int(number) for number in numbers.split(",")[:8] if number.isdecimal() and len(number) < 5}
    if index is not None and index not in found:
        found[index] = [names[place] for place in sorted(places) if place < len(names)]
