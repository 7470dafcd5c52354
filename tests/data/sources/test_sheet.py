"""Sheets: a picture with a JSON file beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from studio.data.atlases import base, json_frames
from studio.data.files.source_files import SourceFile
from tests.conftest import posix
from tests.data.making import Pixels, found, frame, imported, notes, reasons, sprite, write, write_sheet


def strip(*seeds: int) -> Pixels:
    """Sprites of 8 x 8 side by side."""
    return np.concatenate([sprite(seed) for seed in seeds], axis=1)


def test_frames_in_a_list_and_by_name_and_the_sheet_is_the_last_level_of_the_class(tmp_path: Path) -> None:
    listed = [frame("ruby", 0, 0, 8, 8), frame("opal.png", 8, 0, 8, 8)]
    write_sheet(tmp_path / "set" / "gems.png", strip(0, 1), listed)
    by_name = {name: {"frame": {"x": x, "y": 0, "w": 8, "h": 8}} for name, x in (("hero 0.aseprite", 0), ("hero 1", 8))}
    write_sheet(tmp_path / "set" / "item" / "hero.png", strip(2, 3), by_name)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("gems.png#ruby", "gems.png#opal", "item/hero.png#hero 0", "item/hero.png#hero 1")
    assert event.sprites.class_names == ("gems", "item/hero") and not event.quarantine and not event.notes
    assert (event.sprites.rgba == [sprite(number) for number in range(4)]).all()
    assert imported(tmp_path / "set", class_levels=1).sprites.class_names == ("gems", "item")


def test_a_sheet_dropped_by_itself(tmp_path: Path) -> None:
    sheet = write_sheet(tmp_path / "set" / "gems.png", strip(0, 1), [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)])
    write(tmp_path / "set" / "other.png", sprite(2))
    for dropped in ([sheet], [sheet, sheet.with_suffix(".json")]):
        event = imported(*dropped)
        assert event.sprites.class_names == ("gems",) and len(event.sprites) == 2 and not event.quarantine


def test_invalid_frames_are_left_out_with_reasons(tmp_path: Path) -> None:
    frames: list[Any] = [
        frame("good", 0, 0, 8, 8),
        frame("right of it", 9, 0, 8, 8),
        frame("negative", -1, 0, 8, 8),
        frame("no width", 0, 0, 0, 8),
        frame("huge", 0, 0, 10**30, 8),
        {"filename": "half", "frame": {"x": 0.5, "y": 0, "w": 8, "h": 8}},
        {"filename": "yes", "frame": {"x": True, "y": 0, "w": 8, "h": 8}},
        {"filename": "nowhere"},
        {"filename": 7, "frame": None},
        "text",
        None,
        {**frame("turned", 0, 0, 16, 8), "rotated": True},
    ]
    write_sheet(tmp_path / "set" / "s.png", strip(0, 1), frames)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png#good",)
    left_out = reasons(event)
    assert len(left_out) == len(frames) - 1
    assert "16 x 8" in left_out["s.png#right of it"] and "outside" in left_out["s.png#negative"]
    assert "outside" in left_out["s.png#turned"]  # it lies there as 8 x 16
    assert {"s.png#nowhere", "s.png#frame 8", "s.png#frame 9", "s.png#frame 10"} <= left_out.keys()


def test_frame_names_are_unique_and_inside_the_sheet(tmp_path: Path) -> None:
    names = ["../../x", "a\\b\\x", "x", "", "\x00bell\x07"]
    frames = [frame(name, 8 * number, 0, 8, 8) for number, name in enumerate(names)]
    write_sheet(tmp_path / "set" / "s.png", strip(0, 1, 2, 3, 4), frames)
    expected = ("x", "a/b/x", "x (2)", "frame 3", "\\x00bell\\x07")
    assert imported(tmp_path / "set").sprites.names == tuple(f"s.png#{name}" for name in expected)


def test_folders_in_frame_names_are_classes(tmp_path: Path) -> None:
    names = ["art/swords/1.png", "art/potions/1.png", "art\\potions\\red\\1.png", "art/../potions/2.png"]
    frames = [frame(name, 8 * number, 0, 8, 8) for number, name in enumerate(names)]
    write_sheet(tmp_path / "set" / "all.png", strip(0, 1, 2, 3), frames)
    sprites = imported(tmp_path / "set").sprites
    expected = {"all.png#swords/1": "swords", "all.png#potions/1": "potions", "all.png#potions/red/1": "potions/red",
                "all.png#potions/2": "potions"}  # fmt: skip
    assert {name: sprites.class_names[k] for name, k in zip(sprites.names, sprites.labels, strict=True)} == expected


def test_each_page_of_a_sheet_keeps_the_folder_of_its_frames(tmp_path: Path) -> None:
    for number, folder in enumerate(("swords", "potions")):
        frames = [frame(f"{folder}/1.png", 0, 0, 8, 8), frame(f"{folder}/2.png", 8, 0, 8, 8)]
        write_sheet(tmp_path / "set" / f"all-{number}.png", strip(2 * number, 2 * number + 1), frames)
    assert imported(tmp_path / "set").sprites.class_names == ("potions", "swords")


def test_trimmed_frames_get_their_borders_back(tmp_path: Path) -> None:
    trimmed = {**frame("t", 1, 1, 6, 6), "trimmed": True, "sourceSize": {"w": 16, "h": 16}}
    trimmed["spriteSourceSize"] = {"x": 9, "y": 2, "w": 6, "h": 6}
    lying = {**frame("l", 8, 0, 8, 8), "trimmed": True, "sourceSize": {"w": 10**9, "h": 16}, "spriteSourceSize": {}}
    write_sheet(tmp_path / "set" / "s.png", strip(0, 1), [trimmed, lying])
    event = imported(tmp_path / "set", size=16)
    expected = np.zeros((16, 16, 4), np.uint8)
    expected[2:8, 9:15] = sprite(0)[1:7, 1:7]
    assert (event.sprites.rgba[0] == expected).all()
    assert (event.sprites.rgba[1, 4:12, 4:12] == sprite(1)).all()


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"frames": []}', "\udcff", "1" * 5000])
def test_damaged_json(tmp_path: Path, text: str) -> None:
    write(tmp_path / "set" / "good.png", sprite(0))
    write(tmp_path / "set" / "s.png", strip(1, 2))
    (tmp_path / "set" / "s.json").write_text(text, errors="surrogateescape")
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("good.png", "s.png") and not event.quarantine
    assert "s.json" in notes(event, "description")["s.png"]


@pytest.mark.parametrize("content", [{"textures": []}, [1, 2], 7, None, {"frames": 3}])
def test_json_files_without_frames(tmp_path: Path, content: object) -> None:
    write(tmp_path / "set" / "s.png", sprite(0))
    (tmp_path / "set" / "s.json").write_text(json.dumps(content))
    assert imported(tmp_path / "set").sprites.names == ("s.png",)


@pytest.mark.parametrize("image", ["hero.png", "C:\\art\\hero.png"])
def test_an_image_beside_the_sheet_is_not_sliced(tmp_path: Path, image: str) -> None:
    write_sheet(tmp_path / "set" / "hero.png", strip(0, 1), [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)])
    content = json.loads((tmp_path / "set" / "hero.json").read_text())
    (tmp_path / "set" / "hero.json").write_text(json.dumps({**content, "meta": {"image": image}}))
    write(tmp_path / "set" / "hero.gif", sprite(2, 16))  # a preview; recognised by content
    assert imported(tmp_path / "set").sprites.names == ("hero.gif", "hero.png#a", "hero.png#b")


def test_a_renamed_sheet_is_still_described(tmp_path: Path) -> None:
    sheet = write_sheet(tmp_path / "set" / "old.png", strip(0, 1), [frame("a", 0, 0, 8, 8)])
    sheet.rename(sheet.with_name("new.png"))
    sheet.with_suffix(".json").rename(sheet.with_name("new.json"))
    assert imported(tmp_path / "set").sprites.names == ("new.png#a",)


def test_absurd_counts_and_overlaps_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "set" / "good.png", sprite(0))
    write_sheet(tmp_path / "set" / "many.png", strip(1), [frame("f", 0, 0, 1, 1)] * 30_001)
    boxes = [frame("f", x, y, 5, 5) for x in range(4) for y in range(4)]
    write_sheet(tmp_path / "set" / "over.png", strip(2), boxes)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("good.png", "many.png", "over.png") and not event.quarantine
    assert "30,001 frames" in notes(event, "description")["many.png"]
    assert "more than 4 times" in notes(event, "description")["over.png"]


@posix
def test_a_linked_json_is_not_followed(tmp_path: Path) -> None:
    sheet = write_sheet(tmp_path / "set" / "s.png", sprite(0), [frame("a", 0, 0, 8, 8)])
    sheet.with_suffix(".json").rename(tmp_path / "outside.json")
    sheet.with_suffix(".json").symlink_to(tmp_path / "outside.json")
    assert imported(tmp_path / "set").sprites.names == ("s.png",)


def written(folder: Path, name: str, content: object) -> None:
    """Write a JSON file; a str is written unchanged."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


