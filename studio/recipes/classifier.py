"""The classifier: predicts a sprite's class and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from studio.core.arrays import Indices
from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.core.errors import TrainingError
from studio.core.metrics import ACCURACY
from studio.data.sprites import Examples, Sprites
from studio.recipes.base import Batch, BatchRng, Evaluation, Preset, Recipe, Spec, TrainingBudget, with_attributes
from studio.recipes.predictors import (
    FIXED_BY_WEIGHTS,
    PLANNER,
    RELATIVE_COST,
    Predictor,
    PredictorConfig,
    check_size,
    feature_mask,
    predictor_arguments,
    predictor_class,
)  # fmt: skip

_SMALLEST = 3  # sprites: one for validation and two for training


@dataclass(frozen=True)
class ClassifierConfig(PredictorConfig):
    """The settings of the classifier."""

    shift_px: int = with_default(TrainingConfig, "shift_px", 2)
    dropout: float = with_default(PredictorConfig, "dropout", 0.2)
    label_smoothing: float = setting(
        0.1,
        "Label smoothing of the training targets (Szegedy et al. 2016).",
        low=0.0,
        high=0.5,
        advanced=True,
        low_text="Off",
    )
    smallest_class: int = setting(
        _SMALLEST, "Classes with fewer sprites are left out.", unit="sprites", low=_SMALLEST, high=100_000
    )


class Classifier(Recipe[ClassifierConfig, Predictor]):
    """Model that predicts a sprite's class and attributes."""

    name = "classifier"
    title = "Classifier"
    summary = "Learns to tell your classes and attributes apart, and predicts those of any sprite."
    makes = "labels"
    Config, Network = ClassifierConfig, Predictor
    headline = ACCURACY
    order = 2
    relative_cost = RELATIVE_COST
    small = ClassifierConfig(width=16)
    capabilities = frozenset({"encode", "attributes"})
    fixed_by_weights = FIXED_BY_WEIGHTS

    def select(self, sprites: Sprites, config: ClassifierConfig) -> tuple[Sprites, list[str]]:
        check_size(config, sprites)
        counts = sprites.class_counts()
        kept = np.flatnonzero(counts >= config.smallest_class)
        if len(kept) < 2 and any(len(values) > 1 for values in sprites.attributes.values):
            return sprites, []  # the classifier learns attributes alone
        if len(kept) < 2:
            hint = "Open a folder whose sub-folders are the classes, with three sprites or more in each."
            raise TrainingError("A classifier needs at least two classes with enough sprites.", hint)
        if len(kept) == len(counts):
            return sprites, []
        chosen = sprites.take(np.flatnonzero(np.isin(sprites.labels, kept)))
        labels = np.searchsorted(kept, chosen.labels).astype(np.int64)
        names = tuple(sprites.class_names[i] for i in kept)
        pairs = zip(sprites.class_names, counts, strict=True)
        left_out = ", ".join(f"{name} ({count})" for name, count in pairs if name not in names)
        notes = [f"Left out, too few sprites to learn from: {left_out}."] if left_out else []
        return replace(chosen, labels=labels, class_names=names), notes

    def examples(self, sprites: Sprites, indices: Indices) -> tuple[Examples, Indices]:
        return with_attributes(sprites), indices

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (
            PLANNER.preset("Quick", "A first impression of which classes look alike.", 1.0, 40_000, budget),
            PLANNER.preset("Standard", "Good accuracy on most sprite sets.", 3.0, 120_000, budget),
            PLANNER.preset("Best", "Somewhat higher accuracy.", 10.0, 220_000, budget),
        )

    def arguments(self, config: ClassifierConfig, spec: Spec) -> dict[str, Value]:
        return {"outputs": len(spec.class_names), **predictor_arguments(config, spec)}

    def attribute_arguments(self, spec: Spec) -> dict[str, Value]:
        return {"outputs": len(spec.labels)} if spec.attributes else {}

    def network_class(self, config: ClassifierConfig) -> type[Predictor]:
        return predictor_class(config.network)

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(("leave.weight", "leave.bias"), spec.labels)

    def loss(self, network: Predictor, batch: Batch, config: ClassifierConfig, rng: BatchRng) -> Tensor:
        logits = network(batch.x, feature_mask(network, rng))
        return F.cross_entropy(logits.float(), batch.y, label_smoothing=config.label_smoothing)

    def loss_of(self, spec: Spec) -> Callable[[Predictor, Batch, ClassifierConfig, BatchRng], Tensor]:
        def loss(network: Predictor, batch: Batch, config: ClassifierConfig, rng: BatchRng) -> Tensor:
            return _losses(network(batch.x, feature_mask(network, rng)), batch, spec, config.label_smoothing).mean()

        return loss if spec.attributes else self.loss

    def predictor_of(self, spec: Spec) -> Callable[[Predictor, Tensor], Tensor]:
        def predict(network: Predictor, x: Tensor) -> Tensor:
            parts = network(x).float().split(_head_sizes(spec), 1)
            return torch.cat([logits.softmax(1) for logits in parts], 1)  # [B, K]

        return predict if spec.attributes else self.predict

    def evaluate(
        self, network: Predictor, batches: Iterable[Batch], config: ClassifierConfig, spec: Spec
    ) -> Evaluation:
        """Return the cross-entropy, accuracies and confusion matrices on the validation set.

        With a single class, the accuracy is the mean over the attributes.
        """
        losses, labels, guesses, sizes = [], [], [], _head_sizes(spec)
        for batch in batches:
            logits = network(batch.x)
            losses.append(_losses(logits, batch, spec))
            labels.append(_true_labels(batch, spec))
            guesses.append(torch.stack([part.argmax(1) for part in logits.split(sizes, 1)], 1))
        y, guess = torch.cat(labels), torch.cat(guesses)  # [N, 1 + A] each
        heads = [_confusion(y[:, index], guess[:, index], size) for index, size in enumerate(sizes)]
        accuracies = [float(counts.trace() / counts.sum().clamp(min=1)) for counts in heads]
        accuracy = sum(accuracies[1:]) / len(sizes[1:]) if sizes[0] == 1 and sizes[1:] else accuracies[0]
        metrics = {"loss": float(torch.cat(losses).mean()), "accuracy": accuracy}
        metrics |= {f"accuracy {name}": share for name, share in zip(spec.attributes, accuracies[1:], strict=True)}
        attributes = {
            name: (counts, guess[:, index].cpu())
            for index, (name, counts) in enumerate(zip(spec.attributes, heads[1:], strict=True), 1)
        }
        return Evaluation(metrics, heads[0], predicted=guess[:, 0].cpu(), attributes=attributes)

    @staticmethod
    def encode(network: Predictor, x: Tensor) -> Tensor:
        return network.features(x)


