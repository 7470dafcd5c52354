"""A table of ramps: colours move between ramps, and ramps get new ramps."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.widgets.ramp_table import RampRow, RampTable
from studio.data.colour.ramps import Ramp

RED = Ramp("red", np.array([[60, 0, 0], [190, 0, 0]], np.uint8))
BLUE = Ramp("blue", np.array([[0, 0, 60], [0, 0, 190]], np.uint8))
GOLD = Ramp("gold", np.array([[130, 90, 20], [240, 200, 80]], np.uint8))


@pytest.fixture
def table(qtbot: QtBot) -> RampTable:
    made = RampTable()
    qtbot.addWidget(made)
    made.add_source("all sprites", [GOLD])
    made.set_ramps((RED, BLUE))
    made.show()
    return made


def row(table: RampTable, name: str) -> RampRow:
    return next(each for each in table.rows if each.name == name)


def choose(table: RampTable, name: str, new: str) -> None:
    box = row(table, name).box
    box.setCurrentText(new)
    box.activated.emit(box.currentIndex())


def entries(table: RampTable, name: str) -> list[str]:
    box = row(table, name).box
    return [box.itemText(index) for index in range(box.count())]


def test_ramps_get_new_ramps(table: RampTable) -> None:
    assert entries(table, "red") == ["Unchanged", "blue", "all sprites: gold", "From a file…"]
    assert table.exchange() is None
    choose(table, "red", "blue")
    choose(table, "blue", "all sprites: gold")
    exchange = table.exchange()
    assert exchange is not None
    assert exchange.becomes(RED.colours).tolist() == BLUE.colours.tolist()
    assert exchange.becomes(BLUE.colours).tolist() == GOLD.colours.tolist()
    choose(table, "red", "Unchanged")
    choose(table, "blue", "Unchanged")
    assert table.exchange() is None


def test_a_colour_moves_with_the_keyboard(table: RampTable) -> None:
    choose(table, "red", "all sprites: gold")
    swatches = row(table, "red").swatches
    swatches.setCurrentIndex(swatches.model().index(1, 0))
    QTest.keyClick(swatches, Qt.Key.Key_Return)
    texts = [action.text() for action in table.menu.actions() if action.isEnabled() and not action.isSeparator()]
    assert table.menu.isVisible() and texts == ["blue", "New ramp"]
    next(action for action in table.menu.actions() if action.text() == "blue").trigger()
    table.menu.close()
    exchange = table.exchange()  # the choice for the other colours of the ramp stays
    assert exchange is not None and exchange.becomes(RED.colours).tolist() == [GOLD.colours[0].tolist(), [190, 0, 0]]
    row(table, "blue").swatches.colour_pressed.emit(0)
    next(action for action in table.menu.actions() if action.text() == "New ramp").trigger()
    table.menu.close()
    assert [each.name for each in table.rows] == ["red", "blue", "ramp-1"]
    row(table, "red").swatches.colour_pressed.emit(0)  # the only colour of its ramp
    new = next(action for action in table.menu.actions() if action.text() == "New ramp")
    assert not new.isEnabled()
    table.menu.close()


def test_a_file_gives_ramps(qtbot: QtBot, table: RampTable) -> None:
    with qtbot.waitSignal(table.file_requested) as asked:
        choose(table, "blue", "From a file…")
    assert asked.args == ["blue"] and row(table, "blue").box.currentText() == "Unchanged"
    table.add_source("db32", [Ramp("green", np.array([[0, 99, 0]], np.uint8))], "blue")
    assert row(table, "blue").box.currentText() == "db32: green"
    exchange = table.exchange()
    assert exchange is not None and exchange.becomes(BLUE.colours).tolist() == [[0, 99, 0]] * 2
