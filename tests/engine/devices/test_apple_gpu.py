"""Everything that touches a device, on an Apple GPU as far as one can be told from torch's table of kernels.

That GPU is there where there is none: tensors that say they are on it, computed on the CPU. It refuses what a real one
refuses: operations without a kernel for it, float64, and operations on tensors of which some are on the GPU and some
are not. What a kernel makes of a number format or a shape it can't tell, nor does it look into operations that are made
of others.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from studio.core.events import RunFinished, Validated
from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.engine.control.control import Control
from studio.engine.devices import detection
from studio.engine.devices.types import Device, DeviceMeasured
from studio.engine.models.loading import load_model
from studio.engine.quality.features import learn_features
from studio.engine.sampling.generate import generate, predict
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.benchmark import measure
from studio.engine.training.loop import train_new
from studio.recipes.base import Recipe, Spec
from studio.recipes.classifier import Classifier
from studio.recipes.generator import Generator
from studio.recipes.regression import Regression
from tests.engine.tools import nearest_training_sprites, of_kind, small_classifier, small_generator, small_regression

GPU = Device("mps", "mps", "Apple GPU", 1 << 30, 1 << 30)
MPS = torch.device("mps")
_MOVES = {torch.Tensor.to, torch.Tensor.cpu}
_BETWEEN_DEVICES = {"copy_", "_to_copy", "index.Tensor"}  # what may be given tensors from both sides


class OnGpu(Tensor):
    """A tensor of the GPU; `held` is what is in it, on the CPU."""

    held: Tensor
    device = property(lambda self: MPS)
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: Tensor) -> OnGpu:
        if held.dtype is torch.float64:
            raise TypeError("An Apple GPU knows no float64.")
        return torch.Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), dtype=held.dtype, requires_grad=False
        )

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        name = func.__name__.removesuffix(".default")
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if name not in _BETWEEN_DEVICES and any(not isinstance(leaf, OnGpu) and leaf.dim() for leaf in given):
            raise RuntimeError(f"{name}: some of these tensors are on the GPU and some are not.")
        if not has_kernel(name):
            raise NotImplementedError(f"{name} has no kernel for Apple's GPUs.")
        known = {id(leaf.held): leaf for leaf in given if isinstance(leaf, OnGpu)}
        args, kwargs = tree_map(_held, (args, kwargs or {}))
        return tree_map(lambda leaf: known[id(leaf)] if id(leaf) in known else _put(leaf), func(*args, **kwargs))


def _held(value: Any) -> Any:
    """What is in a tensor of the GPU; a number that torch made a tensor of is a number again."""
    if isinstance(value, OnGpu):
        return value.held
    return value.item() if isinstance(value, Tensor) and value.dtype is torch.float64 and not value.dim() else value


def _put(value: Any) -> Any:
    return OnGpu(value) if isinstance(value, Tensor) else value


class AppleGpu(TorchFunctionMode):
    """While it is entered, device='mps' is such a GPU."""

    def __enter__(self) -> AppleGpu:
        torch.__future__.set_overwrite_module_params_on_conversion(True)  # as a network's own are, moved to a real GPU
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.__future__.set_overwrite_module_params_on_conversion(False)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        # Seen from here, a tensor's device is the one it says; below, all are on the CPU, where a move does nothing.
        target = torch.device("cpu") if func is torch.Tensor.cpu else _target(args, kwargs)
        if func in _MOVES and target is not None:
            source = args[0].detach()
            plain = source.held if isinstance(source, OnGpu) else source
            args, kwargs = tree_map(lambda leaf: "cpu" if leaf == target else leaf, (args[1:], kwargs))
            moved = func(plain, *args, **kwargs)
            if isinstance(source, OnGpu) != (target == MPS) and moved is plain:
                moved = plain.clone()
            return OnGpu(moved) if target == MPS else moved
        if kwargs.get("device") == MPS:
            if not has_kernel(func.__name__):
                raise NotImplementedError(f"{func.__name__} has no kernel for Apple's GPUs.")
            return OnGpu(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)


def _target(args: Any, kwargs: Any) -> torch.device | None:
    """The device that a call of Tensor.to names."""
    return next((leaf for leaf in (*args, *kwargs.values()) if isinstance(leaf, torch.device)), None)


def has_kernel(name: str) -> bool:
    """Whether torch has a kernel for MPS, or one for every device, for the operation 'name' or 'name.overload'."""
    keys = _kernels().get(name)
    return keys is None or not keys or any(key == "MPS" or key.startswith("Composite") for key in keys)


@functools.cache
def _kernels() -> dict[str, frozenset[str]]:
    """For each operation what it has kernels for; empty where it is made of others."""
    package = importlib.util.find_spec("torchgen")
    assert package is not None and package.origin is not None
    table = Path(package.origin).parent / "packaged/ATen/native/native_functions.yaml"
    own: dict[str, set[str]] = {}
    delegates: dict[str, str] = {}
    for entry in table.read_text(encoding="utf-8").split("\n- func: ")[1:]:
        name = entry.partition("(")[0]
        own[name] = {key for keys in re.findall(r"^    (\w+(?:, \w+)*): \w", entry, re.M) for key in keys.split(", ")}
        delegate = re.search(r"^  structured_delegate: (\S+)", entry, re.M)
        if delegate:
            delegates[name] = delegate[1]
    return {name: frozenset(own[delegates.get(name, name)] | keys) for name, keys in own.items()}


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
        monkeypatch.setattr(detection, name, lambda device: 1 << 30)
    for name in ("empty_cache", "synchronize"):
        monkeypatch.setattr(detection, name, lambda device: None)
    monkeypatch.setattr(torch, "Generator", AnyGenerator)
    with AppleGpu(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


@pytest.mark.parametrize(
    ("recipe", "config"),
    [
        (Generator(), small_generator),
        (Classifier(), small_classifier),
        pytest.param(Regression(), small_regression, marks=pytest.mark.slow),
    ],
)
def test_a_recipe_trains_is_used_and_measured(
    run_path: Path, sprites: Sprites, recipe: Recipe, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = sprites.labels[:, None].astype("float32")
    sprites = dataclasses.replace(sprites, targets=numbers, target_names=("price",))
    monkeypatch.setattr("studio.engine.training.live_samples.SAMPLE_COUNT", 2)
    settings = config(steps=1, flip=True, shift_px=1, holdout=0.1)
    events = list(train_new(run_path, sprites, recipe, settings, GPU, Control()))
    assert of_kind(events, RunFinished)[0].step == 1 and of_kind(events, Validated)
    model = load_model(run_path, "last", GPU)
    assert next(model.network.parameters()).device == MPS
    drawn = generate(model, GenerateSettings(count=1, steps=2))
    assert list(drawn if recipe.makes == "sprites" else predict(model, sprites.rgba))
    for name, value in (("MIN_S", 0.0), ("MIN_STEPS", 1), ("WARM_UP_STEPS", 0)):
        monkeypatch.setattr(f"studio.engine.steps.benchmark.{name}", value)
    assert of_kind(list(measure(recipe, settings, Spec.of(sprites), GPU)), DeviceMeasured)


def test_sprites_are_seen_and_copies_found(sprites: Sprites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.quality.features._STEPS", 2)
    features = run_to_end(learn_features(sprites, MPS, "fp32"))
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
