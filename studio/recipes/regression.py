"""Which numbers go with a sprite: the classifier's kind of network, whose outputs are the numbers themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.config import Value
from studio.core.errors import TrainingError
from studio.core.formatting import count
from studio.core.metrics import R2
from studio.data.sprites import Sprites
from studio.recipes.base import Batch, BatchRng, Evaluation, Preset, Recipe, Spec, TrainingBudget
from studio.recipes.predictors import (
    FIXED_BY_WEIGHTS,
    OWN,
    PLANNER,
    RELATIVE_COST,
    TUTORIAL,
    Perceptron,
    Predictor,
    PredictorConfig,
    ResNet,
    TorchvisionNetwork,
    check_size,
    feature_mask,
    predictor_arguments,
)

_FEWEST = 3  # sprites: one to check on, and more than one to learn from
_EACH_SAID = 8  # with more numbers than that, their errors are said as one
_MOST_PAIRS = 1000  # sprites whose numbers are handed on, for a picture
_SMALLEST_SHARE = 1e-6  # of its largest value, that a number must vary by: float32 tells no less apart


@dataclass(frozen=True)
class RegressionConfig(PredictorConfig):
    """Settings of the regression: those of its network."""


class Regressor(nn.Module):
    """Numbers [B, targets] from x [B, 4, S, S], in their own units.

    What is learnt are deviations from the mean, in units of the usual deviation: `mean` and `deviation`, both
    [targets], belong to the network, so that it says the same wherever it goes.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, body: Predictor) -> None:
        super().__init__()
        targets = body.leave.out_features
        self.body = body
        self.register_buffer("mean", torch.zeros(targets))
        self.register_buffer("deviation", torch.ones(targets))

    def forward(self, x: Tensor) -> Tensor:
        return self.numbers(self.body(x).float())

    def numbers(self, scores: Tensor) -> Tensor:
        """Numbers [B, targets] in their own units from deviations [B, targets]."""
        return scores * self.deviation + self.mean


class ResNetRegressor(Regressor):
    """Numbers by the studio's residual network."""

    def __init__(self, targets: int, width: int, dropout: float) -> None:
        super().__init__(ResNet(targets, width, dropout))


class PerceptronRegressor(Regressor):
    """Numbers by the tutorials' network."""

    def __init__(self, targets: int, size: int, dropout: float) -> None:
        super().__init__(Perceptron(size, targets, dropout))


class TorchvisionRegressor(Regressor):
    """Numbers by one of torchvision's networks."""

    def __init__(self, targets: int, network: str, dropout: float) -> None:
        super().__init__(TorchvisionNetwork(network, targets, dropout))


