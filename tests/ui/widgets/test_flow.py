"""Rows that wrap."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets.layout import Flow


def test_what_is_hidden_takes_no_room(qtbot: QtBot) -> None:
    host, flow = QWidget(), Flow(8, 4)
    qtbot.addWidget(host)
    buttons = [QPushButton(text) for text in ("one", "two", "three")]
    for button in buttons:
        flow.addWidget(button)
    host.setLayout(flow)
    buttons[1].hide()
    host.resize(400, 100)
    host.show()
    assert buttons[2].x() == buttons[0].geometry().right() + 1 + 8
    assert flow.sizeHint().width() == buttons[0].sizeHint().width() + 8 + buttons[2].sizeHint().width()
    host.resize(flow.minimumSize().width(), 100)
    assert buttons[2].x() == buttons[0].x() and buttons[2].y() == buttons[0].geometry().bottom() + 1 + 4
