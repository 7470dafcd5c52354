"""Read the tile sets of LDtk projects (.ldtk, JSON). Enum tags of a tile become its class: 'grass + water'.

The sprites are the tiles in the picture of a tile set; levels, which may flip tiles (`f`), are not read.
https://ldtk.io/json/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
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

    enumValueId: str  # noqa: N815 - the file's name
    tileIds: list[records.Count]  # noqa: N815


class _TileSet(msgspec.Struct, frozen=True):
    """A tile set. relPath: path of the picture; None for LDtk's own icons. columns: counted by LDtk."""

    pxWid: records.Count  # noqa: N815
    pxHei: records.Count  # noqa: N815
    tileGridSize: records.Count  # noqa: N815
    relPath: str | None = None  # noqa: N815
    spacing: records.Count = 0
    padding: records.Count = 0
    columns: records.Count = msgspec.field(default=0, name="__cWid")
    enumTags: list[_EnumTag] = []  # noqa: N815


class _Definitions(msgspec.Struct, frozen=True):
    tilesets: list[_TileSet]


class _Version(msgspec.Struct, frozen=True):
    jsonVersion: str  # noqa: N815


class _Project(msgspec.Struct, frozen=True):
    defs: _Definitions


class LdtkProject(PictureList, AtlasFormat):
    """Reads the tile sets of LDtk projects."""

    name = "ldtk"
    suffixes: ClassVar = (".ldtk",)

    def pictures(self, data: bytes, name: str) -> Iterator[DescribedPicture]:
        for tile_set in _tile_sets(data, escape_unprintable(name)):
            if tile_set.relPath and tile_set.tileGridSize:
                size, gap, margin = tile_set.tileGridSize, tile_set.spacing, tile_set.padding
                names = _tile_names(tile_set)
                grid = TileGrid(name, (size, size), (margin, margin), (gap, gap), tile_set.columns, names)
                yield DescribedPicture(tile_set.relPath, grid, size=(tile_set.pxWid, tile_set.pxHei))

    def example(self, folder: Path) -> Path:
        tiles = {"__cWid": 2, "pxWid": 16, "pxHei": 8, "tileGridSize": 8, "relPath": "gems.png"}
        (folder / "gems.ldtk").write_text(json.dumps({"jsonVersion": "1.5.3", "defs": {"tilesets": [tiles]}}))
        return write_example_sheet(folder)


def _tile_sets(data: bytes, name: str) -> list[_TileSet]:
    """Return the tile sets of a project. Raises UnreadableFile for an unknown version and a damaged file."""
    try:
        values = json.loads(data)
        if not isinstance(values, dict):
            return []
        version = records.convert(values, _Version).jsonVersion
        if version.partition(".")[0] not in _KNOWN:
            words = f"{name} is from LDtk {escape_unprintable(version)[:20]}: the studio knows the versions up to 1"
            raise UnreadableFile("unsupported", words)
        return records.convert(values, _Project).defs.tilesets
    except (ValueError, RecursionError):
        raise UnreadableFile("unreadable", f"{name} is not a valid LDtk project") from None


def _tile_names(tile_set: _TileSet) -> dict[int, str]:
    classes: dict[int, list[str]] = {}
    for tag in tile_set.enumTags:
        for index in tag.tileIds:
            classes.setdefault(index, []).append(tag.enumValueId)
    return {index: class_path(values, f"tile {index}") for index, values in classes.items()}
