"""What goes wrong in the middle of a training, and how it goes on."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from studio.core.errors import DeviceFullError, TrainingError, UnwritableError
from studio.core.events import CheckpointSaved, Event, LossChunk, Notice, RunFinished, RunStarted, SteppedBack
from studio.data.sprites import Sprites
from studio.engine import catalog, devices, starting
from studio.engine.control import Control
from studio.engine.measure import measure
from studio.engine.recovery import MicroBatches
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.train import train_new, train_resumed
from studio.engine.training import Training
from studio.engine.types import DeviceMeasured
from studio.recipes.base import Batch, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from studio.recipes.resnet import ResNet
from tests.conftest import make_sprites, with_numbers
from tests.engine.tools import CPU, HALF, of_kind, small_classifier, small_generator, small_regression


class _Poisoned(Generator):
    """A generator whose loss is not a number in some of its calls, counted from 0 over all of its trainings."""

    def __init__(self, poisoned: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.poisoned = 0, poisoned
        monkeypatch.setitem(catalog.recipes(), self.name, self)

    def loss(self, *arguments: Any) -> torch.Tensor:
        self.calls += 1
        return super().loss(*arguments) * (math.nan if self.poisoned(self.calls - 1) else 1.0)


def test_fault_24_a_loss_that_is_no_number_never_reaches_the_weights(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, weights = Control(checkpoint_now=True), list[torch.Tensor]()
    recipe = _Poisoned(lambda call: call >= 3, monkeypatch)
    events = train_new(run_path, sprites, recipe, small_generator(steps=50), CPU, control)
    setbacks: list[SteppedBack] = []

    def watch() -> None:
        for event in events:
            if isinstance(event, LossChunk) and control.live:
                weights[:] = [weight.clone() for weight in control.live.network.parameters()]
            elif isinstance(event, SteppedBack):
                setbacks.append(event)

    with pytest.raises(TrainingError, match=r"step \d"):
        watch()
    assert [setback.lr_scale for setback in setbacks] == [0.5, 0.25, 0.125]
    assert weights and all(bool(torch.isfinite(weight).all()) for weight in weights)
    progress = RunDir(run_path).progress()
    assert progress.state == "failed" and "stopped being a number" in progress.message and progress.nan_rollbacks == 3
    assert RunDir(run_path).is_busy() is False
    saved = sorted((run_path / "checkpoints").iterdir())[-1]
    for tensor in load_file(saved / "model.safetensors").values():
        assert bool(torch.isfinite(tensor).all())


def test_fault_24_after_a_loss_that_is_no_number_training_goes_on_from_its_checkpoint_at_half_the_rate(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, recipe = Control(checkpoint_now=True), _Poisoned(lambda call: call == 5, monkeypatch)
    config = small_generator(steps=8, lr_warmup_steps=0, lr_decay_share=0.0)
    events = list(train_new(run_path, sprites, recipe, config, CPU, control))
    saved, (setback,) = of_kind(events, CheckpointSaved)[0].step, of_kind(events, SteppedBack)
    assert 0 < saved <= 5 and setback == SteppedBack(5, saved, 0.5)
    before, after = events[: events.index(setback)], events[events.index(setback) :]
    assert {chunk.lr for chunk in of_kind(before, LossChunk)} == {config.learning_rate}
    assert {chunk.lr for chunk in of_kind(after, LossChunk)} == {config.learning_rate / 2}
    assert "step 5" in of_kind(after, Notice)[0].title
    assert of_kind(after, RunFinished)[0].reason == "finished"
    history = read_history(run_path)
    assert history.rollbacks == [setback]
    assert history.series["loss"].steps.tolist() == list(range(8))
    assert RunDir(run_path).progress().nan_rollbacks == 1


def test_fault_24_a_loss_that_is_no_number_before_any_checkpoint_begins_anew(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _Poisoned(lambda call: call == 2, monkeypatch)
    events = list(train_new(run_path, sprites, recipe, small_generator(steps=4), CPU, Control()))
    assert of_kind(events, SteppedBack) == [SteppedBack(2, 0, 0.5)]
    first, again = (chunk for chunk in of_kind(events, LossChunk) if chunk.first_step == 0)
    assert again.losses[0] == first.losses[0] and again.lr < first.lr
    assert of_kind(events, RunFinished)[0].step == 4


class _Overflowing(Generator):
    """A generator whose gradient is infinite, though its loss is not, in some of its calls."""

    def __init__(self, overflows: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.overflows = 0, overflows
        monkeypatch.setitem(catalog.recipes(), self.name, self)

    def loss(self, *arguments: Any) -> torch.Tensor:
        loss = super().loss(*arguments)
        if self.overflows(self.calls):
            loss.register_hook(lambda gradient: gradient * math.inf)
        self.calls += 1
        return loss


def test_in_fp16_a_step_that_overflows_is_left_out_and_is_no_setback(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.optim._FIRST_SCALE", 256.0)  # too small to overflow by itself
    found = {}
    for precision, overflowing in (("fp32", {}), ("fp16", {}), ("overflow", {2, 5})):
        recipe = _Overflowing(lambda call, overflowing=overflowing: call in overflowing, monkeypatch)  # type: ignore[misc]
        config = small_generator(steps=7, precision=precision if precision == "fp32" else "fp16")
        events = list(train_new(tmp_path / precision, sprites, recipe, config, HALF, Control()))
        assert not of_kind(events, SteppedBack) and of_kind(events, RunFinished)[0].step == 7
        chunks = of_kind(events, LossChunk)
        found[precision] = [
            np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("losses", "grad_norms")
        ]
    for fp32, fp16 in zip(found["fp32"], found["fp16"], strict=True):
        assert fp16 == pytest.approx(fp32, rel=0.02)
    assert np.flatnonzero(found["overflow"][1] == 0).tolist() == [2, 5]
    assert np.isfinite(found["overflow"]).all()
    (saved,) = (tmp_path / "overflow" / "checkpoints").iterdir()
    kept = load_file(saved / "optimizer.safetensors")
    assert float(kept["LossScaler/scale"]) == 64 and int(kept["LossScaler/sound"]) == 1
    assert {float(value) for name, value in kept.items() if name.endswith("/step")} == {5.0}  # of seven


def test_in_fp16_a_gradient_that_no_scale_makes_finite_is_a_setback(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.optim._FIRST_SCALE", 4.0)
    recipe = _Overflowing(lambda call: call < 3, monkeypatch)  # at a scale of 4, 2 and 1
    config = small_generator(steps=5, precision="fp16")
    events = list(train_new(run_path, sprites, recipe, config, HALF, Control()))
    assert of_kind(events, SteppedBack) == [SteppedBack(2, 0, 0.5)] and of_kind(events, RunFinished)[0].step == 5


def test_fault_24_setbacks_are_forgiven_after_some_sound_checkpoints(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.recovery.SOUND_CHECKPOINTS", 1)
    monkeypatch.setattr("studio.engine.train.TICK_S", 0.0)
    recipe, control = _Poisoned(lambda call: call % 3 == 2, monkeypatch), Control()
    config = small_generator(steps=9, lr_warmup_steps=0, lr_decay_share=0.0, holdout=0.0)
    events = list[Event]()
    for event in train_new(run_path, sprites.take(range(4)), recipe, config, CPU, control):
        events.append(event)
        control.checkpoint_now = isinstance(event, LossChunk)
    assert len(of_kind(events, SteppedBack)) == 4  # more than a run may have in a row
    assert of_kind(events, RunFinished)[0].step == 9 and RunDir(run_path).progress().nan_rollbacks == 0
    assert [chunk.lr / config.learning_rate for chunk in of_kind(events, LossChunk)] == [1, 1, *[0.5, 1] * 3, 0.5]
    assert "100%" in of_kind(events, Notice)[-1].title


class _Hungry(Classifier):
    """A classifier for which the device has no memory when it gets more than `most` sprites at once."""

    def __init__(self, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = most
        monkeypatch.setitem(catalog.recipes(), self.name, self)

    def loss(self, network: ResNet, batch: Batch, *arguments: Any) -> torch.Tensor:
        if len(batch.x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().loss(network, batch, *arguments)


def test_fault_23_batches_that_do_not_fit_the_device_are_taken_in_parts_and_teach_the_same(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for most in (8, 3):
        config = small_classifier(steps=6, label_smoothing=0.0, batch_size=8)
        control, run = Control(), tmp_path / str(most)
        found.append(list(train_new(run, sprites, _Hungry(most, monkeypatch), config, CPU, control)))
    whole, parts = (np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)]) for events in found)
    assert whole == pytest.approx(parts, rel=1e-3) and len(parts) == 6
    assert [notice.hint for notice in of_kind(found[1], Notice)] == [
        f"Training goes on from step 0, with batches in {count} parts." for count in (2, 4)
    ]
    assert RunDir(tmp_path / "3").progress().micro_batches == 4


def test_fault_23_a_device_that_is_full_in_the_middle_costs_no_step(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, events = _Hungry(4, monkeypatch), []
    for event in train_new(run_path, sprites, recipe, small_classifier(steps=30), CPU, Control()):
        events.append(event)
        recipe.most = 2 if of_kind(events, LossChunk) else 4
    first_steps = [chunk.first_step for chunk in of_kind(events, LossChunk)]
    assert first_steps == sorted(set(first_steps)) and read_history(run_path).series["loss"].steps.tolist() == [
        *range(30)
    ]
    (notice,) = of_kind(events, Notice)
    assert "no memory left" in notice.title and "2 parts" in notice.hint
    assert len(of_kind(events, CheckpointSaved)) == 1  # at the end: it went back to none


def test_fault_23_what_did_not_fit_is_free_before_it_is_tried_again(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[torch.Tensor]] = []

    class Watched(_Hungry):
        def loss(self, network: ResNet, batch: Batch, *arguments: Any) -> torch.Tensor:
            if len(batch.x) > self.most:
                held = [batch.x, network(batch.x)]
                made.extend(map(weakref.ref, held))
            return super().loss(network, batch, *arguments)

    given_back: list[bool] = []
    monkeypatch.setattr(devices, "give_back_memory", lambda _: given_back.append(not any(one() for one in made)))
    gc.collect()
    gc.disable()
    try:
        list(train_new(run_path, sprites, Watched(1, monkeypatch), small_classifier(steps=1), CPU, Control()))
    finally:
        gc.enable()
    assert given_back == [True] * 3 and len(made) == 4  # after two tries, and at the end


def test_fault_23_a_device_that_is_full_while_weights_change_goes_back_to_a_checkpoint(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, calls = torch.optim.AdamW.step, itertools.count()

    def full_at_times(optimizer: torch.optim.AdamW, *arguments: Any) -> Any:
        if next(calls) == 5:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(optimizer, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", full_at_times)
    control = Control(checkpoint_now=True)
    events = list(train_new(run_path, sprites, Classifier(), small_classifier(steps=8), CPU, control))
    saved = of_kind(events, CheckpointSaved)[0].step
    assert [notice.hint for notice in of_kind(events, Notice)] == [
        f"Training goes on from step {saved}, with batches in 2 parts."
    ]
    assert read_history(run_path).series["loss"].steps.tolist() == [*range(8)]


def test_fault_23_a_device_is_measured_in_parts_too(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.measure.LEAST_S", 0.0)
    events = list(measure(_Hungry(2, monkeypatch), small_classifier(batch_size=8), Spec.of(sprites), CPU))
    assert [found.precision for found in of_kind(events, DeviceMeasured)] == ["fp32", "bf16"]


def test_a_device_that_has_room_again_is_given_larger_parts_and_one_that_has_none_costs_nothing(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.recovery.SOUND_CHECKPOINTS", 1)
    monkeypatch.setattr("studio.engine.train.TICK_S", 0.0)
    recipe, control, events = _Hungry(2, monkeypatch), Control(), list[Event]()
    for event in train_new(run_path, sprites, recipe, small_classifier(steps=12), CPU, control):
        events.append(event)
        control.checkpoint_now = isinstance(event, LossChunk)
        recipe.most = 2 if len(of_kind(events, LossChunk)) < 4 else 4
    assert [notice.level for notice in of_kind(events, Notice)] == ["warning", "info"]  # a trial that fails is not said
    assert "taken whole again" in of_kind(events, Notice)[1].title
    assert read_history(run_path).series["loss"].steps.tolist() == [*range(12)]
    assert RunDir(run_path).progress().micro_batches == 1


def test_trials_of_larger_parts_become_rarer_while_they_fail() -> None:
    parts, trials = MicroBatches(4), []
    for checkpoint in range(80):
        assert parts.checkpoint_saved() is False
        if parts.count == 2:
            trials.append(checkpoint)
            assert parts.double() is False
    assert trials == [9, 29, 69] and parts.count == 4
    assert parts.double() is True and parts.count == 8


def test_a_trial_that_fails_in_the_optimizer_makes_the_next_ones_rarer_too(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.recovery.SOUND_CHECKPOINTS", 1)
    monkeypatch.setattr("studio.engine.train.TICK_S", 0.0)
    loss, step, sizes = Classifier.loss, torch.optim.AdamW.step, [0]

    def watched(recipe: Classifier, network: ResNet, batch: Batch, *arguments: Any) -> torch.Tensor:
        sizes.append(len(batch.x))
        return loss(recipe, network, batch, *arguments)

    def full(optimizer: torch.optim.AdamW, *arguments: Any) -> Any:
        if sizes[-1] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(optimizer, *arguments)

    monkeypatch.setattr(Classifier, "loss", watched)
    monkeypatch.setattr(torch.optim.AdamW, "step", full)
    control, events, config = Control(), list[Event](), small_classifier(steps=8, holdout=0.0)
    for event in train_new(run_path, sprites, Classifier(), config, CPU, control):
        events.append(event)
        control.checkpoint_now = isinstance(event, LossChunk)
    assert [begun.first_step for begun in of_kind(events, RunStarted)] == [0, 0, 1, 3, 7]
    assert [notice.level for notice in of_kind(events, Notice)] == ["warning"]
    assert read_history(run_path).series["loss"].steps.tolist() == [*range(8)]


def test_a_full_device_does_not_put_off_that_a_setback_is_forgiven(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.recovery.SOUND_CHECKPOINTS", 3)
    monkeypatch.setattr("studio.engine.train.TICK_S", 0.0)
    monkeypatch.setattr("studio.engine.train.SAMPLE_COUNT", 1)
    step, calls = torch.optim.AdamW.step, itertools.count()

    def full_at_times(optimizer: torch.optim.AdamW, *arguments: Any) -> Any:
        if next(calls) == 6:  # at step 4, after two of step 1 and two of step 3
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return step(optimizer, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", full_at_times)
    recipe, control, events = _Poisoned(lambda call: call in (1, 4), monkeypatch), Control(), list[Event]()
    config = small_generator(steps=8, lr_warmup_steps=0, lr_decay_share=0.0, holdout=0.0)
    for event in train_new(run_path, sprites.take(range(4)), recipe, config, CPU, control):
        events.append(event)
        control.checkpoint_now = isinstance(event, LossChunk)
    rates = {chunk.first_step: chunk.lr / config.learning_rate for chunk in of_kind(events, LossChunk)}
    assert [rates[at] for at in range(8)] == [1, *[0.5] * 2, *[0.25] * 3, *[0.5] * 2]


def test_a_run_that_goes_on_says_that_batches_are_in_parts_and_another_device_begins_anew(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, control = small_classifier(steps=100), Control()
    recipe = _Hungry(2, monkeypatch)
    for event in train_new(run_path, sprites, recipe, config, CPU, control):
        control.stop = isinstance(event, LossChunk)
    recipe.most = 4
    other = replace(CPU, name="another CPU")
    for device, words, pieces in ((CPU, "still taken in 2 parts", 2), (other, "whole again", 1)):
        (notice,) = of_kind(list(train_resumed(run_path, device, Control(stop=True))), Notice)
        assert words in notice.title and RunDir(run_path).progress().micro_batches == pieces
    assert not of_kind(list(train_resumed(run_path, other, Control(stop=True))), Notice)


def test_a_sprite_that_does_not_fit_the_device_ends_the_run(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeviceFullError):
        list(train_new(run_path, sprites, _Hungry(0, monkeypatch), small_classifier(batch_size=4), CPU, Control()))
    progress = RunDir(run_path).progress()
    assert progress.state == "failed" and progress.micro_batches == 4


@pytest.mark.parametrize("where", ["loss", "evaluate"])
def test_fault_31_an_exception_in_a_plug_in_is_in_the_record_with_its_name(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    module: dict[str, Any] = {"__name__": "studio.recipes.generator"}
    exec("def odd(*arguments):\n    raise ValueError('an odd shape')", module)
    monkeypatch.setattr(Classifier, where, module["odd"])
    assert catalog.recipes()  # plug-ins have been looked for
    with pytest.raises(ValueError, match="an odd shape"):
        list(train_new(run_path, sprites, Classifier(), small_classifier(steps=2), CPU, Control()))
    run = RunDir(run_path)
    assert run.progress().state == "failed" and not run.is_busy()
    assert run.progress().message == "The plug-in 'generator' failed. ValueError: an odd shape"
    assert len(checkpoints.find(run.checkpoints)) == (where == "evaluate")  # saved before anything is said of it


@pytest.mark.parametrize("ending", [GeneratorExit, KeyboardInterrupt])
def test_a_training_that_is_closed_or_interrupted_has_not_failed(
    run_path: Path, sprites: Sprites, ending: type[BaseException]
) -> None:
    events = train_new(run_path, sprites, Classifier(), small_classifier(), CPU, Control())
    while not isinstance(next(events), LossChunk):
        pass
    with pytest.raises(ending):
        events.throw(ending())
    assert RunDir(run_path).progress().state == "training" and not RunDir(run_path).is_busy()


def test_a_step_left_out_on_the_device_changes_nothing() -> None:
    """What the loop relies on: the fused AdamW does nothing at all when it is told that a value was not finite."""
    weight = torch.nn.Parameter(torch.ones(4, 4))
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    weight.grad = torch.full((4, 4), math.nan)
    vars(optimizer)["found_inf"] = torch.ones(())
    optimizer.step()
    assert torch.equal(weight.detach(), torch.ones(4, 4))
    weight.grad = torch.ones(4, 4)
    vars(optimizer)["found_inf"] = torch.zeros(())
    optimizer.step()
    assert float(weight.detach().max()) < 1


def test_parts_of_a_batch_count_by_the_numbers_that_are_known(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = with_numbers(sprites)
    targets = np.where(np.random.default_rng(0).random(some.targets.shape) < 0.6, np.nan, some.targets)
    some = replace(some, targets=targets.astype(np.float32))
    found = []
    assembled = starting._assemble
    for pieces in (1, 4):

        def in_parts(*arguments: Any, pieces: int = pieces) -> Training:
            training = assembled(*arguments)
            training.recovery.micro_batches = MicroBatches(pieces)
            return training

        monkeypatch.setattr(starting, "_assemble", in_parts)
        config = small_regression(steps=6, batch_size=8, dropout=0.0, holdout=0.0)
        found.append(list(train_new(tmp_path / str(pieces), some, Regression(), config, CPU, Control())))
    whole, parts = (np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)]) for events in found)
    assert whole == pytest.approx(parts, rel=1e-3) and len(parts) == 6


@pytest.mark.parametrize("ending", ["stopped", "closed", "not a number", "full"])
def test_a_training_that_has_ended_is_not_in_memory(
    run_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    class Full(Generator):
        def loss(self, *arguments: Any) -> torch.Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    recipes = {"not a number": _Poisoned(lambda call: call > 2, monkeypatch), "full": Full()}
    control, networks = Control(), list[weakref.ref[torch.nn.Module]]()

    def watch() -> None:
        config, recipe = small_generator(steps=1_000), recipes.get(ending, Generator())
        monkeypatch.setitem(catalog.recipes(), recipe.name, recipe)
        with contextlib.closing(train_new(run_path, make_sprites(60), recipe, config, CPU, control)) as events:
            for event in events:
                if control.live is not None:
                    networks.append(weakref.ref(control.live.network))
                control.stop = ending == "stopped" and isinstance(event, LossChunk)
                if ending == "closed" and isinstance(event, LossChunk):
                    return

    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(TrainingError, DeviceFullError):
            watch()
        assert networks and not any(network() for network in networks)
    finally:
        gc.enable()


def test_what_ended_a_run_is_said_also_when_that_can_not_be_written(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise UnwritableError(run_path, "No space left on device")

    events = train_new(run_path, sprites, _Hungry(0, monkeypatch), small_classifier(batch_size=1), CPU, Control())
    next(events)
    monkeypatch.setattr(RunDir, "write_progress", full)
    with pytest.raises(DeviceFullError):
        list(events)


def test_a_run_that_is_taken_up_keeps_its_figure(run_path: Path, sprites: Sprites) -> None:
    list(train_new(run_path, sprites, Classifier(), small_classifier(), CPU, Control()))
    before = RunDir(run_path).progress().headline
    list(train_resumed(run_path, CPU, Control(stop=True)))
    assert before and RunDir(run_path).progress().headline == before