TWO = [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)]


def test_truth_values_written_as_text(tmp_path: Path) -> None:
    upright, turned = sprite(0, 6, 8), sprite(1, 8, 6)
    sheet = np.zeros((8, 16, 4), np.uint8)
    sheet[:, :6], sheet[:6, 8:] = upright, turned
    frames: list[dict[str, Any]] = [
        {**frame("a", 0, 0, 6, 8), "rotated": "false", "trimmed": "False"},
        {**frame("b", 8, 0, 6, 8), "rotated": "true", "trimmed": "false"},
    ]
    for each in frames:
        each |= {"sourceSize": {"w": 16, "h": 16}, "spriteSourceSize": {"x": 8, "y": 8, "w": 6, "h": 8}}
    write_sheet(tmp_path / "set" / "s.png", sheet, frames)
    event = imported(tmp_path / "set", size=8)
    assert event.sprites.names == ("s.png#a", "s.png#b") and not event.quarantine
    assert (event.sprites.rgba[0, :, 1:7] == upright).all()
    assert (event.sprites.rgba[1, :, 1:7] == np.rot90(turned)).all()


def test_frames_with_repeated_keys_are_all_read(tmp_path: Path) -> None:
    frames = ",".join(f'"s.aseprite": {{"frame": {{"x": {x}, "y": 0, "w": 8, "h": 8}}}}' for x in (0, 8, 16))
    write(tmp_path / "set" / "s.png", strip(0, 1, 2))
    written(tmp_path / "set", "s.json", f'{{"frames": {{{frames}}}}}')
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png#s", "s.png#s (2)", "s.png#s (3)")
    assert (event.sprites.rgba == [sprite(number) for number in range(3)]).all()


