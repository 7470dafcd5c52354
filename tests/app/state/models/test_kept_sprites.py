"""Kept sprites and the sprite in the editor outlive a crash, and windows leave each other's sprites alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from studio.app.background.job_queue import JobQueue
from studio.app.state.models.editing import SpriteEditing
from studio.app.state.models.kept_sprites import KeptSprites
from studio.app.state.settings import Settings
from studio.app.state.undo import UndoHistory
from studio.app.window import Window
from studio.core import files, paths
from studio.core.events import Notice
from studio.data.pixels.editing import NamedSprite
from studio.engine.runs.notes import read_notes
from tests.app.conftest import LONG_MS

SIZE = 8


def sprite(level: int) -> NamedSprite:
    """Return a sprite of a single grey level."""
    return NamedSprite(np.full((SIZE, SIZE, 4), level, np.uint8), f"grey {level}")


def names_on_disk() -> list[str]:
    """The names of the kept sprites that a new window would find."""
    return [kept.name for kept in KeptSprites().of_size(SIZE)]


def _is_selected(window: Window) -> bool:
    """Select the first run; return whether its notes can be edited."""
    window.runs.table.selectRow(0)
    return window.runs.notes.note.isEnabled()


def test_work_and_choices_are_on_disk_without_closing(qtbot: QtBot, own_run: Path, opened: Window) -> None:
    qtbot.waitUntil(lambda: bool(opened.session.runs.runs), timeout=LONG_MS)
    opened.session.kept_sprites.add([sprite(1), sprite(2)])
    opened.session.editing.open(sprite(3))
    opened.generate.request.lock.setChecked(True)
    qtbot.waitUntil(lambda: names_on_disk() == ["grey 1", "grey 2"], timeout=LONG_MS)
    qtbot.waitUntil((paths.home() / "edit.json").is_file, timeout=LONG_MS)
    qtbot.waitUntil(lambda: Settings().text("seed_locked") == "yes", timeout=LONG_MS)
    opened.session.editing.close()
    qtbot.waitUntil(lambda: not (paths.home() / "edit.json").exists(), timeout=LONG_MS)
    opened.show_page("runs")
    qtbot.waitUntil(lambda: _is_selected(opened), timeout=LONG_MS)
    opened.runs.notes.note.setPlainText("half a sen")
    qtbot.waitUntil(lambda: read_notes(own_run).note == "half a sen", timeout=LONG_MS)
    opened.runs.notes.tags.setText("boss, ")
    opened.runs.notes.store()
    qtbot.waitUntil(lambda: read_notes(own_run).tags == ("boss",), timeout=LONG_MS)
    with qtbot.waitSignal(opened.session.runs.listed, timeout=LONG_MS):
        opened.session.runs.list_runs()
    assert opened.runs.notes.tags.text() == "boss, "


def test_windows_merge_their_kept_sprites() -> None:
    first, second = KeptSprites(), KeptSprites()
    first.add([sprite(1), sprite(2)])
    first.store()
    second.store()  # the second window has no changes, so it deletes nothing
    assert names_on_disk() == ["grey 1", "grey 2"]
    second.add([sprite(2), sprite(3)])
    second.store()
    assert names_on_disk() == ["grey 1", "grey 2", "grey 3"]
    assert [kept.name for kept in second.of_size(SIZE)] == names_on_disk()
    first.remove(first.of_size(SIZE)[:1])
    first.store()
    second.add([sprite(4)])
    second.store()
    assert names_on_disk() == ["grey 2", "grey 3", "grey 4"]
    second.remove(second.of_size(SIZE))
    second.store()
    assert names_on_disk() == []


def test_kept_sprites_survive_a_torn_line_and_a_file_of_an_older_version() -> None:
    first = KeptSprites()
    first.add([sprite(1)])
    first.store()
    path = paths.home() / "kept.jsonl"
    path.write_bytes(path.read_bytes().strip())
    for number, torn in enumerate((b"", b'\n{"size": 8, "na'), 2):
        path.write_bytes(path.read_bytes() + torn)
        later = KeptSprites()
        later.add([sprite(number)])
        later.store()
    assert names_on_disk() == ["grey 1", "grey 2", "grey 3"]


def test_a_failed_write_is_reported_once_and_repeated(
    qtbot: QtBot, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Notice] = []
    window.session.noticed.connect(told.append)

    def refuse(*args: object) -> None:
        raise OSError(28, "No space left on device", "kept.jsonl")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomic", refuse)
        window.session.kept_sprites.add([sprite(1)])
        for _ in range(3):
            window.auto_save.store()
    assert [notice.title for notice in told] == ["Can't write kept.jsonl."]
    assert [card.texts[0] for card in window.notices.cards()] == ["Can't write kept.jsonl."]
    window.auto_save.store()
    window.notices.remove_outdated()
    assert names_on_disk() == ["grey 1"] and window.notices.cards() == []


def test_closing_while_the_disk_is_full_keeps_the_window_once(
    qtbot: QtBot, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError(28, "No space left on device", "kept.jsonl")

    monkeypatch.setattr(files, "write_atomic", refuse)
    window.session.kept_sprites.add([sprite(1)])
    window.close()
    assert window.isVisible()
    shown = window.notices.shown()
    assert shown is not None and "could not be saved" in shown.texts[0] and "Close again" in shown.texts[1]
    with qtbot.waitSignal(window.closed):
        window.close()
    assert not window.isVisible()


def test_each_window_has_an_editor_file_of_its_own(job_queue: JobQueue) -> None:
    first, second = SpriteEditing(job_queue, UndoHistory()), SpriteEditing(job_queue, UndoHistory())
    first.open(sprite(1))
    first.store()
    second.store()
    second.open(sprite(2))
    second.store()
    for editing in (first, second):
        editing.release()
    later = [SpriteEditing(job_queue, UndoHistory()) for _ in range(3)]
    found = [editing.current.name if editing.current is not None else "" for editing in later]
    assert found == ["grey 1", "grey 2", ""]
    later[0].close()
    later[0].store()
    for editing in later:
        editing.release()
    last = SpriteEditing(job_queue, UndoHistory())
    assert last.current is not None and last.current.name == "grey 2"
    last.release()
