"""Moves of open sprites to other classes: saved, undone, refused with a reason."""

from pathlib import Path

from pytestqt.qtbot import QtBot

from studio.app.state.session import Session
from studio.app.state.sprites.edits import SpriteEdits
from studio.core.events import JobFailed, Notice
from studio.data.edits import edits_path, read_edits
from tests.app.conftest import LONG_MS, classes, open_sprites, sprites_of

FIRST, SECOND = "class0/000.png", "class0/001.png"


def test_moves_are_saved_undone_and_redone(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    opened = session.open_sprites
    open_sprites(qtbot, session, sprite_folder)
    SpriteEdits(opened).move_to_class([0, 1], "new")
    latest = opened.history.latest
    assert latest is not None and latest.title == "move 2 sprites to 'new'"
    found = classes(qtbot, session)
    assert found[FIRST] == found[SECOND] == "new" and len(read_edits(sprite_folder)) == 2
    assert sprites_of(session).origin["edits"] == {"moved": {"new": [FIRST, SECOND]}}
    SpriteEdits(opened).move_to_class([sprites_of(session).names.index(SECOND)], "class1")
    opened.change_options(opened.latest.options.replace(size=16))  # while the move is being imported
    assert classes(qtbot, session)[SECOND] == "class1" and sprites_of(session).size == 16
    opened.history.undo()
    opened.history.undo()
    assert classes(qtbot, session)[SECOND] == "new" and sprites_of(session).size == 8
    opened.history.undo()
    assert classes(qtbot, session)[FIRST] == "class0" and not edits_path(sprite_folder).exists()
    opened.history.redo()
    assert classes(qtbot, session)[FIRST] == "new" and len(read_edits(sprite_folder)) == 2


def test_edits_can_be_ignored_and_followed_again(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    opened = session.open_sprites
    open_sprites(qtbot, session, sprite_folder)
    SpriteEdits(opened).move_to_class([0], "new")
    assert classes(qtbot, session)[FIRST] == "new"
    opened.change_options(opened.options.replace(edits="off"))
    assert classes(qtbot, session)[FIRST] == "class0"
    assert SpriteEdits(opened).problem() == "Your edits are off in Import settings."
    SpriteEdits(opened).move_to_class([1], "new")
    assert classes(qtbot, session)[SECOND] == "class0"
    opened.open_paths([sprite_folder], opened.options)
    assert classes(qtbot, session)[FIRST] == "class0"
    opened.change_options(opened.options.replace(edits="on"))  # loads the edits
    assert classes(qtbot, session)[FIRST] == "new" and not SpriteEdits(opened).problem()


def test_damaged_edits_are_reported_and_kept(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    path, opened = edits_path(sprite_folder), session.open_sprites
    path.parent.mkdir()
    path.write_text("damaged")
    noticed, failed = list[Notice](), list[JobFailed]()
    session.job_queue.noticed.connect(noticed.append)
    session.failed.connect(failed.append)
    open_sprites(qtbot, session, sprite_folder)
    (notice,) = (each for each in noticed if "edits" in each.title)
    assert notice.level == "warning" and str(path) in notice.hint
    assert SpriteEdits(opened).problem() == "The file of your edits is damaged."
    SpriteEdits(opened).move_to_class([0], "new")
    assert classes(qtbot, session)[FIRST] == "class0" and path.read_text() == "damaged"
    path.unlink()
    open_sprites(qtbot, session, sprite_folder)
    path.write_text("damaged meanwhile")
    SpriteEdits(opened).move_to_class([0], "new")
    qtbot.waitUntil(lambda: bool(failed), timeout=LONG_MS)
    assert classes(qtbot, session)[FIRST] == "class0" and path.read_text() == "damaged meanwhile"
    assert opened.history.latest is None