@pytest.mark.parametrize("number", [8.0, "8", "8.0"])
def test_whole_numbers_as_floats_and_texts(tmp_path: Path, number: object) -> None:
    box = {"x": number, "y": 0.0, "w": number, "h": number}
    write_sheet(tmp_path / "set" / "s.png", strip(0, 1), [TWO[0], {"filename": "b", "frame": box}])
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("s.png#a", "s.png#b") and not event.quarantine


OTHERS = [
    {"frames": [0, 1, 2], "fps": 8},
    {"frames": ["npc_0", "npc_1"], "loop": True},
    {"frames": {"width": 8, "height": 8, "count": 2}, "images": ["s.png"]},
    {"frames": {}},
    "// notes\n{}",
    "",
]


@pytest.mark.parametrize("content", OTHERS)
def test_json_of_another_program_keeps_the_image(tmp_path: Path, content: object) -> None:
    write(tmp_path / "set" / "s.png", strip(0, 1))
    written(tmp_path / "set", "s.json", content)
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("s.png",) and not event.quarantine
    assert notes(event, "description")["s.png"].startswith("s.json ")


NAMED = {"frames": TWO, "meta": {"image": "Hero-Sheet.png"}}


@pytest.mark.parametrize(
    ("picture", "described_by", "content"),
    [
        ("hero-sheet.png", "hero.json", {**NAMED, "meta": {"image": "art/hero-sheet.png"}}),
        ("hero-sheet.png", "Any Name.JSON", NAMED),
        ("hero.png", "hero.png.json", {"frames": TWO}),
        ("Hero.PNG", "hero.json", {"frames": TWO}),
        ("pack.png", "pack.json", {"textures": [{"image": "pack.png", "frames": TWO}]}),
        ("gone.png", "gone.json", {"textures": [{"image": "pack.png", "frames": TWO}]}),
        ("s.png", "data.json", {"images": ["x/s.png"], "frames": [[0, 0, 8, 8], [8, 0, 8, 8, 0, 4, 4]]}),
    ],
)
def test_description_file_names(tmp_path: Path, picture: str, described_by: str, content: object) -> None:
    write(tmp_path / "set" / picture, strip(0, 1))
    written(tmp_path / "set", described_by, content)
    event = imported(tmp_path / "set")
    assert len(event.sprites) == 2 and not event.quarantine and not notes(event, "description")


@pytest.mark.parametrize(("picture", "described_by"), [("hero-sheet.png", "hero"), ("pack0.png", "pack")])
def test_a_dropped_image_is_read_with_its_description(tmp_path: Path, picture: str, described_by: str) -> None:
    sheet = write(tmp_path / "set" / picture, strip(0, 1))
    written(tmp_path / "set", f"{described_by}.json", {"frames": TWO, "meta": {"image": picture}})
    assert imported(sheet).sprites.names == (f"{picture}#a", f"{picture}#b")


