"""Import options are applied to sprites, and can be reverted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice, Progress
from studio.data.colour.colour_counts import colours_per_sprite
from studio.data.colour.palette import to_oklab
from studio.data.colour.pixel_art import measure_pixel_art
from studio.data.doctor.checks import run_checks
from studio.data.doctor.findings import SpritesChecked, list_findings
from studio.data.doctor.fixes import as_patterns, exclusion_filter, threshold_alpha
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from tests.data.making import Pixels, events_of, imported, sprite, write, write_many


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write noisy sprites, four to 'a' and one to 'b', and a soft sprite and a mirror image to 'a'."""
    home = tmp_path / "set"
    write_many(home / "a", 4)
    soft = sprite(7)
    soft[3, 3, 3], soft[4, 4, 3] = 200, 90
    write(home / "a" / "soft.png", soft)
    write(home / "a" / "turned.png", np.ascontiguousarray(sprite(2)[:, ::-1]))
    write(home / "b" / "lonely.png", sprite(8))
    return home


def left_out(found: SpritesImported) -> dict[str, str]:
    return {item.name: item.group for item in found.quarantine}


def named(found: SpritesImported, name: str) -> Pixels:
    rgba: Pixels = found.sprites.rgba[found.sprites.names.index(name)]
    return rgba


def seen(found: SpritesImported) -> Pixels:
    """The colours of all visible pixels: uint8 [n, 3]."""
    return found.sprites.rgba[found.sprites.rgba[..., 3] > 0][:, :3]


def test_alpha_threshold(folder: Path) -> None:
    found = imported(folder, alpha_threshold=128)
    pixels = named(found, "a/soft.png")
    assert pixels[3, 3, 3] == 255 and pixels[4, 4].tolist() == [0, 0, 0, 0]
    assert measure_pixel_art(found.sprites.rgba, found.sprites.rgba).half_transparent == 0
    assert [(item.name, item.group, item.reason) for item in found.notes if item.name == "a/soft.png"] == [
        ("a/soft.png", "mended", "2 pixels changed")
    ]
    rgba = np.random.default_rng(0).integers(0, 256, (3, 5, 5, 4), dtype=np.uint8)
    hard, solid = threshold_alpha(rgba, 100), rgba[..., 3] >= 100
    assert (hard[solid, 3] == 255).all() and (hard[~solid] == 0).all()
    assert (hard[solid][:, :3] == rgba[solid][:, :3]).all()


def test_sprites_made_empty_or_equal_are_excluded(tmp_path: Path) -> None:
    faint, known = sprite(1), sprite(2)
    faint[..., 3] = faint[..., 3] // 5
    nearly = known.copy()
    nearly[0, 0] = (9, 9, 9, 20)
    for name, rgba in (("faint", faint), ("known", known), ("nearly", nearly)):
        write(tmp_path / f"{name}.png", rgba)
    found = imported(tmp_path, alpha_threshold=128)
    assert found.sprites.names == ("known.png",)
    assert left_out(found) == {"faint.png": "empty", "nearly.png": "duplicate"}


def test_colour_limits_per_sprite_and_overall(folder: Path) -> None:
    before = colours_per_sprite(imported(folder).sprites.rgba)
    assert before.max() > 4
    assert colours_per_sprite(imported(folder, colours_each=4).sprites.rgba).max() <= 4
    assert len(np.unique(seen(imported(folder, colours_all=5)), axis=0)) <= 5


def test_set_with_a_small_palette_keeps_its_colours(tmp_path: Path) -> None:
    """Colours of a small palette are not averaged with a stray colour."""
    palette = np.array([[0, 0, 0], [255, 255, 255], [200, 30, 30], [210, 40, 30]], np.uint8)
    rng = np.random.default_rng(0)
    for number in range(12):
        rgba = np.full((8, 8, 4), 255, np.uint8)
        rgba[..., :3] = palette[rng.integers(0, 4, (8, 8))]
        if number == 3:
            rgba[2, 2, :3] = (0, 0, 255)
        write(tmp_path / f"{number}.png", rgba)
    found = seen(imported(tmp_path, colours_all=4))
    assert np.array_equal(np.unique(found, axis=0), np.unique(palette, axis=0))


