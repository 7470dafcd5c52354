"""Small models to export."""

from __future__ import annotations

import numpy as np
import torch

from studio.data.colour.true_pixels import PixelStyle
from studio.engine import catalog
from studio.engine.exporting import as_exportable
from studio.engine.model import TrainedModel
from studio.exports.base import ExportableModel
from studio.recipes.base import Recipe, Spec
from tests.conftest import make_sprites, with_numbers

CLASS_NAMES = ("item/sword", "potion \U0001f9ea", 'it\'s "quoted" \\ 剣')
TARGET_NAMES = ("price", 'it\'s "quoted" \\ 剣')
# As in run.json.
ANCESTOR = {"title": '"starter"', "step": 5, "data_title": "sprites " * 20, "data_fingerprint": "0", "sha256": "1"}


def small_model(recipe: Recipe, size: int = 8) -> TrainedModel:
    """A model of that recipe with weights of a fixed seed, none of them zero."""
    config, spec = recipe.small, Spec(size, CLASS_NAMES, TARGET_NAMES)
    torch.manual_seed(0)
    network = recipe.build(config, spec).eval().requires_grad_(False).to(memory_format=torch.channels_last)
    for weight in network.parameters():
        weight.add_(0.05 * torch.randn_like(weight))
    for name in recipe.statistics(with_numbers(make_sprites())):
        network.get_buffer(name).copy_(torch.tensor([0.5, 30.0]))
    style = PixelStyle(
        (4,) * len(CLASS_NAMES), np.zeros((1, 3), np.uint8), ((),) * len(CLASS_NAMES), (1,) * len(CLASS_NAMES)
    )
    return TrainedModel(recipe, config, spec, network, torch.device("cpu"), "fp32", 123, "2026 trial", style)


def small_exportable(recipe: str) -> ExportableModel:
    """Such a model of the recipe of that name, as exports get it."""
    return as_exportable(small_model(catalog.recipe(recipe)))
