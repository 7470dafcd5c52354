"""Sheets: a picture with a JSON file beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import posix
from tests.data.making import Pixels, frame, imported, reasons, sprite, write, write_sheet


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


def test_frames_that_lie_are_left_out_with_reasons(tmp_path: Path) -> None:
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


def test_frame_names_stay_inside_and_apart(tmp_path: Path) -> None:
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
    assert event.sprites.names == ("good.png",)
    assert "JSON" in reasons(event)["s.png"] or "s.json" in reasons(event)["s.png"]


@pytest.mark.parametrize("content", [{"textures": []}, [1, 2], 7, None, {"frames": 3}])
def test_json_about_something_else(tmp_path: Path, content: object) -> None:
    write(tmp_path / "set" / "s.png", sprite(0))
    (tmp_path / "set" / "s.json").write_text(json.dumps(content))
    assert imported(tmp_path / "set").sprites.names == ("s.png",)


@pytest.mark.parametrize("image", ["hero.png", "C:\\art\\hero.png"])
def test_a_picture_beside_the_sheet_is_not_cut_as_the_sheet_is(tmp_path: Path, image: str) -> None:
    write_sheet(tmp_path / "set" / "hero.png", strip(0, 1), [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)])
    content = json.loads((tmp_path / "set" / "hero.json").read_text())
    (tmp_path / "set" / "hero.json").write_text(json.dumps({**content, "meta": {"image": image}}))
    write(tmp_path / "set" / "hero.gif", sprite(2, 16))  # a preview; what it is shows in its bytes
    assert imported(tmp_path / "set").sprites.names == ("hero.gif", "hero.png#a", "hero.png#b")


def test_a_renamed_sheet_is_still_described(tmp_path: Path) -> None:
    sheet = write_sheet(tmp_path / "set" / "old.png", strip(0, 1), [frame("a", 0, 0, 8, 8)])
    sheet.rename(sheet.with_name("new.png"))
    sheet.with_suffix(".json").rename(sheet.with_name("new.json"))
    assert imported(tmp_path / "set").sprites.names == ("new.png#a",)


def test_absurd_counts_and_overlaps_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "set" / "good.png", sprite(0))
    write_sheet(tmp_path / "set" / "many.png", strip(1), [frame("f", 0, 0, 1, 1)] * 30_001)
    write_sheet(tmp_path / "set" / "over.png", strip(2), [frame("f", 0, 0, 8, 8)] * 5)
    event = imported(tmp_path / "set")
    assert event.sprites.names == ("good.png",)
    assert "30,001 frames" in reasons(event, "refused")["many.png"]
    assert "times over" in reasons(event, "refused")["over.png"]


@posix
def test_a_linked_json_is_not_followed(tmp_path: Path) -> None:
    sheet = write_sheet(tmp_path / "set" / "s.png", sprite(0), [frame("a", 0, 0, 8, 8)])
    sheet.with_suffix(".json").rename(tmp_path / "outside.json")
    sheet.with_suffix(".json").symlink_to(tmp_path / "outside.json")
    assert imported(tmp_path / "set").sprites.names == ("s.png",)
