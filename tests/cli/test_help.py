"""`studio help`, and the commands that the guide shows."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.messages import WRONG_USAGE
from studio.cli.parser import parse
from studio.core import guide, paths
from studio.core.arrays import Rgba
from studio.engine.quality import features
from studio.exports.png import save_files
from tests.cli.tools import TINY, Studio, training

_BLOCK = re.compile(r"^```sh\n(?P<lines>.*?)^```", re.MULTILINE | re.DOTALL)
_TERRAINS = {"grass": "trees", "sand": "gems", "water": "fish"}  # classes of tiles in the guide: demo sprites instead
_TRAINING = (["train"], ["queue", "add"])


def _commands(topic: str) -> list[list[str]]:
    """The words of each `studio` command in a topic's blocks of shell commands, without 'studio' and comments."""
    lines = [line for block in _BLOCK.finditer(guide.topic_text(topic)) for line in block["lines"].splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("studio ")]


def test_help_lists_topics_and_prints_one(studio: Studio) -> None:
    listed = studio("help").out
    assert all(name in listed for name in guide.topic_names())
    assert studio("help", "first-model").out.startswith("# First model\n")
    section = guide.sections_of(guide.topic_text("first-model"))[1]
    assert studio("help", f"first-model#{section.anchor}").out.startswith(f"## {section.title}\n")
    assert [item["name"] for item in studio("help", "--json").objects()] == guide.topic_names()
    assert studio("help", "train", "--json").objects()[0]["text"].startswith("# ")
    assert "'studio help' lists all topics." in studio("help", "cooking", code=WRONG_USAGE).err


def test_help_of_a_command_and_an_error_name_their_topic(studio: Studio, tmp_path: Path) -> None:
    assert studio("train", "--help").out.endswith("guide: studio help train\n")
    (tmp_path / "text.png").write_text("no image")
    assert "More: studio help troubleshooting#" in studio("train", tmp_path, code=1).err


@pytest.mark.parametrize("topic", guide.topic_names())
def test_commands_of_the_guide_have_known_flags(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in _commands(topic):
        if "--help" not in words:
            parse(words)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("topic", [name for name in guide.topic_names() if _commands(name)])
def test_commands_of_the_guide_run(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio) -> None:
    """Run a topic's commands in order, in a folder with the files that the guide speaks of, for a few steps each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(features, "_STEPS", 5)  # a network that learns 20 to 40 s
    _make_files(tmp_path)
    for recipe, name in (("generator", "my-run"), ("generator", "other-run"), ("classifier", "my-classifier")):
        studio(*training(tmp_path / "my-sprites", paths.runs() / name, recipe))
    for words in _commands(topic):
        studio(*_shortened(words))


def _make_files(folder: Path) -> None:
    """Write the files of the guide's commands: demo sprites with classes and attributes, images, a mask, palettes."""
    for name, count in (("my-sprites", 60), ("more-sprites", 60), ("few-sprites", 24)):
        for kind, demo in (("swords", "swords"), ("potions", "potions"), *_TERRAINS.items()):
            save_files(folder / name / kind, _demo_sprites(demo, count))
        paths_of_sprites = sorted((folder / name).rglob("*.png"))
        rows = [
            f"{path.relative_to(folder / name).as_posix()},{path.parent.name},{element},shield"
            for path, element in zip(paths_of_sprites, itertools.cycle(["ice", "fire"]))
        ]
        (folder / name / "labels.csv").write_text("\n".join(["file,class,element,kind", *rows]))
    sprites = _demo_sprites("swords", 5)
    for name, image in zip(("a", "b", "c", "sprite", "shape"), sprites, strict=True):
        Image.fromarray(image).save(folder / f"{name}.png")
    tile_set = np.pad(sprites[0], [(0, 3 * sprites.shape[1]), (0, 3 * sprites.shape[2]), (0, 0)])  # a tile of sixteen
    Image.fromarray(tile_set).save(folder / "begun.png")
    mask = np.zeros(sprites.shape[1:3], np.uint8)
    mask[: len(mask) // 2] = 255
    Image.fromarray(mask).save(folder / "mask.png")
    _make_characters(folder)
    (folder / "warm.hex").write_text("ff0000\nffcc00\n442200\n")
    _write_palette(folder / "gold.gpl", "402000 804010 c08020 f0c040 fff0a0")
    _write_palette(folder / "db32.gpl", "3f3f74 306082 5b6ee1 639bff 5fcde4 cbdbfc")


def _write_palette(path: Path, colours: str) -> None:
    """Write a GIMP palette of colours in hexadecimal."""
    lines = [" ".join(map(str, bytes.fromhex(colour))) for colour in colours.split()]
    path.write_text("\n".join(["GIMP Palette", *lines]))


def _make_characters(folder: Path) -> None:
    """Write the demo characters, the front views of three of them, a back view, and a sheet with empty cells."""
    shutil.copytree(paths.demo_characters(), folder / "my-characters")
    sheets = {
        path.stem: np.array(Image.open(path).convert("RGBA")) for path in (folder / "my-characters").glob("*.png")
    }
    size = sheets["angel"].shape[0] // 4
    save_files(folder / "fronts", np.stack([sheets[name][:size, :size] for name in ("angel", "bear", "cat")]))
    Image.fromarray(sheets["angel"][:size, :size]).save(folder / "front.png")
    Image.fromarray(sheets["angel"][size : 2 * size, :size]).save(folder / "back.png")
    sheets["angel"][:, 2 * size :] = 0
    Image.fromarray(sheets["angel"]).save(folder / "part.png")


def _demo_sprites(kind: str, count: int) -> Rgba:
    """The first sprites of a demo sheet: uint8 [count, S, S, 4]."""
    folder = paths.demo_sprites()
    frames = json.loads((folder / f"{kind}.json").read_text())["frames"][:count]
    sheet = np.asarray(Image.open(folder / f"{kind}.png").convert("RGBA"))
    places = [frame["frame"] for frame in frames]
    return np.stack([sheet[at["y"] : at["y"] + at["h"], at["x"] : at["x"] + at["w"]] for at in places])


def _shortened(words: list[str]) -> list[str]:
    """The same command for a few steps: shorter times, fewer sprites, a small network."""
    found = list(words)
    for flag, value in (("--minutes", "0.05"), ("--more-minutes", "0.05"), ("--epochs", "1")):
        if flag in found:
            found[found.index(flag) + 1] = value
    if words[:1] in _TRAINING or words[:2] in _TRAINING:
        found += [*TINY, "--steps", "4"]
    if words[0] == "lab" and len(words) > 1 and not words[1].startswith("-"):
        found += ["--seconds", "1"]
    return found
