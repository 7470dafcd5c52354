"""Tile sets of LDtk projects, written by hand, and compared with what ldtkpy reads in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ldtkpy.api import TilesetDefinition  # type: ignore[import-untyped]

from tests.data.making import imported, notes, reasons, sprite, write

TILES: dict[str, Any] = {
    "__cWid": 3, "__cHei": 2, "identifier": "Land", "uid": 1, "relPath": "../art/s.png", "embedAtlas": None,
    "pxWid": 30, "pxHei": 21, "tileGridSize": 8, "spacing": 1, "padding": 2, "tags": [], "tagsSourceEnumUid": 4,
    "enumTags": [{"enumValueId": "grass", "tileIds": [1, 4]}, {"enumValueId": "water", "tileIds": [4, 3]}],
    "customData": [], "savedSelections": [], "cachedPixelData": None,
}  # fmt: skip
ICONS = {**TILES, "relPath": None, "embedAtlas": "LdtkIcons"}


def project(*tile_sets: object, layers: object = ()) -> str:
    return json.dumps({"jsonVersion": "1.5.3", "defs": {"tilesets": tile_sets, "layers": layers}, "levels": []})


def write_project(folder: Path, *tile_sets: object, name: str = "world.ldtk") -> None:
    pixels = np.zeros((21, 30, 4), np.uint8)
    for number in range(5):
        x, y = (2 + place * 9 for place in (number % 3, number // 3))
        pixels[y : y + 8, x : x + 8] = sprite(number)
    write(folder / "s.png", pixels)
    write(folder / "plain.png", sprite(9))
    (folder / name).write_text(project(*tile_sets))


@pytest.mark.parametrize("name", ["world.ldtk", "s.ldtk"])
def test_tiles_with_padding_spacing_and_enum_tags(tmp_path: Path, name: str) -> None:
    write_project(tmp_path / "set", ICONS, TILES, name=name)
    event = imported(tmp_path / "set")
    names = ("tile 0", "grass/tile 1", "tile 2", "water/tile 3", "grass + water/tile 4")
    assert event.sprites.names == ("plain.png", *(f"s.png#{name}" for name in names))
    assert event.sprites.class_names == ("grass", "grass + water", "s", "set", "water")
    assert (event.sprites.rgba[1:] == [sprite(number) for number in range(5)]).all() and not event.quarantine


def rule(pattern: list[int], *tiles: int) -> dict[str, Any]:
    return {"size": int(len(pattern) ** 0.5), "pattern": pattern, "tileRectsIds": [[tile] for tile in tiles]}


LAYERS: list[dict[str, Any]] = [
    {
        "uid": 8, "type": "IntGrid", "tilesetDefUid": None, "autoRuleGroups": [], "autoSourceLayerDefUid": None,
        "intGridValues": [
            {"value": 1, "identifier": "lava", "color": "#FF0000"}, {"value": 2, "identifier": None},
            {"value": 7, "identifier": "rock"},
        ],
    },
    {
        "uid": 9, "type": "AutoLayer", "tilesetDefUid": 1, "autoSourceLayerDefUid": 8,
        "intGridValues": [{"value": 7, "identifier": "unused"}],
        "autoRuleGroups": [{"rules": [
            rule([0, 7, 0, 0, -7, 0, 0, 0, 0], 0),  # a plant below a rock is no rock
            rule([0], 0), rule([2], 0), rule([-1_000_001], 0), rule([7, 7], 0), rule([], 0), rule([7] * 4, 0),
            rule([0, 1, 0, 0, 7, 0, 0, 2, 0], 3, 4),
        ]}, {"rules": [
            {"size": 5, "pattern": [*[1] * 6, 0, 0, 0, 1, 1, 0, 7, -1, 1, 1, 7, 0, 0, *[1] * 6], "tileIds": [2],
             "tileRectsIds": None},
            rule([1], 2, 3),
        ]}],
    },
    {
        "uid": 10, "type": "IntGrid", "tilesetDefUid": 5, "intGridValues": [{"value": 1, "identifier": "else"}],
        "autoRuleGroups": [{"rules": [rule([1], 0)]}],
    },
]  # fmt: skip


def test_rules_of_layers_name_the_tiles_without_tags(tmp_path: Path) -> None:
    write_project(tmp_path / "set")
    tiles = {**TILES, "enumTags": [{"enumValueId": "grass", "tileIds": [1, 4]}]}
    (tmp_path / "set" / "world.ldtk").write_text(project(tiles, layers=LAYERS))
    event = imported(tmp_path / "set")
    names = ("tile 0", "grass/tile 1", "rock/tile 2", "lava + rock/tile 3", "grass/tile 4")
    assert event.sprites.names == ("plain.png", *(f"s.png#{name}" for name in names)) and not event.quarantine


def test_rules_of_old_projects(tmp_path: Path) -> None:
    """LDtk 0.6 numbers the values by their order, and names the tile set of the rules apart from others."""
    write_project(tmp_path / "set")
    layer = {
        "uid": 2, "tilesetDefUid": None, "autoTilesetDefUid": 1, "autoSourceLayerDefUid": None,
        "intGridValues": [{"identifier": None, "color": "#000000"}, {"identifier": "walls", "color": "#7A7FA0"}],
        "autoRuleGroups": [{"rules": [
            {"size": 1, "tileIds": [3], "pattern": [1]}, {"size": 1, "tileIds": [0], "pattern": [2]},
        ]}],
    }  # fmt: skip
    (tmp_path / "set" / "world.ldtk").write_text(project({**TILES, "enumTags": []}, layers=[layer]))
    names = imported(tmp_path / "set").sprites.names
    assert names[1:5] == ("s.png#walls/tile 0", "s.png#tile 1", "s.png#tile 2", "s.png#tile 3")


def test_levels_that_flip_tiles_change_no_sprite(tmp_path: Path) -> None:
    placed = [{"px": [8 * f, 0], "src": [2, 2], "f": f, "t": f % 2, "d": [f], "a": 1} for f in range(4)]
    layers = [
        {"__type": "Tiles", "__tilesetDefUid": 1, "gridTiles": placed, "autoLayerTiles": []},
        {"__type": "AutoLayer", "__tilesetDefUid": 1, "gridTiles": [], "autoLayerTiles": placed},
    ]
    level: dict[str, object] = {"identifier": "Flips", "layerInstances": layers}
    elsewhere = {"identifier": "Elsewhere", "layerInstances": None, "externalRelPath": "world/Elsewhere.ldtkl"}
    folders = tmp_path / "flat", tmp_path / "flipped"
    for folder in folders:
        write_project(folder, TILES)
    values = json.loads(project(TILES)) | {"levels": [level, elsewhere], "externalLevels": True}
    (folders[1] / "world.ldtk").write_text(json.dumps(values))
    (folders[1] / "world").mkdir()
    (folders[1] / "world" / "Elsewhere.ldtkl").write_text(json.dumps(level))
    flat, flipped = (imported(folder) for folder in folders)
    assert flipped.sprites.names == flat.sprites.names and not flipped.quarantine and not flipped.notes
    np.testing.assert_array_equal(flipped.sprites.rgba, flat.sprites.rgba)


def test_ldtkpy_reads_the_same_tiles(tmp_path: Path) -> None:
    write_project(tmp_path / "set", TILES)
    theirs, sprites = TilesetDefinition.from_dict(TILES), imported(tmp_path / "set").sprites
    for index in range(5):
        tags = [tag.enum_value_id for tag in theirs.enum_tags if index in tag.tile_ids]
        assert f"s.png#{' + '.join(tags)}{'/' if tags else ''}tile {index}" in sprites.names
    assert theirs.c_wid * theirs.c_hei == 6  # the last tile is empty


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"jsonVersion": "2.0.0", "defs": {"tilesets": [TILES]}}, "s.ldtk is from LDtk 2.0.0: the studio knows"),
        ({"jsonVersion": "new\x07", "defs": {}}, "s.ldtk is from LDtk new\\x07: the studio knows"),
        ({"jsonVersion": "1.5.3", "defs": {"tilesets": [{"relPath": "s.png"}]}}, "not a valid LDtk project"),
        ({"jsonVersion": "1.5.3", "defs": {"tilesets": [{**TILES, "spacing": -9}]}}, "not a valid LDtk project"),
        ("{", "not a valid LDtk project"),
        ("[" * 100_000, "not a valid LDtk project"),
    ],
)
def test_an_unusable_project_keeps_its_picture(tmp_path: Path, content: object, reason: str) -> None:
    write(tmp_path / "set" / "s.png", sprite(0))
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "set" / "s.ldtk").write_text(text)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png",) and reason in reasons(event)["s.ldtk"]
    assert reason in notes(event, "description")["s.png"]
