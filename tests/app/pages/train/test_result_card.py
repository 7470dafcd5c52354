"""The card with the result of a run that has ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from studio.app.pages.train.page import TrainPage
from studio.app.state.session import Session
from studio.app.status_bar import StatusBar
from studio.core.events import Advised, CheckpointSaved, Event, RunFinished, SamplesReady, Validated
from studio.engine.devices.types import Device
from tests.app.conftest import chunk

SAMPLES = SamplesReady(40, np.full((16, 32, 32, 4), 200, np.uint8), ("items/swords",) * 16)


@pytest.fixture
def page(qtbot: QtBot, session: Session, tmp_path: Path) -> TrainPage:
    """The page alone during a training, without an engine."""
    made, training = TrainPage(session), session.training
    qtbot.addWidget(made)
    made.resize(1200, 900)
    made.show()
    training.device = Device("cpu", "cpu", "CPU", 1 << 30, 4 << 30)
    training.title, training.path = "swords", tmp_path
    training._set_state("training")
    return made


def end(page: TrainPage, *events: Event, reason: str = "finished", best: int | None = 40) -> None:
    """End the training after these events."""
    training = page.session.training
    finished = RunFinished(reason, 40, 200.0, page.session.training.path, best)  # type: ignore[arg-type]
    for event in (chunk(0, 40), CheckpointSaved(40, Path("40")), SAMPLES, *events, finished):
        training._receive(event)
    training._set_state("idle")


def offered(page: TrainPage) -> list[str]:
    """Return the texts of the visible buttons, from left to right."""
    shown = [button for button in page.card.findChildren(QPushButton) if button.isVisible()]
    return [button.text().strip() for button in sorted(shown, key=lambda button: (button.y(), button.x()))]


def test_the_card_tells_the_result_and_the_next_steps(page: TrainPage) -> None:
    assert page.card.text.text() == "Training" and not page.card.headline.isVisible()
    end(page, Advised(40, "good enough", "New sprites match your sprites.", 30), best=30)
    assert page.card.headline.text() == "Finished: 40 steps in 3 min 20 s"
    text = "Good enough: new sprites match your sprites. Best checkpoint so far: step 30."
    assert page.card.text.text() == text and page.card.samples.isVisible()
    page.grab()
    assert offered(page) == ["Generate", "Export…", "Train longer"]


def test_a_run_that_still_improves_is_first_trained_longer(page: TrainPage, monkeypatch: pytest.MonkeyPatch) -> None:
    end(page, Advised(3, "improving", "New sprites still improve.", 3), reason="stopped")  # told before the last save
    page.grab()
    assert page.card.text.text() == "Still improving: new sprites still improve."
    assert page.card.headline.text().startswith("Stopped: 40 steps")
    assert offered(page) == ["Resume", "Train longer", "Generate", "Export…"]
    resumed = list[tuple[Path, float]]()
    monkeypatch.setattr(page.session, "resume_run", lambda path, more_min: resumed.append((path, more_min)))
    page.steps.longer.menu().actions()[0].trigger()
    page.steps.resume.click()
    path = page.session.training.path
    assert resumed == [(path, 2.0), (path, 0.0)]


def test_a_classifier_tells_its_accuracy(page: TrainPage) -> None:
    end(page, Validated(40, {"loss": 0.3, "accuracy": 0.9}))
    assert page.card.headline.text() == "Finished: 90 % correct after 40 steps in 3 min 20 s"
    assert page.card.text.text() == "Too short to judge. Look at the samples."


def test_a_narrow_card_leaves_the_samples_out(page: TrainPage) -> None:
    end(page)
    page.resize(800, 600)
    page.grab()
    assert not page.card.samples.isVisible() and "Generate" in offered(page)


def test_a_new_run_replaces_the_card_by_a_line(page: TrainPage) -> None:
    end(page)
    page.session.training.end = None
    page.session.training._set_state("starting")
    assert page.card.text.text() == "Starting…" and not page.card.headline.isVisible()
    assert not page.card.samples.isVisible() and not page.steps.longer.isVisible()


def test_the_status_bar_tells_the_memory_of_the_training(qtbot: QtBot, page: TrainPage) -> None:
    bar, event = StatusBar(page.session), chunk(0, 1)
    qtbot.addWidget(bar)
    page.session.training._receive(replace(event, memory_bytes=1 << 30))
    memory = next(label for label in bar.findChildren(QLabel) if label.text().startswith("Memory"))
    assert memory.text() == "Memory 1 of 4 GB" and "above its level before" in memory.toolTip()
    assert "above its level before" in page.monitor.readings.findChildren(QLabel)[-1].toolTip()
    page.session.training._set_state("idle")
    assert memory.toolTip() == "Memory used by the studio."
