"""Benchmark steps train exactly like a run's steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from studio.core.events import LossChunk
from studio.engine.devices.types import DeviceMeasured
from studio.engine.steps.benchmark import BenchmarkTrainer, measure
from studio.recipes.base import Recipe, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from studio.recipes.sets import Sets
from tests.conftest import make_sprites, with_numbers, with_plain_colours
from tests.engine.tools import CPU, _small, _train, of_kind, small_classifier

UNSCHEDULED: dict[str, Any] = {"holdout": 0.0, "lr_warmup_steps": 0, "lr_decay_share": 0.0, "shift_px": 1, "flip": True}


@pytest.mark.parametrize("recipe", [Generator(), Classifier(), Regression()], ids=lambda recipe: recipe.name)
def test_benchmark_losses_equal_a_runs(recipe: Recipe, run_path: Path) -> None:
    changes = UNSCHEDULED | {"steps": 4} | ({"inpaint_share": 0.0} if recipe.name == "generator" else {})
    sprites = with_numbers(with_plain_colours(make_sprites()))
    events = list(_train(recipe, run_path, sprites, **changes))
    losses = np.concatenate([event.losses for event in of_kind(events, LossChunk)])
    training = BenchmarkTrainer(recipe, _small(recipe, **changes), sprites, torch.device("cpu"))
    assert [float(training.train_step()) for _ in range(4)] == pytest.approx(losses.tolist(), rel=1e-4)


def test_step_parts_add_up_to_its_time() -> None:
    training = BenchmarkTrainer(Classifier(), small_classifier(), make_sprites(), torch.device("cpu"))
    training.train_step()
    loss, times = training.step_timed()
    assert training.step == 2 and torch.isfinite(loss)
    parts = (times.batch_s, times.forward_s, times.backward_s, times.optimizer_s)
    assert min(parts) > 0 and sum(parts) == pytest.approx(times.total_s)
    assert 0 < times.total_s < 10


def test_sets_are_measured_in_characters() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studio.engine.steps.benchmark.MIN_S", 0.0)
        events = list(measure(Sets(), Sets.small, Spec(8, ("a",), cells=("front", "back")), replace(CPU, mixed="")))
    assert {event.noun for event in of_kind(events, DeviceMeasured)} == {"character"}


def test_learning_rate_applies_to_the_next_step() -> None:
    training = BenchmarkTrainer(Classifier(), small_classifier(weight_decay=0.0), make_sprites(), torch.device("cpu"))
    before = training.network.leave.weight.detach().clone()
    training.set_learning_rate(0.0)
    training.train_step()
    assert torch.equal(training.network.leave.weight, before)
    training.set_learning_rate(0.1)
    training.train_step()
    assert not torch.equal(training.network.leave.weight, before)
