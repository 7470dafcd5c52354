"""The regression: predicts a sprite's numbers, such as a price, with the classifier's networks."""

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

_FEWEST = 3  # sprites: one for validation and two for training
_MOST_ERRORS = 8  # more numbers share an error in the report
_MOST_PAIRS = 1000  # sprites in the scatter plot
_SMALLEST_SHARE = 1e-6  # of the largest value: float32 can't resolve a smaller deviation


@dataclass(frozen=True)
class RegressionConfig(PredictorConfig):
    """The settings of the regression."""


class Regressor(nn.Module):
    """Network that predicts numbers [B, targets] in their own units from sprites x [B, 4, S, S].

    The body predicts normalised numbers. The buffers `mean` and `deviation`, [targets] each, convert them to their own
    units, in exported networks too.
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
        """Convert normalised scores [B, targets] to numbers in their own units."""
        return scores * self.deviation + self.mean


class ResNetRegressor(Regressor):
    """A regressor whose body is the studio's residual network."""

    def __init__(self, targets: int, width: int, dropout: float) -> None:
        super().__init__(ResNet(targets, width, dropout))


class PerceptronRegressor(Regressor):
    """A regressor whose body is the perceptron of the PyTorch tutorials."""

    def __init__(self, targets: int, size: int, dropout: float) -> None:
        super().__init__(Perceptron(size, targets, dropout))


class TorchvisionRegressor(Regressor):
    """A regressor whose body is a network of torchvision."""

    def __init__(self, targets: int, network: str, dropout: float) -> None:
        super().__init__(TorchvisionNetwork(network, targets, dropout))


class Regression(Recipe[RegressionConfig, Regressor]):
    """Model that predicts numbers of a sprite, for example a price."""

    name = "regression"
    title = "Regression"
    summary = "Learns to predict numbers, such as a price or a size, from a labels.csv next to your sprites."
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
            title = f"A regression needs numbers: {count(len(kept), 'sprite')} of {len(sprites):,} have any."
            hint = "Add a labels.csv next to your sprites, with lines like 'file,price' and 'sword.png,12.5'."
            raise TrainingError(title, hint)
        left_out = len(sprites) - len(kept)
        notes = [f"Left out, without a number: {count(left_out, 'sprite')}."] if left_out else []
        return sprites.take(kept), notes

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (
            PLANNER.preset("Quick", "A first impression of how predictable the numbers are.", 1.0, 40_000, budget),
            PLANNER.preset("Standard", "Good predictions on most sprite sets.", 3.0, 120_000, budget),
            PLANNER.preset("Best", "Somewhat more exact predictions.", 10.0, 220_000, budget),
        )

    def statistics(self, sprites: Sprites, config: RegressionConfig) -> Mapping[str, Tensor]:
        """Return mean and standard deviation for every target number; constant numbers get a deviation of 1."""
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
        """Return the loss, R2 and mean absolute error on the validation set; the baseline predicts the mean."""
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
    """Return R2 and the mean absolute error. predicted, true: float64 [N, T]; true numbers may be NaN.

    r2: the mean over varying numbers; 0 for predicting the mean, 1 for perfect predictions.
    mae: for 2 to 8 numbers an error per number in the number's unit ('mae price'), otherwise the mean error. Omits
    numbers without true values.
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
    if len(names) == 1 or len(names) > _MOST_ERRORS:
        each = {"mae": float(mae.mean())} if len(mae) else {}
    else:
        each = {f"mae {name}": float(value) for name, value in zip(compress(names, there), mae, strict=True)}
    return {"r2": float(r2.mean()) if len(r2) else 0.0, **each}


def _loss(regressor: Regressor, scores: Tensor, targets: Tensor) -> Tensor:
    """Return the smooth L1 loss (Girshick 2015) of normalised scores [B, T], averaged over the known targets."""
    known = ~targets.isnan()
    normalised = (torch.where(known, targets, regressor.mean) - regressor.mean) / regressor.deviation  # [B, T]
    losses = F.smooth_l1_loss(torch.where(known, scores, 0), normalised, reduction="none")  # 0 where unknown
    return losses.sum() / _known_count(targets)


def _known_count(targets: Tensor) -> Tensor:
    return (~targets.isnan()).sum().clamp(min=1)
