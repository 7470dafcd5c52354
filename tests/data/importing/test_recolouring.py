"""Recoloured sprites keep their new colours, whatever their files are called and whatever the import settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from studio.core import paths
from studio.core.arrays import Rgba
from studio.core.generators import run_to_end
from studio.data.colour.palette import Palette
from studio.data.edits import SpriteEdit, read_edits, save_edits
from studio.data.import_result import SpritesImported
from studio.data.importing import recolouring
from studio.data.importing.recolouring import SpriteRecolouring, recolour_edited, replace_colours
from studio.data.palettes.files import save_palette
from tests.data.importing.test_class_moves import classes, move, opened
from tests.data.making import notes, write

RED, DARK, BLUE, NAVY, GREY = (191, 2, 1), (127, 1, 0), (14, 11, 221), (4, 3, 122), (90, 90, 90)


def disc(light: tuple[int, ...], dark: tuple[int, ...], side: int = 8) -> Rgba:
    rgba = np.zeros((side, side, 4), np.uint8)
    rgba[1:-1, 1:-1] = *light, 255
    rgba[-2, 1:-1] = *dark, 120
    rgba[2, 2] = *GREY, 255
    return rgba


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, colours in (("a/red.png", (RED, DARK)), ("a/blue.png", (BLUE, NAVY)), ("b/other.png", (GREY, DARK))):
        write(tmp_path / "set" / name, disc(*colours))
    return tmp_path / "set"


def to_blue(rgba: Rgba) -> Rgba:
    return replace_colours(rgba, {bytes(RED).hex(): bytes(BLUE).hex(), bytes(DARK).hex(): bytes(NAVY).hex()})


def to_red(rgba: Rgba) -> Rgba:
    return replace_colours(rgba, {bytes(BLUE).hex(): bytes(RED).hex(), bytes(NAVY).hex(): bytes(DARK).hex()})


def recolour(found: SpritesImported, names: Sequence[str], change=to_blue) -> None:  # type: ignore[no-untyped-def]
    """Recolour sprites and save the edits."""
    indices = [found.sprites.names.index(name) for name in names]
    made = SpriteRecolouring(found.edits, found.read, found.sprites.rgba, indices, change)
    save_edits(found.edits, run_to_end(made.resolve()))


def pixels(found: SpritesImported, name: str) -> Rgba:
    return np.asarray(found.sprites.rgba[found.sprites.names.index(name)])


def test_new_colours_are_kept_beside_the_files(folder: Path) -> None:
    contents = {path.read_bytes() for path in folder.rglob("*.png")}
    before = opened(folder)
    recolour(before, ["a/red.png"])
    (folder / "a/red.png").rename(folder / "a/renamed.png")
    found = opened(folder)
    assert np.array_equal(pixels(found, "a/renamed.png"), disc(BLUE, NAVY))
    assert np.array_equal(pixels(found, "b/other.png"), disc(GREY, DARK))  # not chosen
    assert notes(found, "recoloured") == {"a/renamed.png": "2 colours changed"}
    assert found.sprites.origin["edits"] == {"recoloured": ["a/renamed.png"]}
    assert np.array_equal(pixels(opened(folder, edits="off"), "a/renamed.png"), disc(RED, DARK))
    assert {path.read_bytes() for path in folder.rglob("*.png")} == contents
    recolour(found, ["a/renamed.png"], to_red)  # back: no edit is left
    assert not read_edits(folder) and not list(paths.edits().iterdir())


def test_new_colours_and_classes_go_together(folder: Path) -> None:
    move(opened(folder), "c", "a/red.png")
    recolour(opened(folder), ["a/red.png", "b/other.png"])
    found = opened(folder)
    assert classes(found)["a/red.png"] == "c" and np.array_equal(pixels(found, "a/red.png"), disc(BLUE, NAVY))
    move(found, "a", "a/red.png")
    (path,) = paths.edits().iterdir()
    saved = json.loads(path.read_text())
    colours = {bytes(RED).hex(): bytes(BLUE).hex(), bytes(DARK).hex(): bytes(NAVY).hex()}
    assert saved["version"] == 2 and [edit["colours"] for edit in saved["sprites"].values()] == [
        colours if edit["name"] == "a/red.png" else {bytes(DARK).hex(): bytes(NAVY).hex()}
        for edit in saved["sprites"].values()
    ]


def test_files_of_class_moves_alone_open_in_earlier_versions(folder: Path) -> None:
    move(opened(folder), "c", "a/red.png")
    (path,) = paths.edits().iterdir()
    assert json.loads(path.read_text())["version"] == 1


def test_fixes_apply_to_the_new_colours(folder: Path, tmp_path: Path) -> None:
    """A shown sprite in the colours of a palette is recoloured as shown, and stays in the palette."""
    palette = np.array([[*colour, 255] for colour in ((200, 0, 0), (0, 0, 200), (100, 100, 100))], np.uint8)
    file = str(save_palette(tmp_path / "three.gpl", Palette(palette)))
    shown = opened(folder, palette=file)
    recolour(shown, ["b/other.png"], lambda rgba: replace_colours(rgba, {"c80000": "0000c8"}))
    after = pixels(opened(folder, palette=file), "b/other.png")
    assert {*map(tuple, after[after[..., 3] > 0][:, :3].tolist())} == {(0, 0, 200), (100, 100, 100)}
    assert np.array_equal(after[..., 3], disc(GREY, DARK)[..., 3])


def test_a_redrawn_sprite_loses_its_colours_with_a_note(folder: Path) -> None:
    recolour(opened(folder), ["a/red.png"])
    write(folder / "a/red.png", disc(GREY, RED))
    assert notes(opened(folder), "lost moves") == {"a/red.png": "recoloured, but no sprite has these pixels"}


def test_sprites_in_batches_get_their_own_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recolouring, "_BATCH_PIXELS", 64)
    rgba = np.stack([disc(RED, DARK)] * 3)
    after = run_to_end(recolour_edited(rgba, {1: SpriteEdit(colours={bytes(RED).hex(): "010203"})}, None))
    assert np.array_equal(after[[0, 2]], rgba[[0, 2]]) and np.array_equal(after[1], disc((1, 2, 3), DARK))
