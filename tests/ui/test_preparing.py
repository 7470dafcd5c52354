from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from studio.app.state.feature_training import _TITLE
from studio.app.state.session import Session
from studio.core import places
from studio.engine.quality import features
from tests.ui.conftest import LONG_MS, start_tiny


def known() -> list[Path]:
    return list(places.features().glob("*.safetensors"))


def test_open_sprites_are_got_to_know_while_nothing_else_is_to_be_done(
    qtbot: QtBot, ready: Session, sprite_folder: Path
) -> None:
    assert not known()
    ready.open_sprites.open_paths([sprite_folder])
    qtbot.waitUntil(lambda: bool(known()), timeout=LONG_MS)
    qtbot.waitUntil(lambda: not ready.job_queue.running(), timeout=LONG_MS)  # and that was all


def test_it_gives_way_to_a_training_and_goes_on_after_it(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_STEPS", 1_000_000)  # it would never end
    ready.open_sprites.open_paths([sprite_folder])
    qtbot.waitUntil(lambda: _TITLE in titles(ready), timeout=LONG_MS)
    start_tiny(ready, steps=3)
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    assert ready.training.chunk is not None
    qtbot.waitUntil(lambda: _TITLE in titles(ready), timeout=LONG_MS)


def titles(session: Session) -> list[str]:
    return [job.title for job in session.job_queue.running()]
