"""What the window knows: opening sprites, listing runs, remembering."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QByteArray, QThread
from pytestqt.qtbot import QtBot

from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.core.events import Notice
from studio.engine.runs.folder import RunDir
from tests.app.conftest import LONG_MS, open_sprites, sprites_of, start_endless, wait_idle


def test_a_folder_becomes_sprites_with_their_palette(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    with qtbot.waitSignal(session.open_sprites.colours_counted, timeout=LONG_MS) as found:
        open_sprites(qtbot, session, sprite_folder)
    sprites = sprites_of(session)
    assert len(sprites) == 24 and sprites.class_names == ("class0", "class1")
    use = found.args[0]
    assert len(use.colours) == len(use.pixels) == len(use.sprites) == use.total > 2 and use.step == 1
    assert session.settings.recent() == [str(sprite_folder)]


def test_open_sprites_stay_when_an_import_fails(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    open_sprites(qtbot, session, sprite_folder)
    before = session.open_sprites.sprites
    ended = qtbot.waitSignal(session.open_sprites.ended, timeout=LONG_MS)
    with ended, qtbot.waitSignal(session.failed, timeout=LONG_MS) as told:
        session.open_sprites.open_paths([sprite_folder / "nowhere"])
    assert "nowhere" in told.args[0].title + told.args[0].hint
    assert session.open_sprites.sprites is before
    assert session.open_sprites.paths == (sprite_folder,)


def test_an_import_is_cancelled_at_once(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    session.open_sprites.open_paths([sprite_folder])
    qtbot.waitUntil(lambda: bool(session.job_queue.running()))
    begun = time.perf_counter()
    session.open_sprites.cancel()
    assert not session.open_sprites.is_busy()
    qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=2000)
    assert time.perf_counter() - begun < 0.5
    assert session.open_sprites.sprites is None


@pytest.mark.parametrize("is_read", [False, True], ids=["that is under way", "whose sprites lie in the mailbox"])
def test_a_replaced_import_has_no_effect(qtbot: QtBot, session: Session, sprite_folder: Path, is_read: bool) -> None:
    other = Path(shutil.copytree(sprite_folder / "class0", sprite_folder.parent / "other"))
    session.open_sprites.open_paths([sprite_folder])
    files = session.job_queue._workers["files"]
    deadline = time.perf_counter() + LONG_MS / 1000
    while is_read and files._jobs and time.perf_counter() < deadline:
        QThread.msleep(5)
    assert not is_read or (not files._jobs and len(files.mailbox))
    session.open_sprites.open_paths([other])
    assert session.open_sprites.is_busy()
    qtbot.waitUntil(lambda: not session.open_sprites.is_busy(), timeout=LONG_MS)
    assert session.open_sprites.paths == (other,) and sprites_of(session).title == "other"


def test_quick_successive_option_changes_are_all_applied_and_undone(
    qtbot: QtBot, session: Session, sprite_folder: Path
) -> None:
    opened = session.open_sprites
    open_sprites(qtbot, session, sprite_folder)

    def taken() -> Mapping[str, object]:
        qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
        return opened.options.changed()

    opened.change_options(opened.latest.options.replace(size=16))
    opened.change_options(opened.latest.options.replace(class_levels=1))
    assert taken() == {"size": 16, "class_levels": 1}
    assert sprites_of(session).size == 16
    opened.history.undo()
    opened.history.undo()
    assert taken() == {} and opened.history.latest is None
    opened.history.redo()
    assert taken() == {"size": 16}


def test_an_interrupted_run_is_offered_once(qtbot: QtBot, ready: Session) -> None:
    start_endless(qtbot, ready).stop()
    wait_idle(qtbot, ready)
    run = RunDir(ready.training.path or Path())
    progress = msgspec.structs.replace(run.progress(), state="training")
    run.write_progress(progress)
    fresh, offers = Session(Settings()), list[tuple[Path, Notice]]()
    fresh.run_offered.connect(lambda path, words: offers.append((path, words)))
    fresh.open()
    qtbot.waitUntil(lambda: bool(offers), timeout=LONG_MS)
    fresh.runs.list_runs()
    qtbot.waitUntil(lambda: not fresh.job_queue.running(), timeout=LONG_MS)
    step = run.saved_step()
    assert step > 0
    hint = f"Resume continues from the checkpoint at step {step}."
    assert offers == [(run.path, Notice("info", f"'{run.path.name}' was interrupted.", hint))]
    assert fresh.close()


def test_resuming_beside_another_training_shows_the_reason(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    path, told = Path("discs generator"), list[Notice]()
    session.noticed.connect(told.append)
    monkeypatch.setattr(session.training, "state", "training")
    for trained in (None, path):
        session.training.path = trained
        session.resume_run(path)
    titles = ["Stop the running training first.", "This run is training already."]
    assert [notice.title for notice in told] == titles and "discs generator" in told[0].hint


def test_settings_are_restored(qtbot: QtBot, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "window.ini")
    settings.set_layout("window", QByteArray(b"\x01\x02"))
    settings.set_values("generator", {"minutes": 2.5, "flip": True})
    settings.set_text("scheme", "dark")
    for folder in ("a", "b", "a"):
        (tmp_path / folder).mkdir(exist_ok=True)
        settings.add_recent(tmp_path / folder)
    settings.sync()
    again = Settings(tmp_path / "window.ini")
    assert again.layout("window") == QByteArray(b"\x01\x02")
    assert again.values("generator") == {"minutes": 2.5, "flip": True}
    assert again.scheme() == "dark"
    assert again.recent() == [str(tmp_path / "a"), str(tmp_path / "b")]
    (tmp_path / "b").rmdir()
    assert again.recent() == [str(tmp_path / "a")]


def test_an_archive_is_opened_and_offered_again(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    archive = Path(shutil.make_archive(str(sprite_folder), "zip", sprite_folder))
    for path, count in ((archive, 24), (sprite_folder / "class0" / "000.png", 1)):
        open_sprites(qtbot, session, path)
        assert len(sprites_of(session)) == count
    assert session.settings.recent() == [str(archive)]


def test_a_damaged_settings_file_reads_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "window.ini"
    path.write_bytes(b"\x00[forms\ngenerator={{{\nrecent=7\nscheme=plaid")
    settings = Settings(path)
    assert settings.values("generator") == {} and settings.recent() == [] and settings.scheme() == "system"


@pytest.mark.parametrize("text", ["[]", "null", '{"minutes": [1]}', '{"minutes": null}', "[" * 100_000])
def test_stored_values_of_a_wrong_type_read_as_empty(tmp_path: Path, text: str) -> None:
    settings = Settings(tmp_path / "window.ini")
    settings.set_text("forms/generator", text)
    settings.set_text("recent", text)
    assert settings.values("generator") == {} and settings.recent() == []
