"""The settings dialog, and the list of keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenuBar, QWidget
from pytestqt.qtbot import QtBot

import studio.app
from studio.app import keys, theme
from studio.app.actions import Commands, Menus
from studio.app.settings_dialog import SettingsDialog
from studio.app.shortcuts import ShortcutList
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.core import paths
from studio.engine.devices.types import Device


@pytest.fixture
def dialog(qtbot: QtBot, qapp: QApplication, session: Session) -> Iterator[SettingsDialog]:
    parent = QWidget()
    qtbot.addWidget(parent)
    made = SettingsDialog(session, theme.apply(qapp, "light"), parent)
    made.open()
    yield made
    theme.apply(qapp, "light")


def test_changes_apply_and_are_stored_at_once(dialog: SettingsDialog, session: Session) -> None:
    dialog.theme.setCurrentIndex(dialog.theme.findData("dark"))
    assert theme.colours() is theme.DARK
    assert dialog.notifies.isChecked() and dialog.saves_details.isChecked()
    dialog.notifies.click()
    dialog.saves_details.click()
    session.settings.sync()
    stored = Settings()
    assert stored.scheme() == "dark" and not stored.notifies() and not stored.saves_details()


def test_the_chosen_device_is_used_and_stored(
    qtbot: QtBot, dialog: SettingsDialog, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not dialog.device.isEnabled() and "searching" in dialog.device.toolTip()
    devices = (
        Device("cuda:0", "cuda", "Card", 1, 1),
        Device("cpu", "cpu", "Processor", 1, 1),
        Device("mps", "mps", "x", 1, 1, problem="!"),
    )
    monkeypatch.setattr(session.catalog, "devices", devices)
    monkeypatch.setattr(session.catalog, "fastest", "cuda:0")
    session.catalog.devices_found.emit()
    assert dialog.device.isEnabled() and dialog.device.count() == 2
    assert dialog.device.currentText() == "Card (fastest)"
    dialog.device.setCurrentIndex(1)
    chosen = session.device_choice.device
    assert chosen is not None and chosen.id == "cpu" and session.settings.text("device") == "cpu"


def test_the_runs_folder_moves(qtbot: QtBot, dialog: SettingsDialog, session: Session, tmp_path: Path) -> None:
    line = dialog.runs_folder.line
    assert not line.text() and line.placeholderText() == str(paths.default_runs())
    QTest.keyClicks(line, f"{tmp_path}/chosen/")
    with qtbot.waitSignal(session.runs.listed):
        QTest.keyClick(line, Qt.Key.Key_Return)
    assert paths.runs() == tmp_path / "chosen" and dialog.isVisible() and line.text() == str(tmp_path / "chosen")
    line.clear()
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert paths.runs_folders() == [paths.default_runs()]


def test_an_unusable_runs_folder_is_refused_with_the_reason(dialog: SettingsDialog, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    dialog.runs_folder.set_text(str(tmp_path / "file" / "runs"))
    QTest.keyClick(dialog.runs_folder.line, Qt.Key.Key_Return)
    assert dialog.runs_error.isVisible() and "not a folder" in dialog.runs_error.text()
    assert paths.runs() == paths.default_runs()
    dialog.runs_folder.set_text("")
    QTest.keyClick(dialog.runs_folder.line, Qt.Key.Key_Return)
    assert not dialog.runs_error.isVisible()


@pytest.fixture
def shortcuts(qtbot: QtBot) -> Iterator[ShortcutList]:
    made = ShortcutList()
    qtbot.addWidget(made)
    made.show()
    yield made
    keys.table().restore({})


def test_the_list_of_keys_can_be_searched(shortcuts: ShortcutList) -> None:
    assert len(shortcuts.shown()) == len(keys.COMMANDS)
    shortcuts.search.setText("runs rename")
    assert shortcuts.shown() == [("F2", "Rename the run")] and shortcuts.none.isHidden()
    shortcuts.search.setText("nothing like this")
    assert not shortcuts.shown() and not shortcuts.none.isHidden()


def test_the_list_of_keys_holds_the_keys_of_all_menus(qtbot: QtBot, qapp: QApplication, session: Session) -> None:
    bar = QMenuBar()
    qtbot.addWidget(bar)
    Menus(bar, session, Commands(bar, session, theme.apply(qapp)))
    of_menus = {key.toString() for action in bar.findChildren(QAction) for key in action.shortcuts()}
    listed = {
        key
        for command in keys.COMMANDS.values()
        if command.context == keys.EVERYWHERE
        for key in command.keys.split(", ")
    }
    assert listed - of_menus == {"Space", "F6", "Shift+F6"}  # handled by the window; buttons need Space, too
    assert of_menus <= listed


def test_the_list_of_keys_holds_the_fixed_keys_of_all_pages() -> None:
    """Add a missing key to studio/app/keys.py."""
    sources = [path.read_text(encoding="utf-8") for path in Path(studio.app.__path__[0]).rglob("*.py")]
    of_pages = {key for source in sources for key in re.findall(r'fixed_shortcut\("([^"]+)"', source)}
    listed = {key for command in keys.COMMANDS.values() if command.is_fixed for key in command.keys.split(", ")}
    assert {"Esc", "Shift+F10"} <= of_pages <= listed


def test_a_pressed_key_replaces_the_keys_of_the_chosen_command(shortcuts: ShortcutList) -> None:
    assert not shortcuts.field.isEnabled() and shortcuts.field.toolTip() == "Key: select a command first."
    shortcuts.select("redo")
    QTest.keyClick(shortcuts.field, Qt.Key.Key_Y, Qt.KeyboardModifier.AltModifier)
    assert ("Alt+Y", "Redo") in shortcuts.shown() and shortcuts.error.isHidden()
    QTest.keyClick(shortcuts.field, Qt.Key.Key_K)
    assert shortcuts.error.text() == "K is used already: Keep the selected sprites (Generate page)."
    assert ("Alt+Y", "Redo") in shortcuts.shown()
    shortcuts.reset.click()
    assert ("Ctrl+Shift+Z, Ctrl+Y", "Redo") in shortcuts.shown() and shortcuts.error.isHidden()
    assert not shortcuts.reset.isEnabled() and not shortcuts.reset_all.isEnabled()
    shortcuts.select("keep")
    QTest.keyClick(shortcuts.field, Qt.Key.Key_J)
    shortcuts.reset_all.click()
    assert ("K", "Keep the selected sprites") in shortcuts.shown()
    assert shortcuts.reset_all.accessibleName() == "Undo reset"
    shortcuts.reset_all.click()
    assert ("J", "Keep the selected sprites") in shortcuts.shown()
    assert shortcuts.reset_all.accessibleName() == "Reset all"
    shortcuts.select("Runs page, F2")
    assert not shortcuts.field.isEnabled()
