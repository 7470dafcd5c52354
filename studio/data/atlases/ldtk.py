"""Read the tile sets of LDtk projects (.ldtk, JSON).

Enum tags of a tile become the tile's class: 'grass + water'. For a tile without tags, the class comes from the IntGrid
values whose rule draws the tile. The sprites are the tiles in a tile set's picture. Ignores levels, which may flip
tiles (`f`).
https://ldtk.io/json/
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from studio.core import records
from studio.core.names import escape_unprintable
from studio.data.atlases.base import AtlasFormat, write_example_sheet
from studio.data.atlases.picture_list import DescribedPicture, PictureList, TileGrid, class_path
from studio.data.files.source_files import UnreadableFile

_KNOWN = ("0", "1")  # major versions


class _EnumTag(msgspec.Struct, frozen=True):
    """The tiles with a value of an enum. enumValueId: the value."""

    enumValueId: str  # noqa: N815 - LDtk's name
    tileIds: list[records.Count]  # noqa: N815


class _Value(msgspec.Struct, frozen=True):
    """A value of an IntGrid layer. identifier: name of the value. value: 0 in old projects, which count from 1."""

    value: records.Count = 0
    identifier: str | None = None


class _Rule(msgspec.Struct, frozen=True):
    """A rule that draws tiles. pattern: for size x size cells a wanted value v, -v for any but v, or 0 for any."""

    pattern: list[int] = []
    size: records.Count = 0
    tileIds: list[records.Count] | None = None  # noqa: N815 - until LDtk 1.5
    tileRectsIds: list[list[records.Count]] | None = None  # noqa: N815


class _RuleGroup(msgspec.Struct, frozen=True):
    rules: list[_Rule] = []


class _Layer(msgspec.Struct, frozen=True):
    """A layer of a project. autoSourceLayerDefUid: the layer with the values for the rules; None for this layer."""

    uid: int | None = None
    tilesetDefUid: int | None = None  # noqa: N815
    autoTilesetDefUid: int | None = None  # noqa: N815 - until LDtk 1.2
    autoSourceLayerDefUid: int | None = None  # noqa: N815
    intGridValues: list[_Value] = []  # noqa: N815
    autoRuleGroups: list[_RuleGroup] = []  # noqa: N815


class _TileSet(msgspec.Struct, frozen=True):
    """A tile set. relPath: path of the picture; None for LDtk's icons. columns: columns of tiles according to LDtk."""

    pxWid: records.Count  # noqa: N815
    pxHei: records.Count  # noqa: N815
    tileGridSize: records.Count  # noqa: N815
    uid: int | None = None
    relPath: str | None = None  # noqa: N815
    spacing: records.Count = 0
    padding: records.Count = 0
    columns: records.Count = msgspec.field(default=0, name="__cWid")
    enumTags: list[_EnumTag] = []  # noqa: N815


class _Definitions(msgspec.Struct, frozen=True):
    tilesets: list[_TileSet]
    layers: list[_Layer] = []


class _Version(msgspec.Struct, frozen=True):
    jsonVersion: str  # noqa: N815


class _Project(msgspec.Struct, frozen=True):
    defs: _Definitions


class LdtkProject(PictureList, AtlasFormat):
    """Reads the tile sets of LDtk projects."""

    name = "ldtk"
    suffixes: ClassVar = (".ldtk",)

    def pictures(self, data: bytes, name: str) -> Iterator[DescribedPicture]:
        definitions = _definitions(data, escape_unprintable(name))
        for tile_set in definitions.tilesets:
            if tile_set.relPath and tile_set.tileGridSize:
                size, gap, margin = tile_set.tileGridSize, tile_set.spacing, tile_set.padding
                names = _tile_names(tile_set, definitions.layers)
                grid = TileGrid(name, (size, size), (margin, margin), (gap, gap), tile_set.columns, names)
                yield DescribedPicture(tile_set.relPath, grid, size=(tile_set.pxWid, tile_set.pxHei))

    def example(self, folder: Path) -> Path:
        tiles = {"__cWid": 2, "pxWid": 16, "pxHei": 8, "tileGridSize": 8, "relPath": "gems.png"}
        (folder / "gems.ldtk").write_text(json.dumps({"jsonVersion": "1.5.3", "defs": {"tilesets": [tiles]}}))
        return write_example_sheet(folder)


def _definitions(data: bytes, name: str) -> _Definitions:
    """Return the tile sets and layers of a project. Raises UnreadableFile for unknown versions and damaged files."""
    try:
        values = json.loads(data)
        if not isinstance(values, dict):
            return _Definitions([])
        version = records.convert(values, _Version).jsonVersion
        if version.partition(".")[0] not in _KNOWN:
            words = f"{name} is from LDtk {escape_unprintable(version)[:20]}: the studio knows the versions up to 1"
            raise UnreadableFile("unsupported", words)
        return records.convert(values, _Project).defs
    except (ValueError, RecursionError):
        raise UnreadableFile("unreadable", f"{name} is not a valid LDtk project") from None


def _tile_names(tile_set: _TileSet, layers: Sequence[_Layer]) -> dict[int, str]:
    """Return the names of tiles with a class, by index: 'grass + water/tile 3'."""
    tags: dict[int, list[str]] = {}
    for tag in tile_set.enumTags:
        for index in tag.tileIds:
            tags.setdefault(index, []).append(tag.enumValueId)
    classes = _drawn_values(tile_set, layers) | tags
    return {index: class_path(values, f"tile {index}") for index, values in classes.items()}


def _drawn_values(tile_set: _TileSet, layers: Sequence[_Layer]) -> dict[int, list[str]]:
    """Return the names of the values whose rule draws a tile, by tile index. A tile's first rule decides."""
    by_uid: dict[int | None, _Layer] = {layer.uid: layer for layer in layers if layer.uid is not None}
    found: dict[int, list[str]] = {}
    for layer in layers:
        if tile_set.uid is None or tile_set.uid not in (layer.tilesetDefUid, layer.autoTilesetDefUid):
            continue
        source = by_uid.get(layer.autoSourceLayerDefUid, layer)
        numbered = enumerate(source.intGridValues, 1)
        names = {each.value or number: each.identifier for number, each in numbered if each.identifier}
        for rule in (each for group in layer.autoRuleGroups for each in group.rules):
            if values := _values_in(rule, names):
                for index in itertools.chain(rule.tileIds or (), *(rule.tileRectsIds or ())):
                    found.setdefault(index, values)
    return found


def _values_in(rule: _Rule, names: Mapping[int, str]) -> list[str]:
    """Return the names of the values that a rule wants in the middle of its pattern and the eight cells around.

    Returns [] for a rule without a named value in the middle.
    """
    side, middle = rule.size, rule.size // 2
    if side % 2 == 0 or len(rule.pattern) != side**2 or rule.pattern[middle * side + middle] not in names:
        return []
    near = range(max(0, middle - 1), min(side, middle + 2))
    wanted = {rule.pattern[row * side + column] for row in near for column in near}
    return [names[value] for value in sorted(wanted) if value in names]
