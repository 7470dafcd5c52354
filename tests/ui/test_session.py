"""What the window knows: opening sprites, listing runs, remembering."""

from __future__ import annotations

import functools
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QObject, QThread, Slot
from pytestqt.qtbot import QtBot

from studio.app.background import jobs
from studio.app.background.job_events import PaletteFound, RunTrashed
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.core.errors import StudioError
from studio.core.events import Event, JobFailed, Notice
from studio.data.importing import ImportOptions
from studio.engine.runs.folder import RunDir
from tests.ui.conftest import LONG_MS, start_tiny, trains


class Ear(QObject):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self.failures: list[JobFailed] = []
        self.notices: list[Notice] = []
        self.palettes: list[PaletteFound] = []
        self.offers: list[tuple[Path, str]] = []
        session.failed.connect(self.fail)
        session.noticed.connect(self.notice)
        session.open_sprites.palette_found.connect(self.palette)
        session.run_offered.connect(self.offer)

    @Slot(object)
    def fail(self, failure: JobFailed) -> None:
        self.failures.append(failure)

    @Slot(object)
    def notice(self, notice: Notice) -> None:
        self.notices.append(notice)

    @Slot(object)
    def palette(self, found: PaletteFound) -> None:
        self.palettes.append(found)

    @Slot(object, str)
    def offer(self, path: Path, words: str) -> None:
        self.offers.append((path, words))


