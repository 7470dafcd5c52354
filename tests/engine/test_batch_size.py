"""Memory that is short beside the training step: that work takes fewer sprites at once, or is left out with a word."""

from __future__ import annotations

import gc
import itertools
import math
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from studio.core.config import TrainingConfig
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
from studio.data.colour.true_pixels import style_of
from studio.data.sprites import Sprites
from studio.engine import catalog, devices, pace, train
from studio.engine.batch_size import AutoBatchSize
from studio.engine.batches import DeviceSprites
from studio.engine.control import Control
from studio.engine.generate import load_model, predict
from studio.engine.model import TrainedModel
from studio.engine.quality import copies, features, meter
from studio.engine.quality.evaluate import heldout_batch_size, heldout_figures
from studio.engine.quality.features import FeatureNetwork
from studio.engine.runs.folder import RunDir
from studio.engine.train import train_new
from studio.recipes.base import Recipe, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import (
    CPU,
    nearest_training_sprites,
    of_kind,
    small_classifier,
    small_generator,
    small_regression,
)

DEVICE = torch.device("cpu")
CONFIGS = {"generator": small_generator, "classifier": small_classifier, "regression": small_regression}


class _Room:
    """For how many sprites the device has memory where nothing is learnt, and who asked for more."""

    def __init__(self, most: int) -> None:
        self.most, self.refused = most, 0

    def __deepcopy__(self, memory: dict[int, Any]) -> _Room:
        return self

    def check(self, network: nn.Module, arguments: tuple[Any, ...]) -> None:
        if not network.training and len(arguments[0]) > self.most:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory.")


