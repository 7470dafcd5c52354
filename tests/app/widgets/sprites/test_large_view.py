"""The large view of a grid's sprites: keys, zoom, and what the grid does meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app.widgets.menu import set_action_enabled
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.app.widgets.sprites.large_view import LargeView
from tests.app.widgets.tools import shown, turn_wheel
from tests.conftest import make_sprites

KEY, SPRITES = Qt.Key, make_sprites()


@pytest.fixture
def grid(qtbot: QtBot) -> SpriteGrid:
    made, sprites = SpriteGrid(), SPRITES
    made.set_sprites(sprites.rgba, names=sprites.names, labels=sprites.labels, class_names=sprites.class_names)
    made.activated.connect(made.open_large)
    return shown(qtbot, made, 600, 400)


def opened(qtbot: QtBot, grid: SpriteGrid, row: int) -> LargeView:
    """Open the large view of a row by a double-click."""
    place = grid.view.visualRect(grid.view.model().index(row, 0)).center()
    for click in (QTest.mouseClick, QTest.mouseDClick):
        click(grid.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
    view = grid.findChild(LargeView)
    assert isinstance(view, LargeView)
    qtbot.waitUntil(view.isActiveWindow)
    return view


def test_arrow_keys_go_through_the_shown_sprites(qtbot: QtBot, grid: SpriteGrid) -> None:
    grid.set_visible([3, 8, 20])
    view, names = opened(qtbot, grid, 1), SPRITES.names
    assert view.name.text() == names[8] and "2 of 3" in view.about.text() and "8 × 8 pixels" in view.about.text()
    assert "class" in view.about.text()
    for key, index in (
        (KEY.Key_Right, 20),
        (KEY.Key_Right, 20),
        (KEY.Key_Home, 3),
        (KEY.Key_Left, 3),
        (KEY.Key_End, 20),
    ):
        QTest.keyClick(view, key)
        assert view.name.text() == names[index] and grid.selected() == [index]
    assert not view.next.isEnabled() and view.previous.isEnabled()
    QTest.keyClick(view, KEY.Key_Escape)
    assert not view.isVisible()


def test_a_sprite_alone_has_no_neighbours(qtbot: QtBot, grid: SpriteGrid) -> None:
    grid.set_visible([3])
    view = opened(qtbot, grid, 0)
    assert "of 1" not in view.about.text() and view.previous.isHidden() and view.next.isHidden()
    QTest.keyClick(view, KEY.Key_Right)
    assert view.name.text() == SPRITES.names[3]


def test_a_picture_larger_than_the_view_is_shrunk(qtbot: QtBot, grid: SpriteGrid) -> None:
    view = opened(qtbot, grid, 0)
    view.canvas.set_sprite(np.full((3000, 4000, 4), 255, np.uint8))
    assert 0 < view.canvas.zoom() < 1 and view.zoom.text() == f"{round(100 * view.canvas.zoom())} %"
    view.canvas.zoom_out()
    view.canvas.zoom_in()
    assert view.canvas.zoom() == 2
    view.canvas.fit()
    corner = view.canvas.point((3999, 2999))
    assert view.canvas.rect().contains(corner) and not view.canvas.grab().isNull()


def test_zooms_are_whole_and_stay(qtbot: QtBot, grid: SpriteGrid) -> None:
    view = opened(qtbot, grid, 0)
    fitting = view.canvas.zoom()
    assert fitting * 8 <= min(view.canvas.width(), view.canvas.height()) < (fitting + 1) * 8 or fitting == 64
    QTest.keyClick(view, KEY.Key_Minus)
    smaller = view.canvas.zoom()
    assert smaller < fitting and view.zoom.text() == f"{100 * smaller:,} %"
    QTest.keyClick(view, KEY.Key_Right)
    assert view.canvas.zoom() == smaller
    turn_wheel(view.canvas, view.canvas.rect().center(), 120)
    assert view.canvas.zoom() > smaller
    QTest.keyClick(view, KEY.Key_0)
    assert view.canvas.zoom() == fitting


def test_drag_moves_the_sprite(qtbot: QtBot, grid: SpriteGrid) -> None:
    view = opened(qtbot, grid, 0)
    start, left = view.canvas.rect().center(), Qt.MouseButton.LeftButton
    before = view.canvas.point((0, 0))
    QTest.mousePress(view.canvas, left, pos=start)
    QTest.mouseMove(view.canvas, start + QPoint(20, 10))
    QTest.mouseRelease(view.canvas, left, pos=start + QPoint(20, 10))
    assert view.canvas.point((0, 0)) - before == QPoint(20, 10)


def test_menu_and_keys_of_the_grid_act_on_the_shown_sprite(qtbot: QtBot, grid: SpriteGrid) -> None:
    acted: list[int] = []
    grid.menu.add("Reject", "Reject.", lambda: acted.extend(grid.selected()), command="reject")
    view = opened(qtbot, grid, 2)
    QTest.keyClick(view, KEY.Key_Right)
    QTest.keyClick(view, KEY.Key_X)
    assert acted == [3]
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(5, 5), view.mapToGlobal(QPoint(5, 5)))
    QApplication.sendEvent(view.canvas, event)
    assert grid.menu.isVisible()
    grid.menu.close()


def test_new_sprites_of_the_grid_are_shown(qtbot: QtBot, grid: SpriteGrid) -> None:
    view, sprites = opened(qtbot, grid, 2), SPRITES
    grid.set_sprites(sprites.rgba[4:], names=sprites.names[4:])
    assert view.isVisible()
    grid.go_to(0)
    assert view.name.text() == sprites.names[4]
    grid.set_visible([])
    assert not view.isVisible()


def test_view_closes_when_the_sprites_are_left(qtbot: QtBot, grid: SpriteGrid) -> None:
    edit = grid.menu.add("Edit", "Edit.", grid.setFocus, command="edit")
    grid.menu.leave_after(edit)
    view = opened(qtbot, grid, 0)
    QTest.keyClick(view, KEY.Key_E)
    assert not view.isVisible()


def test_actions_of_the_menu_as_buttons(qtbot: QtBot, grid: SpriteGrid) -> None:
    edit = grid.menu.add("Edit", "Edit.", grid.setFocus)
    grid.menu.leave_after(edit)
    grid.menu.in_large_view.append(edit)
    view = opened(qtbot, grid, 0)
    (button,) = view.buttons
    set_action_enabled(edit, "Select a sprite first.")
    assert button.text() == "Edit" and not button.isEnabled() and button.toolTip() == "Select a sprite first."
    set_action_enabled(edit, "")
    button.click()
    assert not view.isVisible()
