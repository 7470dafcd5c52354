"""The checklist of first steps: what ticks a step, and when the list is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from studio.app.first_steps import FirstSteps
from studio.app.state.session import Session
from tests.app.conftest import click, open_sprites
from tests.app.widgets.tools import shown


def test_each_step_ticks_itself_once_and_is_remembered(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    steps = shown(qtbot, FirstSteps(session), 700, 40)
    assert steps.done() == []
    session.training.event_received.emit(None)
    assert steps.done() == []  # no checkpoint yet
    open_sprites(qtbot, session, sprite_folder)
    steps.tick("look")
    session.training.has_checkpoint = True
    session.training.event_received.emit(None)
    assert steps.done() == ["open", "look", "train"]
    session.inference.completed.emit(None)  # characters
    session.inference.generated.emit(None)
    again = shown(qtbot, FirstSteps(session), 700, 40)
    assert again.done() == ["open", "look", "train", "generate"]
    session.saving.saved.emit([sprite_folder / "new.png"])
    assert again.done() == steps.done() == ["open", "look", "train", "generate", "export"]
    assert again.isVisible() and FirstSteps(session).isHidden()  # from the next start on


def test_a_closed_list_stays_closed(qtbot: QtBot, session: Session) -> None:
    steps = shown(qtbot, FirstSteps(session), 700, 40)
    click(steps.close_list)
    session.inference.generated.emit(None)
    assert steps.isHidden() and FirstSteps(session).isHidden()


def test_users_with_recent_folders_know_the_steps(session: Session, tmp_path: Path) -> None:
    session.settings.add_recent(tmp_path)
    assert FirstSteps(session).isHidden()


@pytest.mark.parametrize(
    ("name", "page"), [("Look at them", "sprites"), ("Train", "train"), ("Save or export", "generate")]
)
def test_a_step_opens_its_page(qtbot: QtBot, session: Session, name: str, page: str) -> None:
    steps = shown(qtbot, FirstSteps(session), 700, 40)
    (button,) = [button for button in steps.findChildren(QPushButton) if button.accessibleName().startswith(name)]
    with qtbot.waitSignal(steps.page_requested) as requested:
        click(button)
    assert requested.args == [page]
