"""Palettes from the command line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli import main, palette
from studio.cli.messages import DONE, FAILED, WRONG_USAGE
from studio.data.colour.palette import Palette
from studio.data.options import SpritesImported
from studio.data.palettes.files import load_palette, save_palette
from studio.data.sprites import Sprites
from tests.cli.tools import json_lines

WARM = np.array([[190, 74, 47, 255], [20, 20, 30, 255], [240, 220, 180, 255]], np.uint8)


@pytest.fixture
def warm(tmp_path: Path) -> Path:
    return save_palette(tmp_path / "warm.gpl", Palette(WARM, "Warm", ("Rust", "Night", "Bone")))


def colours_in(folder: Path) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()
    for path in folder.rglob("*.png"):
        with Image.open(path) as picture:
            pixels = np.asarray(picture).reshape(-1, 4)
        found |= {tuple(colour) for colour in pixels[pixels[:, 3] > 0, :3].tolist()}
    return found


def digest(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def test_show(warm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["palette", str(warm)]) == DONE
    text = capsys.readouterr().out
    assert "Warm: 3 colours" in text and "be4a2f" in text and "Rust" in text
    assert main(["palette", str(warm), "--json"]) == DONE
    assert json_lines(capsys.readouterr().out) == [
        {
            "type": "Palette",
            "name": "Warm",
            "colours": ["be4a2f", "14141e", "f0dcb4"],
            "colour_names": ["Rust", "Night", "Bone"],
        }
    ]
    plain = save_palette(tmp_path / "plain.hex", Palette(np.tile(WARM, (3, 1))))
    assert main(["palette", str(plain)]) == DONE
    assert len(capsys.readouterr().out.splitlines()) == 4  # a heading, a blank, eight colours and one


@pytest.mark.parametrize("suffix", [".hex", ".pal", ".json", ".png", ".act", ".gpl"])
def test_convert(warm: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"other{suffix}"
    assert main(["palette", str(warm), "--out", str(out)]) == DONE
    assert f"Saved as {out}" in capsys.readouterr().out
    assert np.array_equal(load_palette(out).colours, WARM)
    assert main(["palette", str(warm), "--out", str(out), "--json"]) == DONE
    again = {"type": "FilesSaved", "paths": [str(tmp_path / f"other 2{suffix}")]}
    assert json_lines(capsys.readouterr().out)[-1] == again


def test_extract(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "discs palette.gpl"
    words = ["palette", str(folder), "--extract"]
    assert main([*words, "--colours", "5", "--out", str(out)]) == DONE
    found = load_palette(out)
    assert f"discs palette: {len(found)} colours" in capsys.readouterr().out
    assert found.name == "discs palette" and 3 <= len(found) <= 5
    assert {tuple(colour) for colour in found.visible().tolist()} <= colours_in(folder)
    assert main(words) == DONE
    assert "discs: 32 colours" in capsys.readouterr().out


def test_snap_writes_copies_in_their_classes(
    folder: Path, warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, out = digest(folder), tmp_path / "snapped"
    words = ["palette", str(folder), "--snap", str(warm)]
    assert main([*words, "--out", str(out)]) == DONE
    assert f"24 sprites in the colours of Warm: {out}" in capsys.readouterr().out
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.png"))]
    assert [str(path.relative_to(out)) for path in sorted(out.rglob("*.png"))] == names
    assert colours_in(out) <= {tuple(colour) for colour in WARM[:, :3].tolist()}
    assert main([*words, "--dither", "--out", str(out), "--json"]) == DONE
    saved = json_lines(capsys.readouterr().out)[-1]
    assert saved["type"] == "FilesSaved" and len(saved["paths"]) == 24
    assert saved["paths"][0] == str(tmp_path / "snapped 2" / "class0" / "sprite 001.png")
    assert colours_in(tmp_path / "snapped 2") <= {tuple(colour) for colour in WARM[:, :3].tolist()}
    monkeypatch.chdir(tmp_path)
    assert main(words) == DONE and (tmp_path / "discs in Warm" / "class1").is_dir()
    assert digest(folder) == before


def test_snap_says_what_it_left_out(tmp_path: Path, warm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    art = tmp_path / "art"
    art.mkdir()
    Image.fromarray(np.full((8, 8, 4), 255, np.uint8)).save(art / "a#1.v2.PNG")
    (art / "b.png").write_text("no picture")
    assert main(["palette", str(art), "--snap", str(warm), "--out", str(tmp_path / "new")]) == DONE
    assert "Left out: 1; 'studio inspect' says why." in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "new" / "art").iterdir()] == ["a#1.v2.png"]


def test_names_that_lead_elsewhere_stay_inside(
    warm: Path, sprites: Sprites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"../../x/{name}.png#../{name}" for name in ("con", "a/b", "c:d") for _ in range(8))
    evil = Sprites(sprites.rgba, sprites.labels, ("../../up", "/root"), names, "evil")
    found = SpritesImported(evil, (), (), {}, 8, 0.0, from_cache=False)
    monkeypatch.setattr(palette, "read_sprites", lambda *_: found)
    inside = tmp_path / "deep" / "er" / "new"
    assert main(["palette", "x", "--snap", str(warm), "--out", str(inside)]) == DONE
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != warm]
    assert len(written) == 24 and all(path.is_relative_to(inside) for path in written)


def test_what_is_wrong_is_said(folder: Path, warm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "bad.gpl"
    damaged.write_text("GIMP Palette\n#\n1 2 x\n")
    hero = tmp_path / "hero.aseprite"
    hero.write_bytes(b"\x00\x00\x00\x00\xe0\xa5" + bytes(122))
    clear = tmp_path / "clear"
    clear.mkdir()
    Image.fromarray(np.full((8, 8, 4), 100, np.uint8)).save(clear / "a.png")
    for words, code, said in (
        ([str(damaged)], FAILED, "line 3 of bad.gpl: 'x' is not a number from 0 to 255."),
        ([str(hero)], FAILED, "For the colours of pictures, add --extract."),
        ([str(folder)], WRONG_USAGE, "is a folder"),
        ([str(warm), str(warm)], WRONG_USAGE, "One palette at a time"),
        ([str(warm), "--out", "warm.exe"], WRONG_USAGE, "not saved as 'warm.exe'"),
        ([str(folder), "--extract", "--out", "warm.exe"], WRONG_USAGE, "not saved as 'warm.exe'"),
        ([str(folder), "--extract", "--colours", "0"], WRONG_USAGE, "--colours must be from 1 to 256"),
        ([str(warm), "--colours", "8"], WRONG_USAGE, "--colours goes with --extract"),
        ([str(folder), "--extract", "--snap", str(warm)], WRONG_USAGE, "not allowed with"),
        ([str(folder), "--extract", "--dither"], WRONG_USAGE, "--dither goes with --snap"),
        ([str(folder), "--snap", str(damaged)], FAILED, "line 3 of bad.gpl"),
        ([str(folder), "--snap", str(folder)], FAILED, f"{folder.name} is a folder."),
        ([str(folder), "--snap", str(warm), "--out", "new.gpl"], WRONG_USAGE, "a folder of sprites, not 'new.gpl'"),
        ([str(clear), "--extract"], FAILED, "no opaque pixels"),
    ):
        assert main(["palette", *words]) == code
        assert said in capsys.readouterr().err


def test_new_sprites_come_in_a_palette(
    generator_run: Path, warm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["generate", str(generator_run), "--count", "4", "--steps", "2", "--palette", str(warm)]
    assert main([*words, "--out", str(tmp_path / "new")]) == DONE
    assert ", in the colours of Warm: " in capsys.readouterr().out
    assert colours_in(tmp_path / "new") <= {tuple(colour) for colour in WARM[:, :3].tolist()}
    with Image.open(tmp_path / "new" / "class0 1.png") as picture:
        assert picture.text["palette"] == "Warm"  # type: ignore[attr-defined]
    assert main([*words, "--dither", "--out", str(tmp_path / "dithered")]) == DONE
    assert colours_in(tmp_path / "dithered") <= {tuple(colour) for colour in WARM[:, :3].tolist()}
    pictures = [(tmp_path / folder / "class0 1.png").read_bytes() for folder in ("new", "dithered")]
    assert pictures[0] != pictures[1]
    capsys.readouterr()
    assert main([*words[:-2], "--dither"]) == WRONG_USAGE
    assert "Name one with --palette." in capsys.readouterr().err
    assert main([*words, "--no-true-pixels"]) == WRONG_USAGE
    assert "Only true pixels come in a palette." in capsys.readouterr().err
    assert main([*words[:-1], str(tmp_path / "gone.gpl")]) == FAILED
    assert "There is no palette" in capsys.readouterr().err