def _head_sizes(spec: Spec) -> list[int]:
    """Return the number of outputs for the classes, then for each attribute's values."""
    return [len(spec.class_names), *map(len, spec.attributes.values())]


def _true_labels(batch: Batch, spec: Spec) -> Tensor:
    """Return the indices of each sprite's class and attribute values: int64 [B, 1 + A], -1 for no value."""
    labels, first = [batch.y], 0
    for size, values in zip(_head_sizes(spec), batch.targets.long().unbind(1), strict=False):
        first += size  # the index of the attribute's first value in `Spec.labels`
        labels.append(torch.where(values < 0, -1, values - first))
    return torch.stack(labels, 1)


def _losses(logits: Tensor, batch: Batch, spec: Spec, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy for every sprite, summed over class and attributes: float32 [B]."""
    parts = logits.float().split(_head_sizes(spec), 1)
    pairs = zip(parts, _true_labels(batch, spec).unbind(1), strict=True)
    losses = [
        F.cross_entropy(part, y, ignore_index=-1, reduction="none", label_smoothing=smoothing) for part, y in pairs
    ]
    return torch.stack(losses).sum(0)


def _confusion(y: Tensor, guess: Tensor, size: int) -> Tensor:
    """Count sprites by true label and prediction: int64 [size, size], on the CPU. y: int64 [N], -1 for unknown."""
    pairs = (y * size + guess)[y >= 0]
    return torch.bincount(pairs, minlength=size**2).view(size, size).cpu()