def test_merged_colours_are_the_most_used(tmp_path: Path) -> None:
    rgba = np.zeros((8, 8, 4), np.uint8)
    rgba[2:6, 2:6] = (100, 150, 200, 255)
    rgba[3, 3], rgba[4, 4], rgba[5, 5] = (101, 150, 200, 255), (250, 20, 20, 255), (101, 150, 200, 90)
    write(tmp_path / "one.png", rgba)
    pixels = imported(tmp_path, merge_colours=0.02).sprites.rgba[0]
    assert pixels[3, 3].tolist() == [100, 150, 200, 255] and pixels[4, 4].tolist() == [250, 20, 20, 255]
    assert pixels[5, 5].tolist() == [100, 150, 200, 90]


def test_semi_transparent_colours_count(tmp_path: Path) -> None:
    for number in range(3):
        ghost = sprite(number)
        ghost[..., 3] //= 2
        write(tmp_path / f"{number}.png", ghost)
    assert colours_per_sprite(imported(tmp_path).sprites.rgba).max() > 4
    found = imported(tmp_path, colours_all=4)
    assert len(np.unique(seen(found), axis=0)) == 4 and set(found.sprites.rgba[..., 3].flat) == {0, 127}


def test_a_palette_file(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.hex"
    path.write_text("102030\nf0e0d0\n")
    before, after = seen(imported(folder)), seen(imported(folder, palette=str(path)))
    colours = np.array([[0x10, 0x20, 0x30], [0xF0, 0xE0, 0xD0]], np.uint8)
    nearest = np.linalg.norm(to_oklab(before)[:, None] - to_oklab(colours), axis=2).argmin(1)
    assert np.array_equal(after, colours[nearest]) and set(nearest) == {0, 1}
    path.write_text("102030\nnothing\n")
    with pytest.raises(BadInputError, match="line 2"):
        imported(folder, palette=str(path))


def test_missing_palette_is_reported_before_reading(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = import_sprites([folder], ImportOptions(palette="~nobody there/x.gpl"))
    assert next(events) == Progress(0, 0, "files found")
    with pytest.raises(BadInputError, match=r"'.*~nobody there/x\.gpl' does not exist"):
        next(events)
    (tmp_path / "two.hex").write_text("102030\nf0e0d0\n")
    monkeypatch.chdir(folder)
    found = imported(folder, palette="../two.hex")
    assert found.sprites.origin["options"] == {"palette": str(tmp_path / "two.hex")}
    monkeypatch.setenv("HOME" if os.name == "posix" else "USERPROFILE", str(tmp_path))
    assert imported(folder, palette="~/two.hex").sprites.origin == found.sprites.origin


def test_similar_and_small_classes_and_names(folder: Path) -> None:
    assert left_out(imported(folder, similar="leave out")) == {"a/turned.png": "similar"}
    found = imported(folder, class_minimum=2)
    assert left_out(found) == {"b/lonely.png": "small class"} and found.sprites.class_names == ("a",)
    found = imported(folder, leave_out="b/*; a/0.png")
    assert left_out(found) == {"a/0.png": "chosen", "b/lonely.png": "chosen"}
    assert found.sprites.class_names == ("a",) and set(found.sprites.labels) == {0}


def test_classes_that_differ_in_case_or_blanks_are_reported_and_merged(tmp_path: Path) -> None:
    for seed, name in enumerate(("Sword/a.png", "sword/b.png", "sword/c.png", "x/potion /d.png", "X/potion/e.png")):
        write(tmp_path / "set" / name, sprite(seed))
    shutil.copy(tmp_path / "set" / "sword" / "b.png", tmp_path / "set" / "x" / "twin.png")
    *events, found = events_of(tmp_path / "set")
    assert isinstance(found, SpritesImported) and len(found.sprites.class_names) == 4
    assert [event.title for event in events if isinstance(event, Notice)] == [
        "Classes 'Sword' and 'sword' differ only in case or spaces.",
        "Classes 'X/potion' and 'x/potion ' differ only in case or spaces.",
    ]
    examined = list(run_checks(found.sprites, ImportOptions()))[-1]
    assert isinstance(examined, SpritesChecked)
    (finding,) = [each for each in list_findings(found, ImportOptions(), [examined]) if each.group == "like-named"]
    assert {item.name for item in finding.items} == {"Sword/a.png", "x/potion /d.png"}
    assert finding.fixes[0].changes == {"merge_classes": True}
    merged = imported(tmp_path / "set", merge_classes=True)
    assert merged.sprites.class_names == ("X/potion", "sword") and merged.sprites.class_counts().tolist() == [2, 3]
    assert imported(tmp_path / "set", merge_classes=True, class_minimum=3).sprites.class_names == ("sword",)


def test_an_unmatched_name_in_leave_out_is_reported(folder: Path) -> None:
    said = [event for event in events_of(folder, leave_out="b/*; a/0.png; c/*") if isinstance(event, Notice)]
    assert [notice.title for notice in said] == ["No sprite matches 'c/*' to exclude."]


def test_excluded_frames_of_a_chain_resemble_a_kept_frame(tmp_path: Path) -> None:
    """Each frame differs from the frame before by six pixels: soon the difference from the first is large."""
    rgba = sprite(3, 32)
    for number in range(12):
        place = 32 * 2 * number + 32 * 3
        rgba.reshape(-1, 4)[place + 4 : place + 10, :3] ^= 128
        write(tmp_path / f"{number:02}.png", rgba)
    found = imported(tmp_path, similar="leave out")
    assert 2 <= len(found.sprites) < 12 and len(found.sprites) + len(found.quarantine) == 12
    for item in found.quarantine:
        name = item.reason.removeprefix("like ").partition(" ")[0]
        assert name in found.sprites.names and item.group == "similar"


def test_duplicate_replaces_an_excluded_sprite(tmp_path: Path) -> None:
    home, cache = tmp_path / "set", tmp_path / "cache"
    write_many(home / "backup", 3)
    write_many(home / "items", 3)
    write(home / "more" / "0.png", sprite(0))
    write(home / "items" / "x.png", sprite(9))
    for _ in range(2):  # from files, and from the cache
        found = imported(home, cache=cache, leave_out="backup/*")
        assert sorted(found.sprites.names) == ["items/0.png", "items/1.png", "items/2.png", "items/x.png"]
        assert found.sprites.class_names == ("items",) and np.array_equal(named(found, "items/2.png"), sprite(2))
        chosen = {f"backup/{number}.png": "chosen" for number in range(3)}
        assert left_out(found) == {**chosen, "more/0.png": "duplicate"}
        assert found.quarantine[-1].reason == ("duplicate of items/0.png of class 'items' instead of 'more'")
    assert left_out(imported(home, leave_out="backup/*;items/*")).keys() >= {"items/0.png"}
    assert "more/0.png" in imported(home, leave_out="backup/*;items/0.png").sprites.names


def test_duplicate_keeps_its_class_numbers_and_notes(tmp_path: Path) -> None:
    soft = sprite(1)
    soft[3, 3, 3] = 200
    for folder in ("right", "a wrong"):
        write(tmp_path / folder / "x.png", soft)
    write(tmp_path / "right" / "y.png", sprite(2))
    (tmp_path / "labels.csv").write_text("file,price\na wrong/x.png,1\nright/x.png,7\n")
    assert "other numbers" in imported(tmp_path).quarantine[0].reason
    found = imported(tmp_path, leave_out="a wrong/x.png")
    assert found.sprites.names == ("right/x.png", "right/y.png") and found.sprites.class_names == ("right",)
    assert found.sprites.targets[0].tolist() == [7] and np.isnan(found.sprites.targets[1, 0])
    assert [(item.name, item.group) for item in found.notes if item.group != "labels"] == [
        ("right/x.png", "soft alpha")
    ]
    assert left_out(found) == {"a wrong/x.png": "chosen"}


def test_duplicate_in_a_large_class_replaces_one_in_a_small_class(tmp_path: Path) -> None:
    write(tmp_path / "a few" / "x.png", sprite(0))
    write(tmp_path / "a few" / "y.png", sprite(1))
    write(tmp_path / "two" / "y.png", sprite(1))
    write(tmp_path / "one" / "x.png", sprite(0))
    for number in (0, 2, 3):
        write(tmp_path / "some" / f"{number}.png", sprite(number))
    found = imported(tmp_path, class_minimum=2)
    assert found.sprites.names == ("a few/x.png", "a few/y.png", "some/2.png", "some/3.png")
    found = imported(tmp_path, class_minimum=2, leave_out="a few/y.png")
    assert sorted(found.sprites.names) == ["some/0.png", "some/2.png", "some/3.png"]
    assert found.sprites.class_names == ("some",) and np.array_equal(named(found, "some/0.png"), sprite(0))
    gone = {"a few/x.png": "small class", "a few/y.png": "chosen", "one/x.png": "duplicate", "two/y.png": "small class"}
    assert left_out(found) == gone
    assert "class 'a few' has only 1 sprite" in {item.reason for item in found.quarantine}


def test_excluding_all_sprites_is_an_error(folder: Path) -> None:
    with pytest.raises(BadInputError, match="exclude all 7 sprites") as caught:
        imported(folder, leave_out="*")
    assert "7 x excluded by name" in caught.value.hint


def test_options_can_be_reverted_from_the_cache(folder: Path, tmp_path: Path) -> None:
    """The cache holds sprites as read: fixes are applied to them, and can be reverted."""
    cache = tmp_path / "cache"
    plain = imported(folder, cache=cache)
    mended = imported(folder, cache=cache, alpha_threshold=128, leave_out="a/1.png")
    back = imported(folder, cache=cache)
    assert mended.from_cache and back.from_cache and len(list(cache.iterdir())) == 1
    assert mended.sprites.fingerprint != plain.sprites.fingerprint == back.sprites.fingerprint
    assert [item.group for item in back.notes] == [item.group for item in plain.notes]
    origin = {"paths": [str(folder)], "options": {"alpha_threshold": 128, "leave_out": "a/1.png"}}
    assert mended.sprites.origin == mended.sprites.take([1]).origin == origin
    assert mended.sprites.with_origin({}).fingerprint == mended.sprites.fingerprint


@pytest.mark.parametrize("name", ["item/ruby.png", "a[1].png", "what?.png", "50*.png", "one;two.png"])
def test_as_patterns_match_only_the_names(name: str) -> None:
    matches = exclusion_filter(f"other.png;{as_patterns([name])}")
    assert matches(name) and matches("other.png")
    assert not matches(name.replace("1", "2") + "x") and not matches("500.png") and not matches("what!.png")


def test_name_typed_on_macos_is_excluded() -> None:
    assert exclusion_filter("e\u0301pe\u0301es/*")("\u00e9p\u00e9es/1.png")


def test_upscaling_is_undone(tmp_path: Path) -> None:
    small = [sprite(seed, 8) for seed in range(3)]
    for number, rgba in enumerate(small):
        write(tmp_path / f"{number}.png", rgba.repeat(4, 0).repeat(4, 1))
    plain = np.zeros((8, 8, 4), np.uint8)
    plain[2:6, 2:6] = (9, 99, 9, 255)  # shows no upscaling factor
    write(tmp_path / "plain.png", plain.repeat(4, 0).repeat(4, 1))
    write(tmp_path / "other.png", sprite(9, 8))
    told = imported(tmp_path, shrink=0)
    assert told.sizes == {(8, 8): 4, (32, 32): 1}
    given = imported(tmp_path, shrink=4)
    assert given.sizes == {(8, 8): 5} and given.sprites.size == 8
    for number, rgba in enumerate(small):
        assert np.array_equal(named(given, f"{number}.png"), rgba)
    assert np.array_equal(named(given, "other.png"), sprite(9, 8))
    assert not [item for item in given.notes if "shown at" in item.reason]
