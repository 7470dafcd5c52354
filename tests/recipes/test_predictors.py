"""The networks that a classifier and a regression can have: each learns alike, whatever it is made of."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from studio.core.config import Config, TrainingConfig
from studio.core.errors import TrainingError
from studio.core.events import Exported, LossChunk
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.models.exporting import export, exportable_copy
from studio.engine.models.loading import load_model
from studio.exports.onnx import OnnxConfig
from studio.exports.scripts.compose import as_python, compose_cells
from studio.recipes.base import Batch, BatchRng, Recipe, Spec
from studio.recipes.predictors import OWN, TORCHVISION, TUTORIAL, Perceptron
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import CPU, learnt, of_kind, train_classifier, train_in_two_pieces, train_regression

_LIGHT = (TUTORIAL, "mobilenet_v3_small")  # of which the tests train some
_HEAVY = [network for network in TORCHVISION if network not in _LIGHT]
_of_each_network = pytest.mark.parametrize(
    "network", [OWN, *_LIGHT, *(pytest.param(network, marks=pytest.mark.slow) for network in _HEAVY)]
)
_of_each_recipe = pytest.mark.parametrize("name", ["classifier", "regression"])


def _sprites() -> Sprites:
    """Of 16 x 16 pixels, which is enough for all networks."""
    small = with_numbers(make_sprites())
    return dataclasses.replace(small, rgba=small.rgba.repeat(2, 1).repeat(2, 2))


def _made(name: str, network: str) -> tuple[Recipe, TrainingConfig, Any]:
    """A recipe, its config and a new network."""
    recipe, spec = catalog.recipe(name), Spec.of(_sprites())
    config: TrainingConfig = recipe.small.replace(network=network)
    torch.manual_seed(3)
    return recipe, config, recipe.build(config, spec)


def _batch(count: int, size: int = 16) -> Batch:
    rng = torch.Generator().manual_seed(5)
    x = torch.rand(count, 4, size, size, generator=rng) * 2 - 1
    targets = torch.randn(count, 2, generator=rng)
    return Batch(x, torch.arange(count) % 2, torch.zeros(count, 3), targets)


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("regression", _LIGHT[1]),
        *(("classifier", network) for network in (OWN, *_LIGHT)),
        *(pytest.param("classifier", network, marks=pytest.mark.slow) for network in _HEAVY),
    ],
)
def test_output_is_independent_of_other_sprites_in_the_batch(name: str, network: str) -> None:
    _, _, made = _made(name, network)
    x = _batch(4).x
    for mode in (True, False):  # in training, too: no BatchNorm, no chance of its own
        made.train(mode)
        with torch.no_grad():
            torch.testing.assert_close(made(x)[1:2], made(x[1:2]), rtol=1e-3, atol=1e-4)
    assert not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in made.modules())


@pytest.mark.parametrize("network", [OWN, *_LIGHT])
def test_micro_batches_give_the_gradients_of_the_batch(network: str) -> None:
    recipe, config, made = _made("classifier", network)
    batch, gradients = _batch(6), []
    for count in (1, 3):
        rng = torch.Generator().manual_seed(9)
        for part, numbers in batch.micro_batches(count, rng):
            (recipe.loss(made.train(), part, config, numbers) * len(part.x) / 6).backward()
        gradients.append(torch.cat([weight.grad.flatten() for weight in made.parameters() if weight.grad is not None]))
        made.zero_grad()
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)
    assert float(gradients[0].abs().max()) > 0


@pytest.mark.parametrize(
    ("name", "network"), [("regression", _LIGHT[0]), pytest.param("classifier", _LIGHT[1], marks=pytest.mark.slow)]
)
def test_a_resumed_training_is_exact(name: str, network: str, tmp_path: Path) -> None:
    train = {"classifier": train_classifier, "regression": train_regression}[name]
    whole = list(train(tmp_path / "whole", _sprites(), network=network))
    train_in_two_pieces(train, tmp_path / "parts", _sprites(), network=network)
    losses = [loss for chunk in of_kind(whole, LossChunk) for loss in chunk.losses]
    assert len(losses) == 8 and len({*losses}) > 1
    first, second = learnt(tmp_path / "whole"), learnt(tmp_path / "parts")
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


@_of_each_network
def test_torchvision_networks_train(network: str) -> None:
    """Ten steps on one batch by plain gradient descent: whatever it is, it learns from what it is given."""
    recipe, config, made = _made("classifier", network)
    batch, losses = _batch(6), []
    optimizer = torch.optim.Adam(made.parameters(), 1e-3)
    for step in range(10):
        loss = recipe.loss(made.train(), batch, config, BatchRng(torch.Generator().manual_seed(step), batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_perceptron_equals_the_tutorials_network() -> None:
    ours = Perceptron(28, 10, 0.0)
    theirs = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    assert sum(weight.numel() for weight in ours.parameters()) == sum(weight.numel() for weight in theirs.parameters())
    weights = [weight.detach() for weight in ours.parameters()]
    for own, weight in zip(theirs.parameters(), weights, strict=True):
        own.data.copy_(weight)
    grey = torch.rand(5, 1, 28, 28, generator=torch.Generator().manual_seed(2)) * 2 - 1
    x = F.pad(grey.expand(-1, 3, -1, -1), (0, 0, 0, 0, 0, 1), value=1.0)  # opaque
    torch.testing.assert_close(ours(x), theirs(grey), rtol=1e-4, atol=1e-5)


@_of_each_recipe
def test_sprites_that_are_too_small_are_refused(name: str) -> None:
    recipe = catalog.recipe(name)
    with pytest.raises(TrainingError, match="16 x 16") as refused:
        recipe.select(with_numbers(make_sprites()), recipe.small.replace(network="convnext_tiny"))
    assert refused.value.hint


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("classifier", TUTORIAL),
        ("regression", TUTORIAL),
        ("classifier", "mobilenet_v3_small"),
        pytest.param("regression", "mobilenet_v3_small", marks=pytest.mark.slow),
    ],
)
def test_an_exported_loader_imports_torchvision_only_where_it_must(name: str, network: str, tmp_path: Path) -> None:
    train = {"classifier": train_classifier, "regression": train_regression}[name]
    list(train(tmp_path / "run", _sprites(), network=network, steps=1))
    model = load_model(tmp_path / "run", "last", CPU)
    *_, done = export(model, "state_dict", tmp_path / "net.pt", Config())
    assert isinstance(done, Exported) and done.difference <= 1e-5
    loader, script = done.paths[1].read_text(), as_python(compose_cells(exportable_copy(model), tmp_path / "trial.py"))
    for text in (loader, script):
        assert ("torchvision" in text) == (network != TUTORIAL)
    assert callable(runpy.run_path(str(done.paths[1]))["load"])


@pytest.mark.slow
@_of_each_recipe
@pytest.mark.parametrize("network", TORCHVISION)
@pytest.mark.parametrize("form", ["onnx", "pt2", "safetensors", "script"])
def test_networks_of_torchvision_are_exported(name: str, network: str, form: str, tmp_path: Path) -> None:
    train = {"classifier": train_classifier, "regression": train_regression}[name]
    list(train(tmp_path / "run", _sprites(), network=network, steps=2))
    has_layer_norm = network == "convnext_tiny"  # which ONNX has from opset 17 on
    config = OnnxConfig(opset=18) if form == "onnx" and has_layer_norm else None
    *_, done = export(load_model(tmp_path / "run", "last", CPU), form, tmp_path / "exported", config)
    assert isinstance(done, Exported)
