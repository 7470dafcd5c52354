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


def menu_texts(bar: OverflowBar) -> list[str]:
    """Open the menu and return its entries; nothing if the bar shows no menu."""
    menu = bar.more.menu()
    menu.aboutToShow.emit()
    return [action.text() for action in menu.actions()] if bar.more.isVisible() else []


def test_buttons_that_do_not_fit_are_in_the_menu(bar: OverflowBar, buttons: list[QToolButton]) -> None:
    assert all(button.isVisible() for button in buttons) and not bar.more.isVisible()
    places, height = [button.geometry() for button in buttons], bar.sizeHint().height()
    for width in range(bar.sizeHint().width() - 1, bar.minimumSizeHint().width(), -7):
        bar.resize(width, 40)
        in_row = [button for button in buttons if button.isVisible()]
        assert [*(button.accessibleName() for button in in_row), *menu_texts(bar)] == list(NAMES)
        assert bar.more.isVisible()
        assert [button.geometry() for button in in_row] == places[: len(in_row)]  # nothing wraps or jumps
        assert all(button.geometry().right() < bar.more.x() for button in in_row)
        assert bar.more.geometry().right() < width and bar.sizeHint().height() == height
    bar.resize(400, 40)
    assert all(button.isVisible() for button in buttons) and not bar.more.isVisible()


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
    assert edit.menu() is choices and not copy.isEnabled() and copy.toolTip() == "Copy: select a sprite first."
    save.trigger()
    assert pressed == ["Save"]


def test_withdrawn_buttons_are_nowhere(bar: OverflowBar, buttons: list[QToolButton]) -> None:
    width = bar.sizeHint().width()
    bar.set_offered(buttons[0], False)
    assert not buttons[0].isVisible() and buttons[1].x() == 0 and bar.sizeHint().width() < width
    bar.resize(bar.minimumSizeHint().width(), 40)
    assert menu_texts(bar) == list(NAMES[1:])
    bar.set_offered(buttons[0], True)
    assert menu_texts(bar) == list(NAMES)


def test_focus_stays_in_a_row_that_shrinks(qtbot: QtBot, bar: OverflowBar, buttons: list[QToolButton]) -> None:
    bar.activateWindow()
    buttons[4].setFocus()
    bar.resize(bar.minimumSizeHint().width() + 40, 40)
    assert bar.more.hasFocus() and bar.more.accessibleName() == "More actions"


def test_groups_show_texts_where_they_fit(qtbot: QtBot, buttons: list[QToolButton]) -> None:
    for button, text in zip(buttons, (*NAMES[:4], ""), strict=True):
        button.setText(text)  # the last button has no text
    bar = shown(qtbot, OverflowBar(buttons[:2], buttons[2:3], buttons[3:]), 1000, 40)
    icon, full = buttons[4].width(), bar.sizeHint().width()
    assert buttons[4].geometry().right() + 1 == full and min(button.width() for button in buttons[:4]) > icon
    bar.resize(full - 1, 40)  # too narrow for the text of the last group
    assert [button.width() > icon for button in buttons] == [True, True, True, False, False]
    for width in range(full - 1, bar.minimumSizeHint().width(), -7):
        bar.resize(width, 40)
        right = max((button.geometry().right() for button in buttons if button.isVisible()), default=0)
        assert right < width and all(button.isVisible() for button in buttons) != bar.more.isVisible()
    assert all(button.width() == icon for button in buttons if button.isVisible())
