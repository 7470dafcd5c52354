"""The noise scale of gradients whose covariance is known, and of a network whose gradients can be told by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from studio.core.generators import run_to_end
from studio.engine.models.loading import load_model
from studio.engine.models.model import load_training_set
from studio.engine.runs.folder import RunDir
from studio.engine.steps.batches import to_device, to_input
from studio.lab.experiments.noise_scale import GradientNoise, NoiseScale, Scale, _conclusion, _Gradients
from studio.lab.outcome import Outcome
from studio.recipes.classifier import Classifier
from tests.conftest import make_sprites
from tests.engine.tools import CPU, learnt, train_classifier
from tests.lab.tools import context_of_run

PARTS = (1, 2, 3, 2)  # sprites of the parts of a batch
SPREADS = torch.linspace(0.5, 1.5, 50)  # standard deviations of the numbers of a gradient
TRACE = float(SPREADS.square().sum())


def found_of(gradient: Tensor, batches: int, seed: int) -> Scale:
    """What is found of so many batches whose sprites have this gradient, float32 [50], on average."""
    rng = torch.Generator().manual_seed(seed)
    noise = GradientNoise(len(SPREADS), torch.device("cpu"))
    for _ in range(batches):
        each = [torch.randn(size, len(SPREADS), generator=rng) * SPREADS + gradient for size in PARTS]
        noise.add((len(part), part.mean(0)) for part in each)
    return noise.scale()


@pytest.mark.parametrize("scale", [0.5, 20.0, 200.0])
def test_noise_scale_is_covariance_trace_over_squared_gradient_norm(scale: float) -> None:
    gradient = torch.full((len(SPREADS),), (TRACE / scale / len(SPREADS)) ** 0.5)
    found = found_of(gradient, 1500, seed=3)  # 12,000 sprites
    assert found.is_sure and found.sprites == 12_000
    assert found.value == pytest.approx(scale, rel=0.1) and found.value_error < 0.1 * scale
    assert found.steps(scale) == pytest.approx(2, rel=0.1) and found.sprites_seen(scale) == pytest.approx(2, rel=0.1)


def test_standard_error_equals_the_spread_of_repetitions() -> None:
    gradient = torch.full((len(SPREADS),), (TRACE / 20 / len(SPREADS)) ** 0.5)
    several = [found_of(gradient, 40, seed) for seed in range(30)]
    apart = np.std([found.inverse for found in several])
    assert 0.7 < np.mean([found.error for found in several]) / apart < 1.4  # a spread of 30 is known to a seventh
    assert np.mean([found.inverse for found in several]) == pytest.approx(1 / 20, abs=3 * apart / 30**0.5)


def test_pure_noise_has_no_scale() -> None:
    found = found_of(torch.zeros(len(SPREADS)), 40, seed=1)
    assert not found.is_sure and found.least > 320


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier after three steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        path = tmp_path_factory.mktemp("runs") / "trial"
        run_to_end(train_classifier(path, make_sprites(), steps=3))
    return path


@pytest.mark.slow
def test_noise_scale_uses_trained_weights_and_training_sprites(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the squared distance of two biases from two features of a sprite has their difference as its gradient."""
    sprites, indices = load_training_set(RunDir(run))
    features = to_input(to_device(sprites.rgba[indices], torch.device("cpu"))).mean((2, 3))[:, ::3]
    trace = float(features.var(0, correction=0).sum())
    bias, averaged = (learnt(run)[f"{part} leave.bias"] for part in ("model", "average"))
    away = (trace / 8) ** 0.5 * torch.tensor([1.0, -1.0])  # so far from their mean that the scale is 4
    goal = bias - features.mean(0) + away
    assert not torch.equal(bias, averaged)

    def distance(recipe: Any, network: Any, batch: Any, config: Any, rng: Any) -> Tensor:
        apart: Tensor = network.leave.bias - batch.x.mean((2, 3))[:, ::3] - goal
        return apart.square().sum(1).mean() / 2

    monkeypatch.setattr(Classifier, "loss", distance)
    gradients = _Gradients(load_model(run, "last", CPU))
    for _ in range(300):
        gradients.add_batch()
    found = gradients.noise.scale()
    assert found.value == pytest.approx(4.0, rel=0.25) and found.sprites == 1200


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path), path.read_bytes()


def test_experiment_estimates_the_noise_scale_and_leaves_the_run_unchanged(run: Path) -> None:
    before = [*_contents(run)]
    *_, outcome = NoiseScale().run(context_of_run(run, seconds=0.1))
    assert isinstance(outcome, Outcome) and outcome.step == 3
    assert outcome.sentences[0].startswith("At step 3, from ") and "noise scale is" in outcome.sentences[0]
    assert [*_contents(run)] == before


def test_savings_of_a_larger_batch_are_reported(run: Path) -> None:
    gradients = _Gradients(load_model(run, "last", CPU))
    outcome = _conclusion(Scale(1 / 12, 1 / 120, 2400), gradients, load_model(run, "last", CPU))
    assert [mark.x for mark in outcome.plots[0].marks] == [pytest.approx(12)]
    own = next(row for row in outcome.tables[0].rows if row[0] == "4")
    assert own[1:] == ("1 times", "1 times")
    assert "the noise scale is 12 sprites, with a standard error of 1." in outcome.sentences[0]
    assert "would save 37.5 % of the steps, and train on 25 % more sprites" in outcome.sentences[1]  # 4 and 2.5 times


def test_insignificant_gradient_gives_a_lower_bound(run: Path) -> None:
    gradients = _Gradients(load_model(run, "last", CPU))
    outcome = _conclusion(Scale(1 / 500, 1 / 250, 2400), gradients, load_model(run, "last", CPU))
    (row,) = outcome.tables[0].rows
    assert not outcome.plots and row == ("0", "2,400", "100")
    assert "the noise scale is probably above 100 sprites" in outcome.sentences[0]
