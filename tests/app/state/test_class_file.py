"""The class file of a teacher: opened, remembered, left, refused with a sentence."""

from pathlib import Path

from pytestqt.qtbot import QtBot

from studio.app.state.session import Session
from tests.app.conftest import LONG_MS


def test_a_class_is_opened_remembered_and_left(qtbot: QtBot, ready: Session, tmp_path: Path) -> None:
    path, class_file = tmp_path / "class.toml", ready.class_file
    path.write_text('title = "Class 10b"\nseconds = 5\n')
    with qtbot.waitSignal(class_file.changed, timeout=LONG_MS):
        class_file.open(path)
    assert class_file.path() == str(path) and not class_file.problem
    assert class_file.content is not None and class_file.content.title == "Class 10b"
    later = Session(ready.settings)
    later.catalog.open()
    qtbot.waitUntil(lambda: later.class_file.content is not None, timeout=LONG_MS)
    assert later.class_file.content == class_file.content
    assert later.close()
    class_file.leave()
    assert class_file.path() == "" and class_file.content.path is None


def test_a_wrong_remembered_class_file_is_a_problem(qtbot: QtBot, ready: Session, tmp_path: Path) -> None:
    path = tmp_path / "class.toml"
    path.write_text("code = 'import os'")
    ready.settings.set_text("class_file", str(path))
    later = Session(ready.settings)
    with qtbot.waitSignal(later.failed, timeout=LONG_MS) as failed:
        later.catalog.open()
    assert later.class_file.path() == str(path) and "is not a class file." in later.class_file.problem
    assert failed.args[0].title == f"{path} is not a class file." and "code" in failed.args[0].hint
    assert len(later.lessons.known()) > 1  # all lessons
    assert later.close()
