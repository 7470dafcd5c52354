"""Layer statistics match the step, and measuring them does not change the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.engine.runs.history import read_history
from studio.engine.runs.metrics import LayerStats
from studio.engine.training.layer_stats import MAX_LAYERS, LayerMonitor, group_layers
from studio.recipes.base import Recipe, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from tests.engine.tools import bare_run, learnt, train_classifier, train_generator


@pytest.mark.parametrize("train", [train_generator, train_classifier])
def test_layer_stats_do_not_change_training(train: Any, tmp_path: Path, sprites: Sprites) -> None:
    for name, watched in (("plain", False), ("watched", True)):
        run_to_end(train(tmp_path / name, sprites, log_layer_stats=watched))
    plain, seen = (learnt(tmp_path / name) for name in ("plain", "watched"))
    assert plain.keys() == seen.keys() and all(torch.equal(plain[name], seen[name]) for name in plain)
    assert not read_history(tmp_path / "plain").layers
    layers = read_history(tmp_path / "watched").layers
    assert layers.keys() == {"update", "gradient", "dead"}
    first = layers["update"]["enter"]
    assert first.steps[0] == 2 and np.isfinite(first.values).all() and (first.values > 0).all()
    assert all(0 <= share <= 1 for curve in layers["dead"].values() for share in curve.values)
    assert "enter" not in layers["dead"]  # it is given sprites, which no unit has made


class _Relus(nn.Module):
    """Three features of one number, of which the second is cut off by ReLU whatever comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(1, 4), nn.Linear(4, 1)
        with torch.no_grad():
            self.first.weight.fill_(1.0)
            self.first.bias.copy_(torch.tensor([0.0, -100.0, 1.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())  # type: ignore[no-any-return]


def _probe(network: nn.Module, monitor: LayerMonitor, optimizer: torch.optim.Optimizer, x: Tensor) -> LayerStats:
    monitor.begin_tick(0.0, 60.0)  # before the first step, which is passed over
    monitor.begin_tick(1.0, 60.0)
    for part in x.chunk(2):  # as micro-batches come
        network(part).square().sum().backward()
    with monitor.probe_step():
        optimizer.step()
    (seen,) = monitor.read(1, torch.stack(monitor.values).numpy())
    return seen


def test_layer_stats_match_the_step() -> None:
    network, x = _Relus(), torch.linspace(0.1, 1, 8)[:, None]
    monitor, optimizer = LayerMonitor(network), torch.optim.SGD(network.parameters(), lr=0.01)
    before = {name: weight.detach().clone() for name, weight in network.named_parameters()}
    seen = _probe(network, monitor, optimizer, x)
    assert list(seen.layers) == ["first", "second"]
    for name, (update, gradient, dead) in seen.layers.items():
        weight = network.get_parameter(f"{name}.weight")
        assert weight.grad is not None
        change = (weight - before[f"{name}.weight"]).norm() / weight.norm()
        assert update == pytest.approx(change.item(), rel=1e-3)
        assert gradient == pytest.approx(weight.grad.norm().item(), rel=1e-3)
        assert dead == {"first": None, "second": 0.25}[name]
    assert not network.first._forward_pre_hooks and not network.second._forward_pre_hooks
    monitor.begin_tick(2.0, 1e6)  # soon after the first look: not yet
    assert not network.second._forward_pre_hooks and not monitor.values and not monitor.read(2, np.zeros(0, np.float32))


def test_probes_stay_within_their_time_share() -> None:
    network = _Relus()
    monitor = LayerMonitor(network)
    monitor.begin_tick(0.0, 60.0)
    monitor._cost_s = 1.0  # as if looks had taken a second
    monitor.begin_tick(100.0, 1000.0)
    assert not network.second._forward_pre_hooks
    monitor.begin_tick(126.0, 1000.0)
    assert network.second._forward_pre_hooks


def test_skipped_fp16_step_has_no_layer_stats() -> None:
    monitor = LayerMonitor(_Relus())
    assert not monitor.read(1, np.array([0.0, 0.0, np.inf, 1.0, np.nan, 0.0], np.float32))


def test_disabled_monitor_does_nothing() -> None:
    network = _Relus()
    monitor = LayerMonitor(network, is_on=False)
    monitor.begin_tick(0.0, 60.0)
    with monitor.probe_step():
        pass
    assert not monitor.values and not network.second._forward_pre_hooks


@pytest.mark.parametrize("recipe", [Generator(), Classifier()])
def test_groups_of_layers_cover_all_weights_once(recipe: Recipe) -> None:
    network = recipe.build(recipe.small, Spec(16, ("a", "b")))
    layers = group_layers(network)
    assert 5 < len(layers) <= MAX_LAYERS
    kept = [id(weight) for group in layers.values() for weight in group]
    assert sorted(kept) == sorted(id(weight) for weight in network.parameters() if weight.ndim > 1)


def test_resume_drops_layer_stats_of_repeated_steps(tmp_path: Path) -> None:
    run = bare_run(tmp_path)
    for step in (1, 5, 9):
        run.append(LayerStats(step, {"enter": (0.5 / step, 2.0, None), "leave": (0.1, 1.0, 0.25)}))
    run.append({"resumed": 5, "device": "cpu"})
    layers = read_history(tmp_path).layers
    assert layers["update"]["enter"].steps.tolist() == [1, 5]
    assert layers["update"]["enter"].values.tolist() == [0.5, 0.1]
    assert list(layers["dead"]) == ["leave"]
