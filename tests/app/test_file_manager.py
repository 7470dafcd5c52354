"""'Show in folder': over D-Bus, with a program of the system, and as a plain folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from studio.app import file_manager, notifications
from studio.app.file_manager import show_in_folder
from studio.app.notifications import Messages, NoticeBar
from studio.app.state.session import Session
from tests.app.conftest import click


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the folders that would be opened."""
    found: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: found.append(QUrl(url).toLocalFile()))
    return found


@pytest.mark.usefixtures("bus")
def test_files_are_selected_over_d_bus(tmp_path: Path, opened: list[str]) -> None:
    from jeepney import HeaderFields, message_bus
    from jeepney.io.blocking import Proxy, open_dbus_connection

    saved = tmp_path / "a sprite.png"
    saved.touch()
    show_in_folder([saved])  # no file manager on the bus
    assert opened == [str(tmp_path)]
    with open_dbus_connection() as desktop:
        assert Proxy(message_bus, desktop).RequestName("org.freedesktop.FileManager1") == (1,)
        show_in_folder([saved])
        while (call := desktop.receive(timeout=5)).header.fields.get(HeaderFields.member) != "ShowItems":
            pass
    assert call.body == ([saved.as_uri()], "") and len(opened) == 1


def test_removed_files_open_the_nearest_folder(qapp: QApplication, tmp_path: Path, opened: list[str]) -> None:
    show_in_folder([tmp_path / "gone" / "gone.png"])
    assert opened == [str(tmp_path)]


@pytest.mark.parametrize(("platform", "program"), [("darwin", "open"), ("win32", "explorer")])
def test_other_systems_run_their_file_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, program: str
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", lambda args: ran.append(args if isinstance(args, str) else " ".join(args)))
    monkeypatch.setattr(sys, "platform", platform)
    file_manager.show_in_folder([tmp_path])
    assert ran[0].startswith(program) and str(tmp_path) in ran[0]


def test_message_about_saved_files_shows_them(
    qtbot: QtBot, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Path] = []
    monkeypatch.setattr(notifications, "show_in_folder", shown.extend)
    bar = NoticeBar()
    qtbot.addWidget(bar)
    messages = Messages(session, bar, bar)
    session.notify_saved([tmp_path / "a.png", tmp_path / "b.png"])
    (card,) = bar.cards()
    assert card.button == "Show in folder" and card.expires and messages.parent() is bar
    bar.resize(800, 40)
    bar.show()
    click(bar._act)
    assert shown == [tmp_path / "a.png", tmp_path / "b.png"] and not bar.cards()
