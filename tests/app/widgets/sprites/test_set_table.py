"""The table of sets shares the grid's selection, names views in its header, and draws gaps."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTableView
from pytestqt.qtbot import QtBot

from studio.app.widgets.sprites.grid import SpriteGrid
from studio.app.widgets.sprites.set_header import NameEditor
from studio.app.widgets.sprites.set_table import SetTable
from studio.data.sets.layout import SetLayout
from studio.data.sets.renaming import Axis
from tests.conftest import make_sprites

KEY, NONE = Qt.Key, Qt.KeyboardModifier.NoModifier
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
CELLS = ("down/1", "down/2", "up/1", "up/2")
# 'elf' repeats sprite 4, lacks up/1 and has a frame more than 'imp'; sprite 9 is in no set.
LAYOUT = SetLayout(CELLS, ("elf", "imp", "orc"), np.array([[4, 4, -1, 5], [6, -1, 7, -1], [0, 1, 2, 3]], np.int32))


class Names:
    """A namer that records the typed names; 'bad' is impossible, and frames are fixed."""

    def __init__(self) -> None:
        self.typed: list[tuple[Axis, str, str]] = []

    def shown_name(self, axis: Axis, name: str) -> str:
        return next((text for _, old, text in reversed(self.typed) if old == name), name)

    def why_fixed(self, axis: Axis, name: str) -> str:
        return "Rename the files." if axis == "columns" else ""

    def rename(self, axis: Axis, name: str, text: str) -> str:
        self.typed.append((axis, name, text))
        return "That name is bad." if text == "bad" else ""


@pytest.fixture
def grid(qtbot: QtBot) -> SpriteGrid:
    """A shown grid with 24 sprites."""
    made, sprites = SpriteGrid(), make_sprites()
    qtbot.addWidget(made)
    made.set_sprites(sprites.rgba, sprites.names)
    made.view.drag.is_enabled = True
    made.resize(600, 400)
    return made


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def table(grid: SpriteGrid, names: Names) -> SetTable:
    """The table, shown instead of the grid's thumbnails."""
    made = SetTable(grid, names)
    assert not made.show_sets(LAYOUT)
    grid.set_visible(made.show_sets_with(None))
    grid.show_instead(made)
    grid.show()
    made.setFocus()
    return made


def selected_cells(table: QTableView) -> list[tuple[int, int]]:
    return sorted((index.row(), index.column()) for index in table.selectionModel().selectedIndexes())


def click(table: QTableView, row: int, column: int, modifiers: Qt.KeyboardModifier = NONE) -> None:
    place = table.visualRect(table.model().index(row, column)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, modifiers, place)


def test_selection_is_shared(grid: SpriteGrid, table: SetTable) -> None:
    click(table, 2, 1)
    assert grid.selected() == [1] and grid.shown_sprite(grid.current_row()).name.endswith("001.png")
    click(table, 0, 0, CTRL)
    assert grid.selected() == [1, 4]
    QTest.keyClick(table, KEY.Key_Right)
    assert grid.selected() == [4] and selected_cells(table) == [(0, 1)]
    QTest.keyClick(table, KEY.Key_Right)  # a gap
    assert not grid.selected() and table.currentIndex().column() == 2
    grid.go_to(7)
    assert selected_cells(table) == [(1, 2)]
    grid.select([4, 5, 9])
    assert selected_cells(table) == [(0, 0), (0, 1), (0, 3)]
    table.selectRow(1)
    assert grid.selected() == [6, 7]


def test_enter_opens_the_sprite_but_no_gap(qtbot: QtBot, grid: SpriteGrid, table: SetTable) -> None:
    click(table, 0, 3)
    with qtbot.waitSignal(grid.activated) as opened:
        QTest.keyClick(table, KEY.Key_Return)
    assert opened.args == [5]
    click(table, 0, 2)
    with qtbot.assertNotEmitted(grid.activated):
        QTest.keyClick(table, KEY.Key_Return)


