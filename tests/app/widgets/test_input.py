"""Keys, clicks and wheel notches that several widgets handle in the same way."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets import factory
from studio.app.widgets.input import NoSecondPress
from tests.app.conftest import double_click


class StartAndCancel(QWidget):
    """A button that starts, and a button in the same place that cancels. pressed: the pressed buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.pressed = list[str]()
        self.start = factory.button("Start", "Start.", slot=self._on_start_clicked)
        self.cancel = factory.button("Cancel", "Cancel.", slot=self._on_cancel_clicked)
        self.setLayout(factory.column(self.start, self.cancel, 1))
        self.cancel.hide()

    def _on_start_clicked(self) -> None:
        self.pressed.append("start")
        factory.show_instead(self.cancel, self.start)

    def _on_cancel_clicked(self) -> None:
        self.pressed.append("cancel")
        factory.show_instead(self.start, self.cancel)


@pytest.fixture
def pair(qtbot: QtBot) -> StartAndCancel:
    made = StartAndCancel()
    NoSecondPress(made.cancel)
    qtbot.addWidget(made)
    made.resize(200, 100)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_a_second_enter_does_not_cancel(pair: StartAndCancel, key: Qt.Key) -> None:
    pair.start.setFocus()
    for _ in range(2):
        QTest.keyClick(pair.windowHandle(), key)
    assert pair.pressed == ["start"] and pair.focusWidget() is pair.cancel
    QTest.keyClick(pair.windowHandle(), Qt.Key.Key_Space)
    assert pair.pressed == ["start", "cancel"] and pair.focusWidget() is pair.start


def test_a_double_click_does_not_cancel(pair: StartAndCancel) -> None:
    double_click(pair.start, pair.cancel)
    assert pair.pressed == ["start"] and pair.cancel.isVisible()
    QTest.mouseClick(pair.cancel, Qt.MouseButton.LeftButton)
    assert pair.pressed == ["start", "cancel"]


def test_a_button_that_starts_and_cancels(qtbot: QtBot) -> None:
    button, states = factory.button("Measure", "Measure."), list[bool]()
    button.clicked.connect(lambda: states.append(not (states and states[-1])))
    NoSecondPress(button, lambda: bool(states) and states[-1])
    qtbot.addWidget(button)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Return):
        QTest.keyClick(button, key)
    assert states == [True, False, True]
    for _ in range(2):
        double_click(button)
    assert states == [True, False, True, False, True]
