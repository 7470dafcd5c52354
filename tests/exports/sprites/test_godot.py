"""Godot's SpriteFrames: the resource beside the sheet, as Godot 4 writes its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from PIL import Image

from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import GAP, Cells
from tests.exports.sprites.making import BLUE, GREEN, RED, of_colours, written

TWO = """\
[gd_resource type="SpriteFrames" load_steps=4 format=3]

[ext_resource type="Texture2D" path="art.png" id="1"]

[sub_resource type="AtlasTexture" id="AtlasTexture_0"]
resource_name = "cup \\"of\\" gold 001"
atlas = ExtResource("1")
region = Rect2(0, 0, 6, 6)

[sub_resource type="AtlasTexture" id="AtlasTexture_1"]
resource_name = "cup \\"of\\" gold 002"
atlas = ExtResource("1")
region = Rect2(6, 0, 6, 6)

[resource]
animations = [{
"frames": [{
"duration": 1.0,
"texture": SubResource("AtlasTexture_0")
}, {
"duration": 2.5,
"texture": SubResource("AtlasTexture_1")
}],
"loop": true,
"name": &"cup \\"of\\" gold",
"speed": 12.5
}]
"""


def animations_in(text: str) -> dict[str, list[str]]:
    """Numbers of the textures of each animation."""
    animations = {}
    for animation in text.partition("animations = ")[2].split('"frames"')[1:]:
        (name,) = re.findall(r'"name": &"(.*)"', animation)
        animations[name] = re.findall(r'SubResource\("AtlasTexture_(\d)"\)', animation)
    return animations


def test_the_resource_to_the_letter(tmp_path: Path) -> None:
    sprites = of_colours(RED, (*GREEN, 90))
    given = SpriteSet(sprites, classes=['cup "of" gold'] * 2, duration_ms=80, hold_ms=120, is_animation=True)
    path = written("godot", given, tmp_path)
    assert path.read_text() == TWO
    with Image.open(path.with_suffix(".png")) as image:
        assert np.array_equal(np.asarray(image), np.concatenate(list(sprites), axis=1))


def test_each_class_is_an_animation_of_its_sprites(tmp_path: Path) -> None:
    classes = ["item/cup", "", "item/cup", "item_cup"]
    text = written(
        "godot", SpriteSet(of_colours(RED, GREEN, BLUE, RED), classes=classes, columns=2), tmp_path
    ).read_text()
    assert animations_in(text) == {"item_cup": ["0", "2"], "default": ["1"], "item_cup_": ["3"]}
    assert '"loop": false' in text and '"loop": true' not in text
    assert re.findall(r"Rect2\((.*)\)", text) == ["0, 0, 6, 6", "6, 0, 6, 6", "0, 6, 6, 6", "6, 6, 6, 6"]


def test_each_row_of_a_set_is_an_animation(tmp_path: Path) -> None:
    names = ("down/1", "down/2", "up/1", "up/2")
    cells = Cells(names, np.array([[0, 1, 2, GAP], [2, GAP, GAP, 0]], np.int32), ("a/b", "c"))
    path = written("godot", SpriteSet(of_colours(RED, GREEN, BLUE), cells=cells, duration_ms=125), tmp_path)
    text = path.read_text()
    assert animations_in(text) == {"a_b_down": ["0", "1"], "a_b_up": ["2"], "c_down": ["3"], "c_up": ["4"]}
    assert text.count('"loop": true') == text.count('"speed": 8.0') == 4 and "load_steps=7 " in text
    regions = ["0, 0, 6, 6", "6, 0, 6, 6", "0, 6, 6, 6", "0, 12, 6, 6", "6, 18, 6, 6"]
    assert re.findall(r"Rect2\((.*)\)", text) == regions
    paths = re.findall('resource_name = "(.*)"', text)
    assert paths == ["a/b/down/1", "a/b/down/2", "a/b/up/1", "c/down/1", "c/up/2"]
    with Image.open(path.with_suffix(".png")) as image:
        assert image.size == (12, 24) and image.getpixel((8, 20)) == (*RED, 255)
