"""A device that is full or lost: said in words wherever it happens, and a training's folder stays in order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from studio.core.errors import DeviceError
from studio.core.events import CheckpointSaved, Events, RunStarted
from studio.data.sprites import Sprites
from studio.engine import devices
from studio.engine.control import Control
from studio.engine.generate import generate, load_model, predict
from studio.engine.measure import measure
from studio.engine.quality.evaluate import EvaluateSettings, evaluate
from studio.engine.quality.outliers import find_outliers
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.train import train_new, train_resumed
from studio.engine.types import GenerateSettings
from studio.recipes.base import Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind, small_classifier, small_generator, train_generator

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
LOST = torch.AcceleratorError("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later.")


def full(*arguments: Any) -> None:
    """Stands for whatever needs memory."""
    raise FULL


class _Faulty(Generator):
    """A generator under whose feet the device gives way."""

    def loss(self, *arguments: Any) -> torch.Tensor:
        raise LOST

    @staticmethod
    def draw(*arguments: Any) -> Any:
        raise LOST


@pytest.mark.parametrize(
    ("device", "error", "title"),
    [
        ("cuda:1", FULL, "The graphics card (cuda:1) has no memory left."),
        ("mps", RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)."), "The Apple GPU has no memory left."),
        ("cuda:0", RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9."),
         "This computer has no memory left."),
        ("cuda:0", MemoryError(), "This computer has no memory left."),
        ("cuda:1", LOST, "The graphics card (cuda:1) has stopped working: CUDA error: unspecified launch failure."),
        ("cpu", LOST, "The graphics card has stopped working: CUDA error: unspecified launch failure."),
    ],
)  # fmt: skip
def test_what_torch_says_becomes_words(device: str, error: Exception, title: str) -> None:
    with pytest.raises(DeviceError) as caught, devices.faults(torch.device(device)):
        raise error
    assert caught.value.title == title and caught.value.__cause__ is error


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes"), devices.faults(torch.device("cuda:0")):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_fault_25_a_device_lost_in_training_ends_the_run_in_words_and_another_goes_on_with_it(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, card = Control(checkpoint_now=True), replace(CPU, name="a graphics card")
    events = train_new(run_path, sprites, Generator(), small_generator(), card, control)
    while not isinstance(next(events), CheckpointSaved):
        pass
    with monkeypatch.context() as patch:
        patch.setattr(Generator, "loss", _Faulty.loss)
        with pytest.raises(DeviceError, match="stopped working") as caught:
            list(events)
    assert "resume the run" in caught.value.hint and control.live is None
    run = RunDir(run_path)
    assert run.progress().state == "failed" and run.progress().message == str(caught.value) and not run.is_busy()
    (kept,) = checkpoints.find(run.checkpoints)
    resumed = list(train_resumed(run_path, CPU, Control()))
    assert of_kind(resumed, RunStarted)[0].first_step == kept[1].step > 0
    assert run.progress().state == "finished" and run.progress().message == ""


def test_a_training_that_ends_gives_memory_back(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[torch.device] = []
    monkeypatch.setattr(devices, "give_back_memory", given_back.append)
    list(train_generator(run_path, sprites, Control(stop=True)))
    assert given_back == [torch.device("cpu")]


def test_a_device_that_is_full_at_the_start_leaves_a_run_that_can_go_on(
    run_path: Path, sprites: Sprites, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(train_generator(run_path, sprites, Control(stop=True)))
    with monkeypatch.context() as patch:
        patch.setattr("studio.engine.starting.make_train_set", full)
        for events in (train_resumed(run_path, CPU, Control()), train_generator(run_path.with_name("new"), sprites)):
            with pytest.raises(DeviceError, match="no memory left"):
                list(events)
    for path in (run_path, run_path.with_name("new")):
        assert not RunDir(path).is_busy()
    assert RunDir(run_path).progress().state == "stopped"
    list(train_resumed(run_path, CPU, Control()))
    assert RunDir(run_path).progress().state == "finished"


def test_using_and_judging_a_model_say_it_too(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sprites = make_sprites(per_class=50)
    list(train_generator(run_path, sprites, steps=1, holdout=0.4))
    model = replace(load_model(run_path, "last", CPU), recipe=_Faulty())
    namer = replace(model, recipe=Classifier())
    for module in ("evaluate", "outliers"):
        monkeypatch.setattr(f"studio.engine.quality.{module}.features_of", full)
    monkeypatch.setattr(Classifier, "predict", full)
    jobs: list[Events] = [
        measure(_Faulty(), small_generator(), Spec.of(sprites), CPU),
        generate(model, GenerateSettings(count=1)),
        predict(namer, sprites.rgba),
        evaluate(model, run_path, EvaluateSettings(count=20)),
        find_outliers(sprites, small_classifier(), CPU),
    ]
    for job in jobs:
        with pytest.raises(DeviceError):
            list(job)
