"""Rerank new sprites: draw many, and keep the sprites most similar to the user's liked sprites."""

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Events, Progress, SpritesGenerated
from studio.data.colour.constraints import NONE
from studio.data.colour.palette import to_oklab
from studio.engine.models.model import TrainedModel
from studio.engine.quality.features import fixed_features
from studio.engine.sampling.edit import EditInput
from studio.engine.sampling.generate import Labels, generate
from studio.engine.sampling.settings import MAX_SPRITES, MIN_LIKED, GenerateSettings

_SHRINKAGE = 0.5  # shrink the covariance towards the diagonal, because sprites may be fewer than features


def best_of(
    model: TrainedModel, settings: GenerateSettings, liked: EditInput, silhouette: NDArray[np.uint8] | None = None
) -> Events:
    """Draw `settings.best_of` times the requested number of sprites, and keep the sprites most similar to `liked`.

    Draws at most MAX_SPRITES at a time, to limit the memory; every part keeps the best sprites. Yields Progress after a
    solver step, then one SpritesGenerated. Raises UsageError, DeviceError.
    """
    if len(liked.sprites) < MIN_LIKED:
        title = f"Best-of needs more liked sprites: {len(liked.sprites)} is too few."
        raise UsageError(title, f"Keep or name at least {MIN_LIKED} sprites, or draw without best-of.")
    if settings.tiles != NONE:
        title = "Best-of doesn't work with tile sets."
        raise UsageError(title, "Draw the tile set without best-of.")
    found, best_of = list[SpritesGenerated](), settings.best_of
    for part in _parts(settings.count, MAX_SPRITES // best_of, len(model.spec.class_names)):
        many, first = settings.replace(count=len(part) * best_of), part.start * best_of
        for event in generate(model, many, silhouette, first):
            if isinstance(event, SpritesGenerated):
                scores = likeness_scores(event.sprites, event.labels, liked)
                chosen = best_of_each_class(scores, event.labels, len(part))
                found.append(dataclasses.replace(event, sprites=event.sprites[chosen], labels=event.labels[chosen]))
            elif isinstance(event, Progress):
                yield Progress(first + event.done, settings.count * best_of, event.what)
            else:
                yield event
    sprites, labels = (np.concatenate([getattr(made, name) for made in found]) for name in ("sprites", "labels"))
    yield dataclasses.replace(found[0], sprites=sprites, labels=labels)


def _parts(count: int, most: int, classes: int) -> list[range]:
    """Divide `count` indices into ranges of at most `most`, a multiple of the number of classes if possible."""
    length = most // classes * classes or most
    return [range(start, min(count, start + length)) for start in range(0, count, length)]


def likeness_scores(sprites: Rgba, labels: Labels, liked: EditInput) -> NDArray[np.float64]:
    """Score how much new sprites, uint8 [N, S, S, 4], resemble the liked sprites: float64 [N], higher is better.

    Uses linear discriminant analysis on features and colours minus the class mean, to favour no class.
    """
    descriptors, of_liked = _descriptors(sprites), _descriptors(liked.sprites)
    means = {label: descriptors[labels == label].mean(0) for label in np.unique(labels).tolist()}
    overall = descriptors.mean(0)
    within = descriptors - np.stack([means[label] for label in labels.tolist()])  # [N, 133]
    apart = of_liked - np.stack([means.get(label, overall) for label in liked.labels.tolist()])
    covariance = within.T @ within / len(within)  # [133, 133]
    spread = np.diag(np.diag(covariance))
    shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * spread + 1e-6 * np.eye(len(spread))
    return np.asarray(within @ np.linalg.solve(shrunk, apart.mean(0)))  # projection on the discriminant direction


def best_of_each_class(scores: NDArray[np.float64], labels: Labels, count: int) -> list[int]:
    """Return indices of the `count` best sprites, in the class order of the first `count` sprites."""
    best_first: dict[int, list[int]] = {}
    for index in np.argsort(-scores, kind="stable").tolist():
        best_first.setdefault(int(labels[index]), []).append(index)
    return [best_first[label].pop(0) for label in labels[:count].tolist()]


def _descriptors(sprites: Rgba) -> NDArray[np.float64]:
    """Return float64 [N, 133]: features, mean and spread of visible OKLab colours, visible share."""
    return np.concatenate([fixed_features(torch.device("cpu")).of(sprites), _colours(sprites)], 1)


def _colours(sprites: Rgba) -> NDArray[np.float64]:
    weights = sprites[..., 3:].reshape(len(sprites), -1, 1) / 255
    colours = to_oklab(sprites[..., :3].reshape(-1, 3)).reshape(len(sprites), -1, 3)
    seen = np.maximum(weights.sum(1), 1)
    mean = (colours * weights).sum(1) / seen  # weighted by alpha
    spread = np.sqrt((((colours - mean[:, None]) ** 2).sum(-1, keepdims=True) * weights).sum(1) / seen)
    return np.concatenate([mean, spread, weights.mean(1)], 1)
