"""The confusion matrix: texts, mouse, keyboard, colours."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.widgets.confusion import ConfusionView
from tests.app.widgets.tools import child, shown, tip_at

COUNTS = np.array([[9, 1, 0], [3, 38, 0], [0, 0, 0]])


@pytest.fixture
def view(qtbot: QtBot) -> ConfusionView:
    made = ConfusionView()
    made.set_confusion(COUNTS, ["potion", "sword", "gem"])
    return shown(qtbot, made, 500, 400)


def _words(view: ConfusionView) -> str:
    return child(view, QLabel).text()


def test_cell_description_and_tooltip(view: ConfusionView, qtbot: QtBot) -> None:
    assert view.matrix.describe(0, 0) == "potion correct: 9 of 10"
    assert view.matrix.describe(2, 1) == "gem predicted as sword: 0 of 0"
    assert tip_at(qtbot, view.matrix, view.matrix.cell_rect(1, 0).center()) == "sword predicted as potion: 3 of 41"


def test_cell_under_the_mouse(view: ConfusionView) -> None:
    for row, column in np.ndindex(3, 3):
        assert view.matrix.cell_at(view.matrix.cell_rect(row, column).center()) == (row, column)
    assert view.matrix.cell_at(QPoint(3, 3)) is None
    assert view.matrix.cell_at(view.matrix.cell_rect(2, 2).bottomRight() + QPoint(2, 2)) is None


def test_mouse_and_keys_point_at_cells(view: ConfusionView, qtbot: QtBot) -> None:
    before = _words(view)
    qtbot.mouseMove(view.matrix, view.matrix.cell_rect(0, 1).center())
    qtbot.waitUntil(lambda: _words(view) == "potion predicted as sword: 1 of 10")
    QApplication.sendEvent(view.matrix, QEvent(QEvent.Type.Leave))
    assert _words(view) == before
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left):
        qtbot.keyClick(view.matrix, key)
    assert _words(view) == view.matrix.accessibleDescription() == "sword predicted as potion: 3 of 41"


def test_keys_scroll_cells_out_from_under_names(view: ConfusionView, qtbot: QtBot) -> None:
    view.resize(400, 300)
    view.set_confusion(np.eye(60, dtype=np.int64), [f"class {number}" for number in range(60)])
    matrix = view.matrix
    assert matrix.minimumSizeHint().height() >= 60 * 14
    qtbot.waitUntil(lambda: matrix.height() > view.height())
    for key in [Qt.Key.Key_Down] * 40 + [Qt.Key.Key_Right] * 39 + [Qt.Key.Key_Up] * 20:
        qtbot.keyClick(matrix, key)
    reached = matrix.cell_rect(19, 39).center()
    assert matrix.visibleRegion().contains(reached) and matrix.cell_at(reached) == (19, 39)
    assert matrix.y() < 0 and matrix.x() < 0
    covered = QPoint(-matrix.x() + 5, reached.y())  # names cover these cells
    assert matrix.cell_at(covered) is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cell_colours(view: ConfusionView, qapp: QApplication, scheme: theme.Scheme) -> None:
    theme.apply(qapp, scheme)
    colours, picture = theme.colours(), view.matrix.grab().toImage()

    def colour(row: int, column: int) -> QColor:
        return picture.pixelColor(view.matrix.cell_rect(row, column).topLeft() + QPoint(3, 3))

    def far(one: QColor, name: str) -> int:
        other = QColor(name)
        return abs(one.red() - other.red()) + abs(one.green() - other.green()) + abs(one.blue() - other.blue())

    ground = theme.mix(colours.surface, colours.text, 0.05)
    assert far(colour(0, 2), ground) < 4 and far(colour(2, 2), ground) < 4
    assert far(colour(1, 1), colours.accent) < 40
    assert 0 < far(colour(1, 0), colours.error) < far(colour(0, 2), colours.error)


def test_empty_matrix_shows_a_hint(view: ConfusionView) -> None:
    assert "Rows: true class" in _words(view)
    view.matrix.point_at((2, 2))
    view.set_confusion(COUNTS[:2, :2], ["potion", "sword"])  # the cell no longer exists
    assert "Rows: true class" in _words(view)
    view.clear()
    assert "first validation" in _words(view)
    assert view.matrix.cell_at(QPoint(90, 20)) is None and not view.grab().isNull()
