"""The selected sprites of the Sprites page: context menu, keys, copies and drags."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.sprites import selection
from studio.app.pages.sprites.page import SpritesPage
from tests.app.conftest import LONG_MS, open_sprites, sprites_of

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def filled(qtbot: QtBot, page: SpritesPage, sprite_folder: Path) -> SpritesPage:
    """Return the Sprites page with open sprites."""
    open_sprites(qtbot, page.session, sprite_folder)
    return page


def action(page: SpritesPage, text: str) -> QAction:
    return next(each for each in page.grid.menu.actions() if each.text() == text)


def test_right_click_selects_and_opens_the_menu(qtbot: QtBot, filled: SpritesPage) -> None:
    view, menu = filled.grid.view, filled.grid.menu
    place = view.visualRect(view.model().index(2, 0)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.RightButton, pos=place)
    reason = QContextMenuEvent.Reason
    QApplication.sendEvent(view.viewport(), QContextMenuEvent(reason.Mouse, place, view.viewport().mapToGlobal(place)))
    assert filled.grid.selected() == [2] and menu.isVisible()
    menu.close()
    empty = view.viewport().rect().bottomRight() - QPoint(2, 2)
    QApplication.sendEvent(view.viewport(), QContextMenuEvent(reason.Mouse, empty, view.viewport().mapToGlobal(empty)))
    assert not menu.isVisible()


def test_keys_open_the_menu_at_the_current_sprite(qtbot: QtBot, filled: SpritesPage) -> None:
    view, menu = filled.grid.view, filled.grid.menu
    view.setFocus()
    qtbot.waitUntil(view.hasFocus)
    filled.grid.go_to(5)
    corner = QPoint(1, 1)
    for open_menu in (
        lambda: QTest.keyClick(view, Qt.Key.Key_F10, SHIFT),
        lambda: QApplication.sendEvent(view, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, corner, corner)),
    ):
        open_menu()
        assert menu.isVisible() and filled.grid.selected() == [5]
        menu.close()


def test_exclude_from_the_menu(qtbot: QtBot, filled: SpritesPage) -> None:
    names = sprites_of(filled.session).names
    assert not action(filled, "Exclude").isEnabled() and action(filled, "Exclude").toolTip().startswith("Select")
    filled.grid.select([0, 1])
    with qtbot.waitSignal(filled.session.open_sprites.imported, timeout=LONG_MS):
        action(filled, "Exclude").trigger()
    assert sprites_of(filled.session).names == names[2:]


def test_copy_with_the_keyboard(qtbot: QtBot, filled: SpritesPage) -> None:
    filled.grid.view.setFocus()
    qtbot.waitUntil(filled.grid.view.hasFocus)
    filled.grid.select([3])
    QTest.keyClick(filled.grid.view, Qt.Key.Key_C, CTRL)
    image, sprite = QGuiApplication.clipboard().image(), sprites_of(filled.session).rgba[3]
    assert (image.width(), image.height()) == (8, 8)
    assert image.pixelColor(4, 4).getRgb() == tuple(sprite[4, 4].tolist())
    (copied,) = QGuiApplication.clipboard().mimeData().urls()
    name = sprites_of(filled.session).names[3]
    assert Path(copied.toLocalFile()).name == name.replace("/", "_")  # no second '.png'
    cell = SpriteSelection(sprite[None], ["orc.PNG#r1 c2"], {})
    (written,) = filled.session.drag_files.write(cell)
    assert written.name == "orc-r1-c2.png"


def test_show_in_folder(
    qtbot: QtBot, filled: SpritesPage, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[list[Path]] = []
    monkeypatch.setattr(selection, "show_in_folder", shown.append)
    filled.grid.select([0, 20])
    action(filled, "Show in folder").trigger()
    qtbot.waitUntil(lambda: bool(shown), timeout=LONG_MS)
    names = sprites_of(filled.session).names
    assert shown == [[sprite_folder / names[0], sprite_folder / names[20]]]
    filled.grid.select(range(24))
    assert not action(filled, "Show in folder").isEnabled()
