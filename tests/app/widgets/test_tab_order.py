"""The focus order: where the focus goes when the focused control is disabled or hidden."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets import factory
from studio.app.widgets.tab_order import move_focus


class _Form(QWidget):
    """Three buttons and a spin box, in a window with the studio's focus order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (factory.button(name, "A tip.") for name in ("One", "Two", "Three"))
        self.number, self.group = QSpinBox(), factory.panel(factory.row(self.second))
        self.setLayout(factory.column(self.first, self.group, self.number, self.third))

    def focusNextPrevChild(self, forward: bool) -> bool:
        return move_focus(self, forward=forward)


@pytest.fixture
def form(qtbot: QtBot) -> _Form:
    made = _Form()
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.mark.parametrize(("name", "end"), [("second", "setDisabled"), ("second", "setHidden"), ("group", "setHidden")])
def test_the_focus_goes_on_when_its_control_is_disabled_or_hidden(form: _Form, name: str, end: str) -> None:
    form.second.setFocus()
    getattr(getattr(form, name), end)(True)
    assert form.focusWidget() is form.number


def test_shift_tab_leaves_a_spin_box(form: _Form) -> None:
    form.number.setFocus()
    QTest.keyClick(form.number, Qt.Key.Key_Backtab)
    assert form.focusWidget() is form.second


def test_tab_from_a_clicked_area_goes_to_the_first_control_in_the_area(form: _Form) -> None:
    form.group.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    form.group.setFocus()
    QTest.keyClick(form.group, Qt.Key.Key_Tab)
    assert form.focusWidget() is form.second


def test_enter_presses_the_focused_button(qtbot: QtBot, form: _Form) -> None:
    form.third.setFocus()
    with qtbot.waitSignal(form.third.clicked):
        QTest.keyClick(form.third, Qt.Key.Key_Return)
