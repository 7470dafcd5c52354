"""The context menu of a training's samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from studio.app.pages import sample_menu
from studio.app.pages.sample_menu import SampleMenu
from studio.app.state.session import Session
from studio.app.widgets.sprites.sheet_view import SpriteSheetView
from tests.conftest import make_sprites

SPRITES = make_sprites().rgba


@pytest.fixture
def menu(qtbot: QtBot, session: Session, tmp_path: Path) -> SampleMenu:
    view = SpriteSheetView()
    qtbot.addWidget(view)
    view.set_sprites(SPRITES[:4])
    view.go_to_row(2)
    return SampleMenu(view, session, lambda: (tmp_path / "run", 400))


def trigger(menu: SampleMenu, text: str) -> None:
    view = menu.parent()
    assert isinstance(view, SpriteSheetView)
    next(action for action in view.menu.actions() if action.text() == text).trigger()


def test_copy_and_edit_a_sample(qtbot: QtBot, session: Session, menu: SampleMenu) -> None:
    trigger(menu, "Copy")
    assert QGuiApplication.clipboard().image().pixelColor(4, 4).getRgb() == tuple(SPRITES[2, 4, 4].tolist())
    with qtbot.waitSignal(menu.edit_requested):
        trigger(menu, "Open in editor")
    opened = session.editing.current
    assert opened is not None and opened.name == "run-step-400-03" and (opened.edit.sprite == SPRITES[2]).all()


def test_show_the_samples_file(
    session: Session, menu: SampleMenu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[list[Path]] = []
    monkeypatch.setattr(sample_menu, "show_in_folder", shown.append)
    trigger(menu, "Show in folder")
    assert shown == [[tmp_path / "run" / "samples" / "00000400.png"]]
