"""From dropped paths to sprites: classes, canvas, duplicates, and what is said of everything else."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from studio.core.errors import BadInputError, UsageError
from studio.core.events import Notice, Progress
from studio.data.import_result import NOTE_GROUPS, QUARANTINE_GROUPS
from studio.data.importing.importing import ImportOptions, SpritesImported
from studio.data.reading import reader_pool
from tests.conftest import posix
from tests.data.making import events_of, everything, imported, notes, png_of, reasons, sprite, write, write_many

SET = ("set/top.png", "set/item/a.png", "set/item/potion/b.png", "set/item/potion/old/c.png", "set/mon/d.png")


@pytest.mark.parametrize(
    ("files", "dropped", "options", "classes", "title"),
    [
        (["gems/0.png", "gems/1.png"], ["gems"], {}, {"0.png": "gems", "1.png": "gems"}, "gems"),
        (["a/x.png"], ["a/x.png"], {}, {"x.png": "a"}, "x.png"),
        (SET, ["set"], {}, {"item/a.png": "item", "item/potion/b.png": "item/potion",
         "item/potion/old/c.png": "item/potion", "mon/d.png": "mon", "top.png": "set"}, "set"),
        (SET, ["set"], {"class_levels": 1}, {"item/a.png": "item", "item/potion/b.png": "item",
         "item/potion/old/c.png": "item", "mon/d.png": "mon", "top.png": "set"}, "set"),
        (SET[:4], ["set"], {"class_levels": 3}, {"item/a.png": "item", "item/potion/b.png": "item/potion",
         "item/potion/old/c.png": "item/potion/old", "top.png": "set"}, "set"),
        (["a/x.png", "b/sub/y.png", "other/z.png"], ["b", "other/z.png", "a"], {},
         {"a/x.png": "a", "b/sub/y.png": "b/sub", "z.png": "other"}, "a + b + z.png"),
        (["old/gems/x.png", "new/gems/x.png"], ["old/gems", "new/gems"], {},
         {"new/gems/x.png": "new/gems", "old/gems/x.png": "old/gems"}, "gems + gems"),
        (["v1/set/sword/x.png", "v1/set/y.png", "v2/set/potion/old/z.png", "v2/set/sword/x.png"],
         ["v1/set", "v2/set"], {}, {"v1/set/sword/x.png": "sword", "v1/set/y.png": "v1/set",
         "v2/set/potion/old/z.png": "potion/old", "v2/set/sword/x.png": "sword"}, "set + set"),
        (["mon/orc/y.png", "v1/set/sword/x.png", "v2/set/sword/x.png"], ["mon", "v1/set", "v2/set"], {},
         {"mon/orc/y.png": "mon/orc", "v1/set/sword/x.png": "set/sword", "v2/set/sword/x.png": "set/sword"},
         "mon + set + set"),
        (["a/v/set/x.png", "b/v/set/x.png"], ["a/v/set", "b/v/set"], {},
         {"a/v/set/x.png": "a/v/set", "b/v/set/x.png": "b/v/set"}, "set + set"),
        (["set/e\u0301p/x.png", "set/\u00e9p/y.png"], ["set"], {},
         {"\u00e9p/x.png": "\u00e9p", "\u00e9p/y.png": "\u00e9p"}, "set"),
        (["set/sub/x.png"], ["set/sub/x.png", "set", "set/sub", "set"], {}, {"sub/x.png": "sub"}, "set"),
        (["set/a.png"], ["."], {}, {"a.png": "set"}, "set"),
        pytest.param(["set/a.png"], ["linked"], {}, {"a.png": "linked"}, "linked", marks=posix),
    ],
)  # fmt: skip
def test_folders_are_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], dropped: list[str], options: dict[str, Any],
    classes: dict[str, str], title: str,
) -> None:  # fmt: skip
    pixels = {name: sprite(number) for number, name in enumerate(files)}
    for name, rgba in pixels.items():
        write(tmp_path / name, rgba)
    if "linked" in dropped:
        (tmp_path / "linked").symlink_to(tmp_path / "set")
    monkeypatch.chdir(tmp_path / "set" if dropped == ["."] else tmp_path)
    event = imported(*map(Path, dropped), **options)
    sprites = event.sprites
    assert sprites.names == tuple(classes) and sprites.title == title and not event.quarantine
    assert [sprites.class_names[label] for label in sprites.labels] == list(classes.values())
    assert sprites.class_names == tuple(sorted(set(classes.values())))
    assert {rgba.tobytes() for rgba in sprites.rgba} == {rgba.tobytes() for rgba in pixels.values()}
    assert event.sizes == {(8, 8): len(files)} and event.proposed_size == 8 and not event.from_cache


def test_the_most_common_size_is_proposed(tmp_path: Path) -> None:
    folder = write_many(tmp_path / "set", 10, 16)
    write(folder / "small.png", sprite(20, 9, 13))
    tall = np.zeros((48, 16, 4), np.uint8)
    tall[30:42, 2:14] = sprite(21, 12)
    write(folder / "tall.png", tall)
    event = imported(folder)
    assert event.proposed_size == 16 and not event.quarantine
    small, cropped = event.sprites.rgba[-2:]
    assert (small[1:14, 3:12] == sprite(20, 9, 13)).all() and small[..., 3].sum() == sprite(20, 9, 13)[..., 3].sum()
    assert (cropped[3:13, 3:13] == sprite(21, 12)[1:-1, 1:-1]).all()
    event = imported(folder, size=16, other_sizes="leave out")
    assert len(event.sprites) == 10 and reasons(event, "wrong size") == {
        "small.png": "9 x 13 pixels instead of 16 x 16",
        "tall.png": "16 x 48 pixels instead of 16 x 16",
    }


def test_a_given_canvas_size(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a.png", sprite(0, 16))
    assert imported(tmp_path / "set", size=40).sprites.size == 40
    with pytest.raises(BadInputError, match="fits the canvas of 8 × 8"):
        imported(tmp_path / "set", size=8)
    for wrong in ({"size": 257}, {"size": -1}, {"class_levels": 0}, {"other_sizes": "stretch"}):
        with pytest.raises(UsageError):
            ImportOptions(**wrong)


def test_duplicates_are_kept_once_and_the_first_wins(tmp_path: Path) -> None:
    for number in range(500):
        write(tmp_path / "set" / "b" / f"{number:03}.png", sprite(0))
    hidden = sprite(0)
    hidden[0, 0, :3] = 77  # colour under alpha 0 makes no other sprite
    write(tmp_path / "set" / "a" / "first.png", hidden)
    write(tmp_path / "set" / "a" / "padded.png", np.pad(sprite(0), ((2, 2), (2, 2), (0, 0))))
    event = imported(tmp_path / "set", size=16)
    assert event.sprites.names == ("a/first.png",) and event.sprites.class_names == ("a",)
    assert len(reasons(event, "duplicate")) == 501
    assert reasons(event)["a/padded.png"] == "duplicate of a/first.png"
    assert reasons(event)["b/007.png"] == "duplicate of a/first.png of class 'a' instead of 'b'"


def test_hidden_colour_is_zeroed_and_soft_alpha_noted(tmp_path: Path) -> None:
    rgba = sprite(0)
    rgba[0] = (9, 9, 9, 0)
    rgba[3, 3:6, 3] = (1, 128, 254)
    event = imported(write(tmp_path / "a.png", rgba))
    assert not event.sprites.rgba[0, 0].any() and event.sprites.rgba[0, 3, 3:6, 3].tolist() == [1, 128, 254]
    assert notes(event, "soft alpha") == {"a.png": "3 semi-transparent pixels"}


def test_unsuitable_images_are_grouped_by_reason(tmp_path: Path) -> None:
    folder = write_many(tmp_path / "set", 10, 32)
    big = np.zeros((2048, 2048, 4), np.uint8)
    big[::3, ::5] = 255
    odd = {"strip": sprite(20, 128, 32), "boss": sprite(21, 64), "odd": sprite(22, 200, 210), "sheet": big}
    odd |= {f"line {height}": np.full((height, 1, 4), 255, np.uint8) for height in (1, 4000, 5000)}
    for name, rgba in {**odd, "clear": np.zeros((8, 8, 4), np.uint8)}.items():
        write(folder / f"{name}.png", rgba)
    event = imported(folder)
    assert reasons(event, "empty").keys() == {"clear.png"} and notes(event, "odd shape").keys() == {"line 1.png"}
    assert reasons(event, "refused").keys() == {"line 5000.png"}
    wrong_size = {"strip.png", "boss.png", "odd.png", "line 4000.png"}  # nothing in them parts sprites
    assert reasons(event, "wrong size").keys() == wrong_size
    assert reasons(event, "looks like a sheet").keys() == {"sheet.png"}
    assert "2,048 x 2,048" in reasons(event)["sheet.png"] and "JSON" in reasons(event)["sheet.png"]
    assert (1, 1) in event.sizes and event.proposed_size == 32


def test_upscaled_sprites_are_reported_and_kept(tmp_path: Path) -> None:
    large = sprite(0, 16).repeat(2, 0).repeat(2, 1)
    write(tmp_path / "set" / "large.png", large)
    drawing = Image.fromarray(np.ascontiguousarray(sprite(1, 16)[1:-1, 1:-1]))
    smooth = drawing.resize((60, 60), Image.Resampling.BICUBIC)
    write(tmp_path / "set" / "smooth.png", np.array(smooth))
    event = imported(tmp_path / "set")
    assert notes(event, "upscaled") == {"large.png": "looks like a 16 x 16 sprite shown at 2x"}
    assert notes(event, "smooth").keys() == {"smooth.png"}
    assert (event.sprites.rgba[0, 16:48, 16:48] == large).all()


def test_bad_files_are_listed_and_the_others_imported(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write(folder / "good.png", sprite(0))
    jpeg = io.BytesIO()
    Image.fromarray(sprite(1)).convert("RGB").save(jpeg, "JPEG")
    data = {"jpeg.png": jpeg.getvalue(), "zero.png": b"", "text.png": b"to do: draw this", "art.aseprite": b"whatever"}
    data |= {"cut.png": png_of(sprite(2))[:-30], "noname": png_of(sprite(3)), "notes.txt": b"BMP or PNG?"}
    passed_over = ("README.md", "LICENSE", "settings.json", "desktop.ini", "Thumbs.db", ".DS_Store", ".hidden.png")
    for name, content in {**data, **dict.fromkeys(passed_over, b"{}")}.items():
        (folder / name).write_bytes(content)
    (folder / ".git").mkdir()
    (folder / ".git" / "x.png").write_bytes(b"")
    event = imported(folder)
    assert event.sprites.names == ("good.png", "jpeg.png", "noname")
    assert reasons(event) == {
        "art.aseprite": "not an Aseprite file",
        "cut.png": "cut off: the file ends too early",
        "text.png": "not a picture",
        "zero.png": "empty: the file has no bytes",
    }
    assert notes(event, "misnamed") == {"jpeg.png": "named .png but a JPEG picture inside"}
    assert all(item.path is not None and item.path.exists() for item in (*event.quarantine, *event.notes))
    assert {item.group for item in event.quarantine} <= set(QUARANTINE_GROUPS)
    assert {item.group for item in event.notes} <= set(NOTE_GROUPS)


def test_an_import_without_usable_files_raises(tmp_path: Path) -> None:
    (tmp_path / "void").mkdir()
    (tmp_path / "void" / "notes.txt").write_text("hello")
    with pytest.raises(BadInputError, match="No images found in 'void'") as nothing:
        imported(tmp_path / "void")
    assert "PNG, GIF, WebP and other images" in nothing.value.hint
    for number in range(3):
        (tmp_path / "void" / f"{number}.png").write_bytes(b"")
    with pytest.raises(BadInputError, match="None of the 3 images in 'void' can be used") as useless:
        imported(tmp_path / "void")
    assert "3 x empty: the file has no bytes" in useless.value.hint
    with pytest.raises(BadInputError, match=r"'0\.png' can't be used: empty"):
        imported(tmp_path / "void" / "0.png")
    (tmp_path / "warm.hex").write_text("ff0000\n00ff00\n")
    with pytest.raises(BadInputError, match=r"'warm\.hex' is a palette, not a sprite") as palette:
        imported(tmp_path / "warm.hex")
    assert "Generate page" in palette.value.hint
    with pytest.raises(BadInputError, match="No file or folder"):
        imported(tmp_path / "gone")
    with pytest.raises(BadInputError):
        imported()


def test_imbalanced_classes_give_a_notice(tmp_path: Path) -> None:
    write_many(tmp_path / "set" / "many", 100)
    write(tmp_path / "set" / "few" / "x.png", sprite(1000))
    (told,) = (event for event in events_of(tmp_path / "set") if isinstance(event, Notice))
    assert "'many' has 100" in told.title and "'few'" in told.title
    assert not [event for event in events_of(tmp_path / "set" / "few") if isinstance(event, Notice)]


def test_progress_and_the_result_last(tmp_path: Path) -> None:
    *others, last = events_of(write_many(tmp_path / "set", 100))
    assert isinstance(last, SpritesImported) and last.elapsed_s > 0
    progress = [event for event in others if isinstance(event, Progress)]
    assert progress[0] == Progress(0, 0, "files found")
    read = [event for event in progress if event.what == "files read"]
    assert read[-1].done == read[-1].total == 100
    assert [event.done for event in read] == sorted(event.done for event in read)


def test_imports_are_deterministic_and_change_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "set"

    def on_disk() -> dict[Path, tuple[int, bytes]]:
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}

    for number in range(200):
        write(folder / f"{number % 7}" / f"{number}.png", sprite(number % 150))
    (folder / "bad.png").write_bytes(b"x")
    before = on_disk()
    expected = everything(imported(folder))
    for chunk in (1, 3):
        monkeypatch.setattr(reader_pool, "_CHUNK", chunk)
        assert everything(imported(folder)) == expected
    assert on_disk() == before
    shutil.copytree(folder, tmp_path / "copy" / "set")
    elsewhere = imported(tmp_path / "copy" / "set").sprites
    assert (elsewhere.fingerprint, elsewhere.names) == expected[:2]
