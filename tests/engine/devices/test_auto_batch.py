"""Memory that is short beside the training step: that work takes fewer sprites at once, or is left out with a word."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest
import torch

from studio.core.errors import DeviceFullError
from studio.core.events import (
    CheckpointSaved,
    Classified,
    Event,
    LossChunk,
    Notice,
    NumbersPredicted,
    QualityMeasured,
    RunFinished,
    RunStarted,
    SamplesReady,
    Validated,
)
from studio.data.colour.pixel_art import measure_style
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality import copies, features
from studio.engine.quality.evaluate import evaluate_heldout, heldout_batch_size
from studio.engine.quality.features import FeatureNetwork
from studio.engine.runs.folder import RunDir
from studio.engine.sampling.generate import predict
from studio.engine.steps import timing
from studio.engine.steps.batches import DeviceSprites
from studio.engine.training import live_samples, loop, meter, saving
from studio.recipes.base import Spec
from studio.recipes.classifier import Classifier
from studio.recipes.predictors import ResNet
from tests.conftest import make_sprites, with_numbers
from tests.engine.conftest import Memory
from tests.engine.tools import (
    CPU,
    TOY,
    SavingAlways,
    full_in_optimizer,
    nearest_training_sprites,
    of_kind,
    small_classifier,
    train_classifier,
    train_regression,
    train_toy,
)

DEVICE = torch.device("cpu")
FULL = torch.OutOfMemoryError("CUDA out of memory.")


class _Room:
    """For how many sprites at once the device has memory beside the training steps, and how often it got more."""

    def __init__(self, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most, self.refused = most, 0
        self.limit(TOY.Network, "encode", 1, monkeypatch)
        self.limit(TOY.Network, "decode", 1, monkeypatch)
        self.limit(ResNet, "forward", 1, monkeypatch)
        self.limit(copies, "_flat", 0, monkeypatch)

    def limit(self, owner: Any, name: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some work has no room for more sprites either: its argument in that place."""
        work = getattr(owner, name)

        def limited(*arguments: Any) -> Any:
            is_a_step = isinstance(arguments[0], TOY.Network | ResNet) and arguments[0].training
            if not is_a_step and len(arguments[place]) > self.most:
                self.refused += 1
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return work(*arguments)

        monkeypatch.setattr(owner, name, limited)


