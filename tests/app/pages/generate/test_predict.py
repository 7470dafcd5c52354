"""The panel of predictions: totals, wrong only, order, CSV."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QUrl
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.background.model_jobs import SavedModel
from studio.app.pages.generate.predict import PredictPanel
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets.sprites.large_view import LargeView
from studio.core.events import Classified, NumbersPredicted
from tests.app.conftest import LONG_MS, click
from tests.conftest import make_sprites

SPRITES = make_sprites(per_class=2)
SURE = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]], np.float32)


@pytest.fixture
def panel(qtbot: QtBot, session: Session) -> PredictPanel:
    choice = ModelChoice(session)
    made = PredictPanel(session, choice)
    qtbot.addWidget(choice)
    qtbot.addWidget(made)
    made.resize(360, 500)
    made.show()
    return made


def _rows(panel: PredictPanel) -> list[str]:
    assert not panel.view.grab().isNull()
    model = panel.view.view.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_wrong_predictions_alone_and_by_certainty(session: Session, panel: PredictPanel) -> None:
    assert not panel.summary.isVisible()
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    assert panel.summary.text() == "4 sprites: 2 of 4 right (50 %)"
    assert _rows(panel)[:2] == [
        f"{SPRITES.names[0]}: class0 90 %, class1 10 %, ✓ class0",
        f"{SPRITES.names[1]}: class1 60 %, class0 40 %, ✗ is class0",
    ]
    panel.wrong_only.click()
    panel.order.setCurrentText("Most certain first")
    panel.order.activated.emit(panel.order.currentIndex())
    assert [row.partition(":")[0] for row in _rows(panel)] == [SPRITES.names[3], SPRITES.names[1]]


def test_attributes_are_chosen_in_a_box(session: Session, panel: PredictPanel) -> None:
    tone = Classified(SURE[:, ::-1], ("light", "dark"))
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1"), {"tone": tone}))
    assert [panel.shown.itemText(index) for index in range(panel.shown.count())] == ["Class", "tone"]
    assert "class0 90 %" in _rows(panel)[0]
    panel.shown.setCurrentIndex(1)
    panel.shown.activated.emit(1)
    assert "dark 90 %" in _rows(panel)[0] and not panel.wrong_only.isEnabled()
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    assert panel.shown.isHidden() and "class0 90 %" in _rows(panel)[0]


def test_why_wrong_only_is_impossible(session: Session, panel: PredictPanel) -> None:
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    panel.wrong_only.click()
    session.inference.predicted.emit(SPRITES, NumbersPredicted(SURE, ("price", "size")))
    assert not panel.wrong_only.isEnabled() and "Sort numbers" in panel.wrong_only.toolTip()
    assert len(_rows(panel)) == 4
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("gem", "ring")))
    assert "unknown" in panel.wrong_only.toolTip() and "true" not in _rows(panel)[0]


def test_predictions_are_saved_as_csv(
    qtbot: QtBot, session: Session, panel: PredictPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    monkeypatch.setattr(dialogs, "choose_save_file", lambda *args: tmp_path / "found.csv")
    with qtbot.waitSignal(session.saving.saved, timeout=LONG_MS):
        click(panel.save)
    assert (tmp_path / "found.csv").read_text().count("\n") == 5


def test_predictions_name_their_model(
    session: Session, panel: PredictPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, asked = SavedModel(tmp_path, "best"), SavedModel(tmp_path, "last"), list[SavedModel]()
    chosen = [first]
    record = SimpleNamespace(size=16, data_origin={})
    monkeypatch.setattr(panel.choice, "source", lambda: chosen[0])
    monkeypatch.setattr(panel.choice, "title", lambda: f"Gems, {chosen[0].checkpoint}")
    monkeypatch.setattr(panel.choice, "record", lambda: record)
    monkeypatch.setattr(panel.choice, "device", lambda: "cpu")
    monkeypatch.setattr(session.inference, "predict", lambda source, *others: asked.append(source))
    drop = QMimeData()
    drop.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    assert panel.take(drop)
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    assert panel.made_by.text() == "By Gems, best"
    chosen[0] = second
    panel.choice.changed.emit()
    assert panel.made_by.text() == "Other model: Gems, best" and _rows(panel)
    click(panel.again)
    assert panel.made_by.text() == "Other model: Gems, best"  # until the new predictions arrive
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    assert asked == [first, second] and panel.made_by.text() == "By Gems, last"


def test_large_view_and_menu_of_a_prediction(session: Session, panel: PredictPanel) -> None:
    session.inference.predicted.emit(SPRITES, Classified(SURE, ("class0", "class1")))
    panel.wrong_only.click()
    panel.view.go_to_row(0)
    assert [action.text() for action in panel.view.menu.actions()] == ["View large", "Show in folder"]
    panel.view.menu.actions()[0].trigger()
    large = panel.view.findChild(LargeView)
    assert large is not None and large.name.text() == SPRITES.names[1]
    assert large.about.text().startswith("class1 60 %, class0 40 %, ✗ is class0")
    large.go_on()
    assert large.name.text() == SPRITES.names[3] and panel.view.current_row() == 1
