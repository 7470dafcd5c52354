"""Tables of results fit the page: texts wrap, wide tables with few rows are turned, and only others scroll."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from studio.app.pages.lab.result_table import ResultTable
from studio.app.widgets import factory
from studio.lab.outcome import Table

CODE = Table(
    ("mistake", "code"),
    (("the classes stay behind", "loss = criterion(network(x.to(device)), y.to(device)).backward()"),) * 3,
)
NUMBERS = Table(("step of", *(f">column {number}" for number in range(9))), (("16 sprites", *["1,234 ms"] * 9),))
LONG = Table(("word",), (("x" * 300,),))


def shown(qtbot: QtBot, table: Table, width: int) -> tuple[ResultTable, QScrollArea]:
    """Show a table on a page of a width in pixels; return both."""
    made = ResultTable(table)
    page = factory.scroll_area(factory.panel(factory.column(made, 1)))
    qtbot.addWidget(page)
    page.resize(width, 400)
    page.show()
    return made, page


def label(table: ResultTable, text: str) -> QLabel:
    """Return the first label of a table with a text."""
    found = table.findChildren(QLabel)
    return next(each for each in found if each.text().replace("\u200b", "") == text)


@pytest.mark.parametrize("width", [300, 900])
def test_texts_wrap_to_the_width_of_the_page(qtbot: QtBot, width: int) -> None:
    table, _page = shown(qtbot, CODE, width)
    line, code = table.fontMetrics().lineSpacing(), label(table, CODE.rows[0][1])
    qtbot.waitUntil(lambda: (code.height() > 1.5 * line) == (width == 300))
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    assert table.focusPolicy() == Qt.FocusPolicy.NoFocus
    qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() == 0)


def test_a_wide_table_with_a_row_is_turned(qtbot: QtBot) -> None:
    table, page = shown(qtbot, NUMBERS, 400)
    first, second = label(table, "column 0"), label(table, "column 1")
    qtbot.waitUntil(lambda: first.x() == second.x() and second.y() > first.y())
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    page.resize(2000, 400)
    qtbot.waitUntil(lambda: first.y() == second.y() and second.x() > first.x())


def test_a_table_of_long_words_scrolls_sideways_by_keys(qtbot: QtBot) -> None:
    table, _page = shown(qtbot, LONG, 300)
    bar = table.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    assert table.focusPolicy() == Qt.FocusPolicy.StrongFocus
    for key, is_used in ((Qt.Key.Key_Right, True), (Qt.Key.Key_PageDown, False), (Qt.Key.Key_Down, False)):
        event = QKeyEvent(QKeyEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
        table.keyPressEvent(event)
        assert event.isAccepted() == is_used, key
    assert bar.value() > 0


def test_the_wheel_over_a_table_scrolls_the_page(qtbot: QtBot) -> None:
    table, _page = shown(qtbot, LONG, 300)
    bar = table.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    for part in (table, table.viewport(), bar):
        wheel = QWheelEvent(
            QPointF(5, 5), QPointF(5, 5), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(part, wheel)
        assert bar.value() == 0
