"""Sprites that look like nothing else, or like another class than their own: by features that were learnt from them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from studio.core import paths
from studio.core.config import TrainingConfig
from studio.core.events import Event, Events, Progress
from studio.data.doctor.checks import MOST_CHECKED
from studio.data.doctor.findings import SpritesChecked
from studio.data.files.source_files import ImportIssue
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sprites import Sprites
from studio.engine.devices import detection
from studio.engine.devices.types import Device
from studio.engine.quality.evaluate import FEWEST
from studio.engine.quality.features import learn_features
from studio.engine.runs.split import split_by_group
from studio.engine.steps.batches import subsample

_NEIGHBOURS = 10
_AGREE = 8  # of the neighbours are of one other class, and none is of the sprite's own
_FAR = 3.0  # times the usual distance to the nearest neighbours
_AT_ONCE = 512  # sprites
_DISTANCES = 1 << 21  # at once


def find_outliers(sprites: Sprites, config: TrainingConfig, device: Device) -> Events:
    """Compare each sprite with its nearest neighbours: yields Progress, and Examined last.

    The features are those that trainings of these sprites are measured by (see features.py); they are learnt first
    where they are not kept. Nothing is found among very few sprites, or very many. Raises DeviceError.
    """
    items: list[ImportIssue] = []
    split = split_by_group((yield from group_near_duplicates(sprites, paths.cache())), config.holdout, config.seed)
    training = subsample(sprites, split.training)
    if len(training) >= FEWEST and len(sprites) <= MOST_CHECKED:
        target, precision = device.torch, detection.resolve_precision(device, config.precision)
        parts = []
        with detection.wrap_device_errors(target):
            features = yield from learn_features(training, target, precision)
            for start in range(0, len(sprites), _AT_ONCE):
                parts.append(features.of(sprites.rgba[start : start + _AT_ONCE]).astype(np.float32))
                yield Progress(min(start + _AT_ONCE, len(sprites)), len(sprites), "sprites seen")
        near, distances = yield from nearest_neighbours(np.concatenate(parts))
        apart = relative_distances(distances)
        items += _outliers(sprites, apart)
        items += _wrong_classes(sprites, near, apart)
    yield SpritesChecked(sprites, tuple(items), len(sprites))


def nearest_neighbours(
    features: NDArray[np.float32],
) -> Generator[Event, None, tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """The ten nearest others of each place, float32 [N, D], nearest first, and how far they are: both [N, 10]."""
    wanted = min(_NEIGHBOURS, len(features) - 1)
    squares = (features**2).sum(1)
    near = np.empty((len(features), wanted), np.int64)
    far = np.empty((len(features), wanted), np.float32)
    step = max(1, _DISTANCES // max(1, len(features)))
    for start in range(0, len(features), step):
        part = slice(start, start + step)
        apart = squares[part, None] + squares - 2 * features[part] @ features.T
        apart[np.arange(len(apart)), np.arange(start, start + len(apart))] = np.inf
        some = np.argpartition(apart, wanted - 1, 1)[:, :wanted]
        order = np.take_along_axis(apart, some, 1).argsort(1)
        near[part] = np.take_along_axis(some, order, 1)
        far[part] = np.sqrt(np.take_along_axis(apart, near[part], 1).clip(min=0))
        yield Progress(min(start + step, len(features)), len(features), "sprites compared")
    return near, far


def relative_distances(distances: NDArray[np.float32]) -> NDArray[np.float32]:
    """How far each is from its nearest others, float32 [N, n], in units of what is usual: float32 [N]."""
    mean = distances.mean(1)
    return np.asarray(mean / max(float(np.median(mean)), 1e-9), np.float32)


def _outliers(sprites: Sprites, apart: NDArray[np.float32]) -> list[ImportIssue]:
    """Sprites far from all others; apart: how far, in units of what is usual, float32 [N]."""
    words = "{:.1f} times as far from all others as is usual"
    found = np.flatnonzero(apart > _FAR).tolist()
    return [ImportIssue(sprites.names[index], words.format(apart[index]), "outlier") for index in found]


def _wrong_classes(sprites: Sprites, near: NDArray[np.int64], apart: NDArray[np.float32]) -> list[ImportIssue]:
    """Sprites whose neighbours agree on another class. A class too small to have neighbours says nothing."""
    counts = sprites.class_counts()
    items = []
    for index, neighbours in enumerate(sprites.labels[near]):
        own = int(sprites.labels[index])
        votes = np.bincount(neighbours, minlength=len(counts))
        other = int(votes.argmax())
        speaks = counts[own] > _NEIGHBOURS and apart[index] <= _FAR
        if speaks and votes[own] == 0 and votes[other] >= _AGREE:
            words = f"{votes[other]} of the {_NEIGHBOURS} most like it are of class {sprites.class_names[other]!r}"
            items.append(ImportIssue(sprites.names[index], words, "wrong class", twin=sprites.names[near[index, 0]]))
    return items