def test_a_folder_becomes_sprites_with_their_palette(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    ear = Ear(session)
    with qtbot.waitSignals([session.open_sprites.imported, session.open_sprites.palette_found], timeout=LONG_MS):
        session.open_sprites.open_paths([sprite_folder])
    sprites = session.open_sprites.sprites
    assert sprites is not None
    assert len(sprites) == 24
    assert sprites.class_names == ("class0", "class1")
    use = ear.palettes[0].use
    assert len(use.colours) == len(use.pixels) == len(use.sprites) == use.total > 2 and use.step == 1
    assert session.settings.recent() == [str(sprite_folder)]


def test_what_is_open_stays_when_an_import_fails(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    ear = Ear(session)
    with qtbot.waitSignal(session.open_sprites.ended, timeout=LONG_MS):
        session.open_sprites.open_paths([sprite_folder])
    before = session.open_sprites.sprites
    with qtbot.waitSignal(session.open_sprites.ended, timeout=LONG_MS):
        session.open_sprites.open_paths([sprite_folder / "nowhere"])
    assert "nowhere" in ear.failures[0].title + ear.failures[0].hint
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


def test_other_options_read_the_same_files_anew(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    with qtbot.waitSignal(session.open_sprites.ended, timeout=LONG_MS):
        session.open_sprites.open_paths([sprite_folder])
    with qtbot.waitSignal(session.open_sprites.imported, timeout=LONG_MS):
        session.open_sprites.change_options(ImportOptions(size=16))
    assert session.open_sprites.sprites is not None
    assert session.open_sprites.sprites.size == 16


@pytest.fixture
def other_folder(sprite_folder: Path) -> Path:
    """Another folder with sprites."""
    return Path(shutil.copytree(sprite_folder / "class0", sprite_folder.parent / "other"))


def test_of_two_imports_begun_one_after_the_other_the_second_counts(
    qtbot: QtBot, session: Session, sprite_folder: Path, other_folder: Path
) -> None:
    session.open_sprites.open_paths([sprite_folder])
    session.open_sprites.open_paths([other_folder])
    assert session.open_sprites.is_busy()
    qtbot.waitUntil(lambda: not session.open_sprites.is_busy(), timeout=LONG_MS)
    assert session.open_sprites.paths == (other_folder,)
    assert session.open_sprites.sprites is not None and session.open_sprites.sprites.title == "other"


def test_what_came_of_an_import_that_another_one_ended_is_not_taken_for_the_others(
    qtbot: QtBot, session: Session, sprite_folder: Path, other_folder: Path
) -> None:
    session.open_sprites.open_paths([sprite_folder])
    files = session.job_queue._workers["files"]
    deadline = time.perf_counter() + LONG_MS / 1000
    while files._jobs and time.perf_counter() < deadline:  # its sprites lie in the mailbox, not delivered yet
        QThread.msleep(5)
    assert not files._jobs and len(files._mailbox)
    session.open_sprites.open_paths([other_folder])
    qtbot.waitUntil(lambda: not session.open_sprites.is_busy(), timeout=LONG_MS)
    assert session.open_sprites.paths == (other_folder,)
    assert session.open_sprites.sprites is not None and session.open_sprites.sprites.title == "other"


def test_choices_that_follow_at_once_are_all_taken_and_all_taken_back(
    qtbot: QtBot, session: Session, sprite_folder: Path
) -> None:
    open_sprites = session.open_sprites
    with qtbot.waitSignal(open_sprites.imported, timeout=LONG_MS):
        open_sprites.open_paths([sprite_folder])
    open_sprites.change_options(open_sprites.newest.options.replace(size=16))
    open_sprites.change_options(open_sprites.newest.options.replace(class_levels=1))
    qtbot.waitUntil(lambda: not open_sprites.is_busy(), timeout=LONG_MS)
    assert open_sprites.options.changed() == {"size": 16, "class_levels": 1} and len(open_sprites.opened.past) == 2
    open_sprites.undo()
    open_sprites.undo()
    qtbot.waitUntil(lambda: not open_sprites.is_busy(), timeout=LONG_MS)
    assert open_sprites.options.changed() == {} and len(open_sprites.opened.future) == 2
    open_sprites.redo()
    qtbot.waitUntil(lambda: not open_sprites.is_busy(), timeout=LONG_MS)
    assert open_sprites.options.changed() == {"size": 16}


def _replace_trash(monkeypatch: pytest.MonkeyPatch, move: Callable[[str], bool]) -> None:
    """Let QFile.moveToTrash do `move`. The method itself can't be replaced: it is static, too."""

    class File:
        def __init__(self, path: str) -> None:
            self.moveToTrash = functools.partial(move, path)

    monkeypatch.setattr("PySide6.QtCore.QFile", File)


def test_runs_are_listed_and_move_to_the_trash(
    qtbot: QtBot, ready: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replace_trash(monkeypatch, lambda path: bool(shutil.move(path, tmp_path / "trash")))
    ear = Ear(ready)
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(trains(ready), timeout=LONG_MS)
    path = ready.training.path
    assert path is not None
    ready.runs.trash_run(path)
    qtbot.waitUntil(lambda: bool(ear.failures), timeout=LONG_MS)
    assert "being trained" in ear.failures[0].title
    ready.training.stop()
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    qtbot.waitUntil(lambda: [run.standing for run in ready.runs.runs] == ["stopped"], timeout=LONG_MS)
    with qtbot.waitSignal(ready.runs.trashed, timeout=LONG_MS):
        ready.runs.trash_run(path)
    qtbot.waitUntil(lambda: not ready.runs.runs, timeout=LONG_MS)
    assert (tmp_path / "trash" / "run.json").exists()


def _trash(path: Path) -> list[Event]:
    """Move something that looks like a run to the trash."""
    path.mkdir()
    (path / "run.json").write_text("{}")
    return list(jobs.trash_run(path))


@pytest.mark.skipif(sys.platform != "linux", reason="the trash of other systems is the user's own")
def test_the_trash_is_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert _trash(tmp_path / "a run, % and 剣") == [RunTrashed(tmp_path / "a run, % and 剣")]
    assert (tmp_path / "data/Trash/files/a run, % and 剣/run.json").is_file()
    assert not (tmp_path / "a run, % and 剣").exists()


def test_where_there_is_no_trash_a_run_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_trash(monkeypatch, lambda path: False)
    with pytest.raises(StudioError, match="can't be moved to the trash") as caught:
        _trash(tmp_path / "run")
    assert "Nothing was removed" in caught.value.hint and (tmp_path / "run/run.json").is_file()


def test_a_run_whose_folder_has_vanished_is_not_blamed_on_the_trash(tmp_path: Path) -> None:
    with pytest.raises(StudioError, match="no longer there"):
        list(jobs.trash_run(tmp_path / "run"))


def test_an_interrupted_run_is_offered_once(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready, steps=1_000_000)
    qtbot.waitUntil(trains(ready), timeout=LONG_MS)
    ready.training.stop()
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    run = RunDir(ready.training.path or Path())
    progress = run.progress()
    run.write_progress(type(progress)("training", progress.step, progress.elapsed_s, progress.headline))
    fresh = Session(Settings())
    ear = Ear(fresh)
    fresh.open()
    qtbot.waitUntil(lambda: bool(ear.offers), timeout=LONG_MS)
    fresh.runs.list_runs()
    qtbot.waitUntil(lambda: not fresh.job_queue.running(), timeout=LONG_MS)
    assert ear.offers == [(run.path, f"'{run.path.name}' stopped at step {progress.step:,}.")]
    assert fresh.close()


def test_a_run_that_can_not_be_resumed_beside_another_says_so(
    qtbot: QtBot, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ear, path = Ear(session), Path("discs generator")
    monkeypatch.setattr(session.training, "state", "training")
    session.resume_run(path)
    session.training.path = path
    session.resume_run(path)
    assert [notice.title for notice in ear.notices] == [
        "Another run is being trained: stop it first.",
        "This run is being trained already.",
    ]
    assert "discs generator" in ear.notices[0].hint


def test_settings_come_back(qtbot: QtBot, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "window.ini")
    settings.keep_layout("window", QByteArray(b"\x01\x02"))
    settings.keep_values("generator", {"minutes": 2.5, "flip": True})
    settings.keep_text("scheme", "dark")
    for folder in ("a", "b", "a"):
        (tmp_path / folder).mkdir(exist_ok=True)
        settings.keep_recent(tmp_path / folder)
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
        with qtbot.waitSignal(session.open_sprites.imported, timeout=LONG_MS):
            session.open_sprites.open_paths([path])
        assert session.open_sprites.sprites is not None and len(session.open_sprites.sprites) == count
    assert session.settings.recent() == [str(archive)]


def test_a_damaged_settings_file_is_as_if_there_were_none(tmp_path: Path) -> None:
    path = tmp_path / "window.ini"
    path.write_bytes(b"\x00[forms\ngenerator={{{\nrecent=7\nscheme=plaid")
    settings = Settings(path)
    assert settings.values("generator") == {}
    assert settings.recent() == []
    assert settings.scheme() == "system"


@pytest.mark.parametrize("text", ["[]", "null", '{"minutes": [1]}', '{"minutes": null}', "[" * 100_000])
def test_remembered_values_of_another_kind_are_as_if_there_were_none(tmp_path: Path, text: str) -> None:
    settings = Settings(tmp_path / "window.ini")
    settings.keep_text("forms/generator", text)
    settings.keep_text("recent", text)
    assert settings.values("generator") == {} and settings.recent() == []
