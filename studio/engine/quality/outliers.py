"""Find sprites unlike all other sprites, or more similar to a different class, by learned features."""

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core import paths
from studio.core.arrays import Indices
from studio.core.config import TrainingConfig
from studio.core.events import Event, Events, Progress
from studio.data.doctor.checks import MOST_CHECKED
from studio.data.doctor.findings import SpritesChecked
from studio.data.doctor.neighbours import Analysis, Encoder, SpriteNeighbours
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.devices.types import Device
from studio.engine.quality.evaluate import MIN_SPRITES
from studio.engine.quality.features import TrainedFeatures, learn_features
from studio.engine.quality.scores import squared_distances
from studio.engine.runs.split import split_by_group
from studio.engine.steps.batches import subsample
from studio.engine.steps.cpu_threads import with_tuned_threads

Floats = NDArray[np.float32]

_NEIGHBOURS = 10
_MAX_BATCH = 512  # sprites
_MAX_DISTANCES = 1 << 21  # distances to compute at a time


def find_outliers(analysis: Analysis, config: TrainingConfig, device: Device) -> Events:
    """Find outliers and wrongly classified sprites: yields Progress, then SpritesChecked with the issues.

    Compares sprites with their nearest neighbours by features, and trains the features first if necessary. Trainings
    use these features, too. After a change of `analysis.compared`, checks the new sprites with the trained features,
    then prepares features for trainings on the new sprites. Skips very few or very many sprites. Raises DeviceError.
    """
    target, precision = device.torch, detection.resolve_precision(device, config.precision)
    with detection.wrap_device_errors(target):
        if (learned := analysis.learned) is not None:
            training = yield from _training_sprites(learned, config)
            if training is not None:
                analysis.encoder = yield from _learn_features(training, target, precision)
            analysis.learned = None
        checked = None
        while checked is not analysis.compared:
            checked = analysis.compared
            yield (yield from _check(checked, analysis.encoder))
            if learned is not checked and (training := (yield from _training_sprites(checked, config))) is not None:
                for event in _learn_features(training, target, precision):
                    if checked is not analysis.compared:
                        break
                    if isinstance(event, Progress):
                        yield replace(event, what=f"{event.what} for trainings")


def _learn_features(training: Sprites, device: torch.device, precision: str) -> Generator[Event, None, TrainedFeatures]:
    """Return features for the training sprites. On busy cores, trains the features with fewer CPU threads."""
    learning = learn_features(training, device, precision)
    return (yield from with_tuned_threads(learning, may_change=device.type == "cpu"))


def _training_sprites(sprites: Sprites, config: TrainingConfig) -> Generator[Event, None, Sprites | None]:
    """Return the training sprites for learning features; None for too few or too many sprites. Yields Progress."""
    if len(sprites) > MOST_CHECKED:
        return None
    split = split_by_group((yield from group_near_duplicates(sprites, paths.cache())), config.holdout, config.seed)
    training = subsample(sprites, split.training)
    return training if len(training) >= MIN_SPRITES else None


def _check(sprites: Sprites, encoder: Encoder | None) -> Generator[Event, None, SpritesChecked]:
    """Return the outliers among sprites by features; no outliers without an encoder. Yields Progress."""
    found = SpriteNeighbours(np.zeros((0, _NEIGHBOURS), np.int64), np.zeros(0, np.float32))
    if encoder is not None:
        parts = []
        for start in range(0, len(sprites), _MAX_BATCH):
            parts.append(encoder.of(sprites.rgba[start : start + _MAX_BATCH]).astype(np.float32))
            yield Progress(min(start + _MAX_BATCH, len(sprites)), len(sprites), "sprites encoded")
        near, distances = yield from nearest_neighbours(np.concatenate(parts))
        found = SpriteNeighbours(near, relative_distances(distances))
    items = (*found.outliers(sprites), *found.wrong_classes(sprites))
    return SpritesChecked(sprites, items, len(sprites), neighbours=found)


def nearest_neighbours(features: Floats) -> Generator[Event, None, tuple[Indices, Floats]]:
    """Return indices and distances of the ten nearest rows, [N, 10] each. features: [N, D]. Yields Progress."""
    wanted = min(_NEIGHBOURS, len(features) - 1)
    near = np.empty((len(features), wanted), np.int64)
    far = np.empty((len(features), wanted), np.float32)
    step = max(1, _MAX_DISTANCES // max(1, len(features)))
    for start in range(0, len(features), step):
        part = slice(start, start + step)
        apart = squared_distances(features[part], features)  # [n, N]
        apart[np.arange(len(apart)), np.arange(start, start + len(apart))] = np.inf  # not its own neighbour
        some = np.argpartition(apart, wanted - 1, 1)[:, :wanted]  # the ten smallest, unsorted
        order = np.take_along_axis(apart, some, 1).argsort(1)
        near[part] = np.take_along_axis(some, order, 1)
        far[part] = np.sqrt(np.take_along_axis(apart, near[part], 1).clip(min=0))
        yield Progress(min(start + step, len(features)), len(features), "sprites compared")
    return near, far


def relative_distances(distances: Floats) -> Floats:
    """Divide a sprite's mean distance to the neighbours by the median over sprites: [N, n] -> float32 [N]."""
    mean = distances.mean(1)
    return np.asarray(mean / max(float(np.median(mean)), 1e-9), np.float32)
