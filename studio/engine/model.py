"""A model that can be used: a network with its recipe and everything needed to run it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from studio.core.config import TrainingConfig
from studio.core.events import Notice
from studio.data.colour.true_pixels import PixelStyle
from studio.recipes.base import Recipe, Spec


@dataclass(eq=False)
class TrainedModel:
    """A network in eval mode on its device, live (its weights change between ticks) or loaded from a checkpoint."""

    recipe: Recipe
    config: TrainingConfig
    spec: Spec
    network: nn.Module
    device: torch.device
    precision: str
    step: int
    title: str  # the run's name, for people
    style: PixelStyle  # of the sprites that it learnt from
    notices: tuple[Notice, ...] = ()  # of checkpoints that were passed over for it
