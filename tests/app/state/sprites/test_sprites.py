"""Open sprites: checks after moves, remembered import settings, and the analysis in the background."""

from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from studio.app.background.worker import JobState
from studio.app.state.feature_training import TITLE
from studio.app.state.late import outliers
from studio.app.state.session import Session
from studio.app.state.sprites.edits import SpriteEdits
from studio.core import paths
from studio.core.events import Events, Notice, Progress
from studio.data.doctor import checks
from studio.data.doctor.findings import SpritesChecked
from studio.data.doctor.neighbours import Analysis, SpriteNeighbours
from studio.data.importing.stored_options import options_path, read_options
from studio.data.options import ImportOptions
from studio.data.sprites import Sprites
from tests.app.conftest import LONG_MS, classes, open_sprites, sprites_of

FIRST = "class0/000.png"


def test_moves_check_only_the_classes_again(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, doctor = ready.open_sprites, ready.doctor
    compared, counted = list[Sprites](), list[object]()

    def find_outliers(analysis: Analysis, *_: object) -> Events:
        sprites = analysis.compared
        compared.append(sprites)
        near = np.tile(np.arange(2, 12), (len(sprites), 1))  # ten sprites of class0 are similar to all sprites
        found = SpriteNeighbours(near, np.ones(len(sprites), np.float32))
        yield SpritesChecked(sprites, (), len(sprites), neighbours=found)

    monkeypatch.setattr(outliers, "find_outliers", find_outliers)
    opened.colours_counted.connect(counted.append)
    open_sprites(qtbot, ready, sprite_folder)
    qtbot.waitUntil(lambda: bool(compared) and bool(counted) and not doctor.is_checking, timeout=LONG_MS)
    before = sprites_of(ready)
    SpriteEdits(opened).move_to_class([0], "class1")
    qtbot.waitUntil(lambda: sprites_of(ready) is not before and not doctor.is_checking, timeout=LONG_MS)
    assert sprites_of(ready).rgba is before.rgba
    (found,) = (each for each in doctor.findings if each.group == "wrong class")
    assert len(found.items) == sprites_of(ready).class_counts()[1] == 13
    opened.history.undo()
    qtbot.waitUntil(lambda: not doctor.is_checking and not opened.is_busy(), timeout=LONG_MS)
    assert len(compared) == len(counted) == 1
    opened.change_options(opened.options.replace(size=16))  # other pixels
    qtbot.waitUntil(lambda: len(compared) == len(counted) == 2, timeout=LONG_MS)


def test_moves_let_a_running_check_end(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, doctor, may_end, checked = ready.open_sprites, ready.doctor, list[bool](), list[Sprites]()

    def run_checks(sprites: Sprites, *_: object) -> Events:
        checked.append(sprites)
        while not may_end:
            yield Progress(0, 1, "sprites checked")
        yield SpritesChecked(sprites, (), len(sprites))

    monkeypatch.setattr(checks, "run_checks", run_checks)
    open_sprites(qtbot, ready, sprite_folder)
    qtbot.waitUntil(lambda: bool(checked), timeout=LONG_MS)
    SpriteEdits(opened).move_to_class([0], "boss")
    assert classes(qtbot, ready)[FIRST] == "boss" and doctor.is_checking
    may_end.append(True)
    qtbot.waitUntil(lambda: not doctor.is_checking, timeout=LONG_MS)
    assert len(checked) == 1
    (found,) = (each for each in doctor.findings if each.group == "small class")
    assert [item.name for item in found.items] == [FIRST]


def test_options_return_when_the_folder_is_opened_again(
    qtbot: QtBot, session: Session, sprite_folder: Path, tmp_path: Path
) -> None:
    opened, palette = session.open_sprites, tmp_path / "two.hex"
    noticed = list[Notice]()
    session.job_queue.noticed.connect(noticed.append)
    palette.write_text("ff0000\n00ff00\n")
    open_sprites(qtbot, session, sprite_folder)
    assert not read_options([sprite_folder]).changed() and opened.was_reopened()
    opened.change_options(opened.options.replace(leave_out=FIRST, palette=str(palette)))
    assert FIRST not in classes(qtbot, session) and not opened.was_reopened()
    open_sprites(qtbot, session, sprite_folder)
    assert opened.options.leave_out == FIRST and FIRST not in classes(qtbot, session) and opened.was_reopened()
    opened.change_options(ImportOptions())
    opened.history.undo()
    assert FIRST not in classes(qtbot, session) and read_options([sprite_folder]) == opened.options
    palette.unlink()
    open_sprites(qtbot, session, sprite_folder)
    assert opened.options == ImportOptions(leave_out=FIRST) and FIRST not in classes(qtbot, session)
    assert "don't fit" in noticed[-1].title and "two.hex" in f"{noticed[-1].title} {noticed[-1].hint}"
    SpriteEdits(opened).move_to_class([0], "new")
    assert "new" in classes(qtbot, session).values() and read_options([sprite_folder]).palette  # only the user forgets
    options_path([sprite_folder]).write_text("damaged")
    open_sprites(qtbot, session, sprite_folder)
    assert FIRST in classes(qtbot, session) and "import settings" in noticed[-1].title


def test_exclusions_and_trainings_do_not_restart_the_analysis(
    qtbot: QtBot, ready: Session, sprite_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, started, checked = ready.open_sprites, list[Analysis](), list[Sprites]()
    steps, resumed = list[bool](), list[bool]()

    def find_outliers(analysis: Analysis, *_: object) -> Events:
        started.append(analysis)
        while not checked:
            steps.append(True)
            yield Progress(len(steps), 600, "steps")
        yield SpritesChecked(analysis.compared, (), 1)

    def wait_for_step() -> None:
        before = len(steps)
        qtbot.waitUntil(lambda: len(steps) > before, timeout=LONG_MS)

    monkeypatch.setattr(outliers, "find_outliers", find_outliers)
    open_sprites(qtbot, ready, sprite_folder)
    wait_for_step()
    ready.doctor.exclude([FIRST])
    qtbot.waitUntil(lambda: FIRST not in sprites_of(ready).names, timeout=LONG_MS)
    wait_for_step()
    monkeypatch.setattr(ready.training, "owns_run", lambda: not resumed)
    ready.training.state_changed.emit()
    (job,) = (job for job in ready.job_queue.running() if job.title == TITLE)
    qtbot.waitUntil(lambda: job.state is JobState.PAUSED, timeout=LONG_MS)
    resumed.append(True)
    ready.training.state_changed.emit()
    wait_for_step()
    checked.append(sprites_of(ready))
    qtbot.waitUntil(lambda: not ready.job_queue.running(), timeout=LONG_MS)
    assert [each.compared for each in started] == checked
    opened.change_options(opened.options.replace(size=16))  # other pixels
    qtbot.waitUntil(lambda: len(started) == 2, timeout=LONG_MS)
    assert started[1] is not started[0]


def test_a_canvas_too_small_for_every_sprite_is_an_error(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    opened = session.open_sprites
    open_sprites(qtbot, session, sprite_folder)
    with qtbot.assertNotEmitted(opened.only_sheets), qtbot.waitSignal(session.failed, timeout=LONG_MS) as failed:
        opened.change_options(opened.options.replace(size=2))
    assert "fits the canvas of 2 × 2" in failed.args[0].title and "Auto" in failed.args[0].hint
    qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
    assert sprites_of(session).size == 8 and opened.history.latest is None


def test_options_that_cannot_be_stored_are_reported(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    opened, noticed = session.open_sprites, list[Notice]()
    session.job_queue.noticed.connect(noticed.append)
    paths.import_settings().write_text("in the way")
    with qtbot.waitSignal(opened.imported, timeout=LONG_MS):
        opened.open_paths([sprite_folder], ImportOptions(size=16))
    assert sprites_of(session).size == 16
    assert "can't be stored" in noticed[-1].title and str(paths.import_settings()) in noticed[-1].hint
