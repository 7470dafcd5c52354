"""Sprites as files and sheets: exact pixels, names that every system takes, nothing overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.errors import ExportError
from studio.exports.png import save_enlarged, save_files, save_sheet
from tests.conftest import make_sprites
from tests.data.making import imported

ABOUT = {"model": "trial, step 8", "seed": 7, "note": "naïve 剣"}


@pytest.fixture
def noise() -> Rgba:
    """Eleven sprites of 6x6 with every kind of alpha, and colour under alpha 0."""
    return np.random.default_rng(0).integers(0, 256, (11, 6, 6, 4), dtype=np.uint8)


def test_pixels_and_metadata_come_back_exactly(tmp_path: Path, noise: Rgba) -> None:
    paths = save_files(tmp_path / "new", noise, metadata=ABOUT)
    assert [path.name for path in paths[:2]] == ["sprite 001.png", "sprite 002.png"]
    for path, pixels in zip(paths, noise, strict=True):
        with Image.open(path) as picture:
            assert picture.mode == "RGBA" and np.array_equal(np.asarray(picture), pixels)
            assert picture.text["model"] == "trial, step 8" and picture.text["seed"] == "7"  # type: ignore[attr-defined]
            assert picture.text["note"] == "naïve 剣"  # type: ignore[attr-defined]


def test_fault_13_names_and_classes_are_made_safe_and_stay_in_the_folder(tmp_path: Path, noise: Rgba) -> None:
    names = [
        "CON", "../../x", "..\\..\\y", "🗡 sword", "a" * 300, "a" * 300,
        "dots...", "", "a\0b\nc", "/etc/passwd", "nul.txt"
    ]  # fmt: skip
    folder = tmp_path / "inner" / "new"
    paths = save_files(folder, noise, names)
    assert len(set(paths)) == len(names)
    assert paths[0].name == "_CON.png" and paths[3].name == "🗡 sword.png" and paths[10].name == "_nul.txt.png"
    assert all(len(path.name) < 100 and path.name.isprintable() for path in paths)
    sheet = save_sheet(folder / "sheet.png", noise[:3], classes=["../../x", "/x", "a/..\\../b"])
    frames = json.loads(sheet[1].read_text(encoding="utf-8"))["frames"]
    assert [frame["filename"] for frame in frames] == ["x/x 001", "x/x 002", "a/b/b 001"]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted([*paths, *sheet])
    assert {path.parent for path in [*paths, *sheet]} == {folder}


def test_nothing_is_overwritten(tmp_path: Path, noise: Rgba) -> None:
    first = save_files(tmp_path, noise[:1], ["sword"])
    second = save_files(tmp_path, noise[1:2], ["sword"])
    assert [path.name for path in first + second] == ["sword.png", "sword-2.png"]
    (tmp_path / "alone.json").write_text("mine")
    saved = [save_sheet(tmp_path / f"{name}.png", noise) for name in ("sheet", "sheet", "alone")]
    assert [[path.name for path in pair] for pair in saved] == [
        ["sheet.png", "sheet.json"], ["sheet-2.png", "sheet-2.json"], ["alone-2.png", "alone-2.json"],
    ]  # fmt: skip
    assert (tmp_path / "alone.json").read_text() == "mine"


def test_a_sheet_is_read_back_by_pillow(tmp_path: Path, noise: Rgba) -> None:
    classes = ["item/sword", "potion"] * 5 + [""]
    path, beside = save_sheet(tmp_path / "sheet", noise, 4, classes=classes, metadata=ABOUT)
    assert path.name == "sheet.png"
    about = json.loads(beside.read_text(encoding="utf-8"))
    with Image.open(path) as picture:
        assert picture.size == (24, 18) and picture.text["seed"] == "7"  # type: ignore[attr-defined]
        sheet = np.asarray(picture)
    assert about["meta"]["image"] == "sheet.png" and about["meta"]["size"] == {"w": 24, "h": 18}
    assert about["meta"]["seed"] == 7
    assert [frame["filename"] for frame in about["frames"][:3]] == [
        "item/sword/sword 001", "potion/potion 001", "item/sword/sword 002",
    ]  # fmt: skip
    for frame, pixels in zip(about["frames"], noise, strict=True):
        box = frame["frame"]
        assert np.array_equal(sheet[box["y"] : box["y"] + box["h"], box["x"] : box["x"] + box["w"]], pixels)


def test_a_sheet_is_read_back_by_the_studios_own_import(tmp_path: Path) -> None:
    sprites = make_sprites()
    save_sheet(tmp_path / "discs.png", sprites.rgba, 5, names=[f"disc {i}" for i in range(len(sprites))])
    found = imported(tmp_path, size=8)
    assert not found.quarantine and found.sprites.class_names == ("discs",)
    assert {pixels.tobytes() for pixels in found.sprites.rgba} == {pixels.tobytes() for pixels in sprites.rgba}
    assert any(name.endswith("disc 3") for name in found.sprites.names)


def test_an_enlarged_picture_has_square_blocks(tmp_path: Path, noise: Rgba) -> None:
    path = save_enlarged(tmp_path / "large.png", noise, columns=4, scale=3)
    with Image.open(path) as picture:
        large = np.asarray(picture)
    assert large.shape == (3 * 18, 3 * 24, 4)
    assert np.array_equal(large[1::3, 1::3][:6, :6], noise[0])


def test_png_errors(tmp_path: Path, noise: Rgba) -> None:
    with pytest.raises(ExportError, match="no sprites"):
        save_sheet(tmp_path / "sheet.png", noise[:0])
    with pytest.raises(ExportError, match="2 names for 11 sprites"):
        save_files(tmp_path, noise, ["a", "b"])
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.raises(ExportError, match="Can't write"):
        save_files(tmp_path / "file", noise)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
