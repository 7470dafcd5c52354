from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from studio.core.errors import RunError, UsageError
from studio.core.events import LossChunk, Progress, SpritesGenerated
from studio.data.sprites import Sprites
from studio.engine import generate as module
from studio.engine.control import Control
from studio.engine.generate import checkpoint_names, generate, load_model, predict
from studio.engine.model import TrainedModel
from studio.engine.types import GenerateSettings
from tests.conftest import make_sprites
from tests.engine.tools import CPU, agreeing, kept_run, of_kind, train_classifier, train_generator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    return load_model(kept_run(tmp_path_factory, make_sprites(), steps=20, learning_rate=0.01), "last", CPU)


def _made(model: TrainedModel, **settings: int | str) -> SpritesGenerated:
    return of_kind(list(generate(model, GenerateSettings(**{"steps": 4, **settings}))), SpritesGenerated)[0]  # type: ignore[arg-type]


def test_a_sprite_depends_on_seed_and_place_alone(model: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of other sizes may take other kernels: what is drawn is the same but for its last digits."""
    many = _made(model, count=10, seed=3)
    assert agreeing(_made(model, count=4, seed=3).sprites, many.sprites[:4]) > 0.97
    assert agreeing(_made(model, count=10, seed=4).sprites, many.sprites) < 0.9
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    assert agreeing(_made(model, count=10, seed=3).sprites, many.sprites) > 0.97

    def drawn(first: int, count: int) -> torch.Tensor:
        labels = torch.arange(first, first + count) % 2
        *_, x = module.drawing_steps(model, labels, GenerateSettings(steps=4, seed=3), first)
        return x

    torch.testing.assert_close(drawn(4, 3), drawn(0, 10)[4:7], rtol=1e-4, atol=1e-4)


def test_classes_take_turns_or_are_chosen(model: TrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _made(model, count=4).labels.tolist() == [0, 1, 0, 1]
    assert _made(model, count=3, class_name="class1").labels.tolist() == [1, 1, 1]
    with pytest.raises(UsageError, match="unicorn"):
        _made(model, class_name="unicorn")
    monkeypatch.setattr(module, "_MOST_CLASSES_SAID", 1)
    with pytest.raises(UsageError) as caught:
        _made(model, class_name="unicorn")
    assert caught.value.hint == "It knows: class0 and 1 more."


def test_progress_ends_at_the_count(model: TrainedModel) -> None:
    progress = of_kind(list(generate(model, GenerateSettings(count=70, steps=3))), Progress)
    done = [event.done for event in progress]
    assert done == sorted(done) and done[-1] == 70 and all(event.total == 70 for event in progress)


def test_checkpoints_are_found_by_name(run_path: Path, sprites: Sprites) -> None:
    control = Control()
    for event in train_generator(run_path, sprites, control, steps=6):
        control.checkpoint_now = isinstance(event, LossChunk)
    names = checkpoint_names(run_path)
    assert names[:3] == ["best", "last", "6"]
    assert load_model(run_path, names[-1], CPU).step == int(names[-1])
    assert load_model(run_path, "best", CPU).step in [int(name) for name in names[2:]]
    with pytest.raises(UsageError, match="999"):
        load_model(run_path, "999", CPU)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a run"):
        load_model(tmp_path, "best", CPU)


def test_a_generator_names_no_classes_and_a_classifier_draws_nothing(
    model: TrainedModel, tmp_path: Path, sprites: Sprites
) -> None:
    with pytest.raises(UsageError, match="names no classes"):
        list(predict(model, sprites.rgba))
    list(train_classifier(tmp_path / "classifier", sprites))
    classifier = load_model(tmp_path / "classifier", "best", CPU)
    with pytest.raises(UsageError, match="draws no sprites"):
        list(generate(classifier, GenerateSettings()))
    *_, found = predict(classifier, sprites.rgba)
    assert np.allclose(found.probabilities.sum(1), 1, atol=1e-5)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="8 pixels"):
        list(predict(classifier, np.zeros((1, 16, 16, 4), np.uint8)))
