"""Texts that change often."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app.widgets import factory
from studio.app.widgets.factory import RunningLabel

LONG = "300,000 of 300,000 sprites kept for the next time, and more words than there is room for"


def test_what_runs_moves_nothing_beside_it(qtbot: QtBot) -> None:
    label, window = RunningLabel(), QWidget()
    window.setLayout(factory.row(factory.button("Cancel", "End it."), label))
    qtbot.addWidget(window)
    window.resize(400, 40)
    window.show()
    label.say("1 file")
    before = label.geometry(), window.minimumSizeHint()
    label.say(LONG)
    qtbot.wait(0)
    assert (label.geometry(), window.minimumSizeHint()) == before
    assert label.text().endswith("…") and LONG.startswith(label.text()[:-1])
    assert label.toolTip() == LONG
    window.resize(1600, 40)
    qtbot.waitUntil(lambda: label.text() == LONG)
    assert not label.toolTip()
