"""Errors in the middle of a training, or of other work on a device, and the recovery from them."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from studio.core.errors import DeviceError, DeviceFullError, TrainingError, UnwritableError
from studio.core.events import CheckpointSaved, Events, LossChunk, Notice, RolledBack, RunFinished, RunStarted
from studio.data.doctor.neighbours import Analysis
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.types import DeviceMeasured
from studio.engine.models.loading import load_model
from studio.engine.quality.evaluate import EvaluateSettings, evaluate
from studio.engine.quality.outliers import find_outliers
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.sampling.generate import generate, predict
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.benchmark import measure
from studio.engine.training.loop import train_new, train_resumed
from studio.recipes.base import Batch, Recipe, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.predictors import ResNet
from studio.recipes.regression import Regression
from tests.conftest import make_sprites, with_numbers
from tests.engine.conftest import Memory
from tests.engine.tools import (
    CPU,
    TOY,
    SavingAlways,
    full_in_optimizer,
    learnt,
    of_kind,
    small_classifier,
    small_generator,
    small_toy,
    train_classifier,
    train_generator,
    train_regression,
    train_toy,
)

_RATE = 0.001
_TOY = type(TOY)
_STEADY: dict[str, Any] = {"learning_rate": _RATE, "lr_warmup_steps": 0, "lr_decay_share": 0.0}


def _no_number(loss: torch.Tensor) -> torch.Tensor:
    return loss * math.nan


def _overflowing(loss: torch.Tensor) -> torch.Tensor:
    """The loss stays as it is, and its gradient is infinite."""
    loss.register_hook(lambda gradient: gradient * math.inf)
    return loss


def _spoil(
    monkeypatch: pytest.MonkeyPatch,
    is_spoilt: Callable[[int], bool],
    spoil: Callable[[torch.Tensor], torch.Tensor] = _no_number,
    recipe: type[Recipe] = _TOY,
) -> None:
    """Spoil some of a recipe's losses: those of these calls, counted from 0 over all of its trainings."""
    calls, loss = itertools.count(), recipe.loss

    def spoilt(*arguments: Any) -> torch.Tensor:
        return spoil(loss(*arguments)) if is_spoilt(next(calls)) else loss(*arguments)

    monkeypatch.setattr(recipe, "loss", spoilt)


