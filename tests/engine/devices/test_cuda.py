"""Trainings on an NVIDIA card: what its graphs of steps do is what the steps do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from studio.core.events import LossChunk, Notice, RunFinished, SamplesReady
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices import cuda_graph, detection
from studio.engine.devices.types import Device
from studio.engine.models.loading import load_model
from studio.engine.steps import graphed_step
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.engine.training.loop import train_new, train_resumed
from studio.recipes.base import Recipe
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import CPU, of_kind

pytestmark = pytest.mark.cuda

RECIPES = list(catalog.recipes().values())
CARD = torch.device("cuda")


@pytest.fixture(scope="module")
def card() -> Device:
    return detection.find_device("cuda", probe=True)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_recorded_steps_are_those_that_were_recorded(recipe: Recipe, precision: str) -> None:
    config = recipe.small.replace(batch_size=16, flip=True, shift_px=1)
    plain, recorded = (
        BenchmarkTrainer(recipe, config, with_numbers(make_sprites()), CARD, precision, use_graph=use_graph)
        for use_graph in (False, True)
    )
    losses = [[float(training.train_step()) for _ in range(20)] for training in (plain, recorded)]
    assert recorded._graphed_step._graph is not None and plain._graphed_step._graph is None
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.05)  # some kernels add up in another order each time
    averages = [_flat(training.ema.network.state_dict()) for training in (plain, recorded)]
    assert (averages[1] - averages[0]).norm() < 0.01 * averages[0].norm()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_run_is_trained_with_its_rate_its_average_and_its_stages(
    recipe: Recipe, card: Device, run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate rises and falls, and the average's share changes, in a graph as they do without one."""
    sprites = with_numbers(make_sprites())
    config = recipe.small.replace(steps=60, batch_size=16, lr_warmup_steps=10, flip=True, holdout=0.2)
    losses, weights = [], []
    for name, records in (("recorded", True), ("plain", False)):
        monkeypatch.setattr(
            graphed_step, "supports_cuda_graphs", cuda_graph.supports_cuda_graphs if records else lambda device: False
        )
        path = run_path.with_name(name)
        events = list(train_new(path, sprites, recipe, config, card, Control()))
        assert of_kind(events, RunFinished)[0].step == 60 and of_kind(events, SamplesReady)
        assert not [event for event in of_kind(events, Notice) if "CUDA graph" in event.title]
        losses.append(np.concatenate([event.losses for event in of_kind(events, LossChunk)]))
        weights.append(_average(path))
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.05, atol=0.02)
    assert (weights[0] - weights[1]).norm() < 0.02 * weights[1].norm()


def test_a_run_goes_on_after_a_stop(card: Device, run_path: Path) -> None:
    recipe, control = catalog.recipe("generator"), Control()
    config = recipe.small.replace(steps=80, batch_size=16)
    for event in train_new(run_path, make_sprites(), recipe, config, card, control):
        control.stop = control.stop or (isinstance(event, LossChunk) and event.first_step > 20)
    events = list(train_resumed(run_path, card, Control()))
    assert of_kind(events, RunFinished)[0].step == 80


def test_a_recipe_that_waits_for_the_card_is_trained_step_by_step(
    card: Device, run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = catalog.recipe("classifier")
    loss = type(recipe).loss

    def waiting(*arguments: object) -> Tensor:
        found = loss(*arguments)  # type: ignore[arg-type]
        assert float(found.detach()) >= 0
        return found

    monkeypatch.setattr(type(recipe), "loss", waiting)
    config = recipe.small.replace(steps=20, batch_size=16)
    events = list(train_new(run_path, make_sprites(), recipe, config, card, Control()))
    assert of_kind(events, RunFinished)[0].step == 20
    assert [event for event in of_kind(events, Notice) if "CUDA graph" in event.title]


def test_the_card_is_probed(card: Device) -> None:
    assert card.steps_per_s > 0 and card.precision in ("bf16", "fp16", "fp32")


def _average(run: Path) -> Tensor:
    return _flat(load_model(run, "last", CPU).network.state_dict())


def _flat(weights: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([value.float().flatten() for value in weights.values()])
