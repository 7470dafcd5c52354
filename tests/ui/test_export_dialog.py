"""The export dialog: it begins when it can, shows its own result only, and gives up what it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app.background.model_jobs import SavedModel
from studio.app.pages.export_dialog import ExportDialog
from studio.app.pages.runs.actions import RunActions
from studio.app.state.session import Session
from studio.core.events import Events, Exported
from studio.engine.runs.listing import summarise
from tests.ui.conftest import LONG_MS, click, endless, start_tiny


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Exports go on until they are given up; the list tells which were."""
    closed: list[str] = []

    def export(shelf: object, source: SavedModel, *rest: object) -> Events:
        try:
            yield from endless()
        finally:
            closed.append(source.path.name)

    monkeypatch.setattr("studio.app.background.model_jobs.export", export)
    return closed


@pytest.fixture
def page(qtbot: QtBot, ready: Session) -> Iterator[QWidget]:
    made = QWidget()
    qtbot.addWidget(made)
    yield made
    ready.inference.cancel()


def dialog(session: Session, page: QWidget, name: str) -> ExportDialog:
    device = session.catalog.device("cpu")
    assert device is not None
    made = ExportDialog(session, SavedModel(Path(name), "best"), name, device, page)
    made.open()
    return made


def test_a_dialog_that_is_left_gives_up_its_export_and_the_next_one_waits_for_it(
    qtbot: QtBot, ready: Session, page: QWidget, given_up: list[str]
) -> None:
    first = dialog(ready, page, "first")
    with qtbot.waitSignal(ready.inference.progressed, timeout=LONG_MS):
        click(first.start)
    assert first.stop.isVisible()
    QTest.keyClick(first.stop, Qt.Key.Key_Return)
    assert first.isVisible()
    click(first.stop)
    second = dialog(ready, page, "second")
    assert not second.start.isEnabled() and "at work" in second.start.toolTip()
    ready.inference.exported.emit(Exported((Path("first.onnx"),), 0.0, "load()"))  # what was on its way
    assert second.start.isVisible() and not second.outcome.text()
    qtbot.waitUntil(second.start.isEnabled, timeout=LONG_MS)
    assert given_up == ["first"]
    assert second.start.toolTip().startswith("Write the file")
    second.path.clear()
    assert not second.start.isEnabled()


def test_a_run_can_be_exported_once_the_formats_are_known(qtbot: QtBot, ready: Session) -> None:
    start_tiny(ready, steps=3)
    qtbot.waitUntil(lambda: not ready.training.is_busy(), timeout=LONG_MS)
    assert ready.training.path is not None
    known, ready.catalog.exports = ready.catalog.exports, {}  # devices may be found first
    actions = RunActions(ready)
    qtbot.addWidget(actions)
    actions.set_runs([summarise(ready.training.path)])
    assert actions.use.isEnabled()
    assert not actions.export.isEnabled() and "starting" in actions.export.toolTip()
    assert not actions.export_model()
    ready.catalog.exports = known
    ready.catalog.ready.emit()
    assert actions.export.isEnabled()
