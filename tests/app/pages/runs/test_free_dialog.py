"""Managing runs in the window: names, notes, stars, tags, trash with undo, and freeing space."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from studio.app import theme
from studio.app.background import trash
from studio.app.background.job_events import UndoOffered
from studio.app.background.trash import TrashedRun
from studio.app.notifications import Messages, NoticeBar
from studio.app.pages.runs.free_dialog import FreeSpaceDialog
from studio.app.pages.runs.page import RunsPage
from studio.app.pages.runs.table import Column
from studio.app.state.session import Session
from studio.core import paths
from studio.core.events import Event, Notice
from studio.engine.runs.folder import RunDir
from studio.engine.runs.notes import RunNotes, change_notes, read_notes
from tests.app.conftest import LONG_MS, click

T = TypeVar("T")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the trash of other systems is the user's own")


@pytest.fixture
def own_trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a folder of this test as the system's trash."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data/Trash"


@pytest.fixture
def runs(trained_run: Path) -> list[Path]:
    """Write three runs."""
    return [shutil.copytree(trained_run, paths.runs() / name) for name in ("a", "b", "c")]


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, runs: list[Path], session: Session) -> RunsPage:
    """Return the page with these runs, shown and measured."""
    theme.apply(qapp, "light")
    made = RunsPage(session)
    qtbot.addWidget(made)
    made.resize(1100, 700)
    made.show()
    with qtbot.waitSignal(session.run_space.measured, timeout=LONG_MS):
        made.before_show()
    _wait(qtbot, made)
    return made


def _wait(qtbot: QtBot, page: RunsPage) -> None:
    qtbot.waitUntil(lambda: not page.session.job_queue.running(), timeout=LONG_MS)


def _row(page: RunsPage, name: str) -> QModelIndex:
    model = page.table.model()
    return next(
        index for index in (model.index(row, Column.NAME) for row in range(model.rowCount())) if index.data() == name
    )


def _names(page: RunsPage) -> list[str]:
    model = page.table.model()
    return sorted(model.index(row, Column.NAME).data() for row in range(model.rowCount()))


def _choose(page: RunsPage, *names: str) -> None:
    page.table.clearSelection()
    flag = page.table.selectionModel().SelectionFlag
    for name in names:
        page.table.selectionModel().select(_row(page, name), flag.Select | flag.Rows)


def _said(qtbot: QtBot, page: RunsPage, run: Path) -> RunNotes:
    """Return the notes in the run's folder once written, and in the list."""
    _wait(qtbot, page)
    (listed,) = [one.notes for one in page.session.runs.runs if one.path == run]
    assert read_notes(run) == listed
    return listed


def test_half_typed_name_survives_a_refresh(qtbot: QtBot, page: RunsPage, runs: list[Path]) -> None:
    page.table.setCurrentIndex(_row(page, "b"))
    page.table.edit(_row(page, "b"))
    editor = page.table.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit) and editor.text() == "b"
    editor.selectAll()
    QTest.keyClicks(editor, "Fire & ice")
    change_notes(runs[0], starred=True)
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        page.session.runs.list_runs()
    assert editor.text() == "Fire & ice"
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        QTest.keyClick(editor, Qt.Key.Key_Return)
    assert _said(qtbot, page, runs[1]).name == "Fire & ice"
    assert _names(page) == ["Fire & ice", "a", "c"] and page.session.runs.title_of(runs[1]) == "Fire & ice"
    assert not page.table.model().setData(_row(page, "a"), "a")  # no change


@pytest.mark.parametrize("column", [Column.STAR, Column.STATE])
def test_f2_edits_the_name_from_any_cell(page: RunsPage, runs: list[Path], column: Column) -> None:
    page.table.setCurrentIndex(_row(page, "b").siblingAtColumn(column))
    page.table.setFocus()
    QTest.keyClick(page.table, Qt.Key.Key_F2)
    editor = page.table.findChild(QLineEdit)
    assert editor is not None and editor.text() == "b" and len(page.table.selected()) == 1


