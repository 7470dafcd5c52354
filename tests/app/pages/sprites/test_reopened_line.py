"""The line about remembered slicing, exclusions and moves, and its button."""

from pathlib import Path

from pytestqt.qtbot import QtBot

from studio.app.pages.sprites.reopened_line import ReopenedLine
from studio.app.state.session import Session
from studio.app.state.sprites.edits import SpriteEdits
from studio.data.options import ImportOptions
from tests.app.conftest import LONG_MS, open_sprites


def test_line_says_what_differs_and_opens_as_the_files_are(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    opened, line = session.open_sprites, ReopenedLine(session.open_sprites)
    qtbot.addWidget(line)
    open_sprites(qtbot, session, sprite_folder)
    assert line.isHidden()
    opened.change_options(ImportOptions(leave_out="class0/000.png", size=16))
    qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
    SpriteEdits(opened).move_to_class([0, 1], "new")
    qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
    assert line.isHidden()
    open_sprites(qtbot, session, sprite_folder)
    told = "1 sprite excluded, 2 sprites moved to another class, 1 import setting changed"
    assert line.text.text() == f"Opened as you left it: {told}." and not line.isHidden()
    line.as_files.click()
    qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
    assert opened.options == ImportOptions(edits="off") and line.isHidden()
    assert opened.result is not None and not opened.result.note_groups.get("moved")
    opened.history.undo()
    qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
    assert opened.options.size == 16 and len(opened.result.note_groups["moved"]) == 2
