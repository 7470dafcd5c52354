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
    """Four buttons, two of them in a group, and a spin box, in a window with the studio's focus order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (factory.button(name, "A tip.") for name in ("One", "Two", "Three"))
        self.beside, self.number = factory.button("Beside two", "A tip."), QSpinBox()
        self.group = factory.panel(factory.row(self.beside, self.second))
        self.setLayout(factory.column(self.first, self.group, self.number, self.third))

    def focusNextPrevChild(self, forward: bool) -> bool:
        return move_focus(self, forward=forward)


@pytest.fixture
def form(qtbot: QtBot) -> _Form:
    made = _Form()
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.mark.parametrize(
    ("name", "end", "near"),
    [
        ("second", "setDisabled", "beside"), ("second", "setHidden", "beside"), ("beside", "setHidden", "second"),
        ("group", "setHidden", "number"),
    ],
)  # fmt: skip
def test_the_focus_stays_near_a_control_that_is_disabled_or_hidden(form: _Form, name: str, end: str, near: str) -> None:
    (form.beside if name == "beside" else form.second).setFocus()
    getattr(getattr(form, name), end)(True)
    assert form.focusWidget() is getattr(form, near)


def test_a_control_that_is_enabled_again_gets_its_focus_back(form: _Form) -> None:
    form.second.setFocus()
    for _ in range(2):
        form.second.setDisabled(True)
        assert form.focusWidget() is form.beside
        form.second.setEnabled(True)
        assert form.focusWidget() is form.second


@pytest.mark.parametrize("key", [Qt.Key.Key_Tab, Qt.Key.Key_5])
def test_the_focus_stays_where_the_user_has_gone_on(form: _Form, key: Qt.Key) -> None:
    form.second.setFocus()
    form.second.setDisabled(True)
    QTest.keyClick(form.beside, key)
    focused = form.focusWidget()
    form.second.setEnabled(True)
    assert focused is form.focusWidget() is (form.number if key == Qt.Key.Key_Tab else form.beside)


def test_shift_tab_leaves_a_spin_box(form: _Form) -> None:
    form.number.setFocus()
    QTest.keyClick(form.number, Qt.Key.Key_Backtab)
    assert form.focusWidget() is form.second


def test_tab_from_a_clicked_area_goes_to_the_first_control_in_the_area(form: _Form) -> None:
    form.group.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    form.group.setFocus()
    QTest.keyClick(form.group, Qt.Key.Key_Tab)
    assert form.focusWidget() is form.beside


def test_enter_presses_the_focused_button(qtbot: QtBot, form: _Form) -> None:
    form.third.setFocus()
    with qtbot.waitSignal(form.third.clicked):
        QTest.keyClick(form.third, Qt.Key.Key_Return)
