"""Early stopping of a training by its own measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.core.events import Advised, Event, LossChunk, Notice, RunFinished
from studio.engine.control.control import Control
from studio.engine.runs.checkpoints import best_checkpoint, list_checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.training import maintenance
from studio.engine.training.loop import train_resumed
from studio.recipes.classifier import Classifier
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind, own_clock, train_classifier, train_toy


def losses(events: list[Event]) -> list[float]:
    return [loss for chunk in of_kind(events, LossChunk) for loss in chunk.losses.tolist()]


@pytest.mark.slow
def test_good_enough_run_stops_early_until_extended(
    run_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model soon names every held-out sprite correctly, the best possible accuracy."""
    own_clock(monkeypatch)
    events = list(train_classifier(run_path, make_sprites(), steps=70, stop_early=True))
    finished, notice = events[-1], of_kind(events, Notice)[-1]
    assert isinstance(finished, RunFinished) and finished.reason == "finished"
    assert 7 <= of_kind(events, Advised)[-1].step < finished.step < 70
    assert f"at step {finished.step}: good enough." in notice.title and "100 %" in notice.hint
    progress = RunDir(run_path).progress()
    assert (progress.state, progress.step) == ("finished", finished.step)
    assert progress.message.startswith("Ended early. ") and "100 %" in progress.message
    assert (run_path / f"checkpoints/step-{finished.step:08d}").is_dir()

    whole = list(train_classifier(tmp_path / "whole", make_sprites(), steps=70))
    assert of_kind(whole, RunFinished)[0].step == 70  # advice alone does not stop a training
    assert np.array_equal(losses(events), losses(whole)[: finished.step])

    again = list(train_resumed(run_path, CPU, Control()))
    assert not losses(again) and of_kind(again, RunFinished)[0].reason == "finished"
    longer = list(train_resumed(run_path, CPU, Control(), more_min=0.05))
    assert len(losses(longer)) > 5 and of_kind(longer, RunFinished)[0].elapsed_s >= progress.elapsed_s + 3
    assert RunDir(run_path).progress().message == ""


def test_early_stop_waits_for_a_share_of_the_budget(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_clock(monkeypatch)
    monkeypatch.setattr(maintenance, "MIN_BUDGET_SHARE", 0.9)
    events = list(train_classifier(run_path, make_sprites(), steps=60, stop_early=True))
    finished = of_kind(events, RunFinished)[0]
    assert of_kind(events, Advised)[-1].step < 54 == finished.step
    saved = list_checkpoints(run_path / "checkpoints")
    best = best_checkpoint(saved, Classifier().best_by)
    assert best in [path for path, info in saved if info.step == finished.best_step]  # what 'best' loads


@pytest.mark.parametrize(
    ("train", "changes", "why"),
    [
        (train_toy, {}, "the loss alone is not enough"),  # sixteen sprites are too few
        (train_classifier, {"holdout": 0.0}, "The run has no validation sprites"),
        (train_classifier, {}, ""),
        (train_toy, {"stop_early": False}, ""),
    ],
)
def test_unmeasured_run_warns_that_it_will_not_stop_early(
    run_path: Path, train: Any, changes: dict[str, Any], why: str
) -> None:
    events = list(train(run_path, make_sprites(per_class=8), **{"steps": 3, "stop_early": True, **changes}))
    said = [notice.hint for notice in of_kind(events, Notice) if "can't stop early" in notice.title]
    assert len(said) == bool(why) and all(why in hint for hint in said)
