"""The table of given cells."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets import factory
from studio.app.widgets.sprites.cell_table import CellContent, GivenTable


def test_a_vertical_scroll_bar_leaves_the_last_column_whole(qtbot: QtBot) -> None:
    rows, columns = tuple(f"row{i}" for i in range(8)), ("1", "2", "3", "4")
    sprites, none = np.zeros((32, 16, 16, 4), np.uint8), np.zeros(32, bool)
    order, names = np.arange(32).reshape(8, 4), tuple(str(i) for i in range(32))
    table, page = GivenTable("Drop your first view here"), QWidget()
    page.setLayout(factory.column(table))
    qtbot.addWidget(page)
    table.show_cells(CellContent(sprites, order, rows, columns, names, none, none, none))
    table.set_side(32)
    page.resize(500, 320)
    page.show()
    qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() > 0)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    page.resize(500, 600)
    qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() == 0)
    qtbot.waitUntil(lambda: table.width() == table.sizeHint().width())
