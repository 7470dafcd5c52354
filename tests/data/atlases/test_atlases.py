"""Sheets described by TexturePacker, libGDX and Godot: where each says that a sprite lies, and how it is turned."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.data.atlases.base import siblings_with_suffix
from studio.data.files.source_files import SourceFile
from studio.data.images.decoding import read_bytes
from tests.data.making import Pixels, found, frame, imported, notes, png_of, reasons, sprite, write, write_sheet, zipped

TALL = sprite(1, 6, 10)  # 6 wide and 10 high


def packed(*pieces: tuple[int, int, Pixels]) -> Pixels:
    """A sheet of 32 x 32 with a picture at each x and y."""
    sheet = np.zeros((32, 32, 4), np.uint8)
    for x, y, rgba in pieces:
        sheet[y : y + rgba.shape[0], x : x + rgba.shape[1]] = rgba
    return sheet


def clockwise(rgba: Pixels) -> Pixels:
    """Turned by a quarter: the top row becomes the right column."""
    return np.stack(list(rgba[::-1]), axis=1)


def on_canvas(rgba: Pixels, left: int, top: int) -> Pixels:
    """In a canvas of 16 x 16."""
    return np.pad(rgba, ((top, 16 - top - rgba.shape[0]), (left, 16 - left - rgba.shape[1]), (0, 0)))


def tres(picture: str, region: str, margin: str = "") -> str:
    text = (
        '[gd_resource type="AtlasTexture" load_steps=2 format=3 uid="uid://x"]\n\n'
        f'[ext_resource type="Texture2D" uid="uid://y" path="res://art/{picture}" id="1_a"]\n\n'
        f'[resource]\natlas = ExtResource("1_a")\nregion = Rect2({region})\n'
    )
    return f"{text}margin = Rect2({margin})\n" if margin else text


@pytest.mark.parametrize(("source", "left", "top"), [({}, 5, 3), ({"x": 9, "y": 1, "w": 6, "h": 10}, 9, 1)])
def test_a_rotated_texture_packer_frame(tmp_path: Path, source: dict[str, int], left: int, top: int) -> None:
    turned = {**frame("art/tall.png", 3, 5, 6, 10), "rotated": True, "trimmed": bool(source)}
    turned |= {"sourceSize": {"w": 16, "h": 16}, "spriteSourceSize": source} if source else {}
    write_sheet(tmp_path / "set" / "s.png", packed((3, 5, clockwise(TALL)), (20, 0, sprite(2))), [turned])
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("s.png#art/tall",)
    assert (event.sprites.rgba[0] == on_canvas(TALL, left, top)).all()


OLD = """
s.png
size: 32,32
format: RGBA8888
filter: Nearest,Nearest
repeat: none
ui/tall
  rotate: true
  xy: 3, 5
  size: 6, 10
  orig: 16, 16
  offset: 9, 5
  index: -1
small
  rotate: false
  xy: 20, 0
  size: 8, 8
  orig: 8, 8
  offset: 0, 0
  index: 3
"""
NEW = """s.png
size:32,32
pma:true
ui/tall
rotate:90
bounds:3,5,6,10
offsets:9,5,16,16
small
index:3
bounds:20,0,8,8