def test_star_by_click_and_by_key(qtbot: QtBot, page: RunsPage, runs: list[Path]) -> None:
    star = _row(page, "a").siblingAtColumn(Column.STAR)
    place = page.table.visualRect(star).center()
    QTest.mouseClick(page.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert _said(qtbot, page, runs[0]).starred
    _choose(page, "a", "b")
    page.table.setFocus()
    for expected in (True, False):  # all are starred, so all lose the star
        QTest.keyClick(page.table, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
        assert [_said(qtbot, page, run).starred for run in runs[:2]] == [expected, expected]


def test_tags_and_note_are_stored_on_another_selection(qtbot: QtBot, page: RunsPage, runs: list[Path]) -> None:
    _choose(page, "a")
    page.notes.tags.setText("boss, dark Boss")
    page.notes.note.setPlainText("Too wide.\nTry 32.")
    _choose(page, "b")
    assert page.notes.note.toPlainText() == "" and page.notes.tags.text() == ""
    assert _said(qtbot, page, runs[0]) == RunNotes(note="Too wide.\nTry 32.", tags=("boss", "dark"))
    assert _said(qtbot, page, runs[1]) == RunNotes()
    _choose(page, "a")
    assert page.notes.tags.text() == "boss, dark"
    page.notes.note.setPlainText("Typing")
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        page.session.runs.list_runs()
    assert page.notes.note.toPlainText() == "Typing"
    page.save_before_close()
    assert read_notes(runs[0]).note == "Typing"  # at once, since closing the window ends all jobs
    assert _said(qtbot, page, runs[0]).note == "Typing"
    _choose(page, "a", "b")
    assert not page.notes.note.isEnabled() and "one run" in page.notes.note.toolTip()


def test_invalid_notes_show_an_error_and_stay(qtbot: QtBot, page: RunsPage, runs: list[Path]) -> None:
    _choose(page, "a")
    row, reason = page.notes, page.notes._tags_error
    row.tags.clear()
    QTest.keyClicks(row.tags, "x" * 33)
    qtbot.waitUntil(lambda: reason.text() == "A tag has at most 32 characters, not 33.", timeout=LONG_MS)
    assert row.tags.property("invalid") is True and not reason.isHidden()
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        page.session.runs.list_runs()
    assert row.tags.text() == "x" * 33 and read_notes(runs[0]).tags == ()
    QTest.keyClick(row.tags, Qt.Key.Key_Backspace)
    qtbot.waitUntil(lambda: read_notes(runs[0]).tags == ("x" * 32,), timeout=LONG_MS)
    assert reason.isHidden()
    row.note.setPlainText("y" * 10_001)
    qtbot.waitUntil(lambda: not row._note_error.isHidden(), timeout=LONG_MS)
    assert "first 10,000" in row._note_error.text()


def test_filter_runs_by_name_note_tag_and_star(qtbot: QtBot, page: RunsPage, runs: list[Path]) -> None:
    change_notes(runs[0], name="Fire", tags=["boss", "dark"], note="too wide")
    change_notes(runs[1], name="Bossy", starred=True)
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        page.before_show()
    for text, found in (
        ("boss", ["Bossy", "Fire"]), ("tag:boss", ["Fire"]), ("tag:DA wide", ["Fire"]), ("fire wide", ["Fire"]),
        ("tag:wide", []), (str(runs[2]), ["c"]), ("", ["Bossy", "Fire", "c"]),
    ):  # fmt: skip
        page.filter.setText(text)
        assert _names(page) == found, text
    page.starred.click()
    assert _names(page) == ["Bossy"]


def test_table_shows_disk_space(page: RunsPage, runs: list[Path]) -> None:
    assert "3 runs, " in page._disk_use.text() and page._disk_use.text().endswith("on disk")
    assert _row(page, "a").siblingAtColumn(Column.DISK).data()


@linux
def test_trash_and_restore_a_run(qtbot: QtBot, page: RunsPage, runs: list[Path], own_trash: Path) -> None:
    bar = NoticeBar(page)  # a separate window would take the focus
    Messages(page.session, bar, bar)
    change_notes(runs[0], name="Fire")
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        page.before_show()
    for names in (["Fire"], ["b", "c"]):
        _choose(page, *names)
        page.table.setFocus()
        with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
            QTest.keyClick(page.table, Qt.Key.Key_Delete)
    assert _names(page) == [] and {path.name for path in (own_trash / "files").iterdir()} == {"a", "b", "c"}
    (card,) = bar.cards()  # only for the newest run
    assert card.texts[0] == "Moved 2 runs to the trash." and card.expires
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        click(next(found for found in card.findChildren(QPushButton) if found.text() == "Undo"))
    assert _names(page) == ["b", "c"] and sorted(run.title for run in page.table.selected()) == ["b", "c"]
    qtbot.waitUntil(lambda: not bar.cards(), timeout=LONG_MS)
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        page.history.undo()
    assert [run.title for run in page.table.selected()] == ["Fire"]
    assert page.session.run_history.latest is None and not list(own_trash.glob("*/*"))


def finish(events: Generator[Event, None, T]) -> tuple[list[Event], T]:
    """Run a job; return its events and its result."""
    found: list[Event] = []
    try:
        while True:
            found.append(next(events))
    except StopIteration as end:
        return found, end.value


@linux
@linux
def test_trash_is_created_in_a_fresh_home(runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new home/.local/share"))
    assert finish(trash.trash_runs(runs[:1]))[1] and not runs[0].exists()
    assert (tmp_path / "new home/.local/share/Trash/files/a/run.json").is_file()


def test_run_that_can_not_be_restored_stays_in_the_trash(runs: list[Path], own_trash: Path) -> None:
    _, trashed = finish(trash.trash_runs(runs))
    assert [run.path for run in trashed] == runs
    runs[0].mkdir()
    shutil.rmtree(own_trash / "files" / "b")
    (first, second), restored = finish(trash.restore_runs(trashed))
    assert isinstance(first, Notice) and "already exists" in first.title
    assert isinstance(second, Notice) and "no longer in the trash" in second.title
    assert restored == [runs[2]] and (runs[2] / "run.json").is_file()
    assert (own_trash / "files" / "a" / "run.json").is_file()


def test_training_or_missing_runs_are_skipped(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _replace_trash(monkeypatch, lambda path: bool(shutil.move(path, tmp_path / "trash")))
    training = RunDir(runs[0])
    training.acquire()
    shutil.rmtree(runs[1])
    try:
        (first, second), trashed = finish(trash.trash_runs(runs))
    finally:
        training.release()
    assert isinstance(first, Notice) and "is training" in first.title and runs[0].is_dir()
    assert isinstance(second, Notice) and "does not exist" in second.title
    assert trashed == [TrashedRun(runs[2], None)]


def test_without_a_trash_the_run_stays(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_trash(monkeypatch, lambda path: False)
    (told,), moved = finish(trash.trash_runs(runs[:1]))
    assert told == trash.TrashMissing((runs[0],)) and not moved and (runs[0] / "run.json").is_file()


def test_question_deletes_permanently_without_a_trash(
    qtbot: QtBot, page: RunsPage, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _replace_trash(monkeypatch, lambda path: False)
    _choose(page, "a", "b")
    for answer in ("Cancel", "Delete permanently"):
        with qtbot.waitSignal(page.session.run_trash.trash_missing, timeout=LONG_MS):
            click(page.actions_row.trash)
        question = page.findChild(QMessageBox)
        assert isinstance(question, QMessageBox) and question.text() == "Delete 2 runs permanently?"
        assert "can't be undone" in question.informativeText() and question.defaultButton().text() == "Cancel"
        assert all(run.is_dir() for run in runs)
        chosen = next(button for button in question.buttons() if button.text() == answer)
        if answer == "Cancel":
            chosen.click()
            qtbot.waitUntil(lambda: page.findChild(QMessageBox) is None)
    with qtbot.waitSignal(page.session.runs.listed, timeout=LONG_MS):
        chosen.click()
    assert [run.is_dir() for run in runs] == [False, False, True] and _names(page) == ["c"]


def test_training_run_is_not_deleted(runs: list[Path]) -> None:
    training = RunDir(runs[0])
    training.acquire()
    try:
        (told,), deleted = finish(trash.delete_runs(runs[:2]))
    finally:
        training.release()
    assert isinstance(told, Notice) and "is training" in told.title
    assert deleted == [runs[1]] and (runs[0] / "run.json").is_file() and not runs[1].exists()


def test_unknown_trash_path_offers_no_undo(
    qtbot: QtBot, page: RunsPage, runs: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _replace_trash(monkeypatch, lambda path: bool(shutil.move(path, tmp_path / "trash")))
    with qtbot.waitSignal(page.session.noticed, timeout=LONG_MS) as told:
        page.session.run_trash.move(runs[:1])
    assert "to the trash" in told.args[0].title and not isinstance(told.args[0], UndoOffered)
    assert page.session.run_history.latest is None


def _replace_trash(monkeypatch: pytest.MonkeyPatch, move: Callable[[str], bool]) -> None:
    """Replace QFile.moveToTrash by `move` and report no path. A static method can't be patched."""

    class File:
        def __init__(self, path: str) -> None:
            self._path = path

        def moveToTrash(self) -> bool:
            return move(self._path)

        def fileName(self) -> str:
            return ""

    monkeypatch.setattr(trash, "QFile", File)


def test_free_space_by_checked_kinds(qtbot: QtBot, page: RunsPage, runs: list[Path]) -> None:
    for run in runs:
        (run / "exports").mkdir()
        (run / "exports" / "model.onnx").write_bytes(b"x" * 4096)
    _choose(page, "a")
    dialog = FreeSpaceDialog(page.session, page.table.selected(), page)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: not page.session.run_space.is_busy(), timeout=LONG_MS)
    assert not dialog.boxes["exports"].isChecked() and not any(
        item.kind == "exports" for item in dialog.checked_items()
    )
    dialog.boxes["exports"].click()
    dialog.boxes["checkpoints"].setChecked(False)
    assert {item.run for item in dialog.checked_items()} == set(runs) and "12 KB" in dialog.free.text()
    dialog.runs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not page.session.run_space.is_busy(), timeout=LONG_MS)
    assert [item.path for item in dialog.checked_items()] == [runs[0] / "exports" / "model.onnx"]
    with qtbot.waitSignal(page.session.noticed, timeout=LONG_MS) as told:
        click(dialog.free)
    assert told.args[0].title == "4 KB freed."
    assert [len(list((run / "exports").iterdir())) for run in runs] == [0, 1, 1]
    _wait(qtbot, page)
