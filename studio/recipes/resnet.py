"""The network of recipes that say something of a sprite, its settings, and what its presets are made from."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.config import TrainingConfig, setting, with_default
from studio.recipes.base import BatchRng
from studio.recipes.layers import ResidualBlock, group_norm, whole_groups
from studio.recipes.planning import Planner


@dataclass(frozen=True)
class ResNetConfig(TrainingConfig):
    """Settings of whatever is trained with it."""

    minutes: float = with_default(TrainingConfig, "minutes", 3.0)
    holdout: float = with_default(TrainingConfig, "holdout", 0.1)
    weight_decay: float = with_default(TrainingConfig, "weight_decay", 0.05)
    width: int = setting(32, "Channels of the network's first level.", low=16, high=512)
    dropout: float = setting(
        0.1,
        "Share of the last features hidden in training, against learning by heart.",
        low=0.0,
        high=0.9,
        advanced=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


PLANNER = Planner(
    width=ResNetConfig.width, widths=(16, 32, 48, 64), slowing=1.4, most_looks=1000, most_tuning_looks=1000
)
RELATIVE_COST = 4.1  # see Recipe.relative_cost


class ResNet(nn.Module):
    """Outputs [B, outputs] from x [B, 4, S, S] (He et al. 2016, with GroupNorm).

    Three levels of residual blocks, then the mean over positions.
    """

    def __init__(self, outputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, width, 3, 1, 1)
        self.blocks = nn.Sequential(
            ResidualBlock(width, width),
            ResidualBlock(width, 2 * width, stride=2),
            ResidualBlock(2 * width, 2 * width),
            ResidualBlock(2 * width, 4 * width, stride=2),
            ResidualBlock(4 * width, 4 * width),
        )
        self.norm, self.dropout = group_norm(4 * width), dropout
        self.leave = nn.Linear(4 * width, outputs)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` [B, 4 * width] hides features in training; it is drawn outside, where the seed is known."""
        features = F.hardswish(self.norm(self.blocks(self.enter(x)))).mean((2, 3))
        if mask is not None:
            features = features * mask / (1 - self.dropout)
        return self.leave(features)  # type: ignore[no-any-return]


def feature_mask(network: ResNet, rng: BatchRng) -> Tensor:
    """Which features to keep in a training step: bool [B, features]."""
    return rng.rand(network.leave.in_features) >= network.dropout
