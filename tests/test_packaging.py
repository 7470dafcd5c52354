"""What is handed out is what it should be: the wheel, the entry in a desktop's menu, the icon, the demo sprites."""

from __future__ import annotations

import configparser
import email
import json
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import studio
from studio.app.application import DESKTOP_ENTRY
from studio.core import paths
from studio.data.importing.importing import SpritesImported
from studio.data.rights import Rights
from tests.data.making import imported

ROOT = Path(__file__).resolve().parents[1]
INFO = f"sprite_training_studio-{studio.__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_studio_and_what_it_shows(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if name.startswith("studio/")}
    shown = {path for path in paths.assets().glob("icons/*") if path.suffix in (".svg", ".ico", ".icns")}
    shown |= {*paths.demo_sprites().iterdir(), *paths.demo_characters().iterdir(), paths.assets() / "demo" / "LICENSE"}
    shown |= {*paths.assets().glob("guide/*.md"), *paths.assets().glob("screenshots/*.png")}
    starter = paths.assets() / "starter"
    shown |= {paths.assets() / name for name in ("devices.json", "features.safetensors", "web/engine.wasm")}
    shown |= {paths.assets() / "icons/example.png", paths.assets() / "lessons/cards.json"}
    shown |= {*starter.glob("*.safetensors"), starter / "sources.json", starter / "LICENSE"}
    package = {path for path in (ROOT / "studio").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert names == {f"studio/{path.relative_to(ROOT).as_posix()}" for path in shown} | {
        path.relative_to(ROOT).as_posix() for path in package
    }
    assert "studio/py.typed" in names and "studio/assets/icons/app.ico" in names


def test_beside_the_studio_the_wheel_holds_its_entry_in_the_menu(wheel: zipfile.ZipFile) -> None:
    outside = {name for name in wheel.namelist() if not name.startswith(("studio/", INFO))}
    assert {path.partition(".data/data/")[2] for path in outside} == {
        f"share/applications/{DESKTOP_ENTRY}.desktop",
        f"share/metainfo/{DESKTOP_ENTRY}.metainfo.xml",
        f"share/icons/hicolor/scalable/apps/{DESKTOP_ENTRY}.svg",
        f"share/icons/hicolor/256x256/apps/{DESKTOP_ENTRY}.png",
    }


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    about = email.message_from_bytes(wheel.read(f"{INFO}/METADATA"))
    assert about["Version"] == studio.__version__
    assert Path(str(wheel.filename)).name in (paths.assets() / "guide" / "install.md").read_text(encoding="utf-8")
    assert f"\n## {studio.__version__} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    needed = {text.partition(">")[0].partition("!")[0] for text in about.get_all("Requires-Dist", [])}
    assert {"torch", "pyside6-essentials"} <= needed
    assert not {"pytest", "ruff", "mypy", "hatchling", "diffusers"} & needed
    commands = configparser.ConfigParser()
    commands.read_string(wheel.read(f"{INFO}/entry_points.txt").decode())
    assert dict(commands["console_scripts"]) == {"studio": "studio.__main__:main"}
    assert dict(commands["gui_scripts"]) == {"sprite-training-studio": "studio.__main__:main"}


def test_the_entry_in_the_menu_starts_the_window() -> None:
    folder = paths.assets() / "desktop"
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment, method-assign]
    entry.read(folder / f"{DESKTOP_ENTRY}.desktop", encoding="utf-8")
    assert entry["Desktop Entry"]["Exec"] == "sprite-training-studio %F"
    assert entry["Desktop Entry"]["Icon"] == DESKTOP_ENTRY
    component = ElementTree.parse(folder / f"{DESKTOP_ENTRY}.metainfo.xml").getroot()
    assert component.findtext("id") == DESKTOP_ENTRY
    assert component.findtext("launchable") == f"{DESKTOP_ENTRY}.desktop"


def test_users_get_no_tools_for_tests() -> None:
    users, dev = (_locked(ROOT / name) for name in ("requirements.lock", "requirements-dev.lock"))
    assert {"torch", "pyside6-essentials", "msgspec"} <= set(users)
    assert not {"pytest", "ruff", "mypy", "hypothesis", "hatchling"} & set(users)
    assert {"pytest", "ruff", "mypy", "hypothesis", "hatchling", "pytest-randomly"} <= set(dev)
    assert {name: dev[name] for name in dev if name in users and dev[name] != users[name]} == {}


def test_the_script_draws_the_icon_that_is_bundled(tmp_path: Path) -> None:
    folder = paths.assets() / "icons"
    _draw(folder / "make_app_icon.py", tmp_path)
    assert (tmp_path / "app.svg").read_text() == (folder / "app.svg").read_text()
    for name in ("app.png", "app.ico", "app.icns"):
        ours, drawn = Image.open(folder / name), Image.open(tmp_path / name)
        assert ours.info.get("sizes") == drawn.info.get("sizes")
        pixels = [np.asarray(picture.convert("RGBA")).astype(int) for picture in (ours, drawn)]
        # The smoothed corners may differ a little between versions of Qt.
        assert np.abs(pixels[0] - pixels[1]).mean() < 0.1


