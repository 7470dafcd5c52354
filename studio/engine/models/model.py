"""A trained model: a network with its recipe and the pixel style of its training sprites (style.json)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from studio.core.arrays import Indices
from studio.core.config import TrainingConfig
from studio.core.errors import DamagedError
from studio.core.events import Notice
from studio.data.colour.pixel_art import PixelStyle, measure_style
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine import catalog
from studio.engine.runs.folder import STYLE_FILE, Ancestor, RunDir, RunRecord, read_json, wrap_write_errors
from studio.engine.runs.split import split_sprites
from studio.engine.steps.batches import subsample
from studio.recipes.base import Recipe, Spec
from studio.recipes.capabilities import Student


@dataclass(eq=False)
class TrainedModel:
    """A trained network in eval mode, from a checkpoint, or live in a training, where its weights change."""

    recipe: Recipe
    config: TrainingConfig
    spec: Spec
    network: nn.Module  # EMA weights
    device: torch.device
    precision: str  # 'fp32', 'bf16' or 'fp16', for autocast
    step: int
    title: str  # name of the run
    style: PixelStyle  # palette and alpha of the training sprites
    ancestors: tuple[Ancestor, ...] = ()  # as in RunRecord
    notices: tuple[Notice, ...] = ()  # notices on skipped, damaged checkpoints
    distilled: Student | None = None  # few-step network on the same device
    run: Path | None = None  # the run folder


def save_style(run: RunDir, record: RunRecord, sprites: Sprites) -> None:
    """Measure the pixel style of the training sprites and write style.json. Raises UnwritableError."""
    with wrap_write_errors(run.path):
        run.write_file(STYLE_FILE, json.dumps(_training_style(record, sprites).to_json()).encode())


def load_style(run: RunDir, record: RunRecord) -> PixelStyle:
    """Load style.json; measure missing and outdated values again. Raises RunError, DamagedError."""
    repair = "Delete the file. The studio measures the style again."
    kept = read_json(run.path / STYLE_FILE, dict[str, Any], repair)
    if kept is None or "soft_alpha" in kept:  # from a version without alpha levels
        return _training_style(record, packed.load(run.data))
    try:
        style = PixelStyle.from_json(kept)
        if {len(style.colours), len(style.alpha_levels), len(style.class_counts)} != {len(record.class_names)}:
            raise ValueError("it does not fit the classes of the run")
    except ValueError as error:
        raise DamagedError(f"{STYLE_FILE} of {run.path.name} is damaged: {error}.", repair) from error
    return style


def load_training_set(run: RunDir) -> tuple[Sprites, Indices]:
    """Return the sprites of a run and the indices of its training set. Raises RunError, BadInputError."""
    sprites = packed.load(run.data)
    return sprites, _training_indices(run.record(), sprites)


def _training_style(record: RunRecord, sprites: Sprites) -> PixelStyle:
    return measure_style(subsample(sprites, _training_indices(record, sprites)))


def _training_indices(record: RunRecord, sprites: Sprites) -> Indices:
    config = catalog.recipe(record.recipe).Config.from_json(record.config)
    return split_sprites(record, config, sprites).training
