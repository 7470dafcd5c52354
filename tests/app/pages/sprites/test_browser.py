"""Search, filter and zoom of the open sprites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.page import SpritesPage
from studio.app.pages.sprites.search import SpriteSearch
from studio.app.state.session import Session
from studio.data.attributes.attributes import Attributes
from studio.data.sprites import Sprites
from tests.app.conftest import LONG_MS, open_sprites, sprites_of

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def filled(qtbot: QtBot, page: SpritesPage, sprite_folder: Path) -> SpritesPage:
    """Return the Sprites page with open sprites, 12 in each of two classes."""
    open_sprites(qtbot, page.session, sprite_folder)
    return page


def test_search_narrows_the_chosen_class(qtbot: QtBot, filled: SpritesPage) -> None:
    filled.summary.classes.choose("class1")
    assert filled.grid.visible_count() == 12
    QTest.keyClick(filled.grid, Qt.Key.Key_F, CTRL)
    qtbot.waitUntil(filled.browser.search.hasFocus)
    word = sprites_of(filled.session).names[-1].rpartition("/")[2]
    QTest.keyClicks(filled.browser.search, word.upper())
    qtbot.waitUntil(lambda: filled.grid.visible_count() == 1)
    assert filled.tabs.tabText(0) == "Sprites (1)"
    QTest.keyClick(filled.browser.search, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: filled.grid.visible_count() == 12)


def test_search_without_a_match_offers_all(qtbot: QtBot, filled: SpritesPage) -> None:
    filled.summary.classes.choose("class1")
    filled.browser.search.setText("class0")
    qtbot.waitUntil(filled.browser.show_all.isVisible)
    filled.browser.show_all.click()
    qtbot.waitUntil(lambda: filled.grid.visible_count() == 24)
    assert filled.summary.classes.chosen_class() == "" and filled.tabs.tabText(0) == "Sprites"


def test_exclusion_keeps_class_search_and_place(qtbot: QtBot, filled: SpritesPage) -> None:
    names = sprites_of(filled.session).names
    filled.summary.classes.choose("class1")
    filled.browser.search.setText("png")
    qtbot.waitUntil(lambda: filled.browser.search.indices is not None)
    filled.grid.select([14, 15])
    with qtbot.waitSignal(filled.session.open_sprites.imported, timeout=LONG_MS):
        filled.selection.exclude.click()
    assert filled.grid.visible_count() == 10 and filled.summary.classes.chosen_class() == "class1"
    (selected,) = filled.grid.selected()
    assert sprites_of(filled.session).names[selected] == names[16]


def test_words_are_found_in_names_classes_and_attributes(qtbot: QtBot) -> None:
    search, rgba = SpriteSearch(), np.zeros((3, 8, 8, 4), np.uint8)
    qtbot.addWidget(search)
    names = ("a/Ruby.png", "b/ruby ring.png", "b/cafe\u0301.png")
    attributes = Attributes(("element",), (("fire", "Ice"),), np.array([[1], [0], [-1]], np.int16))
    sprites = Sprites(rgba, np.array([0, 1, 1]), ("Gem", "ring"), names, "set", attributes=attributes)
    search.set_sprites(sprites)
    words = {"ruby": [0, 1], "RING ruby": [1], "gem": [0], "CAFÉ": [], "zz": [], "ruby ice": [0], "fire": [1]}
    for text, found in words.items():
        with qtbot.waitSignal(search.found):
            search.setText(text)
        assert search.indices is not None and search.indices.tolist() == found
    with qtbot.waitSignal(search.found):
        search.clear()
    assert search.indices is None


def test_zoom_slider_is_remembered(qtbot: QtBot, filled: SpritesPage, session: Session) -> None:
    slider = filled.browser.zoom.slider
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Home)
    assert filled.grid.zoom.value == 1 and not filled.browser.zoom.smaller.isEnabled()
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert filled.grid.zoom.value == 2
    filled.save_state()
    other = SpritesPage(session)
    qtbot.addWidget(other)
    assert other.grid.zoom.thumbnail == 16


def test_zoom_of_older_settings_is_kept(qtbot: QtBot, session: Session) -> None:
    session.settings.set_text("sprites_zoom", "4")
    page = SpritesPage(session)
    qtbot.addWidget(page)
    assert page.grid.zoom.thumbnail == 4 * 32