@pytest.fixture(scope="module")
def demo() -> SpritesImported:
    return imported(paths.demo_sprites())


def test_the_demo_set_opens_like_any_folder(demo: SpritesImported) -> None:
    assert demo.proposed_size == 24 and demo.sprites.size == 24
    assert len(demo.sprites.class_names) >= 8 and demo.sprites.class_counts().min() >= 200
    assert not demo.quarantine


def test_the_demo_set_is_pixel_art(demo: SpritesImported) -> None:
    rgba = demo.sprites.rgba
    alpha = rgba[..., 3]
    assert set(np.unique(alpha)) == {0, 255}
    assert not rgba[alpha == 0].any()
    colours = np.ascontiguousarray(rgba).view(np.uint32)[..., 0]  # a number for each: rows take far longer to sort
    assert len(np.unique(colours[alpha == 255])) <= 64
    per_sprite = [len(np.unique(sprite[opaque])) for sprite, opaque in zip(colours, alpha == 255, strict=True)]
    assert min(per_sprite) >= 4 and max(per_sprite) <= 16


@pytest.mark.slow
def test_the_script_draws_the_demo_sprites_that_are_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = paths.assets() / "demo"
    monkeypatch.syspath_prepend(folder)
    _draw(folder / "make_demo_sprites.py", tmp_path)
    for folder in (paths.demo_sprites(), paths.demo_characters()):
        bundled = sorted(path.name for path in folder.iterdir())
        assert sorted(path.name for path in (tmp_path / folder.name).iterdir()) == bundled
        for name in bundled:
            ours, drawn = folder / name, tmp_path / folder.name / name
            if name.endswith(".json"):
                assert json.loads(ours.read_text()) == json.loads(drawn.read_text())
            else:  # pixels, not bytes: compression may differ between versions of zlib
                assert np.array_equal(np.asarray(Image.open(ours)), np.asarray(Image.open(drawn)))
    assert "demo_art" in sys.modules


@pytest.fixture(scope="module")
def characters() -> NDArray[np.uint8]:
    """All demo characters: their number, 4 directions, 4 frames, rows, columns, RGBA."""
    sheets = [np.asarray(Image.open(path)) for path in sorted(paths.demo_characters().iterdir())]
    return np.stack(sheets).reshape(-1, 4, 16, 4, 16, 4).swapaxes(2, 3)


def test_the_demo_characters_are_many_and_small(characters: NDArray[np.uint8]) -> None:
    assert len(characters) >= 120
    assert len({sheet[..., 3].tobytes() for sheet in characters}) >= 80
    assert sum(path.stat().st_size for path in paths.demo_characters().iterdir()) < 200_000
    alpha = characters[..., 3]
    assert set(np.unique(alpha)) == {0, 255} and not characters[alpha == 0].any()
    colours = [len(np.unique(sheet[sheet[..., 3] > 0], axis=0)) for sheet in characters]
    assert min(colours) >= 4 and max(colours) <= 16


def test_the_demo_characters_come_with_their_licence() -> None:
    rights = Rights.for_sources([paths.demo_characters()])
    assert rights.licence == "CC0 1.0" and rights == Rights.for_sources([paths.demo_sprites()])


def test_the_demo_characters_walk_on_one_line(characters: NDArray[np.uint8]) -> None:
    inked = np.asarray(characters[..., 3].any(axis=4))
    lowest = 15 - inked[..., ::-1].argmax(axis=3)
    assert (lowest == lowest[:, :, :1]).all()
    stand, step, again, other = characters.transpose(2, 0, 1, 3, 4, 5)
    assert np.array_equal(stand, again)
    for one, two in ((stand, step), (stand, other), (step, other)):
        assert (one != two).any(axis=4).sum(axis=(2, 3)).min() >= 4


def test_most_demo_characters_look_left_as_they_look_right(characters: NDArray[np.uint8]) -> None:
    _, _, left, right = characters.transpose(1, 0, 2, 3, 4, 5)
    mirrored = (left == right[:, :, :, ::-1]).all(axis=(1, 2, 3, 4))
    assert 0.5 < mirrored.mean() < 1


def _draw(script: Path, folder: Path) -> None:
    main = runpy.run_path(str(script))["main"]
    main.__globals__["OUT"] = folder
    main()


def test_what_runs_tests_is_set_up_for_them_first() -> None:
    rules: dict[str, list[str]] = {}
    runs_tests = set()
    for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([\w./-]+):(?!=)(.*)", line):
            target = match[1]
            rules[target] = match[2].split()
        elif (line.startswith("\t") and "-m pytest" in line) or "-m tests." in line:
            runs_tests.add(target)
    assert {"test", "slow", "everywhere"} <= runs_tests
    for target in runs_tests:
        needed = {name for direct in rules[target] for name in (direct, *rules.get(direct, ()))}
        assert ".venv/ready-to-test" in needed, target


def _locked(path: Path) -> dict[str, set[str]]:
    """The pinned versions by package, without their markers."""
    found: dict[str, set[str]] = {}
    for line in path.read_text().splitlines():
        if "==" in line and not line.startswith(" "):
            name, _, rest = line.partition("==")
            found.setdefault(name, set()).add(rest.split()[0])
    return found
