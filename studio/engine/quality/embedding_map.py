"""Arrange a run's sprites on a map, with similar sprites near each other, and decode sprites between map positions.

Positions follow from features. A recipe that can encode provides features: an autoencoder's codes, or the penultimate
layer of a classifier or regression. Otherwise the map uses the features for measuring trainings, see
quality/features.py. A generator's middle level would describe the model better, but every recipe has another layout.
"""

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

MIN_MAPPED, MAX_MAPPED = 3, 5000  # sprites on a map
_MAX_BYTES = 256 << 20  # limit of the sprites' pixels on a map
_MAX_ODD = 24
_MAX_BATCH = 256


def make_map(model: TrainedModel, run: Path) -> Events:
    """Arrange a run's sprites on a map, by features from the model.

    Yields Progress, then one MapReady. Raises UsageError for too few sprites, and RunError, BadInputError, DeviceError.
    """
    everything, learnt = load_training_set(RunDir(run))
    if len(everything) < MIN_MAPPED:
        raise UsageError(f"{run.name} has too few sprites for a map.", f"A map needs {MIN_MAPPED} sprites.")
    sprites = _limited(everything)
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
        neighbours, apart, np.argsort(-apart, kind="stable")[:_MAX_ODD], isinstance(model.recipe, Decodes),
    )  # fmt: skip


def decode(model: TrainedModel, codes: Floats) -> Events:
    """Decode an autoencoder's codes, float32 [N, D], to pixel art: yields one CodesDecoded. Raises DeviceError."""
    assert isinstance(model.recipe, Decodes)
    with detection.wrap_device_errors(model.device), torch.no_grad(), autocast(model.device.type, model.precision):
        x = model.recipe.decode(model.network, torch.from_numpy(codes).to(model.device))
    made = to_rgba(x).numpy()
    yield CodesDecoded(to_pixel_art(made, np.full(len(made), -1), model.style))


def principal_plane(features: Floats) -> tuple[Floats, float]:
    """Project features float32 [N, D] onto their first two principal components.

    Returns positions float32 [N, 2] in [0, 1], scaled equally in both axes, and the explained share of the variance. An
    axis's largest component is made positive, so equal features give equal maps.
    """
    centred = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    variances, axes = np.linalg.eigh(centred.T @ centred)  # ascending
    axes = axes[:, ::-1][:, :2]  # the two axes with the largest variance: [D, 2]
    if axes.shape[1] < 2:  # a single feature
        axes = np.pad(axes, ((0, 0), (0, 1)))
    axes = axes * np.where(axes[np.abs(axes).argmax(0), [0, 1]] < 0, -1, 1)
    projected = centred @ axes  # [N, 2]
    lowest, highest = projected.min(0), projected.max(0)
    scale = max(float((highest - lowest).max()), 1e-9)
    positions = (0.5 + (projected - (lowest + highest) / 2) / scale).clip(0, 1)
    total = max(float(variances.sum()), 1e-30)
    return positions.astype(np.float32), float(variances[-2:].clip(min=0).sum() / total)


def marker_spacing(positions: Floats) -> Floats:
    """Return the map distance at which each marker has room: float32 [N] for positions [N, 2].

    Uses farthest-point sampling (Gonzalez 1985) from the middle; the first marker gets infinity. O(N^2): 0.1 s for
    5,000.
    """
    x, y = positions.T
    # spacing, and distance to the nearest selected marker, -1 for selected markers: [N]
    spacing, nearest = np.full((2, len(positions)), np.inf, np.float32)
    selected = int(np.abs(positions - 0.5).max(1).argmin())
    for _ in range(len(positions)):
        spacing[selected] = nearest[selected]
        np.minimum(nearest, np.maximum(np.abs(x - x[selected]), np.abs(y - y[selected])), out=nearest)
        nearest[selected] = -1.0
        selected = int(nearest.argmax())
    return spacing


def render_map(shown: MapReady, longest: int) -> tuple[Rgba, int]:
    """Draw a map of sprites as a picture; returns uint8 [H, W, 4] and the number of drawn sprites.

    longest: pixels on the picture's longer side. Sprites keep their size in pixels; sprites without room are left out.
    """
    side, scale = shown.sprites.size, longest - shown.sprites.size
    corners = np.round((shown.positions - shown.positions.min(0)) * scale).astype(np.int64)
    picture = np.zeros((*(corners.max(0)[::-1] + side), 4), np.uint8)
    drawn = np.flatnonzero(shown.spacing * scale >= side + 1)  # a pixel more, because `corners` are rounded
    for index, (x, y) in zip(drawn, corners[drawn].tolist(), strict=True):
        picture[y : y + side, x : x + side] = shown.sprites.rgba[index]
    return picture, len(drawn)


def _limited(sprites: Sprites) -> Sprites:
    most = min(MAX_MAPPED, max(MIN_MAPPED, _MAX_BYTES // sprites.rgba[:1].nbytes))
    if len(sprites) <= most:
        return sprites
    return sprites.take(np.sort(np.random.default_rng(0).choice(len(sprites), most, replace=False)))


def _encoded(model: TrainedModel, recipe: Encodes, sprites: Sprites) -> Generator[Event, None, Floats]:
    """Return the recipe's features of the sprites, float32 [N, D]; yields Progress."""
    parts: list[Floats] = []
    batch_size = AutoBatchSize(model.device, _MAX_BATCH, model.spec.size)
    for part in batch_size.slices(len(sprites)):
        with batch_size.halve_if_full(), torch.no_grad(), autocast(model.device.type, model.precision):
            x = to_input(to_device(sprites.rgba[part], model.device))
            parts.append(recipe.encode(model.network, x).float().cpu().numpy())
        yield Progress(part.stop, len(sprites), "sprites seen")
    return np.concatenate(parts)
