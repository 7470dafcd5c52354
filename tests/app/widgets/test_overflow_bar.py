"""A row of buttons with a menu for the buttons that don't fit."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QMenu, QToolButton
from pytestqt.qtbot import QtBot

from studio.app.widgets import factory
from studio.app.widgets.overflow_bar import OverflowBar
from tests.app.widgets.tools import shown

NAMES = ("Keep", "Reject", "Edit", "Copy", "Save")


@pytest.fixture
def buttons() -> list[QToolButton]:
    return [factory.tool_button("save", name, f"{name} it.") for name in NAMES]


@pytest.fixture
def bar(qtbot: QtBot, buttons: list[QToolButton]) -> OverflowBar:
    return shown(qtbot, OverflowBar(buttons[:2], buttons[2:]), 400, 40)


def test_buttons_that_do_not_fit_are_in_the_menu(bar: OverflowBar, buttons: list[QToolButton]) -> None:
    assert all(button.isVisible() for button in buttons) and not bar.more.isVisible()
    places, height = [button.geometry() for button in buttons], bar.sizeHint().height()
    for width in range(bar.sizeHint().width() - 1, bar.minimumSizeHint().width(), -7):
        bar.resize(width, 40)
        in_row = [button for button in buttons if button.isVisible()]
        assert [*in_row, *bar.in_menu()] == buttons and bar.more.isVisible()
        assert [button.geometry() for button in in_row] == places[: len(in_row)]  # nothing wraps or jumps
        assert all(button.geometry().right() < bar.more.x() for button in in_row)
        assert bar.more.geometry().right() < width and bar.sizeHint().height() == height
    bar.resize(400, 40)
    assert all(button.isVisible() for button in buttons) and bar.in_menu() == []


def test_menu_entries_press_their_buttons(bar: OverflowBar, buttons: list[QToolButton]) -> None:
    pressed: list[str] = []
    buttons[4].clicked.connect(lambda: pressed.append("Save"))
    factory.set_enabled(buttons[3], "Select a sprite first.")
    choices = QMenu()
    choices.addAction("4 frames")
    buttons[2].setMenu(choices)
    bar.resize(bar.minimumSizeHint().width() + 40, 40)
    menu = bar.more.menu()
    menu.aboutToShow.emit()
    menu.aboutToShow.emit()  # filling twice doubles nothing
    reject, edit, copy, save = menu.actions()
    assert [action.text() for action in (reject, edit, copy, save)] == list(NAMES[1:])
    assert edit.menu() is choices and not copy.isEnabled() and copy.toolTip() == "Select a sprite first."
    save.trigger()
    assert pressed == ["Save"]


def test_withdrawn_buttons_are_nowhere(bar: OverflowBar, buttons: list[QToolButton]) -> None:
    width = bar.sizeHint().width()
    bar.set_offered(buttons[0], False)
    assert not buttons[0].isVisible() and buttons[1].x() == 0 and bar.sizeHint().width() < width
    bar.resize(bar.minimumSizeHint().width(), 40)
    assert bar.in_menu() == buttons[1:]
    bar.set_offered(buttons[0], True)
    assert bar.in_menu() == buttons


def test_focus_stays_in_a_row_that_shrinks(qtbot: QtBot, bar: OverflowBar, buttons: list[QToolButton]) -> None:
    bar.activateWindow()
    buttons[4].setFocus()
    bar.resize(bar.minimumSizeHint().width() + 40, 40)
    assert bar.more.hasFocus() and bar.more.accessibleName() == "More actions"
