"""The table of keys: changed keys, conflicts, and what follows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app import keys
from studio.app.state.settings import Settings
from studio.app.widgets import factory


@pytest.fixture
def table(tmp_path: Path) -> Iterator[keys.KeyTable]:
    made = keys.table()
    made.load(Settings(tmp_path / "window.ini"))
    yield made
    made.restore({})


def test_changed_keys_are_stored(table: keys.KeyTable, tmp_path: Path) -> None:
    assert table.set_key("save", QKeySequence("Ctrl+Alt+S")) == ""
    assert table.set_key("keep", QKeySequence("Ctrl+K")) == ""
    table.load(Settings(tmp_path / "empty.ini"))
    assert table.text("save") == "Ctrl+S" and not table.own()
    table.load(Settings(tmp_path / "window.ini"))
    assert table.text("save") == "Ctrl+Alt+S" and table.text("keep") == "Ctrl+K" and table.is_default("undo")
    table.reset("save")
    table.load(Settings(tmp_path / "window.ini"))
    assert table.is_default("save") and not table.is_default("keep")


@pytest.mark.parametrize("stored", ["{", '{"unknown": "A"}', '{"Runs page, F2": "A"}', '{"save": "x+"}'])
def test_damaged_keys_read_as_the_defaults(table: keys.KeyTable, tmp_path: Path, stored: str) -> None:
    settings = Settings(tmp_path / "damaged.ini")
    settings.set_text("keys", stored)
    table.load(settings)
    assert not table.own() and table.text("save") == "Ctrl+S"


def test_the_default_keys_have_no_conflict(table: keys.KeyTable) -> None:
    changeable = [name for name, command in keys.COMMANDS.items() if not command.is_fixed]
    assert [table.reset(name) for name in changeable if table.reset(name)] == []


def test_a_used_key_is_refused(table: keys.KeyTable) -> None:
    for name, key in (("keep", "Ctrl+S"), ("keep", "X"), ("keep", "Ctrl+C"), ("keep", "Shift+F10"), ("save", "Q")):
        assert table.set_key(name, QKeySequence(key)).startswith(f"{key} is used already: ")
    assert not table.own()
    assert table.set_key("keep", QKeySequence("Del")) == ""  # excludes on another page
    assert table.set_key("keep", QKeySequence("A")) == table.set_key("reject", QKeySequence("K")) == ""
    assert table.reset("keep") == "K is used already: Reject the selected sprites (Generate page)."


def test_actions_and_tool_tips_follow_changed_keys(qtbot: QtBot, table: keys.KeyTable) -> None:
    pressed: list[str] = []
    widget = QWidget()
    qtbot.addWidget(widget)
    action, button = QAction(widget), factory.button("Save", "Save the sprites. ({save})")
    button.setParent(widget)
    keys.bind(action, "redo")
    keys.shortcut("keep", widget, lambda: pressed.append("keep"))
    eraser = keys.shortcut("eraser", widget, lambda: pressed.append("eraser"), yields_to=("Generate page",))
    assert eraser.keys() == []
    with qtbot.waitExposed(widget):
        widget.show()
    widget.activateWindow()
    widget.setFocus()
    assert action.shortcuts() == [QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y")]
    assert button.toolTip() == "Save the sprites. (Ctrl+S)"
    table.set_key("redo", QKeySequence("Alt+Y"))
    table.set_key("save", QKeySequence("Ctrl+T"))
    table.set_key("keep", QKeySequence("J"))
    table.set_key("edit", QKeySequence("F"))
    QTest.keyClick(widget, Qt.Key.Key_K)
    QTest.keyClick(widget, Qt.Key.Key_J)
    assert (
        action.shortcuts() == [QKeySequence("Alt+Y")] and pressed == ["keep"] and eraser.keys() == [QKeySequence("E")]
    )
    assert button.toolTip() == "Save the sprites. (Ctrl+T)"