@pytest.mark.parametrize("train", [train_toy, train_classifier, train_regression])
def test_fault_33_work_beside_the_step_takes_fewer_sprites_at_once_and_finds_the_same(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, train: Any
) -> None:
    found, said = [], []
    for most in (1000, 3):
        run = tmp_path / str(most)
        with monkeypatch.context() as patch:
            room = _Room(most, patch)
            found.append(list(train(run, with_numbers(sprites), steps=6, holdout=0.5)))
            if train is not train_toy:
                *_, answer = predict(load_model(run, "last", CPU), sprites.rgba)
                assert isinstance(answer, Classified | NumbersPredicted)
                said.append(answer.probabilities if isinstance(answer, Classified) else answer.numbers)
        assert not of_kind(found[-1], Notice) and RunDir(run).progress().micro_batches == 1
        assert bool(room.refused) == (most == 3)
    whole, parts = (of_kind(events, Validated)[-1] for events in found)
    assert parts.step == whole.step == 6 and dict(parts.metrics) == pytest.approx(dict(whole.metrics), rel=1e-4)
    for before, after in zip(*(of_kind(events, SamplesReady) for events in found), strict=True):
        assert np.abs(before.sprites.astype(int) - after.sprites).max() <= 1
    if said:
        np.testing.assert_allclose(said[0], said[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("train", [train_toy, train_classifier])
def test_fault_33_what_finds_no_room_is_left_out_with_a_word_and_the_work_is_saved(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, train: Any
) -> None:
    monkeypatch.setattr(meter, "MIN_SPRITES", 20)
    room, control, events = _Room(0, monkeypatch), SavingAlways(), list[Event]()
    for event in train(run_path, sprites, control, steps=12):
        events.append(event)
        control.sample_now = isinstance(event, LossChunk)
    assert of_kind(events, RunFinished)[0].step == of_kind(events, CheckpointSaved)[-1].step == 12
    assert len(of_kind(events, CheckpointSaved)) > 1 and not of_kind(events, Validated)
    assert not of_kind(events, SamplesReady) and room.refused > 4
    left_out = ["live samples", "validation"]
    if train is train_toy:
        left_out.append("quality measurements")  # by which it is seen at the end whether it copies
    assert [notice.hint for notice in of_kind(events, Notice)] == [
        f"Training continues without {what} until there is enough memory." for what in left_out
    ]
    progress = RunDir(run_path).progress()
    assert progress.state == "finished" and progress.micro_batches == 1


def test_what_fits_is_found_out_once_for_all_validations_and_over_a_step_back(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = _Room(1, monkeypatch)
    full_in_optimizer(monkeypatch, lambda call: call == 2)
    monkeypatch.setattr(loop, "TICK_S", 0.0)
    none = SamplesReady(0, sprites.rgba[:0], ())
    monkeypatch.setattr(live_samples, "_heldout_samples", lambda *_: none)
    events = list(train_classifier(run_path, sprites, SavingAlways(), steps=6, batch_size=2, holdout=0.5))
    begun, again = of_kind(events, RunStarted)
    assert begun.heldout_count > 1 and len(of_kind(events, Validated)) >= 6 and again.first_step > 0
    assert room.refused == int(math.log2(begun.heldout_count))  # halved until it was one


def test_what_is_left_out_is_free_before_its_memory_is_given_back(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, memory: Memory
) -> None:
    monkeypatch.setattr(saving, "evaluate_heldout", memory.full)
    monkeypatch.setattr(loop, "TICK_S", 0.0)
    control = Control()
    for event in train_classifier(run_path, sprites, control, steps=3):
        control.checkpoint_now = isinstance(event, LossChunk) and event.first_step == 0
    assert memory.was_free == [True] * 2  # after the first step, and at the end


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """New sprites are measured quickly, and often."""
    for module, name, value in (
        (loop, "TICK_S", 0.0), (features, "_STEPS", 3), (meter, "QUALITY_SPRITES", 24), (copies, "_MAX_SHIFT_PX", 0),
        (meter, "MIN_SPRITES", 20), (meter, "TIME_SHARE", 1e6), (meter, "FEATURE_SHARE", 1e6),
        (timing, "SIDE_SHARE", 1e6),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@pytest.mark.slow
@pytest.mark.usefixtures("measuring")
def test_fault_33_measuring_takes_fewer_sprites_at_once_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for most in (1000, 30):
        monkeypatch.setenv("STUDIO_HOME", str(tmp_path / f"home {most}"))  # each learns to see by itself
        with monkeypatch.context() as patch:
            room = _Room(most, patch)
            room.limit(FeatureNetwork, "forward", 1, patch)
            events = list(train_toy(tmp_path / str(most), make_sprites(60), steps=30))
        assert not of_kind(events, Notice) and bool(room.refused) == (most == 30)
        found.append(of_kind(events, QualityMeasured)[-1])
    assert found[0].step == found[1].step == 30
    assert vars(found[1].quality) == pytest.approx(vars(found[0].quality), rel=0.05, abs=1e-3)


@pytest.mark.usefixtures("measuring")
def test_fault_33_measuring_that_finds_no_room_rests_and_is_tried_again(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_at_first = Mock(wraps=features.learn_features, side_effect=[FULL, DEFAULT])
    monkeypatch.setattr(meter, "learn_features", full_at_first)
    monkeypatch.setattr(meter, "OOM_RETRY_S", 0.0)
    events = list(train_toy(run_path, make_sprites(60), steps=30))
    (notice,) = of_kind(events, Notice)
    assert "without quality measurements" in notice.hint
    assert full_at_first.call_count == 2 and of_kind(events, QualityMeasured)


def test_batch_size_is_limited_by_pixels() -> None:
    assert [AutoBatchSize(DEVICE, 256, size).count for size in (8, 32, 64, 256, 2048)] == [256, 256, 64, 4, 1]


def test_full_device_repeats_the_slice_with_half_the_size() -> None:
    batch_size, done = AutoBatchSize(DEVICE, 8), list[tuple[int, int]]()
    for part in batch_size.slices(10):
        with batch_size.halve_if_full():
            if part.stop - part.start > 3:
                raise MemoryError
            done.append((part.start, part.stop))
    assert done == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


def test_a_small_last_part_says_nothing_of_the_room_there_is() -> None:
    batch_size = AutoBatchSize(DEVICE, 4)
    assert [*batch_size.slices(9)] == [slice(0, 4), slice(4, 8), slice(8, 9)] and batch_size.count == 4


def test_fewer_sprites_than_are_worked_on_at_once_are_not_tried_again_in_the_same_number(
    sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, spec, config = _Room(2, monkeypatch), Spec.of(sprites), small_classifier()
    network = Classifier().build(config, spec).eval()
    model = TrainedModel(Classifier(), config, spec, network, DEVICE, "fp32", 0, "some", measure_style(sprites))
    heldout = DeviceSprites(sprites.take(range(5)), DEVICE)
    evaluate_heldout(model, heldout, heldout_batch_size(heldout, model.recipe))
    assert room.refused == 1  # of five; then two at a time
    list(predict(model, sprites.rgba[:5]))
    assert room.refused == 2


def test_memory_of_a_failed_batch_is_freed_before_the_retry(memory: Memory) -> None:
    batch_size = AutoBatchSize(DEVICE, 4)

    def tried(part: slice) -> None:
        with batch_size.halve_if_full():
            memory.full()

    with pytest.raises(DeviceFullError):
        list(map(tried, batch_size.slices(4)))
    assert memory.was_free == [True, True]


def _noise(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, 8, 8, 4), dtype=np.uint8)


def _known(rgba: np.ndarray) -> Sprites:
    return Sprites(rgba, np.zeros(len(rgba), np.int64), ("noise",), ("",) * len(rgba), "noise")


def test_one_training_sprite_more_than_go_on_the_device_hardly_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Mock(wraps=copies._flat)
    monkeypatch.setattr(copies, "_flat", compared)
    monkeypatch.setattr(copies, "_max_sprites", lambda _: 8)
    monkeypatch.setattr(copies, "_MAX_SHIFT_PX", 0)
    calls = []
    for count in (8, 9):
        compared.reset_mock()
        nearest_training_sprites(_noise(32), _known(_noise(count)), None, DEVICE)
        calls.append(compared.call_count)
    assert calls[1] <= 2 * calls[0]


def test_copies_are_the_same_with_few_training_sprites_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    training = _noise(23)
    new = np.concatenate([training[3:6], _noise(6)])
    whole = nearest_training_sprites(new, _known(training), None, DEVICE)
    room = _Room(2, monkeypatch)
    parts = nearest_training_sprites(new, _known(training), None, DEVICE)
    assert whole.is_copy.tolist() == parts.is_copy.tolist() == [True] * 3 + [False] * 6
    assert whole.index.tolist() == parts.index.tolist() and room.refused
