"""The regression: its figures against numpy's closed forms, its units, and sprites without numbers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from studio.core.errors import TrainingError
from studio.core.events import Notice, NumbersPredicted, SamplesReady, Validated
from studio.core.formatting import predicted_and_true
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.models.loading import load_model
from studio.engine.quality.evaluate import EvaluateSettings, evaluate
from studio.engine.sampling.generate import predict
from studio.engine.steps.batches import DeviceSprites
from studio.engine.training.loop import train_resumed
from studio.recipes.base import BatchRng, Spec
from studio.recipes.regression import Regression, RegressionConfig, Regressor, accuracy_figures
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import CPU, of_kind, train_regression


@pytest.fixture
def sprites_with_numbers(sprites: Sprites) -> Sprites:
    """24 sprites with two numbers, some of them missing."""
    found = with_numbers(sprites)
    found.targets[[3, 5], 0] = np.nan
    found.targets[7, 1] = np.nan
    return found


def network_for(sprites: Sprites) -> Regressor:
    torch.manual_seed(0)
    config = RegressionConfig(width=16, dropout=0.0)
    network = Regression().build(config, Spec.of(sprites))
    assert isinstance(network, Regressor)
    for name, values in Regression().statistics(sprites, config).items():
        network.get_buffer(name).copy_(values)
    return network.eval()


def test_accuracy_figures_equal_closed_forms() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(50, 9, (40, 3))
    predicted = true + rng.normal(0, 4, (40, 3))
    true[::7, 0] = np.nan
    true[:, 2] = 12.0  # never varies: it says nothing of R2
    found = accuracy_figures(torch.from_numpy(predicted), torch.from_numpy(true), ("a", "b", "c"))
    known = ~np.isnan(true[:, 0])
    r2 = [
        1 - ((predicted[rows, k] - true[rows, k]) ** 2).sum() / (len(true[rows, k]) * true[rows, k].var())
        for k, rows in ((0, known), (1, slice(None)))
    ]
    assert found["r2"] == pytest.approx(np.mean(r2))
    assert found["mae a"] == pytest.approx(np.nanmean(np.abs(predicted - true)[:, 0]))
    assert found["mae c"] == pytest.approx(np.abs(predicted[:, 2] - 12).mean()) and len(found) == 4
    same = torch.from_numpy(true[:, 1:2])
    assert accuracy_figures(same, same, ("b",)) == {"r2": 1.0, "mae": 0.0}
    assert accuracy_figures(same.mean().expand_as(same), same, ("b",))["r2"] == pytest.approx(0)
    many = torch.from_numpy(np.tile(true[:, 1:2], 9))
    assert accuracy_figures(many + 2, many, tuple("abcdefghi")).keys() == {"r2", "mae"}
    many[:, 0] = torch.nan
    assert accuracy_figures(many + 2, many, tuple("abcdefghi"))["mae"] == pytest.approx(2)
    assert accuracy_figures(many[:, :2] + 2, many[:, :2], ("a", "b")).keys() == {"r2", "mae b"}
    assert accuracy_figures(many[:, :1], many[:, :1], ("a",)) == {"r2": 0.0}


def test_missing_numbers_do_not_count_in_the_loss(sprites_with_numbers: Sprites) -> None:
    network, recipe = network_for(sprites_with_numbers), Regression()
    batch = next(DeviceSprites(sprites_with_numbers, torch.device("cpu")).plain_batches(24, 24))
    config = RegressionConfig(width=16, dropout=0.0)
    loss = recipe.loss(network, batch, config, BatchRng(torch.Generator(), batch))
    scores = network.body(batch.x).detach().numpy()
    true = sprites_with_numbers.targets.astype(np.float64)  # near 1,000, and hardly apart
    wanted = (true - np.nanmean(true, 0)) / np.nanstd(true, 0)
    off = np.abs(scores - wanted)
    each = np.where(off < 1, off**2 / 2, off - 0.5)
    assert loss.item() == pytest.approx(np.nanmean(each[~np.isnan(each)]), rel=1e-4)
    loss.backward()
    assert all(weight.grad is None or torch.isfinite(weight.grad).all() for weight in network.parameters())


def test_evaluation_returns_pairs_and_a_baseline(sprites_with_numbers: Sprites) -> None:
    network, batches = network_for(sprites_with_numbers), DeviceSprites(sprites_with_numbers, torch.device("cpu"))
    with torch.no_grad():
        found = Regression().evaluate(
            network, batches.plain_batches(7, 24), RegressionConfig(), Spec.of(sprites_with_numbers)
        )
        expected = network(next(batches.plain_batches(24, 24)).x)
    assert found.pairs is not None
    np.testing.assert_allclose(found.pairs[0], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found.pairs[1], sprites_with_numbers.targets)
    assert found.baseline["r2"] == pytest.approx(0, abs=1e-6) and found.metrics.keys() == found.baseline.keys()
    off = np.nanmean(
        np.abs(sprites_with_numbers.targets - np.nanmean(sprites_with_numbers.targets.astype(np.float64), 0)), 0
    )
    assert [found.baseline["mae visible"], found.baseline["mae red"]] == pytest.approx(off.tolist(), rel=1e-4)


@pytest.mark.parametrize("column", [[7.0] * 6, [1e30] * 6, [0.0] * 6, [np.nan] * 5 + [1e-40], [1e9, 1e9 + 64] * 3])
def test_nearly_constant_numbers_give_finite_losses(column: list[float]) -> None:
    sprites = make_sprites(per_class=3)
    targets = np.stack([np.array(column), np.arange(6)], 1).astype(np.float32)
    sprites_with_numbers = dataclasses.replace(sprites, targets=targets, target_names=("odd", "plain"))
    network = network_for(sprites_with_numbers)
    batch = next(DeviceSprites(sprites_with_numbers, torch.device("cpu")).plain_batches(6, 6))
    with torch.no_grad():
        found = Regression().evaluate(network, [batch], RegressionConfig(), Spec.of(sprites_with_numbers))
        loss = Regression().loss(network, batch, RegressionConfig(width=16), BatchRng(torch.Generator(), batch))
    assert np.isfinite([*found.metrics.values(), *found.baseline.values(), loss.item()]).all()


def test_sprites_without_a_number_are_left_out_and_reported(sprites_with_numbers: Sprites, run_path: Path) -> None:
    sprites_with_numbers.targets[:3] = np.nan
    events = list(train_regression(run_path, sprites_with_numbers))
    assert of_kind(events, Notice)[0].title == "Left out, without a number: 3 sprites."
    last = of_kind(events, SamplesReady)[-1]
    assert len(last.captions) == len(last.sprites) == 4
    assert last.numbers is not None and last.true_numbers is not None and last.numbers.shape == (4, 2)
    rows = {
        (sprite.tobytes(), *row)
        for sprite, row in zip(sprites_with_numbers.rgba, sprites_with_numbers.targets.tolist(), strict=True)
    }
    shown = zip(last.sprites, last.true_numbers.tolist(), strict=True)
    assert all((sprite.tobytes(), *row) in rows or np.isnan(row).any() for sprite, row in shown)
    pairs = zip(last.numbers[:, 0].tolist(), last.true_numbers[:, 0].tolist(), strict=True)
    assert [predicted_and_true(*pair) for pair in pairs] == [caption.split(";")[0] for caption in last.captions]
    sprites_with_numbers.targets[:22] = np.nan
    with pytest.raises(TrainingError, match="2 sprites of 24 have any") as refused:
        Regression().select(sprites_with_numbers, RegressionConfig())
    assert "labels.csv" in refused.value.hint


def test_a_run_predicts_evaluates_and_resumes_in_its_own_units(sprites_with_numbers: Sprites, run_path: Path) -> None:
    events = list(train_regression(run_path, sprites_with_numbers, Control(stop=True), steps=8))
    assert not of_kind(events, SamplesReady)[-1].step
    events = list(train_resumed(run_path, CPU, Control()))
    model = load_model(run_path, "best", CPU)
    *_, found = predict(model, sprites_with_numbers.rgba)
    assert isinstance(found, NumbersPredicted) and found.names == ("visible", "red")
    assert 900 < found.numbers[:, 1].mean() < 1200 and abs(found.numbers[:, 0].mean()) < 2
    *_, judged = evaluate(model, run_path, EvaluateSettings())
    assert isinstance(judged, Validated) and judged.baseline
    assert judged.metrics == pytest.approx(of_kind(events, Validated)[-1].metrics, rel=1e-4)
