"""A link is reached by Tab and opened by Enter."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets import factory
from studio.app.widgets.link import LinkLabel


def test_tab_selects_the_link_and_enter_opens_it(qtbot: QtBot) -> None:
    label = LinkLabel("Read more", "A page on the topic.")
    window = QWidget()
    qtbot.addWidget(window)
    before = QLineEdit()
    window.setLayout(factory.column(before, label))
    label.setOpenExternalLinks(False)  # emits linkActivated instead
    label.show_link("Tensors & more", "https://pytorch.org/docs?a=1&b=2")
    window.show()
    window.activateWindow()
    before.setFocus()
    qtbot.waitUntil(before.hasFocus)
    assert label.accessibleName() == "Read more: Tensors & more"
    QTest.keyClick(before, Qt.Key.Key_Tab)
    assert label.hasFocus() and label.selectedText() == "Tensors & more"
    with qtbot.waitSignal(label.linkActivated) as activated:
        QTest.keyClick(label, Qt.Key.Key_Return)
    assert activated.args == ["https://pytorch.org/docs?a=1&b=2"]
    label.show_link("", "")
    assert not label.isVisible()
