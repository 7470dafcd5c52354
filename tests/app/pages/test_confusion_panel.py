"""The sprites of a cell of the confusion matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from studio.app.pages.confusion_panel import ConfusionPanel
from studio.app.state.session import Session
from studio.core.events import ClassPredictions, ValueConfusion
from studio.data.store import packed
from studio.engine.runs.folder import RunDir
from tests.app.conftest import LONG_MS
from tests.app.widgets.tools import shown
from tests.conftest import make_sprites, with_tones

COUNTS = np.array([[1, 2], [0, 1]])
PREDICTIONS = ClassPredictions(np.array([0, 1, 2, 13]), np.array([0, 1, 1, 1]))  # 12 sprites of each class


@pytest.fixture
def panel(qtbot: QtBot, session: Session, run_path: Path) -> ConfusionPanel:
    run_path.mkdir(parents=True)
    packed.save(make_sprites(), RunDir(run_path).data)
    made = shown(qtbot, ConfusionPanel(session), 800, 300)
    made.show_matrix(run_path, COUNTS, ("gem", "sword"), PREDICTIONS)
    return made


def _click(qtbot: QtBot, panel: ConfusionPanel, true: int, predicted: int) -> None:
    matrix = panel.matrix.matrix
    qtbot.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=matrix.cell_rect(true, predicted).center())


def test_click_shows_the_sprites_of_a_cell(qtbot: QtBot, session: Session, panel: ConfusionPanel) -> None:
    with qtbot.waitSignal(session.runs.confused_found, timeout=LONG_MS):
        _click(qtbot, panel, 0, 1)
    assert panel.grid.isVisible() and panel.grid.visible_count() == 2
    assert panel.title.text() == "gem predicted as sword: 2 of 3"
    _click(qtbot, panel, 1, 0)
    assert not panel.grid.isVisible() and "No validation sprite" in panel.note.text()
    qtbot.keyClick(panel.matrix.matrix, Qt.Key.Key_Up)
    with qtbot.waitSignal(session.runs.confused_found, timeout=LONG_MS):
        qtbot.keyClick(panel.matrix.matrix, Qt.Key.Key_Return)
    assert panel.grid.isVisible() and panel.grid.visible_count() == 1


def test_newer_matrix_of_the_run_shows_the_cell_again(
    qtbot: QtBot, session: Session, panel: ConfusionPanel, run_path: Path
) -> None:
    with qtbot.waitSignal(session.runs.confused_found, timeout=LONG_MS):
        _click(qtbot, panel, 0, 1)
    better = ClassPredictions(PREDICTIONS.sprites, np.array([0, 0, 1, 1]))
    with qtbot.waitSignal(session.runs.confused_found, timeout=LONG_MS):
        panel.show_matrix(run_path, np.array([[2, 1], [0, 1]]), ("gem", "sword"), better)
    assert panel.grid.visible_count() == 1 and panel.title.text() == "gem predicted as sword: 1 of 3"
    panel.show_matrix(run_path.with_name("other"), COUNTS, ("gem", "sword"), PREDICTIONS)
    assert not panel.grid.isVisible() and not panel.title.text()


def test_run_without_predictions_says_so(qtbot: QtBot, panel: ConfusionPanel, run_path: Path) -> None:
    panel.show_matrix(run_path, COUNTS, ("gem", "sword"), None)
    _click(qtbot, panel, 0, 1)
    assert "recorded only the numbers" in panel.note.text() and not panel.grid.isVisible()


def test_attributes_have_matrices_of_their_own(
    qtbot: QtBot, session: Session, panel: ConfusionPanel, run_path: Path
) -> None:
    assert not panel.shown.isVisible()
    packed.save(with_tones(make_sprites()), RunDir(run_path).data)
    of_tone = ValueConfusion(np.array([[2, 0], [1, 1]]), ClassPredictions(PREDICTIONS.sprites, np.array([0, 0, 0, 1])))
    values = {"tone": ("dark", "light")}
    panel.show_matrix(run_path, COUNTS, ("gem", "sword"), PREDICTIONS, {"tone": of_tone, "other": of_tone}, values)
    assert panel.shown.isVisible() and [panel.shown.itemText(index) for index in range(2)] == ["Class", "tone"]
    panel.shown.setCurrentIndex(1)
    with qtbot.waitSignal(session.runs.confused_found, timeout=LONG_MS):
        _click(qtbot, panel, 0, 0)
    assert panel.title.text() == "dark correct: 2 of 2" and panel.grid.visible_count() == 2
    panel.show_matrix(run_path, COUNTS, ("gem", "sword"), PREDICTIONS)
    assert not panel.shown.isVisible() and panel.matrix.matrix.describe(0, 1) == "gem predicted as sword: 2 of 3"
