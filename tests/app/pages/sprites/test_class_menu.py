"""Sprites are moved to classes by menu, dialog and keys."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.class_menu import ClassDialog, ClassMenu
from studio.app.pages.sprites.page import SpritesPage
from studio.app.state.sprites.edits import SpriteEdits
from tests.app.conftest import LONG_MS, click, open_sprites, sprites_of


@pytest.fixture
def shown(qtbot: QtBot, page: SpritesPage, sprite_folder: Path) -> SpritesPage:
    """The Sprites page with open sprites."""
    open_sprites(qtbot, page.session, sprite_folder)
    return page


def listed(menu: ClassMenu) -> dict[str, bool]:
    """The texts in a menu, and whether each is enabled."""
    return {action.text(): action.isEnabled() for action in menu.actions() if action.text()}


def dialog() -> ClassDialog:
    (found,) = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, ClassDialog))
    return found


def test_menu_moves_the_selected_sprites(qtbot: QtBot, shown: SpritesPage) -> None:
    grid, mover = shown.browser.grid, shown.browser.selection.class_mover
    grid.menu.aboutToShow.emit()
    assert not mover.menu.menuAction().isEnabled() and "Select some" in mover.menu.menuAction().toolTip()
    grid.select([0, 1])
    grid.menu.aboutToShow.emit()
    assert mover.menu.menuAction().isEnabled()
    assert listed(mover.menu) == {"class0": False, "class1": True, "New class…": True}
    with qtbot.waitSignal(shown.session.open_sprites.imported, timeout=LONG_MS):
        mover.menu.actions()[1].trigger()
    assert sprites_of(shown.session).class_counts().tolist() == [10, 14]


def test_key_opens_a_dialog_for_a_new_class(qtbot: QtBot, shown: SpritesPage) -> None:
    grid = shown.browser.grid
    shown.activateWindow()
    grid.setFocus()
    qtbot.waitUntil(grid.view.hasFocus)
    grid.select([0, 1, 2])
    QTest.keyClick(grid.view, Qt.Key.Key_M)
    asked = dialog()
    assert not asked.move_button.isEnabled() and asked.move_button.toolTip() == "Move: type a class name first."
    asked.field.setText("a//b")
    click(asked.move_button)
    assert asked.field.property("invalid") and "slash" in asked.field.toolTip() and asked.isVisible()
    asked.field.setText(" boss ")
    with qtbot.waitSignal(shown.session.open_sprites.imported, timeout=LONG_MS):
        QTest.keyClick(asked.field, Qt.Key.Key_Return)
    assert sprites_of(shown.session).class_names == ("boss", "class0", "class1")


def test_ignored_edits_disable_the_menu_with_the_reason(qtbot: QtBot, shown: SpritesPage) -> None:
    opened, mover = shown.session.open_sprites, shown.browser.selection.class_mover
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        opened.change_options(opened.options.replace(edits="off"))
    shown.browser.grid.select([0])
    shown.browser.grid.menu.aboutToShow.emit()
    assert mover.menu.menuAction().toolTip() == "Your edits are off in Import settings."
    mover.open_dialog()
    assert not any(isinstance(widget, ClassDialog) for widget in QApplication.topLevelWidgets())


def test_doctor_moves_the_sprites_of_a_finding(qtbot: QtBot, shown: SpritesPage) -> None:
    shown.tabs.setCurrentWidget(shown.doctor)
    qtbot.waitUntil(lambda: not shown.session.doctor.is_checking, timeout=LONG_MS)
    shown.browser.grid.select([])
    found = shown.session.open_sprites
    with qtbot.waitSignal(found.imported, timeout=LONG_MS):
        SpriteEdits(found).move_to_class([5], "boss")
    qtbot.waitUntil(lambda: not shown.session.doctor.is_checking, timeout=LONG_MS)
    groups = shown.doctor.groups
    (row,) = (row for row in range(groups.count()) if groups.item(row).text() == "Moved to another class (1)")
    groups.setCurrentRow(row)
    shown.doctor.grid.select([0])
    shown.doctor.grid.menu.aboutToShow.emit()
    (menu,) = shown.doctor.grid.menu.findChildren(ClassMenu) or shown.doctor.grid.findChildren(ClassMenu)
    assert listed(menu)["boss"] is False
    with qtbot.waitSignal(found.imported, timeout=LONG_MS):
        next(action for action in menu.actions() if action.text() == "class0").trigger()
    assert sprites_of(shown.session).class_names == ("class0", "class1")


def test_many_classes_list_the_nearest(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    menu = ClassMenu(parent)
    names = [f"armour/{number:02}" for number in range(20)] + [f"weapon/{number:02}" for number in range(20)]
    menu.set_classes(names, ["weapon/03"])
    texts = list(listed(menu))
    assert len(texts) == 17 and texts[0] == "weapon/00" and texts[-1] == "Other class…"


def test_moved_sprites_leave_the_chosen_class(qtbot: QtBot, shown: SpritesPage) -> None:
    classes, grid = shown.summary.classes, shown.browser.grid
    first = classes.topLevelItem(1)
    assert first is not None
    classes.setCurrentItem(first)
    assert grid.visible_count() == 12
    grid.select([0, 1])
    with qtbot.waitSignal(shown.session.open_sprites.imported, timeout=LONG_MS):
        SpriteEdits(shown.session.open_sprites).move_to_class(grid.selected(), "class1")
    assert grid.visible_count() == 10 and grid.selected() == [2]  # the next sprite


def test_selection_and_position_stay_after_a_move(qtbot: QtBot, shown: SpritesPage) -> None:
    grid, opened = shown.browser.grid, shown.session.open_sprites
    shown.resize(700, 300)
    grid.zoom.set(16)
    grid.select([13, 14])
    top = grid.view.verticalScrollBar().value()
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        SpriteEdits(opened).move_to_class(grid.selected(), "boss")
    assert grid.selected() == [13, 14] and grid.view.verticalScrollBar().value() == top > 0
    assert grid.shown_sprite(13).about == "boss"


def test_sprites_are_dropped_on_a_class(qtbot: QtBot, shown: SpritesPage, monkeypatch: pytest.MonkeyPatch) -> None:
    grid, classes, opened = shown.browser.grid, shown.summary.classes, shown.session.open_sprites
    data, copy, no_key = QMimeData(), Qt.DropAction.CopyAction, Qt.KeyboardModifier.NoModifier
    source: list[object] = [grid.view]
    for kind in (QDragEnterEvent, QDragMoveEvent, QDropEvent):
        monkeypatch.setattr(kind, "source", lambda event: source[0], raising=False)

    def hover(row: int) -> bool:
        """Drag over a row of the list; return whether it accepts the sprites."""
        item = classes.topLevelItem(row)
        assert item is not None
        place = classes.visualItemRect(item).center()
        entered = QDragEnterEvent(place, copy, data, Qt.MouseButton.LeftButton, no_key)
        classes.dragEnterEvent(entered)
        moved = QDragMoveEvent(place, copy, data, Qt.MouseButton.LeftButton, no_key)
        classes.dragMoveEvent(moved)
        return entered.isAccepted() and moved.isAccepted()

    grid.select([0, 1, 2])
    assert not hover(0) and hover(1) and hover(2)
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        classes.dropEvent(QDropEvent(QPointF(), copy, data, Qt.MouseButton.LeftButton, no_key))
    assert sprites_of(shown.session).class_counts().tolist() == [9, 15] and len(opened.history.steps()[0]) == 1
    source[0] = None  # files from another program
    assert not hover(2)
