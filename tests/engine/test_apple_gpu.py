"""Everything that touches a device, on an Apple GPU as far as one can be told from torch's table of kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from studio.core.events import RunFinished, Validated
from studio.core.generators import returned
from studio.data.sprites import Sprites
from studio.engine import devices
from studio.engine.control import Control
from studio.engine.generate import generate, load_model, predict
from studio.engine.quality.features import features_of
from studio.engine.train import train_new
from studio.engine.types import Device, GenerateSettings
from studio.recipes.base import Recipe
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from tests.engine.apple_gpu import MPS, AppleGpu
from tests.engine.tools import nearest_training_sprites, of_kind, small_classifier, small_generator, small_regression

GPU = Device("mps", "mps", "Apple GPU", 1 << 30, 1 << 30)


class AnyGenerator(torch.Generator):
    """One of the CPU that says it is of the device it is asked for."""

    asked: torch.device
    device = property(lambda self: self.asked)

    def __new__(cls, device: torch.device | str = "cpu") -> AnyGenerator:
        made = super().__new__(cls)
        made.asked = torch.device(device)
        return made


@pytest.fixture(autouse=True)
def apple_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in ("torch.utils._foreach_utils", "torch.nn.utils.clip_grad"):
        monkeypatch.setattr(f"{module}._device_has_foreach_support", lambda device: False)
    for name in ("memory_free", "memory_in_use"):
        monkeypatch.setattr(devices, name, lambda device: 1 << 30)
    for name in ("give_back_memory", "synchronize"):
        monkeypatch.setattr(devices, name, lambda device: None)
    monkeypatch.setattr(torch, "Generator", AnyGenerator)
    with AppleGpu(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


@pytest.mark.parametrize(
    ("recipe", "config"),
    [(Generator(), small_generator), (Classifier(), small_classifier), (Regression(), small_regression)],
)
def test_a_recipe_trains_and_is_used(
    run_path: Path, sprites: Sprites, recipe: Recipe, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = sprites.labels[:, None].astype("float32")
    sprites = dataclasses.replace(sprites, targets=numbers, target_names=("price",))
    monkeypatch.setattr("studio.engine.train.SAMPLE_STEPS", 2)
    monkeypatch.setattr("studio.engine.train.SAMPLE_COUNT", 2)
    settings = config(steps=1, flip=True, shift_px=1, holdout=0.1)
    events = list(train_new(run_path, sprites, recipe, settings, GPU, Control()))
    assert of_kind(events, RunFinished)[0].step == 1 and of_kind(events, Validated)
    model = load_model(run_path, "last", GPU)
    assert next(model.network.parameters()).device == MPS
    drawn = generate(model, GenerateSettings(count=1, steps=2))
    assert list(drawn if recipe.makes == "sprites" else predict(model, sprites.rgba))


def test_sprites_are_seen_and_copies_found(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.quality.features._STEPS", 2)
    features = returned(features_of(sprites, MPS, "fp32"))
    assert features.of(sprites.rgba).shape == (len(sprites), 128)
    assert features.classes_of(sprites.rgba).shape == (len(sprites),)
    assert nearest_training_sprites(sprites.rgba[:2], sprites, None, MPS).index.tolist() == [0, 1]


@pytest.mark.parametrize(
    "refused",
    [
        lambda x: x.double(),
        torch.special.ndtri,
        lambda x: torch.zeros(3, dtype=torch.float64, device=MPS),
        lambda x: x + torch.ones(3),
        lambda x: x.numpy(),
    ],
)
def test_this_gpu_refuses_what_a_real_one_refuses(refused: Any) -> None:
    x = torch.full((3,), 0.5).to(MPS)
    with pytest.raises((RuntimeError, TypeError)):
        refused(x)
    assert float((2 * x).sum()) == 3