class Regression(Recipe[RegressionConfig, Regressor]):
    """Says the numbers of a sprite."""

    name = "regression"
    title = "Regression"
    summary = "Learns to predict numbers, such as a price or a size, that a labels.csv beside your sprites gives."
    makes = "numbers"
    Config, Network = RegressionConfig, Regressor
    headline = R2
    order = 3
    relative_cost = RELATIVE_COST
    small = RegressionConfig(width=16)
    capabilities = frozenset({"encode"})
    fixed_by_weights = FIXED_BY_WEIGHTS

    def select(self, sprites: Sprites, config: RegressionConfig) -> tuple[Sprites, list[str]]:
        check_size(config, sprites)
        kept = np.flatnonzero(~np.isnan(sprites.targets).all(1))
        if len(kept) < _FEWEST:
            raise TrainingError(
                f"A regression needs numbers to learn: {count(len(kept), 'sprite')} of {len(sprites):,} have any.",
                "Put a file named labels.csv beside your sprites, with lines like 'file,price' and 'sword.png,12.5'.",
            )
        left_out = len(sprites) - len(kept)
        notes = [f"Left out, no number to learn from: {count(left_out, 'sprite')}."] if left_out else []
        return sprites.take(kept), notes

    def presets(self, means: TrainingBudget) -> tuple[Preset, ...]:
        return (
            PLANNER.preset("Quick", "A first look at whether the sprites tell the numbers at all.", 1.0, 40_000, means),
            PLANNER.preset("Standard", "Good predictions on most sprite sets.", 3.0, 120_000, means),
            PLANNER.preset("Best", "The last bit of exactness.", 10.0, 220_000, means),
        )

    def statistics(self, sprites: Sprites, config: RegressionConfig) -> Mapping[str, Tensor]:
        """Mean and deviation of each number; the deviation of one that never varies is 1."""
        targets = sprites.targets.astype(np.float64)
        known = ~np.isnan(targets)
        counts = np.maximum(1, known.sum(0))
        mean = np.where(known, targets, 0).sum(0) / counts
        deviation = np.sqrt((np.where(known, targets - mean, 0) ** 2).sum(0) / counts)
        least = _SMALLEST_SHARE * np.where(known, np.abs(targets), 0).max(0, initial=0)
        deviation[deviation <= np.maximum(least, 1e-30)] = 1
        return {"mean": torch.from_numpy(mean), "deviation": torch.from_numpy(deviation)}

    def arguments(self, config: RegressionConfig, spec: Spec) -> dict[str, Value]:
        return {"targets": len(spec.target_names), **predictor_arguments(config, spec)}

    def network_class(self, config: RegressionConfig) -> type[Regressor]:
        return {OWN: ResNetRegressor, TUTORIAL: PerceptronRegressor}.get(config.network, TorchvisionRegressor)

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(("body.leave.weight", "body.leave.bias"), spec.target_names)

    def loss(self, network: Regressor, batch: Batch, config: RegressionConfig, rng: BatchRng) -> Tensor:
        scores = network.body(batch.x, feature_mask(network.body, rng))
        return _loss(network, scores.float(), batch.targets)

    def weight(self, batch: Batch) -> float | Tensor:
        return _known_count(batch.targets)

    def evaluate(
        self, network: Regressor, batches: Iterable[Batch], config: RegressionConfig, spec: Spec
    ) -> Evaluation:
        """The loss, R2, and how far off the predictions are on average; the baseline always says the mean."""
        parts = [(network.body(batch.x).float(), batch.targets) for batch in batches]
        scores, targets = torch.cat([part for part, _ in parts]), torch.cat([part for _, part in parts])

        def figures(some: Tensor) -> dict[str, float]:
            loss = {"loss": float(_loss(network, some, targets))}
            numbers = network.numbers(some).cpu().double()
            return {**loss, **accuracy_figures(numbers, targets.cpu().double(), spec.target_names)}

        pairs = torch.stack([network.numbers(scores), targets])[:, :: math.ceil(len(scores) / _MOST_PAIRS) or 1].cpu()
        return Evaluation(figures(scores), baseline=figures(torch.zeros_like(scores)), pairs=pairs)

    @staticmethod
    def encode(network: Regressor, x: Tensor) -> Tensor:
        return network.body.features(x)


def accuracy_figures(predicted: Tensor, true: Tensor, names: Sequence[str]) -> dict[str, float]:
    """R2 and the mean absolute error of numbers float64 [N, T], NaN where the true one is missing.

    'r2' is the mean over those numbers that vary; 0 is no better than always saying the mean, 1 is right throughout.
    'mae' is in the number's own unit, one for each where there are few ('mae price'), else the mean over all. It is
    missing for a number that no sprite has.
    """
    known = ~true.isnan()
    counts = known.sum(0).clamp(min=1)
    true = torch.where(known, true, 0)
    errors = torch.where(known, predicted, 0) - true
    spread = torch.where(known, true - true.sum(0) / counts, 0).square().sum(0)
    varying = spread > 0
    r2 = 1 - errors.square().sum(0)[varying] / spread[varying]
    there = known.any(0)
    mae = (errors.abs().sum(0) / counts)[there]
    if len(names) == 1 or len(names) > _EACH_SAID:
        each = {"mae": float(mae.mean())} if len(mae) else {}
    else:
        each = {f"mae {name}": float(value) for name, value in zip(compress(names, there), mae, strict=True)}
    return {"r2": float(r2.mean()) if len(r2) else 0.0, **each}


def _loss(regressor: Regressor, scores: Tensor, targets: Tensor) -> Tensor:
    """Smooth L1 (Girshick 2015) of scores [B, T] over the numbers that are there, in deviations from the mean."""
    known = ~targets.isnan()
    wanted = (torch.where(known, targets, regressor.mean) - regressor.mean) / regressor.deviation
    losses = F.smooth_l1_loss(torch.where(known, scores, 0), wanted, reduction="none")
    return losses.sum() / _known_count(targets)


def _known_count(targets: Tensor) -> Tensor:
    return (~targets.isnan()).sum().clamp(min=1)