def test_sets_are_filtered_and_ordered(table: SetTable) -> None:
    assert table.show_sets_with(None).tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert table.show_sets_with(np.array([3, 5])).tolist() == [4, 5, 0, 1, 2, 3]
    names = [table.model().headerData(row, Qt.Orientation.Vertical) for row in range(table.model().rowCount())]
    assert names == ["elf", "orc"]


def test_gaps_are_hatched_and_described(table: SetTable) -> None:
    tips = [table.model().index(row, 2).data(Qt.ItemDataRole.ToolTipRole) for row in range(2)]
    assert tips[0] == "elf has no up/1." and tips[1].startswith("imp, up/1: class")
    assert table.model().index(1, 1).data(Qt.ItemDataRole.ToolTipRole) == "imp has fewer frames."
    picture = table.viewport().grab().toImage()
    hatched, empty = (table.visualRect(table.model().index(*cell)) for cell in ((0, 2), (1, 1)))
    for area, colours in ((hatched, True), (empty, False)):
        found = {QColor(picture.pixel(area.center() + QPoint(x, 0))).name() for x in range(-12, 12)}
        assert (len(found) > 1) == colours


def test_a_view_is_renamed_in_place(table: SetTable, names: Names) -> None:
    header = table.horizontalHeader()
    field = header.findChild(NameEditor)
    assert field is not None and not field.isVisible()
    click(table, 2, 3)
    QTest.keyClick(table, KEY.Key_F2)
    assert field.isVisible() and field.selectedText() == "up"
    QTest.keyClicks(field, "bad")
    QTest.keyClick(field, KEY.Key_Return)
    assert field.isVisible() and field.toolTip() == "That name is bad."
    field.setText("back")
    QTest.keyClick(field, KEY.Key_Backtab)
    assert field.isVisible() and field.text() == "down"
    QTest.keyClick(field, KEY.Key_Tab)
    assert field.isVisible() and field.text() == "back"  # before the table has the name
    QTest.keyClick(field, KEY.Key_Escape)
    assert not field.isVisible() and QApplication.focusWidget() is table
    assert names.typed == [("rows", "up", "bad"), ("rows", "up", "back")]
    QTest.keyClick(table, KEY.Key_F2, SHIFT)
    assert not field.isVisible()
    place = QPoint(header.sectionViewportPosition(0) + 4, 4)
    QTest.mouseDClick(header.viewport(), Qt.MouseButton.LeftButton, NONE, place)
    QTest.mouseRelease(header.viewport(), Qt.MouseButton.LeftButton, NONE, place)
    assert field.isVisible() and field.text() == "down"


def test_new_names_keep_the_selection(table: SetTable) -> None:
    click(table, 2, 3)
    renamed = SetLayout(("front/1", "front/2", "back/1", "back/2"), LAYOUT.sets, LAYOUT.table)
    assert table.show_sets(renamed) and selected_cells(table) == [(2, 3)]
    assert table.model().headerData(3, Qt.Orientation.Horizontal) == "back/2"


def test_a_press_on_a_view_selects_its_frames(grid: SpriteGrid, table: SetTable) -> None:
    header = table.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(3) + 4, 4)
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, NONE, place)
    assert grid.selected() == [2, 3, 5, 7]


def test_selected_cells_are_dragged_and_a_click_selects_one(qtbot: QtBot, grid: SpriteGrid, table: SetTable) -> None:
    table.selectRow(2)
    area = table.viewport()
    start = table.visualRect(table.model().index(2, 1)).center()
    with qtbot.waitSignal(grid.view.drag.begun):
        QTest.mousePress(area, Qt.MouseButton.LeftButton, NONE, start)
        QTest.mouseMove(area, start + QPoint(40, 0))
    QTest.mouseRelease(area, Qt.MouseButton.LeftButton, NONE, start)
    assert grid.selected() == [0, 1, 2, 3]
    click(table, 2, 1)
    assert grid.selected() == [1]
