"""Sheets of characters are offered as characters, shown in a table, and their views named."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.page import SpritesPage
from studio.app.widgets import factory
from studio.app.widgets.sprites.set_header import NameEditor
from studio.core import paths
from studio.data.options import ImportOptions
from tests.app.conftest import LONG_MS, click, open_sprites, sprites_of


@pytest.fixture
def characters(tmp_path: Path) -> Path:
    """The sheets of four demo characters."""
    folder = tmp_path / "heroes"
    folder.mkdir()
    for path in sorted(paths.demo_characters().glob("*.png"))[:4]:
        shutil.copy(path, folder)
    return folder


def wait_for_import(qtbot: QtBot, page: SpritesPage) -> None:
    qtbot.waitUntil(lambda: not page.session.open_sprites.is_busy(), timeout=LONG_MS)


def test_sheets_are_sliced_into_characters_and_undone(qtbot: QtBot, page: SpritesPage, characters: Path) -> None:
    opened, line, browser = page.session.open_sprites, page.proposal, page.browser
    open_sprites(qtbot, page.session, characters)
    assert line.text.text() == "Looks like 4 characters with 4 views × 4 frames."
    assert line.slice_button.text() == "Slice into characters" and not browser.as_table.isVisible()
    assert line.mapTo(page, line.rect().topLeft()).y() >= factory.GRID  # apart from a message above the page
    click(line.slice_button)
    wait_for_import(qtbot, page)
    assert opened.options == ImportOptions(sets="sheets") and sprites_of(page.session).sets.chosen
    assert line.orders.isVisible() and "characters" not in line.text.text()
    assert browser.table.isVisible() and browser.as_table.isChecked() and not line.show_table.isVisible()
    click(browser.as_table)
    assert page.grid.view.isVisible() and line.text.text().endswith("sprites. 4 characters with 4 views × 4 frames.")
    click(line.show_table)
    assert not page.grid.view.isVisible() and page.grid.visible_count() == len(sprites_of(page.session))
    names = [button.accessibleName() for button in line.orders.buttons]
    assert names == ["down, left, right, up", "down, up, left, right", "up, left, down, right"]
    click(line.orders.buttons[1])
    wait_for_import(qtbot, page)
    assert sprites_of(page.session).sets.rows == ("down", "up", "left", "right") and not line.orders.isVisible()
    opened.history.undo()
    wait_for_import(qtbot, page)
    assert line.orders.isVisible()
    click(line.undo)
    wait_for_import(qtbot, page)
    assert page.grid.view.isVisible() and not browser.table.isVisible() and line.slice_button.isVisible()
    assert len(sprites_of(page.session)) == 4


def test_views_are_named_in_the_table(qtbot: QtBot, page: SpritesPage, characters: Path) -> None:
    opened, table = page.session.open_sprites, page.browser.table
    opened.open_paths([characters], ImportOptions(sets="sheets"))
    wait_for_import(qtbot, page)
    page.browser.show_table()
    field = table.findChild(NameEditor)
    typed = page.summary.form.findChild(QLineEdit, "rows")
    assert field is not None and typed is not None
    table.rename_view()
    field.setText("row2")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert "'row2' is there twice" in field.toolTip() and not opened.is_busy()
    typed.setText("down,,left")
    page.summary.apply_options()
    assert "a name is missing" in typed.toolTip() and not opened.is_busy()
    field.setText("down,up,left,right")
    QTest.keyClick(field, Qt.Key.Key_Return)
    wait_for_import(qtbot, page)
    assert opened.options.rows == "down,up,left,right" and sprites_of(page.session).sets.rows[3] == "right"
    assert not page.proposal.isVisible() and page.browser.table.isVisible()
    assert opened.history.latest is not None and opened.history.latest.title == "rename views"
    opened.history.undo()
    wait_for_import(qtbot, page)
    assert sprites_of(page.session).sets.rows[0] == "row1"


def test_the_table_is_remembered_and_follows_filters(qtbot: QtBot, page: SpritesPage, characters: Path) -> None:
    page.session.open_sprites.open_paths([characters], ImportOptions(sets="sheets"))
    wait_for_import(qtbot, page)
    page.grid.go_to(20)
    click(page.browser.as_table)
    assert page.grid.selected() == [20] and page.browser.table.currentIndex().isValid()
    name = sorted(path.stem for path in characters.iterdir())[1]
    page.browser.search.setText(name)
    qtbot.waitUntil(lambda: page.browser.table.model().rowCount() < 4)
    assert page.tabs.tabText(0).startswith("Sprites (")
    page.save_state()
    other = SpritesPage(page.session)
    qtbot.addWidget(other)
    open_sprites(qtbot, page.session, characters)
    assert other.browser.shows_table()
    assert other.reopened.text.text() == "Opened as you left it: 4 sheets sliced into characters."


def test_large_sheets_of_characters_are_named_in_the_slicing_view(
    qtbot: QtBot, page: SpritesPage, characters: Path
) -> None:
    for path in characters.iterdir():
        cells = np.asarray(Image.open(path)).reshape(4, 16, 4, 16, 4)
        wide = np.pad(cells, ((0, 0), (4, 4), (0, 0), (4, 4), (0, 0))).reshape(96, 96, 4)
        Image.fromarray(np.tile(wide, (1, 3, 1))).save(path)  # 12 frames, wider than a sprite can be
    page.session.open_sprites.open_paths([characters])
    qtbot.waitUntil(page.cutting.isVisible, timeout=LONG_MS)
    texts = [label.text() for label in page.cutting.findChildren(QLabel)]
    assert "Looks like 4 characters with 4 views × 12 frames. Check the cells, then slice the sheets." in texts
    assert page.cutting.form.options().sets == "sheets"