class _Room:
    """For how many sprites at once the device has memory in training steps."""

    def __init__(self, most: int, monkeypatch: pytest.MonkeyPatch, recipe: type[Recipe] = _TOY) -> None:
        self.most, loss = most, recipe.loss

        def limited(self_: Recipe, network: torch.nn.Module, batch: Batch, *arguments: Any) -> torch.Tensor:
            if len(batch.x) > self.most:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return loss(self_, network, batch, *arguments)

        monkeypatch.setattr(recipe, "loss", limited)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks are of one step, and one sound checkpoint makes up for trouble."""
    monkeypatch.setattr("studio.engine.training.recovery.SOUND_CHECKPOINTS", 1)
    monkeypatch.setattr("studio.engine.training.loop.TICK_S", 0.0)


def test_fault_24_nan_loss_never_reaches_the_weights(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, weights, setbacks = Control(checkpoint_now=True), list[torch.Tensor](), list[RolledBack]()
    _spoil(monkeypatch, lambda call: call >= 3)

    def watch() -> None:
        for event in train_toy(run_path, sprites, control, steps=50):
            if isinstance(event, LossChunk) and control.live:
                weights[:] = [weight.clone() for weight in control.live.network.parameters()]
            setbacks.extend(of_kind([event], RolledBack))

    with pytest.raises(TrainingError, match=r"step \d"):
        watch()
    assert [setback.lr_scale for setback in setbacks] == [0.5, 0.25, 0.125]
    assert weights and all(bool(torch.isfinite(weight).all()) for weight in weights)
    progress = RunDir(run_path).progress()
    assert progress.state == "failed" and "became NaN or infinite" in progress.message and progress.nan_rollbacks == 3
    assert RunDir(run_path).is_busy() is False
    assert all(bool(torch.isfinite(tensor).all()) for tensor in learnt(run_path).values())


@pytest.mark.parametrize(("spoilt", "is_saved"), [(5, True), (2, False)])
def test_fault_24_nan_loss_rolls_back_and_halves_the_learning_rate(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, spoilt: int, is_saved: bool
) -> None:
    _spoil(monkeypatch, lambda call: call == spoilt)
    events = list(train_toy(run_path, sprites, Control(checkpoint_now=is_saved), **_STEADY))
    saved, (setback,) = of_kind(events, CheckpointSaved)[0].step if is_saved else 0, of_kind(events, RolledBack)
    assert bool(saved) == is_saved and saved <= spoilt and setback == RolledBack(spoilt, saved, 0.5)
    before, after = events[: events.index(setback)], events[events.index(setback) :]
    assert {chunk.lr for chunk in of_kind(before, LossChunk)} == {_RATE}
    assert {chunk.lr for chunk in of_kind(after, LossChunk)} == {_RATE / 2}
    first, again = (chunk for chunk in of_kind(events, LossChunk) if chunk.first_step == saved)
    assert first.losses[0] == again.losses[0]
    assert f"step {spoilt}" in of_kind(after, Notice)[0].title
    assert of_kind(after, RunFinished)[0].reason == "finished"
    history = read_history(run_path)
    assert history.rollbacks == [setback] and history.series["loss"].steps.tolist() == list(range(8))
    assert RunDir(run_path).progress().nan_rollbacks == 1


def test_fp16_overflow_skips_the_step_without_rollback(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.devices.precision._INITIAL_SCALE", 256.0)  # too small to overflow by itself
    found = {}
    for name, precision, overflows in (("fp32", "fp32", ()), ("fp16", "fp16", ()), ("overflow", "fp16", (1, 3))):
        with monkeypatch.context() as patch:
            _spoil(patch, lambda call, overflows=overflows: call in overflows, _overflowing, Classifier)  # type: ignore[misc]
            events = list(train_classifier(tmp_path / name, sprites, steps=5, precision=precision))
        assert not of_kind(events, RolledBack) and of_kind(events, RunFinished)[0].step == 5
        chunks = of_kind(events, LossChunk)
        found[name] = [np.concatenate([getattr(chunk, kind) for chunk in chunks]) for kind in ("losses", "grad_norms")]
    for fp32, fp16 in zip(found["fp32"], found["fp16"], strict=True):
        assert fp16 == pytest.approx(fp32, rel=0.02)
    assert np.flatnonzero(found["overflow"][1] == 0).tolist() == [1, 3]
    assert np.isfinite(found["overflow"]).all()
    kept = learnt(tmp_path / "overflow")
    assert float(kept["optimizer LossScaler/scale"]) == 64 and int(kept["optimizer LossScaler/sound"]) == 1
    assert {float(value) for name, value in kept.items() if name.endswith("/step")} == {3.0}  # of five


def test_fp16_gradient_that_never_fits_rolls_back(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.devices.precision._INITIAL_SCALE", 4.0)
    _spoil(monkeypatch, lambda call: call < 3, _overflowing)  # at a scale of 4, 2 and 1
    events = list(train_toy(run_path, sprites, steps=5, precision="fp16"))
    assert of_kind(events, RolledBack) == [RolledBack(2, 0, 0.5)] and of_kind(events, RunFinished)[0].step == 5


@pytest.mark.usefixtures("soon")
def test_fault_24_rollbacks_are_undone_after_valid_checkpoints(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    _spoil(monkeypatch, lambda call: call % 3 == 2)
    events = list(train_toy(run_path, sprites.take(range(4)), SavingAlways(), **_STEADY, steps=9, holdout=0.0))
    assert len(of_kind(events, RolledBack)) == 4  # more than a run may have in a row
    assert of_kind(events, RunFinished)[0].step == 9 and RunDir(run_path).progress().nan_rollbacks == 0
    assert [chunk.lr / _RATE for chunk in of_kind(events, LossChunk)] == [1, 1, *[0.5, 1] * 3, 0.5]
    assert "100 %" in of_kind(events, Notice)[-1].title


@pytest.mark.usefixtures("soon")
def test_full_device_does_not_delay_undoing_a_rollback(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.engine.training.recovery.SOUND_CHECKPOINTS", 3)
    monkeypatch.setattr("studio.engine.training.live_samples.SAMPLE_COUNT", 1)
    full_in_optimizer(monkeypatch, lambda call: call == 6)  # at step 4, after two of step 1 and two of step 3
    _spoil(monkeypatch, lambda call: call in (1, 4))
    events = list(train_toy(run_path, sprites.take(range(4)), SavingAlways(), **_STEADY, holdout=0.0))
    rates = {chunk.first_step: chunk.lr / _RATE for chunk in of_kind(events, LossChunk)}
    assert [rates[at] for at in range(8)] == [1, *[0.5] * 2, *[0.25] * 3, *[0.5] * 2]


@pytest.mark.parametrize(
    ("train", "recipe", "changes"),
    [
        (train_classifier, Classifier, {"label_smoothing": 0.0}),
        (train_regression, Regression, {"dropout": 0.0, "holdout": 0.0}),
    ],
)
def test_fault_23_split_batches_train_equally(
    tmp_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, train: Any, recipe: Any, changes: dict[str, Any]
) -> None:
    some = with_numbers(sprites)
    some.targets[np.random.default_rng(0).random(some.targets.shape) < 0.6] = np.nan  # parts count by what is known
    found = []
    for most in (8, 3):
        with monkeypatch.context() as patch:
            _Room(most, patch, recipe)
            found.append(list(train(tmp_path / str(most), some, steps=6, batch_size=8, **changes)))
    whole, parts = (np.concatenate([chunk.losses for chunk in of_kind(events, LossChunk)]) for events in found)
    assert whole == pytest.approx(parts, rel=1e-3) and len(parts) == 6
    assert [notice.hint for notice in of_kind(found[1], Notice) if notice.level == "warning"] == [
        f"Training continues from step 0, with batches in {count} parts." for count in (2, 4)
    ]
    assert RunDir(tmp_path / "3").progress().micro_batches == 4


def test_fault_23_full_device_loses_no_step(run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    room, events = _Room(4, monkeypatch), []
    for event in train_toy(run_path, sprites, steps=30):
        events.append(event)
        room.most = 2 if of_kind(events, LossChunk) else 4
    first_steps = [chunk.first_step for chunk in of_kind(events, LossChunk)]
    assert first_steps == sorted(set(first_steps))
    assert read_history(run_path).series["loss"].steps.tolist() == [*range(30)]
    (notice,) = of_kind(events, Notice)
    assert "no memory left" in notice.title and "2 parts" in notice.hint
    assert len(of_kind(events, CheckpointSaved)) == 1  # at the end: it went back to none


def test_fault_23_memory_is_freed_before_the_retry(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, memory: Memory
) -> None:
    loss = Classifier.loss

    def full(recipe: Classifier, network: ResNet, batch: Batch, *arguments: Any) -> torch.Tensor:
        if len(batch.x) > 1:
            held = network(batch.x)
            memory.hold(batch.x, held)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return loss(recipe, network, batch, *arguments)

    monkeypatch.setattr(Classifier, "loss", full)
    list(train_classifier(run_path, sprites, steps=1))
    assert memory.was_free == [True] * 3  # after two tries, and at the end


@pytest.mark.usefixtures("soon")
def test_fault_23_full_optimizer_step_reloads_a_checkpoint(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, loss = [0], _TOY.loss

    def watched(recipe: Recipe, network: torch.nn.Module, batch: Batch, *arguments: Any) -> torch.Tensor:
        sizes.append(len(batch.x))
        return loss(recipe, network, batch, *arguments)

    monkeypatch.setattr(_TOY, "loss", watched)
    full_in_optimizer(monkeypatch, lambda _: sizes[-1] > 2)
    events = list(train_toy(run_path, sprites, SavingAlways(), holdout=0.0))
    assert [begun.first_step for begun in of_kind(events, RunStarted)] == [0, 0, 1, 3, 7]
    (notice,) = of_kind(events, Notice)  # a trial that fails is not said
    assert notice.hint == "Training continues from step 0, with batches in 2 parts."
    assert read_history(run_path).series["loss"].steps.tolist() == [*range(8)]


def test_fault_23_benchmark_splits_batches(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.steps.benchmark.MIN_S", 0.0)
    _Room(2, monkeypatch, Classifier)
    events = list(measure(Classifier(), small_classifier(batch_size=8), Spec.of(sprites), CPU))
    assert [found.precision for found in of_kind(events, DeviceMeasured)] == ["fp32", "bf16"]


@pytest.mark.usefixtures("soon")
def test_larger_micro_batches_are_tried_again(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, events = _Room(2, monkeypatch), []
    for event in train_toy(run_path, sprites, SavingAlways(), steps=12):
        events.append(event)
        room.most = 2 if len(of_kind(events, LossChunk)) < 4 else 4
    assert [notice.level for notice in of_kind(events, Notice)] == ["warning", "info"]  # a trial that fails is not said
    assert "trained whole again" in of_kind(events, Notice)[1].title
    assert read_history(run_path).series["loss"].steps.tolist() == [*range(12)]
    assert RunDir(run_path).progress().micro_batches == 1


def test_resumed_run_keeps_micro_batches_on_its_device(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, room = Control(), _Room(2, monkeypatch)
    for event in train_toy(run_path, sprites, control, steps=100):
        control.stop = isinstance(event, LossChunk)
    room.most = 4
    other = replace(CPU, name="another CPU")
    for device, words, pieces in ((CPU, "still split in 2 parts", 2), (other, "no longer split", 1)):
        (notice,) = of_kind(list(train_resumed(run_path, device, Control(stop=True))), Notice)
        assert words in notice.title and RunDir(run_path).progress().micro_batches == pieces
    assert not of_kind(list(train_resumed(run_path, other, Control(stop=True))), Notice)


@pytest.mark.parametrize("writable", [True, False])
def test_single_sprite_that_does_not_fit_fails_the_run(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    _Room(0, monkeypatch)
    events = train_toy(run_path, sprites, batch_size=4)
    next(event for event in events if isinstance(event, RunStarted))
    if not writable:
        full = UnwritableError(run_path, "No space left on device")
        monkeypatch.setattr(RunDir, "write_progress", Mock(side_effect=full))
    with pytest.raises(DeviceFullError):
        list(events)
    progress = RunDir(run_path).progress()
    assert (progress.state, progress.micro_batches) == (("failed", 4) if writable else ("training", 1))


FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
LOST = torch.AcceleratorError("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later.")


def test_fault_25_lost_device_fails_the_run_which_another_resumes(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, card = Control(checkpoint_now=True), replace(CPU, name="a graphics card")
    with monkeypatch.context() as patch:
        loss = Mock(side_effect=TOY.loss)
        patch.setattr(_TOY, "loss", loss)
        events = train_new(run_path, sprites, TOY, small_toy(), card, control)
        saved = next(event for event in events if isinstance(event, CheckpointSaved))
        loss.side_effect = LOST
        with pytest.raises(DeviceError, match="stopped working") as caught:
            list(events)
    assert "resume the run" in caught.value.hint and control.live is None
    run = RunDir(run_path)
    assert run.progress().state == "failed" and run.progress().message == str(caught.value) and not run.is_busy()
    resumed = list(train_resumed(run_path, CPU, Control()))
    assert of_kind(resumed, RunStarted)[0].first_step == saved.step > 0
    assert run.progress().state == "finished" and run.progress().message == ""


def test_full_device_at_the_start_leaves_a_resumable_run(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(train_toy(run_path, sprites, Control(stop=True)))
    with monkeypatch.context() as patch:
        patch.setattr("studio.engine.training.create.make_train_set", Mock(side_effect=FULL))
        for events in (train_resumed(run_path, CPU, Control()), train_toy(run_path.with_name("new"), sprites)):
            with pytest.raises(DeviceError, match="no memory left"):
                list(events)
    assert not RunDir(run_path).is_busy() and not RunDir(run_path.with_name("new")).is_busy()
    assert RunDir(run_path).progress().state == "stopped"
    list(train_resumed(run_path, CPU, Control()))
    assert RunDir(run_path).progress().state == "finished"


def test_device_errors_are_reported_when_using_a_model(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sprites = make_sprites(per_class=50)
    list(train_generator(run_path, sprites, steps=1, holdout=0.4))
    model = load_model(run_path, "last", CPU)
    for work, error in (
        ("studio.recipes.generator.Generator.loss", LOST), ("studio.recipes.generator.Generator.draw", LOST),
        ("studio.recipes.classifier.Classifier.predict", FULL), ("studio.engine.quality.evaluate.learn_features", FULL),
        ("studio.engine.quality.outliers.learn_features", FULL),
    ):  # fmt: skip
        monkeypatch.setattr(work, Mock(side_effect=error))
    jobs: list[Events] = [
        measure(Generator(), small_generator(), Spec.of(sprites), CPU),
        generate(model, GenerateSettings(count=1)),
        predict(replace(model, recipe=Classifier()), sprites.rgba),
        evaluate(model, run_path, EvaluateSettings(count=20)),
        find_outliers(Analysis(sprites), small_classifier(), CPU),
    ]
    for job in jobs:
        with pytest.raises(DeviceError):
            list(job)


@pytest.mark.parametrize("where", ["loss", "evaluate"])
def test_fault_31_plug_in_exception_is_recorded(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    module: dict[str, Any] = {"__name__": "studio.recipes.generator"}
    exec("def odd(*arguments):\n    raise ValueError('an odd shape')", module)
    monkeypatch.setattr(Classifier, where, module["odd"])
    assert catalog.recipes()  # plug-ins have been looked for
    with pytest.raises(ValueError, match="an odd shape"):
        list(train_classifier(run_path, sprites, steps=2))
    run = RunDir(run_path)
    assert run.progress().state == "failed" and not run.is_busy()
    assert run.progress().message == "The plug-in 'generator' failed. ValueError: an odd shape"
    assert len(checkpoints.list_checkpoints(run.checkpoints)) == (
        where == "evaluate"
    )  # saved before anything is said of it


@pytest.mark.parametrize("ending", [GeneratorExit, KeyboardInterrupt])
def test_closed_training_has_not_failed_and_resumes(
    run_path: Path, sprites: Sprites, ending: type[BaseException]
) -> None:
    training = train_toy(run_path, sprites, Control(checkpoint_now=True), steps=30)
    saved = next(event for event in training if isinstance(event, CheckpointSaved))
    with pytest.raises(ending):
        training.throw(ending())
    assert RunDir(run_path).progress().state == "training" and not RunDir(run_path).is_busy()
    resumed = list(train_resumed(run_path, CPU, Control()))
    assert of_kind(resumed, RunStarted)[0].first_step == saved.step
    assert of_kind(resumed, RunFinished)[0].step == 30


@pytest.mark.parametrize("ending", ["stopped", "closed", "not a number", "full"])
def test_ended_training_is_freed(run_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Memory, ending: str) -> None:
    control = Control()
    if ending == "not a number":
        _spoil(monkeypatch, lambda call: call > 2)
    elif ending == "full":
        _Room(0, monkeypatch)

    def watch() -> None:
        with contextlib.closing(train_toy(run_path, make_sprites(60), control, steps=1_000)) as events:
            for event in events:
                if control.live is not None:
                    memory.hold(control.live.network)
                control.stop = ending == "stopped" and isinstance(event, LossChunk)
                if ending == "closed" and isinstance(event, LossChunk):
                    return

    with contextlib.suppress(TrainingError, DeviceFullError):
        watch()
    assert memory.is_free()
