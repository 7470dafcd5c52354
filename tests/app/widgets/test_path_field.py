"""A field for a path: completion, Browse, and its place in a form."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from studio.app.widgets.config_form import ConfigForm
from studio.app.widgets.path_field import PathField, PathKind
from studio.data.options import ImportOptions


def completions(qtbot: QtBot, kind: PathKind, typed: str, expected: int) -> list[str]:
    """Type a path into a new field; return the completed names."""
    field = PathField(kind)
    qtbot.addWidget(field)
    field.show()
    field.activateWindow()
    field.line.setFocus()
    qtbot.waitUntil(lambda: field.line.completer() is not None)
    completer = field.line.completer()
    QTest.keyClicks(field.line, typed)
    qtbot.waitUntil(lambda: completer.completionCount() == expected)
    model = completer.completionModel()
    return sorted(model.data(model.index(row, 0)) for row in range(expected))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "palettes").mkdir()
    (tmp_path / "pale.gpl").touch()
    (tmp_path / "other").mkdir()
    return tmp_path


def test_typed_paths_complete(qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    assert completions(qtbot, "file", "~/pal", 2) == ["pale.gpl", "palettes"]
    assert completions(qtbot, "folder", f"{folder}/pal", 1) == ["palettes"]


def test_browse_starts_at_the_typed_path(qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts, field = list[str](), PathField("folder")
    qtbot.addWidget(field)

    def choose(parent: object, title: str, start: str) -> str:
        starts.append(start)
        return str(folder / "other")

    monkeypatch.setattr(QFileDialog, "getExistingDirectory", choose)
    field.set_text(f" {folder} ")
    with qtbot.waitSignal(field.changed):
        field.browse.click()
    assert starts == [str(folder)] and field.path() == folder / "other"


def test_a_dropped_folder_becomes_the_path(qtbot: QtBot, folder: Path) -> None:
    field, data = PathField("folder"), QMimeData()
    qtbot.addWidget(field)
    data.setUrls([QUrl.fromLocalFile(str(folder))])
    data.setText(f"file://{folder}")
    field.set_text("before")
    left, no_key = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    with qtbot.waitSignal(field.finished):
        field.line.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, no_key))
    assert field.path() == folder


def test_form_reads_and_marks_a_path(qtbot: QtBot) -> None:
    form = ConfigForm(ImportOptions(palette="a.gpl"))
    qtbot.addWidget(form)
    line = form.findChild(QLineEdit, "palette")
    assert line is not None and line.text() == "a.gpl" and form.config() == ImportOptions(palette="a.gpl")
    line.selectAll()
    QTest.keyClicks(line, "b.gpl")
    assert form.config() == ImportOptions(palette="b.gpl")
    form.show_error("palette", "No such file.")
    assert line.toolTip() == "No such file." and line.property("invalid")
    field = line.parent()
    assert isinstance(field, PathField) and field.browse.isEnabled()
    assert field.browse.focusPolicy() & Qt.FocusPolicy.TabFocus
