"""Small models to export, and a format with settings."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from studio.core.config import Config, setting
from studio.data.colour.pixel_art import PixelStyle
from studio.engine import catalog
from studio.engine.models.exporting import exportable_copy
from studio.engine.models.model import TrainedModel
from studio.exports.base import LARGEST_DIFFERENCE, ExportableModel, ModelExport, RecipeTraits, fill
from studio.recipes.base import Recipe, Spec
from tests.conftest import make_sprites, with_numbers, with_sets

CLASS_NAMES = ("item/sword", "potion \U0001f9ea", 'it\'s "quoted" \\ 剣')
TARGET_NAMES = ("price", 'it\'s "quoted" \\ 剣')
CELLS = ("down", 'it\'s "quoted" \\ 剣', "left/2", "right/2")
# As in run.json.
ANCESTOR = {"title": '"starter"', "step": 5, "data_title": "sprites " * 20, "data_fingerprint": "0", "sha256": "1"}


def small_model(recipe: Recipe, size: int = 8, small: Any = None) -> TrainedModel:
    """A model of that recipe with weights of a fixed seed, none of them zero. small: its settings."""
    config, spec = small or recipe.small, Spec(size, CLASS_NAMES, TARGET_NAMES)
    if recipe.makes == "sets":
        spec = Spec(size, ("",), cells=CELLS)
    torch.manual_seed(0)
    network = recipe.build(config, spec).eval().requires_grad_(False).to(memory_format=torch.channels_last)
    for weight in network.parameters():
        weight.add_(0.05 * torch.randn_like(weight))
    for name, values in recipe.statistics(with_sets(with_numbers(make_sprites()), CELLS), config).items():
        network.get_buffer(name).copy_(values)
    style = PixelStyle(
        (4,) * len(CLASS_NAMES), np.zeros((1, 3), np.uint8), ((),) * len(CLASS_NAMES), (1,) * len(CLASS_NAMES)
    )
    return TrainedModel(recipe, config, spec, network, torch.device("cpu"), "fp32", 123, "2026 trial", style)


def small_model_with_attributes(recipe: str, size: int = 8) -> TrainedModel:
    """Such a model that also learns attributes: 'element', and 'x', which is the name of an input of the network."""
    plain = small_model(catalog.recipe(recipe), size)
    spec = replace(plain.spec, attributes={"element": ("fire", "ice"), "x": ("small",)})
    torch.manual_seed(0)
    network = plain.recipe.build(plain.config, spec).eval().requires_grad_(False)
    for weight in network.parameters():
        weight.add_(0.05 * torch.randn_like(weight))
    return replace(plain, spec=spec, network=network)


def thinned(network: nn.Module) -> nn.Module:
    """A U-Net with one residual block where it rises and none where it falls, instead of two or three on each level:
    each takes long to trace and to compile.
    """
    for level, count in (("down1", 0), ("down2", 0), ("up2", 1), ("up1", 1)):
        setattr(network, level, getattr(network, level)[:count])
    return network


def with_most_slow(names: Sequence[str]) -> list[Any]:
    """Recipes by name as parameters; where there is time, the generator, whose graph takes seconds to trace, and those
    whose operators another recipe has: the autoencoder the generator's, regression the classifier's.
    """
    slow = ("generator", "autoencoder", "regression", "sets")
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in names]


def small_exportable(recipe: str) -> ExportableModel:
    """Such a model of the recipe of that name, as exports get it."""
    return exportable_copy(small_model(catalog.recipe(recipe)))


def read_back(form: ModelExport, paths: Sequence[Path], model: ExportableModel, config: Config) -> Tensor:
    """Return what a written model gives, from formats that tell how far they are and from others."""
    reading = form.read_back(paths, model, config)
    if isinstance(reading, Tensor):
        return reading
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RoundedConfig(Config):
    decimals: int = setting(8, "How many stay.", low=0, high=8)
    seed: int = setting(0, "Says nothing to a classifier.", low=0, high=9)


class Rounded(ModelExport[RoundedConfig]):
    """Holds rounded weights, and none of a regression."""

    name = "rounded"
    title = "Rounded weights"
    suffix = ".rounded"
    help = "For those who like round numbers."
    opened_by = "an abacus"
    Config = RoundedConfig

    def problem(self, recipe: RecipeTraits) -> str:
        return "A regression's numbers are not round." if recipe.makes == "numbers" else ""

    def unused(self, recipe: RecipeTraits) -> Collection[str]:
        return ("seed",) if recipe.makes == "labels" else ()

    def write(self, model: ExportableModel, target: Path, config: RoundedConfig) -> list[Path]:
        save_file({name: weight.round(decimals=config.decimals) for name, weight in model.weights().items()}, target)
        return [target]

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: RoundedConfig) -> Tensor:
        return model.outputs(fill(model.fresh(), load_file(paths[0]), paths[0]))

    def largest_difference(self, model: ExportableModel, config: RoundedConfig) -> float:
        return LARGEST_DIFFERENCE if config.decimals > 4 else 0.1

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: RoundedConfig) -> Mapping[str, str]:
        return {"Python": f"# {config.decimals} decimals\n", "C": "/* none */\n"}


class _Hidden:
    """Refuses to find packages."""

    def __init__(self, is_hidden: Callable[[str], bool]) -> None:
        self._is_hidden = is_hidden

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if self._is_hidden(name.partition(".")[0]):
            raise ModuleNotFoundError(f"{name} must not be needed")


@contextlib.contextmanager
def hidden(is_hidden: Callable[[str], bool]) -> Iterator[None]:
    """Let no code of the `with` block import the packages of these names, as on a Python without them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if is_hidden(name.partition(".")[0])]:
            patch.setitem(sys.modules, name, None)
        patch.setattr(sys, "meta_path", [_Hidden(is_hidden), *sys.meta_path])
        yield
