"""A map of the sprites of a run: like ones near to one another, odd ones apart, and what a model draws in between.

Where sprites are follows from features: a recipe's own, if it can encode (an autoencoder's codes, what a classifier or
a regression decides by), else those that trainings of these sprites are measured by (see quality/features.py). The
middle level of a generator's network would tell of the model instead, but each recipe keeps that elsewhere; what is
measured by is there for any of them, and learnt already for sprites that were trained on.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Event, Events, Progress
from studio.data.colour.pixel_art import to_pixel_art
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.devices.types import CodesDecoded, MapReady
from studio.engine.models.model import TrainedModel, load_training_set
from studio.engine.quality.features import learn_features
from studio.engine.quality.outliers import nearest_neighbours, relative_distances
from studio.engine.runs.folder import RunDir
from studio.engine.sampling.generate import model_label
from studio.engine.steps.batches import subsample, to_device, to_input, to_rgba
from studio.recipes.capabilities import Decodes, Encodes

Floats = NDArray[np.float32]

FEWEST, MOST = 3, 5000  # sprites on a map
_MOST_BYTES = 256 << 20  # of them
_MOST_ODD = 24
_AT_ONCE = 256


def make_map(model: TrainedModel, run: Path) -> Events:
    """The sprites of a run, by the features of its model: yields Progress, then one MapReady.

    Raises UsageError where there are too few sprites, RunError, BadInputError, DeviceError.
    """
    everything, learnt = load_training_set(RunDir(run))
    if len(everything) < FEWEST:
        raise UsageError(f"{run.name} has too few sprites for a map.", f"{FEWEST} are the fewest.")
    sprites = _some(everything)
    with detection.wrap_device_errors(model.device):
        if isinstance(model.recipe, Encodes):
            features = yield from _encoded(model, model.recipe, sprites)
        else:
            measured_by = yield from learn_features(subsample(everything, learnt), model.device, model.precision)
            features = measured_by.of(sprites.rgba).astype(np.float32)
    neighbours, distances = yield from nearest_neighbours(features)
    apart = relative_distances(distances)
    positions, explained = principal_plane(features)
    yield MapReady(
        model_label(model), sprites, len(everything), features, positions, explained, marker_spacing(positions),
        neighbours, apart, np.argsort(-apart, kind="stable")[:_MOST_ODD], isinstance(model.recipe, Decodes),
    )  # fmt: skip


def decode(model: TrainedModel, codes: Floats) -> Events:
    """The sprites of codes float32 [N, D], in true pixels: yields one CodesDecoded. Raises DeviceError."""
    assert isinstance(model.recipe, Decodes)
    with detection.wrap_device_errors(model.device), torch.no_grad(), autocast(model.device.type, model.precision):
        x = model.recipe.decode(model.network, torch.from_numpy(codes).to(model.device))
    made = to_rgba(x).numpy()
    yield CodesDecoded(to_pixel_art(made, np.full(len(made), -1), model.style))


def principal_plane(features: Floats) -> tuple[Floats, float]:
    """Where float32 [N, D] are on the plane along which they differ most (principal component analysis).

    Returns float32 [N, 2] in [0, 1], both axes in one scale, and the share of the variance that they show. Each axis
    points to where the feature that has most part in it is larger, so that the same features give the same map.
    """
    centred = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred)  # rising
    axes = axes[:, ::-1][:, :2]
    if axes.shape[1] < 2:  # of a single feature
        axes = np.pad(axes, ((0, 0), (0, 1)))
    axes = axes * np.where(axes[np.abs(axes).argmax(0), [0, 1]] < 0, -1, 1)
    places = centred @ axes
    lowest, highest = places.min(0), places.max(0)
    scale = max(float((highest - lowest).max()), 1e-9)
    positions = (0.5 + (places - (lowest + highest) / 2) / scale).clip(0, 1)
    total = max(float(variances.sum()), 1e-30)
    return positions.astype(np.float32), float(variances[-2:].clip(min=0).sum() / total)


def marker_spacing(positions: Floats) -> Floats:
    """As in MapReady, by farthest-point sampling (Gonzalez 1985): float32 [N] of positions [N, 2].

    The first is the one nearest to the middle; its spacing is infinite. Then comes whichever is farthest from all
    before it. Takes time with the square of N: 0.1 s for 5,000.
    """
    x, y = positions.T
    spacing = np.full(len(positions), np.inf, np.float32)
    nearest = np.full(len(positions), np.inf, np.float32)  # distances to those that had their turn, whose own are -1
    place = int(np.abs(positions - 0.5).max(1).argmin())
    for _ in range(len(positions)):
        spacing[place] = nearest[place]
        np.minimum(nearest, np.maximum(np.abs(x - x[place]), np.abs(y - y[place])), out=nearest)
        nearest[place] = -1.0
        place = int(nearest.argmax())
    return spacing


def render_map(shown: MapReady, longest: int) -> tuple[Rgba, int]:
    """A map as a picture uint8 [H, W, 4] whose longer side is of so many pixels, one for each of a sprite's, and how
    many sprites have room there without lying over one another.
    """
    side, scale = shown.sprites.size, longest - shown.sprites.size
    corners = np.round((shown.positions - shown.positions.min(0)) * scale).astype(np.int64)
    picture = np.zeros((*(corners.max(0)[::-1] + side), 4), np.uint8)
    drawn = np.flatnonzero(shown.spacing * scale >= side + 1)  # one more, as places are rounded
    for index, (x, y) in zip(drawn, corners[drawn].tolist(), strict=True):
        picture[y : y + side, x : x + side] = shown.sprites.rgba[index]
    return picture, len(drawn)


def _some(sprites: Sprites) -> Sprites:
    """At most as many as a map shows, the same ones always, in their order."""
    most = min(MOST, max(FEWEST, _MOST_BYTES // sprites.rgba[:1].nbytes))
    if len(sprites) <= most:
        return sprites
    return sprites.take(np.sort(np.random.default_rng(0).choice(len(sprites), most, replace=False)))


def _encoded(model: TrainedModel, recipe: Encodes, sprites: Sprites) -> Generator[Event, None, Floats]:
    """What the recipe's `encode` gives of sprites: yields Progress, returns float32 [N, D]."""
    parts: list[Floats] = []
    batch_size = AutoBatchSize(model.device, _AT_ONCE, model.spec.size)
    for part in batch_size.slices(len(sprites)):
        with batch_size.halve_if_full(), torch.no_grad(), autocast(model.device.type, model.precision):
            x = to_input(to_device(sprites.rgba[part], model.device))
            parts.append(recipe.encode(model.network, x).float().cpu().numpy())
        yield Progress(part.stop, len(sprites), "sprites seen")
    return np.concatenate(parts)
