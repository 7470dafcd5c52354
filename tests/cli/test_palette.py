"""Palettes from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.messages import FAILED, WRONG_USAGE
from studio.cli.palette import parse_exchanges
from studio.core.errors import BadInputError, UsageError
from studio.data.colour.palette import Palette
from studio.data.colour.ramps import find_ramps
from studio.data.palettes.files import load_palette, save_palette
from tests.cli.tools import Studio
from tests.data.colour.test_ramps import DB32, KNIGHT, codes, colours

KNIGHTS = find_ramps(colours(KNIGHT))
WARM = np.array([[190, 74, 47, 255], [20, 20, 30, 255], [240, 220, 180, 255]], np.uint8)


@pytest.fixture
def warm(tmp_path: Path) -> Path:
    return save_palette(tmp_path / "warm.gpl", Palette(WARM, "Warm", ("Rust", "Night", "Bone")))


def colours_in(folder: Path) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()
    for path in folder.rglob("*.png"):
        with Image.open(path) as picture:
            pixels = np.asarray(picture).reshape(-1, 4)
        found |= {tuple(colour) for colour in pixels[pixels[:, 3] > 0].tolist()}
    return found


def is_warm(folder: Path) -> bool:
    """Whether its sprites have no other colours."""
    return colours_in(folder) <= {tuple(colour) for colour in WARM.tolist()}


def test_show(warm: Path, tmp_path: Path, studio: Studio) -> None:
    text = studio("palette", warm).out
    assert "Warm: 3 colours" in text and "be4a2f" in text and "Rust" in text
    (found,) = studio("palette", warm, "--json").objects()
    assert found["type"] == "Palette" and found["name"] == "Warm"
    assert found["colours"] == ["be4a2f", "14141e", "f0dcb4"] and found["colour_names"] == ["Rust", "Night", "Bone"]
    plain = save_palette(tmp_path / "plain.hex", Palette(np.tile(WARM, (3, 1))))
    assert len(studio("palette", plain).out.splitlines()) == 4  # a heading, a blank, eight colours and one


@pytest.mark.parametrize("suffix", [".hex", ".pal", ".json", ".png", ".act", ".gpl"])
def test_convert(warm: Path, tmp_path: Path, suffix: str, studio: Studio) -> None:
    out = tmp_path / f"other{suffix}"
    assert f"Saved as {out}" in studio("palette", warm, "--out", out).out
    assert np.array_equal(load_palette(out).colours, WARM)
    again = {"type": "FilesSaved", "paths": [str(tmp_path / f"other-2{suffix}")]}
    assert studio("palette", warm, "--out", out, "--json").objects()[-1] == again


def test_extract(folder: Path, tmp_path: Path, studio: Studio) -> None:
    out = tmp_path / "discs palette.gpl"
    said = studio("palette", folder, "--extract", "--colours", 5, "--out", out).out
    found = load_palette(out)
    assert f"discs palette: {len(found)} colours" in said
    assert found.name == "discs palette" and 3 <= len(found) <= 5
    assert {(*colour, 255) for colour in found.visible().tolist()} <= colours_in(folder)
    assert "discs: 32 colours" in studio("palette", folder, "--extract").out


def test_snap_writes_copies_of_the_files(
    folder: Path, warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.png")}
    out, words = tmp_path / "snapped", ["palette", folder, "--snap", warm]
    assert f"24 files in the colours of Warm: {out}" in studio(*words, "--out", out).out
    assert {path.relative_to(out) for path in out.rglob("*.png")} == {path.relative_to(folder) for path in before}
    saved = studio(*words, "--dither", "--out", out, "--json").objects()[-1]
    assert saved["type"] == "FilesSaved" and len(saved["paths"]) == 24
    assert saved["paths"][0] == str(tmp_path / "snapped-2" / "class0" / "sprite 001.png")
    assert is_warm(out) and is_warm(tmp_path / "snapped-2")
    monkeypatch.chdir(tmp_path)
    studio(*words)
    assert (tmp_path / "discs-in-Warm" / "class1").is_dir()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_snap_lists_excluded_files(tmp_path: Path, warm: Path, studio: Studio) -> None:
    art = tmp_path / "art"
    art.mkdir()
    Image.fromarray(np.full((8, 8, 4), 255, np.uint8)).save(art / "a#1.v2.PNG")
    (art / "b.png").write_text("no picture")
    said = studio("palette", art, "--snap", warm, "--out", tmp_path / "new").out
    assert "Excluded b.png: not a picture" in said
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a#1.v2.PNG"]
    for number in range(12):
        (art / f"c{number}.png").write_text("no picture")
    assert "and 3 more" in studio("palette", art, "--snap", warm, "--out", tmp_path / "new").out
    (art / "a#1.v2.PNG").unlink()
    refused = studio("palette", art, "--snap", warm, code=FAILED)
    assert "'art' has no picture to copy" in refused.err and "b.png" in refused.err


def test_ramps(tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    art, (dark, light, blue) = tmp_path / "art", [(127, 1, 0, 255), (191, 2, 1, 200), (14, 11, 221, 255)]
    (art / "deep").mkdir(parents=True)
    Image.fromarray(np.array([[dark, light], [light, dark]], np.uint8)).save(art / "deep" / "a.png")
    Image.fromarray(np.array([[dark, (191, 2, 1, 255)], [blue, (0, 0, 0, 0)]], np.uint8)).save(art / "b.png")
    said = studio("palette", art, "--ramps", "--out", tmp_path / "ramps.gpl").out
    assert "art: 2 ramps" in said and "red    7f0100 bf0201" in said
    assert load_palette(tmp_path / "ramps.gpl").colour_names == ("red 1", "red 2", "blue 1")
    assert studio("palette", tmp_path / "ramps.gpl", "--ramps", "--json").objects()[0] == {
        "type": "Ramps",
        "ramps": [{"name": "red", "colours": ["7f0100", "bf0201"]}, {"name": "blue", "colours": ["0e0bdd"]}],
    }
    monkeypatch.chdir(tmp_path)
    assert "2 files red in blue: art-red-in-blue" in studio("palette", art, "--ramp", "red=blue").out
    assert colours_in(tmp_path / "art-red-in-blue") == {blue, (*blue[:3], 200)}
    studio("palette", art, "--ramp", "red=ramps.gpl#blue", "--ramp", "blue=ramps.gpl#red", "--out", "new")
    assert colours_in(tmp_path / "new") == {blue, (*blue[:3], 200), (127, 1, 0, 255)}
    assert (tmp_path / "new" / "deep" / "a.png").is_file()


def test_snap_refuses_the_settings_of_an_import(folder: Path, warm: Path, studio: Studio) -> None:
    said = studio("palette", folder, "--snap", warm, "--size", 16, code=WRONG_USAGE).err
    assert "--size has no effect" in said and "Remove --size" in said


def test_what_is_wrong_is_said(folder: Path, warm: Path, tmp_path: Path, studio: Studio) -> None:
    damaged = tmp_path / "bad.gpl"
    damaged.write_text("GIMP Palette\n#\n1 2 x\n")
    hero = tmp_path / "hero.aseprite"
    hero.write_bytes(b"\x00\x00\x00\x00\xe0\xa5" + bytes(122))
    clear = tmp_path / "clear"
    clear.mkdir()
    Image.fromarray(np.full((8, 8, 4), 100, np.uint8)).save(clear / "a.png")
    for words, code, said in (
        ([damaged], FAILED, "line 3 of bad.gpl: 'x' is not a number from 0 to 255."),
        ([hero], FAILED, "To extract the colours of images, add --extract."),
        ([folder], WRONG_USAGE, "is a folder"),
        ([warm, warm], WRONG_USAGE, "Only one palette can be shown"),
        ([warm, "--out", "warm.exe"], WRONG_USAGE, "Can't save a palette as 'warm.exe'"),
        ([folder, "--extract", "--out", "warm.exe"], WRONG_USAGE, "Can't save a palette as 'warm.exe'"),
        ([folder, "--extract", "--colours", "0"], WRONG_USAGE, "--colours must be from 1 to 256"),
        ([warm, "--colours", "8"], WRONG_USAGE, "--colours needs --extract"),
        ([folder, "--extract", "--snap", warm], WRONG_USAGE, "not allowed with"),
        ([folder, "--extract", "--dither"], WRONG_USAGE, "--dither needs --snap"),
        ([folder, "--snap", damaged], FAILED, "line 3 of bad.gpl"),
        ([folder, "--snap", folder], FAILED, f"{folder.name} is a folder."),
        ([folder, "--snap", warm, "--out", "new.gpl"], WRONG_USAGE, "a folder of sprites, not 'new.gpl'"),
        ([clear, "--extract"], FAILED, "no opaque pixels"),
        ([clear, "--ramps"], FAILED, "no opaque pixels"),
        ([folder, "--ramp", "red"], WRONG_USAGE, "--ramp 'red' is no exchange"),
        ([folder, "--ramp", "mauve=red"], FAILED, "has no ramp 'mauve'"),
        ([folder, "--ramp", "red=blue", "--size", "16"], WRONG_USAGE, "--size has no effect"),
        ([folder, "--ramp", "red=blue", "--out", "new.gpl"], WRONG_USAGE, "a folder of sprites, not 'new.gpl'"),
    ):
        assert said in studio("palette", *words, code=code).err


def test_new_sprites_come_in_a_palette(generator_run: Path, warm: Path, tmp_path: Path, studio: Studio) -> None:
    new, dithered = tmp_path / "new", tmp_path / "dithered"
    words = ["generate", generator_run, "--count", 4, "--steps", 2, "--palette", warm]
    assert ", in the colours of Warm: " in studio(*words, "--out", new).out
    studio(*words, "--dither", "--out", dithered)
    assert is_warm(new) and is_warm(dithered)
    with Image.open(new / "class0-1.png") as picture:
        assert picture.text["palette"] == "Warm"  # type: ignore[attr-defined]
    assert (new / "class0-1.png").read_bytes() != (dithered / "class0-1.png").read_bytes()
    assert "Add --palette FILE." in studio(*words[:-2], "--dither", code=WRONG_USAGE).err
    assert "--palette needs true pixels." in studio(*words, "--no-true-pixels", code=WRONG_USAGE).err
    assert "does not exist" in studio(*words[:-1], tmp_path / "gone.gpl", code=FAILED).err


def test_a_new_ramp_comes_from_the_sprites_or_from_a_file(tmp_path: Path) -> None:
    opaque = np.pad(colours(DB32), ((0, 0), (0, 1)), constant_values=255)
    file = save_palette(tmp_path / "a#1.gpl", Palette(opaque, "DB32"))
    found = parse_exchanges(["red=blue", f"Blue = {file}#blue"], KNIGHTS, "knight")
    assert codes((found["red"],)) == {"blue": "010139 04037a 0a08bc 0e0bdd"}
    assert codes((found["blue"],)) == {"blue": "222034 3f3f74 5b6ee1 639bff cbdbfc"}
    whole = save_palette(tmp_path / "gold.hex", Palette(opaque[6:9], "Gold"))
    assert codes((parse_exchanges([f"red={whole}"], KNIGHTS, "knight")["red"],)) == {"gold": "d9a066 eec39a fbf236"}


@pytest.mark.parametrize(
    ("texts", "error", "title"),
    [
        (["red"], UsageError, "--ramp 'red' is no exchange."),
        (["=blue"], UsageError, "--ramp '=blue' is no exchange."),
        (["pink=blue"], BadInputError, "'knight' has no ramp 'pink'."),
        (["red=pink"], BadInputError, "'knight' has no ramp 'pink'."),
        (["red=blue", "red=yellow"], UsageError, "--ramp exchanges 'red' twice."),
        (["red=gone.gpl"], BadInputError, "gone.gpl"),
    ],
)
def test_a_wrong_exchange_is_refused(texts: list[str], error: type[Exception], title: str) -> None:
    with pytest.raises(error, match=title):
        parse_exchanges(texts, KNIGHTS, "knight")