other.png
size:8,8
elsewhere
bounds:0,0,8,8
"""


@pytest.mark.parametrize("text", [OLD, NEW, NEW.replace("\n", "\r\n")], ids=["old", "new", "Windows"])
def test_libgdx_in_both_syntaxes(tmp_path: Path, text: str) -> None:
    anticlockwise = clockwise(clockwise(clockwise(TALL)))
    write(tmp_path / "set" / "s.png", packed((3, 5, anticlockwise), (20, 0, sprite(2))))
    (tmp_path / "set" / "any name.atlas").write_text(text)
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("s.png#ui/tall", "s.png#small 3") and not event.quarantine
    assert event.sprites.class_names == ("s", "ui")
    assert (event.sprites.rgba[0] == on_canvas(TALL, 9, 1)).all()  # its offset is counted from the bottom
    assert (event.sprites.rgba[1] == on_canvas(sprite(2), 4, 4)).all()


@pytest.mark.parametrize(("pma", "written", "colour"), [("true", 128, 255), ("false", 128, 128), ("true", 200, 200)])
def test_premultiplied_libgdx_alpha_is_undone(tmp_path: Path, pma: str, written: int, colour: int) -> None:
    sheet = packed((0, 0, sprite(0)), (8, 0, sprite(1)))
    sheet[3, 3] = (written, 0, 0, 128)  # more colour than alpha can't come from a multiplication
    write(tmp_path / "set" / "s.png", sheet)
    text = f"s.png\nsize:32,32\npma:{pma}\na\nbounds:0,0,8,8\nb\nbounds:8,0,8,8\n"
    (tmp_path / "set" / "s.atlas").write_text(text)
    event = imported(tmp_path / "set")
    assert event.sprites.rgba[0, 3, 3].tolist() == [colour, 0, 0, 128]
    assert (event.sprites.rgba[1] == sprite(1)).all()


def test_a_libgdx_sheet_scaled_up_after_the_export(tmp_path: Path) -> None:
    sheet = packed((0, 0, sprite(0)), (8, 0, sprite(1)))
    write(tmp_path / "set" / "s.png", sheet.repeat(2, 0).repeat(2, 1))
    (tmp_path / "set" / "s.atlas").write_text("s.png\nsize: 32, 32\na\nbounds: 0, 0, 8, 8\nb\nbounds: 8, 0, 8, 8\n")
    event = imported(tmp_path / "set", shrink=2)
    assert (event.sprites.rgba == [sprite(0), sprite(1)]).all()
    assert "scaled by 2" in notes(event, "description")["s.png"]


def test_libgdx_names_with_an_index_and_numbers_as_decimals(tmp_path: Path) -> None:
    write(tmp_path / "set" / "S.png", packed((0, 0, sprite(0)), (8, 0, sprite(1))))
    (tmp_path / "set" / "s.atlas").write_text("s.PNG\na\nbounds: 0.0, 0, 8.0, 8\nb\nxy: 8, 0\nsize: 8, 8\n")
    assert imported(tmp_path / "set").sprites.names == ("S.png#a", "S.png#b")


def test_damaged_libgdx_files_and_files_of_other_images(tmp_path: Path) -> None:
    regions = "right\nbounds:30,0,8,8\nhuge\nbounds:0,0,{0},8\nwords\nxy: a, b\nslanted\nbounds:0,0,8,8\nrotate:45\n"
    write(tmp_path / "set" / "s.png", packed((0, 0, sprite(0))))
    text = f"s.png\n../../x\nbounds:0,0,8,8\n{regions}b\x07ell\n".format("9" * 40)
    (tmp_path / "set" / "s.atlas").write_text(text)
    for number, name in enumerate(("empty.png", "plain.png")):
        write(tmp_path / "set" / name, sprite(number + 1))
    (tmp_path / "set" / "a.atlas").write_text("empty.png\nsize: 8, 8\n")
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("empty.png", "plain.png", "s.png#x")
    left_out = reasons(event)
    assert "outside" in left_out["s.png#right"] and "outside" in left_out["s.png#huge"]
    assert "position" in left_out["s.png#words"] and "angle" in left_out["s.png#slanted"]
    assert "position" in left_out["s.png#b\\x07ell"]
    assert "lists no sprites" in notes(event, "description")["empty.png"]


def test_a_large_atlas_file_of_another_program_is_ignored(tmp_path: Path) -> None:
    home = tmp_path / "set"
    for number in range(2):
        write(home / f"{number}.png", sprite(number))
    with (home / "world.atlas").open("wb") as stream:
        stream.truncate((8 << 20) + 1)
    assert imported(home).sprites.names == ("0.png", "1.png")
    (home / "world.atlas").rename(home / "1.atlas")
    event = imported(home)
    assert event.sprites.names == ("0.png", "1.png")
    assert "larger than 8 MB" in notes(event, "description")["1.png"]


def test_several_godot_resources_for_one_image(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write(folder / "s.png", packed((3, 5, TALL), (20, 0, sprite(2))))
    write(folder / "plain.png", sprite(3))
    (folder / "tall.tres").write_text(tres("s.png", "3, 5, 6, 10", "9, 1, 10, 6"))
    (folder / "small.tres").write_text(tres("s.png", " 20.0, 0.0, 8.0, 8.0 ").replace("Texture2D", "Texture"))
    (folder / "away.tres").write_text(tres("s.png", "28, 0, 8, 8"))
    (folder / "half.tres").write_text(tres("s.png", "0.5, 0, 8, 8"))
    (folder / "theme.tres").write_text(tres("s.png", "0, 0, 8, 8").replace("AtlasTexture", "Theme"))
    event = imported(folder, size=16)
    assert event.sprites.names == ("plain.png", "s.png#small", "s.png#tall")
    assert event.sprites.class_names == ("s", "set")
    assert (event.sprites.rgba[2] == on_canvas(TALL, 9, 1)).all()
    assert "outside" in reasons(event)["s.png#away"] and "position" in reasons(event)["s.png#half"]


@pytest.mark.parametrize("region", ["", "region = Rect2(0, 0, 0, 0)\n", "region = Rect2(0, 0, 0, 16)\n"])
def test_a_godot_atlas_without_a_region_is_the_whole_picture(tmp_path: Path, region: str) -> None:
    write(tmp_path / "set" / "s.png", sprite(0, 16))
    text = tres("s.png", "").replace("region = Rect2()\n", region)
    for name in ("whole", "again"):
        (tmp_path / "set" / f"{name}.tres").write_text(text)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png",) and not event.quarantine
    assert (event.sprites.rgba[0] == sprite(0, 16)).all()


FRAMES = """\
[gd_resource type="SpriteFrames" load_steps=7 format=3 uid="uid://x"]

[ext_resource type="Texture2D" uid="uid://y" path="res://art/other.png" id="1_a"]
[ext_resource type="Texture2D" uid="uid://z" path="res://art/s.png" id="2_b"]

