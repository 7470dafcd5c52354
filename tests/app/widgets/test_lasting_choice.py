"""The user's choice comes back when a combo box offers it again."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from studio.app.widgets.lasting_choice import LastingChoice


def test_only_the_users_choice_lasts(qtbot: QtBot) -> None:
    box = QComboBox()
    qtbot.addWidget(box)
    choice = LastingChoice(box)
    sand, rock = ("Sand", "sand"), ("Rock", "rock")
    choice.fill([sand, rock], "rock")
    assert box.currentData() == "rock"
    choice.fill([sand], "sand")
    choice.fill([sand, rock], "rock")
    assert box.currentData() == "rock"
    box.setCurrentIndex(0)
    choice.fill([rock], "rock")
    assert box.currentData() == "rock" and choice.wanted == "sand"
    choice.fill([rock, sand], "rock")
    assert box.currentData() == "sand"
