from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from studio.core.errors import UsageError
from studio.core.events import Evaluated
from studio.core.metrics import FIGURES
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality import features
from studio.engine.quality.evaluate import (
    MIN_EVALUATIONS,
    EvaluateSettings,
    evaluate,
    evaluate_heldout,
    evaluate_sprites,
    heldout_batch_size,
)
from studio.engine.steps.batches import DeviceSprites
from tests.conftest import make_sprites
from tests.engine.tools import CPU, kept_run, of_kind, train_classifier, train_generator, train_toy

SPRITES = make_sprites(60)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_BATCH", 16)
    monkeypatch.setattr(features, "_STEPS", 20)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory, SPRITES, train_toy, steps=2)


@pytest.fixture(scope="module")
def model(run: Path) -> TrainedModel:
    return load_model(run, "last", CPU)


@pytest.mark.slow
def test_untrained_generator_scores_badly(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_STEPS", 60)
    run = kept_run(tmp_path_factory, SPRITES, steps=2)
    model = load_model(run, "last", CPU)
    (found,) = of_kind(list(evaluate(model, run, EvaluateSettings(count=24, steps=2))), Evaluated)
    assert (found.count, found.heldout_count, found.training_count) == (24, 24, 96)
    new, real, cheat = (found.figures[name] for name in ("new", "real", "cheat"))
    for figure in FIGURES:
        sets = (new,) if figure.name == "loss_gap" else (new, real, cheat)
        assert all(np.isfinite(values[figure.name]) for values in sets), figure.name
    assert abs(new["loss_gap"]) < 0.2  # what has learnt nothing knows none by heart
    assert new["surprisal"] > real["surprisal"] and new["kid_fixed"] > 3 * real["kid_fixed"]
    assert new["kid_heldout"] > real["kid_heldout"] + 3 * real["kid_heldout_error"]
    assert new["fd_training"] > 2 * max(real["fd_training"], cheat["fd_training"])
    assert cheat["copies"] > 0.9 and cheat["off_palette"] == 0
    assert (real["nearer"], cheat["nearer"]) == (0.5, 1)
    assert real["class_agreement"] > 0.9


def test_other_real_sprites_score_like_real(run: Path, model: TrainedModel) -> None:
    real = evaluate_sprites(model, run, make_sprites(30, seed=5).rgba, "others", EvaluateSettings())
    (found,) = of_kind(list(real), Evaluated)
    figures = found.figures["new"]
    assert found.title == "others" and "class_agreement" not in figures
    assert figures["kid_heldout"] < 3 * figures["kid_heldout_error"]
    assert figures["copies"] < 0.7 * found.figures["cheat"]["copies"]


def test_equal_seeds_give_equal_scores(run: Path, model: TrainedModel) -> None:
    settings = EvaluateSettings(count=20, steps=2)
    (first,), (again,) = (of_kind(list(evaluate(model, run, settings)), Evaluated) for _ in range(2))
    for name, figures in first.figures.items():  # the second time with the features of the first, read back
        assert again.figures[name] == pytest.approx(figures, rel=1e-3, abs=1e-5)


def test_evaluation_needs_held_out_sprites(run_path: Path) -> None:
    list(train_classifier(run_path, SPRITES, steps=1, holdout=0.0))
    with pytest.raises(UsageError, match="validation sprite"):
        list(evaluate(load_model(run_path, "last", CPU), run_path, EvaluateSettings()))


def test_too_few_held_out_sprites_raise_usage_error(run_path: Path) -> None:
    list(train_toy(run_path, make_sprites(12), steps=2))
    model = load_model(run_path, "last", CPU)
    settings = EvaluateSettings()
    for job in (evaluate(model, run_path, settings), evaluate_sprites(model, run_path, SPRITES.rgba, "all", settings)):
        with pytest.raises(UsageError, match="too few") as refusal:
            list(job)
        assert refusal.value.hint == "An evaluation needs 40 sprites, half of them for validation."


@pytest.mark.slow
def test_hint_gives_the_share_to_hold_out(tmp_path: Path) -> None:
    sprites = make_sprites(62)
    list(train_generator(tmp_path / "little", sprites, steps=1, holdout=0.1))
    with pytest.raises(UsageError) as refusal:
        list(evaluate(load_model(tmp_path / "little", "last", CPU), tmp_path / "little", EvaluateSettings()))
    found = re.search(r"a validation share of ([\d.]+)", refusal.value.hint)
    assert found is not None
    list(train_generator(tmp_path / "enough", sprites, steps=1, holdout=float(found[1])))
    model = load_model(tmp_path / "enough", "last", CPU)
    assert of_kind(list(evaluate(model, tmp_path / "enough", EvaluateSettings(count=20, steps=1))), Evaluated)


@pytest.mark.slow
def test_evaluate_sprites_limits_their_number(run: Path, model: TrainedModel) -> None:
    others = make_sprites(30, seed=5).rgba

    def judged(count: int, seed: int = 0) -> Evaluated:
        settings = EvaluateSettings(count=count, seed=seed)
        (found,) = of_kind(list(evaluate_sprites(model, run, others, "others", settings)), Evaluated)
        return found

    some = judged(count=25)
    assert some.count == 25 and judged(count=70).count == 60
    assert some.figures == judged(count=25).figures != judged(count=25, seed=1).figures


@pytest.mark.slow
def test_real_sprites_have_equal_distances_to_the_training_set(run_path: Path) -> None:
    """However few are held out: Fréchet's distance falls with the number of sprites."""
    list(train_generator(run_path, make_sprites(400, classes=1), steps=1, holdout=0.06))
    model, others = load_model(run_path, "last", CPU), make_sprites(120, classes=1, seed=9).rgba
    (found,) = of_kind(list(evaluate_sprites(model, run_path, others, "others", EvaluateSettings())), Evaluated)
    assert found.heldout_count == 24 and found.count == 120
    assert found.figures["real"]["fd_training"] == pytest.approx(found.figures["new"]["fd_training"], rel=0.5)


def test_few_held_out_sprites_are_repeated_with_new_noise(model: TrainedModel) -> None:
    few = DeviceSprites(SPRITES.take(np.arange(3)), torch.device("cpu"))
    again = DeviceSprites(SPRITES.take(np.arange(MIN_EVALUATIONS) % 3), torch.device("cpu"))
    losses = [
        evaluate_heldout(model, heldout, heldout_batch_size(heldout, model.recipe)).metrics["loss"]
        for heldout in (few, again)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