[sub_resource type="AtlasTexture" id="AtlasTexture_1"]
resource_name = "tall \\"one\\""
atlas = ExtResource("2_b")
region = Rect2(3, 5, 6, 10)
margin = Rect2(9, 1, 10, 6)

[sub_resource type="AtlasTexture" id="AtlasTexture_2"]
atlas = ExtResource("1_a")
region = Rect2(0, 0, 8, 8)

[sub_resource type="Gradient" id="Gradient_1"]
atlas = ExtResource("2_b")

[sub_resource type="AtlasTexture" id="AtlasTexture_3"]
atlas = ExtResource("2_b")
region = Rect2(20, 0, 8, 8)

[resource]
animations = [{
"frames": [{
"duration": 1.0,
"texture": SubResource("AtlasTexture_1")
}],
"loop": true,
"name": &"default",
"speed": 5.0
}]
"""
THREE = re.sub(r'ExtResource\("(\d)_.*"\)', r"ExtResource( \1 )", re.sub(r'id="(\d)_."', r"id=\1", FRAMES))


@pytest.mark.parametrize("text", [FRAMES, THREE, FRAMES.replace("\n", "\r\n")], ids=["4", "3", "Windows"])
def test_godot_sprite_frames_of_two_images(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write(folder / "s.png", packed((3, 5, TALL), (20, 0, sprite(2))))
    write(folder / "other.png", packed((0, 0, sprite(3))))
    write(folder / "plain.png", sprite(4))
    (folder / "hero.tres").write_bytes(text.encode())
    event = imported(folder, size=16)
    assert event.sprites.names == ("other.png#hero 1", "plain.png", 's.png#tall "one"', "s.png#hero 2")
    assert (event.sprites.rgba[2] == on_canvas(TALL, 9, 1)).all() and not event.quarantine


def test_sprite_frames_too_large_or_of_other_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write(folder / "plain.png", sprite(1))
    write(folder / "s.png", packed((20, 0, sprite(2))))
    (folder / "other.tres").write_text(FRAMES.replace("s.png", "elsewhere.png"))
    (folder / "huge.tres").write_text(FRAMES + " " * (8 << 20))
    event = imported(folder, size=16)
    assert event.sprites.names == ("plain.png", "s.png")
    assert "larger than 8 MB" in notes(event, "description")["s.png"]


def test_too_many_godot_resources_are_refused(tmp_path: Path) -> None:
    members = {f"{number:04}.tres": tres("s.png", "0, 0, 8, 8").encode() for number in range(1001)}
    sheet = {"s.png": png_of(packed((0, 0, sprite(0)))), "plain.png": png_of(sprite(1))}
    event = imported(zipped(tmp_path / "set.zip", {**members, **sheet}))
    assert event.sprites.names == ("plain.png", "s.png")
    assert "1,000 .tres files" in notes(event, "description")["s.png"]


@pytest.mark.parametrize("name", ["s.json", "a.atlas", "b.tres"])
def test_an_inaccessible_description_keeps_the_image(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(file: SourceFile, most: int = 0) -> bytes:
        if file.file_name == name:
            raise PermissionError(13, "Permission denied")
        return read_bytes(file, most)

    for module in ("atlases.base", "images.decoding", "sources.sheet"):
        monkeypatch.setattr(f"studio.data.{module}.read_bytes", refusing)
    write(tmp_path / "s.png", sprite(1))
    (tmp_path / name).write_text("{}")
    event = imported(tmp_path)
    assert event.sprites.names == ("s.png",) and reasons(event, "no access").keys() == {name}


def test_trimmed_frames_must_not_grow_out_of_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.data.sheets.described._MOST_RESTORED", 1000)
    region = "bounds:0,0,1,1\noffsets:0,0,16,16\n"
    write(tmp_path / "set" / "plain.png", sprite(1))
    write(tmp_path / "set" / "s.png", packed((20, 0, sprite(2))))
    (tmp_path / "set" / "s.atlas").write_text("s.png\n" + "".join(f"r{n}\n{region}" for n in range(4)))
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("plain.png", "s.png")
    assert "frames that are too large" in notes(event, "description")["s.png"]


def test_cached_sibling_lists_compare_by_identity(tmp_path: Path) -> None:
    class Name(str):
        asked = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Name.asked += 1
            return str.__eq__(self, other)

    picture = found(write(tmp_path / "a.png", sprite(0)))
    for _ in range(2):
        file = replace(picture, siblings=frozenset(Name(f"{number}.atlas") for number in range(100)))
        answers = {tuple(siblings_with_suffix(file, ".atlas")) for _ in range(20)}
        assert [len(answer) for answer in answers] == [100]
    assert Name.asked < 1000


def test_an_empty_size_in_a_description_is_ignored(tmp_path: Path) -> None:
    write(tmp_path / "set" / "gems.png", sprite(0))
    (tmp_path / "set" / "gems.atlas").write_text("gems.png\nsize: 16, 0\nruby\n ")
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("gems.png",) and "no usable sprite" in notes(event, "description")["gems.png"]
