"""A folder of strips opens with the proposal to cut them: a line, a click, and Undo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.cut_words import proposal
from studio.app.pages.sprites.page import SpritesPage
from studio.data.options import FoundSheet, Grid
from tests.data.composing import animated, demo_sprites, laid, trimmed
from tests.data.making import sprite, write
from tests.ui.conftest import click


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five strips of six frames on pages of 192 pixels, one that is larger than any canvas, and two whole sprites."""
    where, rng = tmp_path_factory.mktemp("game") / "set", np.random.default_rng(0)
    drawn = [trimmed(rgba) for rgba in demo_sprites()[::560]]
    for number, one in enumerate(drawn[:5]):
        cells = animated(one, 6, 24, 24, rng)
        write(where / f"strip{number}.png", laid(cells, Grid(24, 24), 6, 192))
    write(where / "strip5.png", laid(animated(drawn[5], 12, 24, 24, rng), Grid(24, 24), 12))
    write(where / "whole.png", sprite(1, 24))
    write(where / "wide.png", sprite(2, 64, 24))
    return where


def load(qtbot: QtBot, page: SpritesPage, path: Path) -> None:
    with qtbot.waitSignal(page.session.open_sprites.ended):
        page.session.open_sprites.open_paths([path])


def test_one_click_cuts_all_and_undo_takes_it_back(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    line, open_sprites = page.proposal, page.session.open_sprites
    assert line.isVisible() and page.tabs.isVisible() and QApplication.activeModalWidget() is None
    assert line.words.text() == (
        "6 pictures look like strips or sheets of many sprites: cut them into 42 sprites of 24 × 24 pixels?"
    )
    assert open_sprites.sprites is not None and open_sprites.sprites.size == 192 and len(open_sprites.sprites) == 7
    with qtbot.waitSignal(open_sprites.imported):
        click(line.cut)
    assert open_sprites.sprites.size == 24 and not line.cut.isVisible()
    assert line.words.text() == "6 pictures were cut into 42 sprites."
    assert {"whole.png"} == {name for name in open_sprites.sprites.names if "#" not in name}
    with qtbot.waitSignal(open_sprites.imported):
        click(line.undo)
    assert open_sprites.sprites.size == 192 and line.cut.isVisible() and not line.undo.isVisible()
    click(line.close_line)
    assert not line.isVisible() and page.tabs.isVisible()


def test_the_doctors_cut_is_the_same_and_undo_leaves_later_choices(
    qtbot: QtBot, page: SpritesPage, folder: Path
) -> None:
    load(qtbot, page, folder)
    line, open_sprites, doctor = page.proposal, page.session.open_sprites, page.session.doctor
    fixes = [fix for found in doctor.findings for fix in found.fixes if fix.title == line.cut.text()]
    with qtbot.waitSignal(open_sprites.ended):
        doctor.mend(fixes[0])
    assert line.words.text() == "6 pictures were cut into 42 sprites." and line.undo.isVisible()
    by_doctor = open_sprites.opened
    open_sprites.undo()
    line.cut.click()
    assert (open_sprites.newest.options, open_sprites.newest.past) == (by_doctor.options, by_doctor.past)
    qtbot.waitUntil(lambda: not open_sprites.is_busy())
    open_sprites.change_options(open_sprites.options.replace(class_levels=1))
    chosen = open_sprites.newest
    line.undo.click()
    assert open_sprites.newest is chosen
    qtbot.waitUntil(lambda: not open_sprites.is_busy())
    assert open_sprites.opened is chosen and not line.isVisible()


def test_the_cells_are_seen_before_anything_is_cut(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    view = page.cutting
    click(page.proposal.see_cells)
    qtbot.waitUntil(lambda: view.is_open and view._reader.sheet is not None)
    assert view._which.text() == "Sheet 1 of 6" and view.count.text() == "6 sprites, 2 empty cells left out"
    assert view.form.automatic.isChecked() and view.form.boxes["tile"].value() == 24
    assert "own grid" in view.hint.text() and "2 other sprites stay whole" in view.hint.text()
    with qtbot.waitSignal(page.session.open_sprites.imported):
        click(view.cut)
    sprites = page.session.open_sprites.sprites
    assert sprites is not None and sprites.size == 24 and "strip5.png#r1 c12" in sprites.names


def test_the_doctor_leads_to_the_cells_too(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    page.tabs.setCurrentIndex(1)
    doctor, view = page.doctor, page.cutting
    words = [doctor.groups.item(row).text() for row in range(doctor.groups.count())]
    assert "Looks like a sheet (1)" in words and "Looks like a sheet (5)" in words
    doctor.groups.setCurrentRow(words.index("Looks like a sheet (5)"))
    doctor.grid.select([3])
    click(doctor.see_cells)
    qtbot.waitUntil(lambda: view.is_open and view._reader.sheet is not None)
    assert view._title.text() == "strip3.png"


def test_a_picture_that_may_be_one_sprite_is_not_cut_by_the_way(qtbot: QtBot, page: SpritesPage, folder: Path) -> None:
    load(qtbot, page, folder)
    page.doctor.files.cut_wanted.emit("wide.png")
    view = page.cutting
    qtbot.waitUntil(lambda: view.is_open and view._reader.sheet is not None)
    assert not view.cut.isEnabled() and "whole" in view.count.text()
    view.form.boxes["tile"].setValue(32)
    assert view.cut.isEnabled() and view.options().tile == 32


def test_one_picture_and_sizes_that_differ() -> None:
    one = [FoundSheet("a.png", Grid(16, 24), 8)]
    assert proposal(one) == (
        "1 picture looks like a strip or a sheet of many sprites: cut it into 8 sprites of 16 × 24 pixels?"
    )
    several = [*one, FoundSheet("b.png", Grid(12, 15), 1_200)]
    assert proposal(several).endswith("cut them into 1,208 sprites of about 12 × 15 pixels?")
