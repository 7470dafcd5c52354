"""Read TileSet resources of Godot 4 (.tres): atlas sources with their tiles, and terrains as classes.

[sub_resource type="TileSetAtlasSource" id="source"]
texture = ExtResource("1")
texture_region_size = Vector2i(16, 16)
0:0/0 = 0
0:0/0/terrain_set = 0
0:0/0/terrains_peering_bit/right_side = 1
[resource]
terrain_set_0/terrain_1/name = "grass"

A key '2:1/0' creates the tile in column 2 and row 1. Numbers other than 0 after the first slash are
alternatives of a tile, with equal pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from studio.core.names import escape_unprintable
from studio.data.atlases.base import AtlasFormat, Region, whole_numbers, write_example_sheet
from studio.data.atlases.picture_list import DescribedPicture, Pair, PictureList, TileGrid, class_path
from studio.data.files.source_files import UnreadableFile
from studio.data.options import MAX_SHEET_SPRITES

_HEADER = re.compile(r"\[(\w+) ?([^\n]{0,2000})\]\s*$")
_ATTRIBUTE = re.compile(r'(\w+)="?([^"\s]+)')
_LINE = re.compile(r"([\w:/]+) = ([^\n]{1,1000})$")
_REFERENCE = re.compile(r'ExtResource\(\s?"?([^"\s)]+)')
_VECTOR = re.compile(r"Vector2i\(([^)]{1,50})\)$")
_TILE = re.compile(r"(\d{1,4}):(\d{1,4})/(.+)$")
_TERRAIN_NAME = re.compile(r"terrain_set_(\d{1,4})/terrain_(\d{1,4})/name$")
_FRAME = re.compile(r"animation_frame_(\d{1,4})/duration$")


@dataclass(frozen=True, eq=False, slots=True)
class _Section:
    """A section of a resource file. values: single lines 'key = value'."""

    kind: str  # 'ext_resource', 'sub_resource' or 'resource'
    attributes: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict)

    def pair(self, key: str, otherwise: Pair) -> Pair:
        """Return the value Vector2i(x, y) of `key` as (x, y); `otherwise` if missing or invalid."""
        found = _VECTOR.match(self.values.get(key, ""))
        numbers = whole_numbers(found[1].split(","), 2) if found else []
        return (numbers[0], numbers[1]) if numbers else otherwise


class GodotTileSet(PictureList, AtlasFormat):
    """Reads the tiles of TileSetAtlasSource sections, named by column and row."""

    name = "godot tile set"
    order = 1
    suffixes: ClassVar = (".tres",)

    def pictures(self, data: bytes, name: str) -> Iterator[DescribedPicture]:
        if b"TileSetAtlasSource" not in data:
            return
        sections = list(_sections(data.decode("utf-8", "replace")))
        textures = {each.attributes.get("id", ""): each.attributes.get("path", "") for each in sections}
        terrains = _terrain_names(sections)
        for section in sections:
            texture = _REFERENCE.match(section.values.get("texture", ""))
            if section.attributes.get("type") == "TileSetAtlasSource" and texture and textures.get(texture[1]):
                yield DescribedPicture(textures[texture[1]], regions=list(_regions(section, terrains, name)))

    def example(self, folder: Path) -> Path:
        text = (
            '[gd_resource type="TileSet" load_steps=3 format=3]\n\n'
            '[ext_resource type="Texture2D" path="res://art/gems.png" id="1_a"]\n\n'
            '[sub_resource type="TileSetAtlasSource" id="Source_1"]\ntexture = ExtResource("1_a")\n'
            "texture_region_size = Vector2i(8, 8)\n0:0/0 = 0\n1:0/0 = 0\n\n"
            '[resource]\nsources/0 = SubResource("Source_1")\n'
        )
        (folder / "gems.tres").write_text(text)
        return write_example_sheet(folder)


def _sections(text: str) -> Iterator[_Section]:
    """Parse a resource file, section by section. The first section is empty."""
    section = _Section("", {})
    for line in text.splitlines():
        if header := _HEADER.match(line):
            yield section
            section = _Section(header[1], dict(_ATTRIBUTE.findall(header[2])))
        elif found := _LINE.match(line):
            section.values[found[1]] = found[2].strip()
    yield section


def _terrain_names(sections: list[_Section]) -> dict[tuple[int, int], str]:
    """Return the names of terrains by the numbers of terrain set and terrain."""
    values = (item for each in sections for item in each.values.items())
    matches = ((_TERRAIN_NAME.match(key), value) for key, value in values)
    return {(int(found[1]), int(found[2])): value.strip('"') for found, value in matches if found}


def _regions(source: _Section, terrains: Mapping[tuple[int, int], str], name: str) -> Iterator[Region]:
    """Yield a region for each tile, row by row, and for each frame of an animated tile."""
    grid = TileGrid(
        name,
        source.pair("texture_region_size", (16, 16)),
        source.pair("margins", (0, 0)),
        source.pair("separation", (0, 0)),
    )
    tiles: dict[Pair, dict[str, str]] = {}
    for key, value in source.values.items():
        if found := _TILE.match(key):
            tiles.setdefault((int(found[2]), int(found[1])), {})[found[3]] = value
    if len(tiles) > MAX_SHEET_SPRITES:
        raise UnreadableFile("refused", f"{escape_unprintable(name)} describes too many tiles")
    for (row, column), values in sorted(tiles.items()):
        tile = _Section("", {}, values)
        size, gap = tile.pair("size_in_atlas", (1, 1)), tile.pair("animation_separation", (0, 0))
        frames = max((int(found[1]) + 1 for found in map(_FRAME.match, values) if found), default=1)
        columns = whole_numbers([values.get("animation_columns", 0)], 1) or [0]
        for frame in range(min(frames, 100)):
            down, across = divmod(frame, columns[0]) if columns[0] > 0 else (0, frame)
            box = grid.box(column + across * (size[0] + gap[0]), row + down * (size[1] + gap[1]), size)
            label = f"tile {column}:{row}" + (f" frame {frame}" if frame else "")
            yield Region(class_path(_terrains(values, terrains), label), box, may_be_empty=True)


def _terrains(values: Mapping[str, str], names: Mapping[tuple[int, int], str]) -> list[str]:
    """Return the names of the terrains in a tile. values: the tile's properties, without column and row."""
    shown = {value for key, value in values.items() if key == "0/terrain" or key.startswith("0/terrains_peering_bit/")}
    numbers = [whole_numbers([values.get("0/terrain_set", -1), value], 2) for value in shown]
    return [names[number[0], number[1]] for number in sorted(numbers) if tuple(number) in names]
