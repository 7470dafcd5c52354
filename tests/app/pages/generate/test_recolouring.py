"""Recoloured results are a new batch; recoloured kept sprites are kept too."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app.background.job_events import SpritesColoured
from studio.app.pages.generate.batches import DrawRequest
from studio.app.pages.generate.neighbours import NeighboursPanel
from studio.app.pages.generate.recolouring import ResultRecolourer
from studio.app.pages.generate.results import Results
from studio.app.pages.recolour_dialog import RecolourDialog
from studio.app.state.session import Session
from studio.core.arrays import Rgba
from studio.engine.sampling.settings import GenerateSettings
from tests.app.conftest import LONG_MS, click
from tests.app.pages.test_recolour_dialog import BLUE, RED, block
from tests.app.widgets.test_ramp_table import choose

DRAWN = np.stack([block(RED), block((*BLUE[:1], RED[1])), block(BLUE)])


@pytest.fixture
def results(qtbot: QtBot, session: Session) -> Results:
    """Return a shown grid of three new sprites."""
    page = QWidget()
    made = Results(
        session.kept_sprites, session.generate_history, session.drag_files, NeighboursPanel(session.inference)
    )
    made.setParent(page)
    ResultRecolourer(page, session, made)
    qtbot.addWidget(page)
    page.show()
    made.set_model(frozenset(), 8, is_editing=False)
    made.show_sprites(
        SpritesColoured(DRAWN, np.zeros(3, np.int64), "model", 7),
        DrawRequest(GenerateSettings(), None, "", "", "model", ("sword",)),
    )
    return made


def recolour(qtbot: QtBot, results: Results, *numbers: int) -> None:
    """Make red blue in these sprites."""
    results.grid.select(numbers)
    next(action for action in results.grid.menu.actions() if action.text() == "Recolour…").trigger()
    page = results.parentWidget()
    dialog = page.findChild(RecolourDialog) if page is not None else None
    assert dialog is not None
    qtbot.waitUntil(lambda: bool(dialog.table.rows), timeout=LONG_MS)
    choose(dialog.table, "red", "blue")
    click(dialog.apply)


def shown(results: Results) -> Rgba:
    sprites = results.content.sprites()
    assert sprites is not None
    return sprites.sprites


def test_recoloured_results_are_a_new_batch(qtbot: QtBot, session: Session, results: Results) -> None:
    action = next(action for action in results.grid.menu.actions() if action.text() == "Recolour…")
    assert not action.isEnabled()
    recolour(qtbot, results, 0, 2)
    assert np.array_equal(shown(results), np.stack([block(BLUE)] * 2))
    batch = results.content.batch()
    assert batch is not None and batch.title() == "2 sprites recoloured"
    assert batch.shown.names == ["model-seed-7-recoloured-0000", "model-seed-7-recoloured-0001"]
    session.generate_history.undo()
    assert np.array_equal(shown(results), DRAWN)
    session.generate_history.redo()
    assert len(shown(results)) == 2


def test_recoloured_kept_sprites_are_kept(qtbot: QtBot, session: Session, results: Results) -> None:
    results.grid.select([0, 1])
    results.triage.keep()
    click(results.kept_tab)
    recolour(qtbot, results, 0, 1)  # to one blue: the new sprites are equal
    assert np.array_equal(shown(results), np.stack([*DRAWN[:2], block((BLUE[0], BLUE[0]))]))
    session.generate_history.undo()
    assert np.array_equal(shown(results), DRAWN[:2])
