"""The classifier: predicts the class of a sprite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.core.errors import TrainingError
from studio.core.metrics import ACCURACY
from studio.data.sprites import Sprites
from studio.recipes.base import Batch, BatchRng, Evaluation, Preset, Recipe, Spec, TrainingBudget
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
    """Model that predicts the class of a sprite."""

    name = "classifier"
    title = "Classifier"
    summary = "Learns to tell your classes apart and predicts the class of any sprite."
    makes = "labels"
    Config, Network = ClassifierConfig, Predictor
    headline = ACCURACY
    order = 2
    relative_cost = RELATIVE_COST
    small = ClassifierConfig(width=16)
    capabilities = frozenset({"encode"})
    fixed_by_weights = FIXED_BY_WEIGHTS

    def select(self, sprites: Sprites, config: ClassifierConfig) -> tuple[Sprites, list[str]]:
        check_size(config, sprites)
        counts = sprites.class_counts()
        kept = np.flatnonzero(counts >= config.smallest_class)
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

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (
            PLANNER.preset("Quick", "A first impression of which classes look alike.", 1.0, 40_000, budget),
            PLANNER.preset("Standard", "Good accuracy on most sprite sets.", 3.0, 120_000, budget),
            PLANNER.preset("Best", "Somewhat higher accuracy.", 10.0, 220_000, budget),
        )

    def arguments(self, config: ClassifierConfig, spec: Spec) -> dict[str, Value]:
        return {"outputs": len(spec.class_names), **predictor_arguments(config, spec)}

    def network_class(self, config: ClassifierConfig) -> type[Predictor]:
        return predictor_class(config.network)

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(("leave.weight", "leave.bias"), spec.class_names)

    def loss(self, network: Predictor, batch: Batch, config: ClassifierConfig, rng: BatchRng) -> Tensor:
        logits = network(batch.x, feature_mask(network, rng))
        return F.cross_entropy(logits.float(), batch.y, label_smoothing=config.label_smoothing)

    def evaluate(
        self, network: Predictor, batches: Iterable[Batch], config: ClassifierConfig, spec: Spec
    ) -> Evaluation:
        """Return the cross-entropy, accuracy and confusion matrix on the validation set."""
        losses, labels, guesses = [], [], []
        for batch in batches:
            logits = network(batch.x).float()  # [B, K]
            losses.append(F.cross_entropy(logits, batch.y, reduction="none"))
            labels.append(batch.y)
            guesses.append(logits.argmax(1))
        y, guess = torch.cat(labels), torch.cat(guesses)
        classes = network.leave.out_features
        # Row y, column guess: count the pairs as numbers y * K + guess.
        confusion = torch.bincount(y * classes + guess, minlength=classes**2).view(classes, classes).cpu()
        metrics = {"loss": float(torch.cat(losses).mean()), "accuracy": float((y == guess).float().mean())}
        return Evaluation(metrics, confusion, predicted=guess.cpu())

    @staticmethod
    def encode(network: Predictor, x: Tensor) -> Tensor:
        return network.features(x)
