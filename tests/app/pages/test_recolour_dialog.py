"""The dialog that exchanges ramps: preview, undo, copies and palette files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.recolour_dialog import RecolourDialog
from studio.app.pages.sprites.page import SpritesPage
from studio.core.arrays import Rgba
from studio.data.colour.palette import Palette
from studio.data.palettes.files import save_palette
from tests.app.conftest import LONG_MS, click, open_sprites, sprites_of
from tests.app.widgets.test_ramp_table import choose, entries

RED, BLUE = ((127, 1, 0), (191, 2, 1)), ((4, 3, 122), (14, 11, 221))


def block(colours: tuple[tuple[int, ...], ...]) -> Rgba:
    rgba = np.zeros((8, 8, 4), np.uint8)
    rgba[:4] = *colours[0], 255
    rgba[4:7] = *colours[1], 255
    return rgba


@pytest.fixture
def filled(qtbot: QtBot, page: SpritesPage, tmp_path: Path) -> SpritesPage:
    """Return the Sprites page with a blue and a red sprite, the red sprite selected."""
    (tmp_path / "art").mkdir()
    for name, colours in (("blue.png", BLUE), ("red.png", RED)):
        Image.fromarray(block(colours)).save(tmp_path / "art" / name)
    open_sprites(qtbot, page.session, tmp_path / "art")
    page.grid.select([1])
    return page


@pytest.fixture
def dialog(qtbot: QtBot, filled: SpritesPage) -> RecolourDialog:
    click(filled.selection.recolour)
    made = filled.findChild(RecolourDialog)
    assert made is not None and not made.apply.isEnabled()
    qtbot.waitUntil(lambda: bool(made.table.rows), timeout=LONG_MS)
    return made


def test_recolour_and_undo(qtbot: QtBot, filled: SpritesPage, dialog: RecolourDialog) -> None:
    assert dialog.windowTitle() == "Recolour 1 sprite" and "choose a new ramp" in dialog.apply.toolTip()
    assert entries(dialog.table, "red") == ["Unchanged", "all sprites: red", "all sprites: blue", "From a file…"]
    choose(dialog.table, "red", "all sprites: blue")
    opened = filled.session.open_sprites
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        click(dialog.apply)
    assert np.array_equal(sprites_of(filled.session).rgba[1], block(BLUE))
    assert opened.history.latest is not None and opened.history.latest.title == "recolour 1 sprite"
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        opened.history.undo()
    assert np.array_equal(sprites_of(filled.session).rgba[1], block(RED))
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        opened.history.redo()
    assert np.array_equal(sprites_of(filled.session).rgba[1], block(BLUE))


def test_copies_of_a_ramp_of_a_file(
    qtbot: QtBot, filled: SpritesPage, dialog: RecolourDialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, out = tmp_path / "bad.gpl", tmp_path / "out"
    bad.write_text("GIMP Palette\n#\n1 2 x\n")
    chosen = [
        bad,
        save_palette(tmp_path / "gold.hex", Palette(np.array([[130, 90, 20, 255], [240, 200, 80, 255]], np.uint8))),
    ]
    monkeypatch.setattr(dialogs, "choose_palette", lambda *args: chosen.pop(0))
    monkeypatch.setattr(dialogs, "choose_save_folder", lambda *args: out)
    loaded = filled.session.palettes.ramps_loaded
    with qtbot.waitSignal(loaded, timeout=LONG_MS):
        choose(dialog.table, "red", "From a file…")
    assert dialog.table.exchange() is None and dialog.isVisible()
    with qtbot.waitSignal(loaded, timeout=LONG_MS):
        choose(dialog.table, "red", "From a file…")
    with qtbot.waitSignal(filled.session.saving.saved, timeout=LONG_MS):
        click(dialog.save)
    (path,) = out.rglob("*.png")
    with Image.open(path) as picture:
        assert picture.size == (8, 8) and picture.convert("RGB").getpixel((0, 0)) == (130, 90, 20)
    assert np.array_equal(sprites_of(filled.session).rgba[1], block(RED))
    dialog.reject()


def test_sprites_without_opaque_pixels(qtbot: QtBot, filled: SpritesPage) -> None:
    dialog = RecolourDialog(filled, filled.session, SpriteSelection(np.zeros((14, 8, 8, 4), np.uint8), ["a"] * 14, {}))
    dialog.open()
    with qtbot.waitSignal(filled.session.palettes.ramps_found, timeout=LONG_MS):
        pass
    assert not dialog.table.rows and not dialog.save.isEnabled() and len(dialog.pairs) == 12
    dialog.reject()
