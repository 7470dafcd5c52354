from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from studio.core.events import Event, QualityMeasured
from studio.data import packed
from studio.engine import features, pace, quality, train
from studio.engine.batches import split
from studio.engine.copies import nearest_training_sprites
from studio.engine.features import features_of
from studio.engine.generate import GenerateSettings, draw, load_model
from studio.engine.history import read_history
from studio.engine.rundir import RunDir
from studio.engine.scores import kid
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind, train_classifier, train_generator
from tests.generators import returned

SPRITES = make_sprites(60)  # of two classes: 24 are held out


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of learning to see, few sprites, and a slice after each step."""
    monkeypatch.setattr(train, "TICK_S", 0.0)
    monkeypatch.setattr(features, "_STEPS", 3)
    monkeypatch.setattr(quality, "COUNT", 24)
    monkeypatch.setattr(pace, "SIDE_SHARE", 1e6)


def trained(path: Path, **changes: Any) -> list[Event]:
    return list(train_generator(path, SPRITES, **{"steps": 45, **changes}))


def test_a_run_is_measured_again_and_again_and_keeps_the_figures(run_path: Path) -> None:
    measured = of_kind(trained(run_path), QualityMeasured)
    assert len(measured) >= 2
    steps = [event.step for event in measured]
    assert steps == sorted(set(steps)) and 0 < steps[0] < 45
    curve = read_history(run_path).quality["kid_heldout"]
    assert curve.steps.tolist() == steps
    assert curve.values.tolist() == [event.figures["kid_heldout"] for event in measured]


def test_the_figures_are_those_of_the_weights_at_that_step(run_path: Path) -> None:
    first = of_kind(trained(run_path, lr_decay_share=0.0), QualityMeasured)[0]
    until_then = run_path.with_name("until then")
    trained(until_then, steps=first.step, lr_decay_share=0.0)
    sprites = packed.load(RunDir(run_path).data)
    training, heldout = (sprites.take(part) for part in split(sprites, 0.2, 0))
    seen = returned(features_of(training, torch.device("cpu"), "fp32"))
    labels = training.labels[np.random.default_rng(0).integers(len(training), size=24)]
    new = returned(draw(load_model(until_then, "last", CPU), labels, GenerateSettings()))
    expected = kid(seen.of(heldout.rgba), seen.of(new))
    copies = nearest_training_sprites(new, training.rgba, torch.device("cpu")).is_copy.mean()
    assert first.figures == pytest.approx(
        {"kid_heldout": expected.value, "kid_heldout_error": expected.error, "copies": copies}
    )


def test_measuring_changes_nothing_that_is_learnt(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = run_path.with_name("unmeasured")
    assert of_kind(trained(run_path), QualityMeasured)
    monkeypatch.setattr(quality, "FEWEST", 1000)
    assert not of_kind(trained(other), QualityMeasured)
    measured, unmeasured = (load_model(path, "last", CPU).network.state_dict() for path in (run_path, other))
    assert all(torch.equal(measured[name], unmeasured[name]) for name in measured)


def test_very_many_sprites_are_not_looked_through_for_copies(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "MOST_COMPARED", 50)
    first = of_kind(trained(run_path), QualityMeasured)[0]
    assert set(first.figures) == {"kid_heldout", "kid_heldout_error"}


def test_a_classifier_has_no_sprites_to_measure(run_path: Path) -> None:
    assert not of_kind(list(train_classifier(run_path, SPRITES, steps=20)), QualityMeasured)