def test_several_pictures_in_one_description(tmp_path: Path) -> None:
    for number in (0, 1):
        write(tmp_path / "phaser" / f"pack-{number}.png", strip(2 * number, 2 * number + 1))
        write(tmp_path / "easel" / f"{number}.png", strip(2 * number, 2 * number + 1))
    textures = [{"image": f"pack-{number}.png", "frames": TWO} for number in (0, 1)]
    written(tmp_path / "phaser", "pack.json", {"textures": textures})
    frames = [[0, 0, 8, 8, 0], [0, 0, 8, 8, 1], [8, 0, 8, 8, 1]]
    written(tmp_path / "easel", "data.json", {"images": ["0.png", "1.png"], "frames": frames})
    phaser, easel = imported(tmp_path / "phaser"), imported(tmp_path / "easel")
    assert phaser.sprites.names == ("pack-0.png#a", "pack-0.png#b", "pack-1.png#a", "pack-1.png#b")
    assert easel.sprites.names == ("0.png#frame 0", "1.png#frame 0", "1.png#frame 1")


@pytest.mark.parametrize("size", [{"w": 16, "h": 8}, {"w": 24, "h": 8}])
def test_the_same_sheet_in_two_formats(tmp_path: Path, size: dict[str, int]) -> None:
    write(tmp_path / "set" / "s.png", strip(0, 1))
    write(tmp_path / "set" / "s.webp", strip(2, 3))  # recognised by content
    written(tmp_path / "set", "s.json", {"frames": TWO, "meta": {"image": "s.png", "size": size}})
    both = size["w"] == 16
    names = ("s.png#a", "s.png#b", *(("s.webp#a", "s.webp#b") if both else ("s.webp",)))
    assert imported(tmp_path / "set", size=16).sprites.names == names


def test_an_animation_beside_json_of_the_same_name(tmp_path: Path) -> None:
    home = tmp_path / "set"
    home.mkdir()
    frames = [Image.fromarray(sprite(number, 16)) for number in range(3)]
    frames[0].save(home / "hero.gif", save_all=True, append_images=frames[1:], duration=100, disposal=2)
    written(home, "hero.json", {"frames": TWO})
    names = tuple(f"hero.gif#frame {number}" for number in (1, 2, 3))
    assert imported(home).sprites.names == names
    write(home / "hero.png", strip(4, 5))
    assert imported(home).sprites.names == (*names, "hero.png#a", "hero.png#b")
    write(home / "hero.gif", sprite(6, 16))  # a still preview
    assert imported(home).sprites.names == ("hero.gif", "hero.png#a", "hero.png#b")


SLICES = [
    {"name": name, "keys": [{"frame": 0, "bounds": {"x": x, "y": 0, "w": 8, "h": 8}}]}
    for name, x in (("i", 0), ("j", 8))
]


def test_slices_of_a_single_frame_are_cells(tmp_path: Path) -> None:
    whole = frame("icons.aseprite", 0, 0, 16, 8)
    write(tmp_path / "set" / "icons.png", strip(0, 1))
    written(tmp_path / "set", "icons.json", {"frames": [whole], "meta": {"image": "icons.png", "slices": SLICES}})
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("icons.png#i", "icons.png#j") and event.sprites.class_names == ("icons",)
    written(tmp_path / "set", "icons.json", {"frames": TWO, "meta": {"image": "icons.png", "slices": SLICES[:1]}})
    assert imported(tmp_path / "set").sprites.names == ("icons.png#a", "icons.png#b")


@pytest.mark.parametrize("slices", [[], SLICES[:1], [SLICES[0], SLICES[0]], [{"keys": []}, 7]])
def test_a_single_frame_is_a_plain_image(tmp_path: Path, slices: object) -> None:
    write(tmp_path / "set" / "hero.png", strip(0, 1))
    meta = {"image": "hero.png", "slices": slices}
    written(tmp_path / "set", "hero.json", {"frames": [frame("hero", 0, 0, 16, 8)], "meta": meta})
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("hero.png",) and event.sprites.class_names == ("set",) and not event.notes
    assert len(imported(tmp_path / "set", sheets="grid", tile=8).sprites) == 2


def test_each_json_of_a_folder_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [found(write(tmp_path / f"{number}.png", sprite(number))) for number in range(20)]
    written(tmp_path, "notes.json", {"about": "all"})
    shared = found(tmp_path / "0.png").siblings
    read = []
    real = base.read_description

    def counted(file: SourceFile, name: str) -> bytes:
        read.append(name)
        return real(file, name)

    monkeypatch.setattr(json_frames, "read_description", counted)
    for file in files:
        assert json_frames.JsonFrames().read(replace(file, siblings=shared)) is None
    assert read == ["notes.json"]
