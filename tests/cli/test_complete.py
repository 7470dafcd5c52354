"""Completing characters and drawing new ones from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.messages import WRONG_USAGE
from studio.core import paths
from studio.core.arrays import Rgba
from studio.data.aseprite import file as aseprite
from tests.cli.tools import Studio

CELLS = ["down-stand", "down-step", "up-stand", "up-step"]
FAST = ["--rounds", 2]


def _read(path: Path) -> Rgba:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGBA"))


@pytest.fixture
def sheet(characters: Path) -> Path:
    return sorted(characters.glob("*.png"))[0]


@pytest.fixture
def front(sheet: Path, tmp_path: Path) -> Path:
    """The first cell of a sheet."""
    Image.fromarray(_read(sheet)[:8, :8]).save(tmp_path / "front.png")
    return tmp_path / "front.png"


@pytest.fixture
def fronts(characters: Path, tmp_path: Path) -> Path:
    """The first cells of two sheets, and a file that is no picture."""
    (tmp_path / "fronts").mkdir()
    for path, name in zip(sorted(characters.glob("*.png")), ("knight", "witch"), strict=False):
        Image.fromarray(_read(path)[:8, :8]).save(tmp_path / "fronts" / f"{name}.png")
    (tmp_path / "fronts" / "readme.txt").write_text("two fronts")
    return tmp_path / "fronts"


def test_the_rest_of_a_character_comes_as_a_sheet_with_frames_and_tags(
    sets_run: Path, front: Path, tmp_path: Path, studio: Studio
) -> None:
    out = tmp_path / "hero.png"
    assert (
        "Saved 3 cells of 1 character"
        in studio("complete", sets_run, "--given", f"down={front}", *FAST, "--out", out).out
    )
    drawn = _read(out)
    assert drawn.shape == (16, 16, 4) and (drawn[:8, :8] == _read(front)).all()
    about = json.loads(out.with_suffix(".json").read_text())
    assert [tag["name"] for tag in about["meta"]["frameTags"]] == ["down", "up"] and len(about["frames"]) == 4
    with Image.open(out) as picture:
        texts = picture.text  # type: ignore[attr-defined]
    assert texts["given"] == "down/stand=front.png" and texts["recipe"] == "sets"
    assert studio("verify", out, "--run", sets_run).out.startswith("ok ")


def test_json_describes_each_character_and_candidate(
    sets_run: Path, fronts: Path, tmp_path: Path, studio: Studio
) -> None:
    words = ["complete", sets_run, "--given", f"down={fronts}", *FAST, "--json", "--out"]
    found = [item for item in studio(*words, tmp_path / "many").objects() if item["type"] == "SetSaved"]
    assert [item["name"] for item in found] == ["knight", "witch"]
    for item in found:
        assert item["files"] == [str(tmp_path / "many" / item["name"] / f"{cell}.png") for cell in CELLS]
        assert item["given"] == ["down/stand"] and item["seed"] == 0 and item["candidate"] == 1
    assert (_read(tmp_path / "many/witch/down-stand.png") == _read(fronts / "witch.png")).all()
    found = [item for item in studio(*words, tmp_path / "many.gif").objects() if item["type"] == "SetSaved"]
    assert found[1]["files"] == [str(tmp_path / f"many-witch-{row}.gif") for row in ("down", "up")]


def test_candidates_differ_and_lie_in_numbered_folders(
    sets_run: Path, front: Path, tmp_path: Path, studio: Studio
) -> None:
    words = ["complete", sets_run, "--given", f"down/stand={front}", "--count", 2, "--variety", 1, *FAST, "--out"]
    studio(*words, tmp_path / "hero")
    first, second = (_read(tmp_path / "hero" / number / "up-step.png") for number in "12")
    assert (first != second).any()
    studio(*words, tmp_path / "hero.aseprite")
    tags = aseprite.parse((tmp_path / "hero-2.aseprite").read_bytes()).tags
    assert [tag.name for tag in tags] == ["down", "up"]


def test_empty_cells_of_a_sheet_are_drawn_also_with_its_description_beside_it(
    sets_run: Path, sheet: Path, tmp_path: Path, studio: Studio
) -> None:
    words = ["complete", sets_run, *FAST, "--out"]
    given = _read(sheet).copy()
    given[8:, 8:] = 0
    Image.fromarray(given).save(tmp_path / "part.png")
    frame = {"frame": {"x": 0, "y": 0, "w": 8, "h": 8}}
    (tmp_path / "part.json").write_text(json.dumps({"frames": {"one": frame}, "meta": {"image": "part.png"}}))
    found = studio(*words, tmp_path / "whole.png", "--given", tmp_path / "part.png", "--json").objects()
    assert [item["given"] for item in found if item["type"] == "SetSaved"] == [["down/stand", "down/step", "up/stand"]]
    drawn = _read(tmp_path / "whole.png").copy()
    drawn[8:, 8:] = 0
    assert (drawn == given).all()


def test_new_characters(sets_run: Path, tmp_path: Path, studio: Studio) -> None:
    words = ["generate", sets_run, "--count", 3, *FAST, "--out"]
    assert "3 new characters" in studio(*words, tmp_path / "new.png").out
    assert _read(tmp_path / "new.png").shape == (48, 16, 4)
    found = [item for item in studio(*words, tmp_path / "new", "--json").objects() if item["type"] == "SetSaved"]
    assert [(item["name"], item["candidate"], item["given"]) for item in found] == [(n, 1, []) for n in "123"]


def test_wrong_cells_are_refused_and_nothing_is_written(
    sets_run: Path, sheet: Path, front: Path, tmp_path: Path, studio: Studio
) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (8, 8, 4), dtype=np.uint8)
    for name, picture in {"noise": noise, "blank": 0 * noise}.items():
        Image.fromarray(picture).save(tmp_path / f"{name}.png")
    for given, said in (
        (f"side={front}", "no cell 'side'.\nCells of this model: down, up, each with /stand, /step."),
        (sheet, "all cells are given"),
        (f"up={tmp_path / 'noise.png'}", "colours; the model takes 15"),
        (f"up={tmp_path / 'blank.png'}", "the given cells are empty"),
    ):
        words = ["complete", sets_run, "--given", given, "--out", tmp_path / "out.png"]
        error = studio(*words, code=WRONG_USAGE).err
        assert said in error and "More: studio help sets" in error
    assert not list(tmp_path.glob("out*"))


def test_other_models_and_other_flags_are_refused(
    sets_run: Path, generator_run: Path, front: Path, studio: Studio
) -> None:
    for words, said in (
        (["complete", generator_run, "--given", f"down={front}"], "is a generator and can't complete characters"),
        (["generate", sets_run, "--guidance", 2], "--guidance does not apply to a model of sets"),
        (["generate", sets_run, "--class", "x"], "--class does not apply"),
        (["generate", sets_run, "--from", front], "New characters start from nothing"),
        (["generate", generator_run, "--rounds", 1], "--rounds needs a model of sets"),
        (["predict", sets_run, front], "is a model of sets and can't predict"),
        (["distil", sets_run], "is a model of sets and can't be distilled"),
    ):
        assert said in studio(*words, code=WRONG_USAGE).err


def test_unsliced_sheets_name_the_flag_that_slices_them(tmp_path: Path, studio: Studio) -> None:
    for path in sorted(paths.demo_characters().glob("*.png"))[:8]:
        shutil.copy(path, tmp_path)
    error = studio("train", tmp_path, "--recipe", "sets", "--out", tmp_path / "run", code=WRONG_USAGE).err
    assert "look like unsliced sheets: 8 characters with 4 views x 4 frames" in error and "--sets sheets" in error


def test_experiments_on_single_sprites_refuse_models_of_sets(sets_run: Path, studio: Studio) -> None:
    error = studio("lab", "hardest", sets_run, code=WRONG_USAGE).err
    assert "a model of sets only has losses of whole characters." in error