def _limited(recipe: type[Recipe], room: _Room, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """The recipe, with networks that are refused more."""
    build = recipe.build

    def limited(self: Recipe, config: TrainingConfig, spec: Spec) -> nn.Module:
        network: nn.Module = build(self, config, spec)
        inner = network.body if recipe is Regression else network
        assert isinstance(inner, nn.Module)
        inner.register_forward_pre_hook(room.check)
        return network

    monkeypatch.setattr(recipe, "build", limited)
    return recipe()


@pytest.mark.parametrize("recipe", [Generator, Classifier, Regression])
def test_fault_33_work_beside_the_step_takes_fewer_sprites_at_once_and_finds_the_same(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, recipe: type[Recipe]
) -> None:
    found, said = [], []
    for most in (1000, 3):
        run, room = tmp_path / str(most), _Room(most)
        with monkeypatch.context() as patch:
            made = _limited(recipe, room, patch)
            config = CONFIGS[recipe.name](steps=6, holdout=0.5)
            found.append(list(train_new(run, with_numbers(sprites), made, config, CPU, Control())))
            if recipe is not Generator:
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


@pytest.mark.parametrize("recipe", [Generator, Classifier])
def test_fault_33_what_finds_no_room_is_left_out_with_a_word_and_the_work_is_saved(
    run_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: type[Recipe]
) -> None:
    room, control, events = _Room(0), Control(), list[Event]()
    config = CONFIGS[recipe.name](steps=12)
    for event in train_new(run_path, make_sprites(), _limited(recipe, room, monkeypatch), config, CPU, control):
        events.append(event)
        control.sample_now = control.checkpoint_now = isinstance(event, LossChunk)
    assert of_kind(events, RunFinished)[0].step == of_kind(events, CheckpointSaved)[-1].step == 12
    assert len(of_kind(events, CheckpointSaved)) > 1 and not of_kind(events, Validated)
    assert not of_kind(events, SamplesReady) and room.refused > 4
    assert [notice.hint for notice in of_kind(events, Notice)] == [
        f"Training goes on without {what} until there is room for them."
        for what in ("live samples", "figures of held-out sprites")
    ]
    progress = RunDir(run_path).progress()
    assert progress.state == "finished" and progress.micro_batches == 1


def test_what_fits_is_found_out_once_for_all_validations_and_over_a_step_back(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, control, events = _Room(1), Control(), list[Event]()
    step, calls = torch.optim.AdamW.step, itertools.count()

    def full_at_times(optimizer: torch.optim.AdamW, *arguments: Any) -> Any:
        if next(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(optimizer, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", full_at_times)
    monkeypatch.setattr(train, "TICK_S", 0.0)
    monkeypatch.setattr(
        train, "_heldout_samples", lambda training, _: SamplesReady(training.step, sprites.rgba[:0], ())
    )
    recipe = _limited(Classifier, room, monkeypatch)
    monkeypatch.setitem(catalog.recipes(), recipe.name, recipe)
    config = small_classifier(steps=6, batch_size=2, holdout=0.5)
    for event in train_new(run_path, sprites, recipe, config, CPU, control):
        events.append(event)
        control.checkpoint_now |= isinstance(event, LossChunk)
    begun, again = of_kind(events, RunStarted)
    assert begun.heldout_count > 1 and len(of_kind(events, Validated)) >= 6 and again.first_step > 0
    assert room.refused == int(math.log2(begun.heldout_count))  # halved until it was one


def test_what_is_left_out_is_free_before_its_memory_is_given_back(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[torch.Tensor]] = []
    free: list[bool] = []

    def full(*_: object) -> None:
        held = torch.zeros(4)
        made.append(weakref.ref(held))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(train, "heldout_figures", full)
    monkeypatch.setattr(train, "TICK_S", 0.0)
    monkeypatch.setattr(devices, "give_back_memory", lambda _: free.append(all(one() is None for one in made)))
    gc.collect()
    gc.disable()
    try:
        control = Control()
        for event in train_new(run_path, sprites, Classifier(), small_classifier(steps=3), CPU, control):
            control.checkpoint_now = isinstance(event, LossChunk) and event.first_step == 0
    finally:
        gc.enable()
    assert len(made) == 2 and free == [True] * 2  # after the first step, and at the end


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """New sprites are measured quickly, and often."""
    for module, name, value in (
        (train, "TICK_S", 0.0), (features, "_STEPS", 3), (meter, "COUNT", 24), (copies, "_FARTHEST_PX", 0),
        (meter, "SHARE", 1e6), (meter, "LEARNING_SHARE", 1e6), (pace, "SIDE_SHARE", 1e6),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def _measured(run: Path, room: _Room, patch: pytest.MonkeyPatch) -> list[Event]:
    """A training whose every kind of side work is refused more than the room there is."""
    forward, flat = FeatureNetwork.forward, copies._flat

    def seen(network: FeatureNetwork, x: torch.Tensor) -> torch.Tensor:
        room.check(nn.Module().eval(), (x,))
        return forward(network, x)

    def compared(sprites: np.ndarray, device: torch.device) -> torch.Tensor:
        room.check(nn.Module().eval(), (sprites,))
        return flat(sprites, device)

    patch.setattr(FeatureNetwork, "forward", seen)
    patch.setattr(copies, "_flat", compared)
    recipe = _limited(Generator, room, patch)
    return list(train_new(run, make_sprites(60), recipe, small_generator(steps=30), CPU, Control()))


@pytest.mark.usefixtures("measuring")
def test_fault_33_measuring_takes_fewer_sprites_at_once_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for most in (1000, 30):
        monkeypatch.setenv("STUDIO_HOME", str(tmp_path / f"home {most}"))  # each learns to see by itself
        room = _Room(most)
        with monkeypatch.context() as patch:
            events = _measured(tmp_path / str(most), room, patch)
        assert not of_kind(events, Notice) and bool(room.refused) == (most == 30)
        found.append(of_kind(events, QualityMeasured)[-1])
    assert found[0].step == found[1].step == 30
    assert dict(found[1].figures) == pytest.approx(dict(found[0].figures), rel=0.05, abs=1e-3)


@pytest.mark.usefixtures("measuring")
def test_fault_33_measuring_that_finds_no_room_rests_and_is_tried_again(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, features_of = [], features.features_of

    def full_at_first(*arguments: Any) -> Any:
        tries.append(arguments)
        if len(tries) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return features_of(*arguments)

    monkeypatch.setattr(meter, "features_of", full_at_first)
    monkeypatch.setattr(meter, "REST_S", 0.0)
    events = _measured(run_path, _Room(1000), monkeypatch)
    (notice,) = of_kind(events, Notice)
    assert "without measurements of new sprites" in notice.hint
    assert len(tries) == 2 and of_kind(events, QualityMeasured)


def test_few_large_sprites_are_as_much_at_once_as_many_small_ones() -> None:
    assert [AutoBatchSize(DEVICE, 256, size).count for size in (8, 32, 64, 256, 2048)] == [256, 256, 64, 4, 1]


def test_a_part_without_room_comes_again_and_the_others_stay_small() -> None:
    batch_size, done = AutoBatchSize(DEVICE, 8), list[tuple[int, int]]()
    for part in batch_size.slices(10):
        with batch_size.room():
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
    room, spec, config = _Room(2), Spec.of(sprites), small_classifier()
    network = _limited(Classifier, room, monkeypatch).build(config, spec).eval()
    model = TrainedModel(Classifier(), config, spec, network, DEVICE, "fp32", 0, "some", style_of(sprites))
    heldout = DeviceSprites(sprites.take(range(5)), DEVICE)
    heldout_figures(model, heldout, heldout_batch_size(heldout))
    assert room.refused == 1  # of five; then two at a time
    list(predict(model, sprites.rgba[:5]))
    assert room.refused == 2


def test_one_training_sprite_more_than_go_on_the_device_hardly_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, flat, calls = np.random.default_rng(0), copies._flat, list[int]()
    rgba = rng.integers(0, 256, (41, 4, 4, 4), dtype=np.uint8)

    def counted(sprites: np.ndarray, device: torch.device) -> torch.Tensor:
        calls.append(len(sprites))
        return flat(sprites, device)

    monkeypatch.setattr(copies, "_flat", counted)
    monkeypatch.setattr(copies, "_at_once", lambda _: 8)
    monkeypatch.setattr(copies, "_FARTHEST_PX", 0)
    taken = []
    for count in (8, 9):
        calls.clear()
        known = Sprites(rgba[:count], np.zeros(count, np.int64), ("noise",), ("",) * count, "noise")
        nearest_training_sprites(rgba[9:], known, None, DEVICE)
        taken.append(len(calls))
    assert taken[1] <= 2 * taken[0]


def test_what_did_not_fit_is_free_before_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[torch.Tensor]] = []
    free: list[bool] = []

    def work(count: int) -> None:
        held = torch.zeros(count)
        made.append(weakref.ref(held))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    def tried(part: slice) -> None:
        with batch_size.room():
            work(batch_size.count)

    monkeypatch.setattr(devices, "give_back_memory", lambda _: free.append(not any(one() for one in made)))
    gc.collect()
    gc.disable()
    try:
        batch_size = AutoBatchSize(DEVICE, 4)
        with pytest.raises(DeviceFullError):
            list(map(tried, batch_size.slices(4)))
    finally:
        gc.enable()
    assert len(made) == 3 and free == [True, True]


def test_copies_are_the_same_with_few_training_sprites_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    training = rng.integers(0, 256, (23, 8, 8, 4), dtype=np.uint8)
    new = np.concatenate([training[3:6], rng.integers(0, 256, (6, 8, 8, 4), dtype=np.uint8)])
    known = Sprites(training, np.zeros(23, np.int64), ("noise",), ("",) * 23, "noise")
    whole, flat, sizes = nearest_training_sprites(new, known, None, DEVICE), copies._flat, list[int]()

    def limited(sprites: np.ndarray, device: torch.device) -> torch.Tensor:
        if len(sprites) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        sizes.append(len(sprites))
        return flat(sprites, device)

    monkeypatch.setattr(copies, "_flat", limited)
    parts = nearest_training_sprites(new, known, None, DEVICE)
    assert whole.is_copy.tolist() == parts.is_copy.tolist() == [True] * 3 + [False] * 6
    assert whole.index.tolist() == parts.index.tolist() and 1 in sizes
