"""TileSet resources of Godot 4, written by hand, and compared with what godot-parser reads in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from godot_parser import parse

from tests.data.making import imported, notes, sprite, write

TILES = """\
[gd_resource type="TileSet" load_steps=4 format=3 uid="uid://x"]

[ext_resource type="Texture2D" uid="uid://y" path="res://art/other.png" id="1_a"]
[ext_resource type="Texture2D" uid="uid://z" path="res://art/s.png" id="2_b"]

[sub_resource type="TileSetAtlasSource" id="TileSetAtlasSource_1"]
texture = ExtResource("2_b")
margins = Vector2i(2, 2)
separation = Vector2i(1, 1)
texture_region_size = Vector2i(8, 8)
0:0/next_alternative_id = 2
0:0/0 = 0
0:0/0/terrain_set = 0
0:0/0/terrain = 1
0:0/0/terrains_peering_bit/right_side = 1
0:0/0/physics_layer_0/polygon_0/points = PackedVector2Array(-4, -4, 4, -4, 4, 4)
0:0/1 = 1
0:0/1/flip_h = true
1:0/0 = 0
1:0/0/terrain_set = 0
1:0/0/terrain = 1
1:0/0/terrains_peering_bit/right_side = 0
1:0/0/terrains_peering_bit/left_side = -1
0:1/size_in_atlas = Vector2i(2, 1)
0:1/0 = 0
2:0/animation_columns = 1
2:0/animation_frame_0/duration = 1.0
2:0/animation_frame_1/duration = 0.5
2:0/0 = 0

[sub_resource type="TileSetAtlasSource" id="TileSetAtlasSource_2"]
texture = ExtResource("1_a")
0:0/0 = 0

[resource]
tile_size = Vector2i(8, 8)
terrain_set_0/mode = 0
terrain_set_0/terrain_0/name = "grass"
terrain_set_0/terrain_0/color = Color(0.5, 0.4, 0.3, 1)
terrain_set_0/terrain_1/name = "water"
sources/0 = SubResource("TileSetAtlasSource_1")
sources/1 = SubResource("TileSetAtlasSource_2")
"""
CELLS = ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1))  # column and row of sprite(0), sprite(1) and so on


def write_sheet(folder: Path) -> None:
    pixels = np.zeros((21, 30, 4), np.uint8)
    for number, (column, row) in enumerate(CELLS):
        pixels[2 + 9 * row : 10 + 9 * row, 2 + 9 * column : 10 + 9 * column] = sprite(number)
    write(folder / "s.png", pixels)


@pytest.mark.parametrize("text", [TILES, TILES.replace("\n", "\r\n")], ids=["Linux", "Windows"])
@pytest.mark.parametrize("name", ["s.tres", "land.tres"])
def test_tiles_with_margins_separation_animation_and_terrains(tmp_path: Path, name: str, text: str) -> None:
    folder = tmp_path / "set"
    write_sheet(folder)
    write(folder / "other.png", sprite(9, 16))
    (folder / name).write_bytes(text.encode())
    event = imported(folder, size=17)
    names = ("water/tile 0:0", "grass + water/tile 1:0", "tile 2:0", "tile 2:0 frame 1", "tile 0:1")
    assert event.sprites.names == ("other.png", *(f"s.png#{name}" for name in names))
    assert not event.quarantine and event.sprites.class_names == ("grass + water", "s", "set", "water")
    for index, number in ((1, 0), (2, 1), (3, 2), (4, 5)):
        assert (event.sprites.rgba[index, 4:12, 4:12] == sprite(number)).all()
    assert (event.sprites.rgba[5, 4:12, :8] == sprite(3)).all() and (event.sprites.rgba[5, 4:12, 9:] == sprite(4)).all()


def test_godot_parser_reads_the_same_tiles(tmp_path: Path) -> None:
    write_sheet(tmp_path / "set")
    (tmp_path / "set" / "s.tres").write_text(TILES)
    section = next(each for each in parse(TILES).find_all("sub_resource") if each["margins"])
    columns = {key.partition("/")[0] for key in section.properties if key.endswith("/0")}
    names = {name.partition("tile ")[2] for name in imported(tmp_path / "set", size=17).sprites.names}
    assert names == columns | {"2:0 frame 1"}
    assert (section["margins"].args, section["separation"].args) == ([2, 2], [1, 1])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Vector2i(8, 8)\n0", "Vector2i(0, 8)\n0", "s.tres has an impossible tile size"),
        ("separation = Vector2i(1", "separation = Vector2i(-9", "s.tres has an impossible tile size"),
        ("margins = Vector2i(2", "margins = Vector2i(900", "no usable sprite: the first lies outside the sheet"),
        ('[resource]', " " * (8 << 20), "larger than 8 MB"),
    ],
)  # fmt: skip
def test_an_unusable_tile_set_keeps_its_picture(tmp_path: Path, old: str, new: str, reason: str) -> None:
    write_sheet(tmp_path / "set")
    write(tmp_path / "set" / "plain.png", sprite(9))
    (tmp_path / "set" / "s.tres").write_text(TILES.replace(old, new))
    event = imported(tmp_path / "set", size=32)
    assert event.sprites.names == ("plain.png", "s.png") and not event.quarantine
    assert reason in notes(event, "description")["s.png"]
