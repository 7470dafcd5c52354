"""Networks and settings that the classifier and the regression share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.core.errors import TrainingError
from studio.data.sprites import Sprites
from studio.recipes.base import BatchRng, Spec
from studio.recipes.layers import ResidualBlock, group_norm, whole_groups
from studio.recipes.planning import Planner

OWN, TUTORIAL = "studio", "perceptron"
TORCHVISION = ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny")
_SMALLEST_PX = {"convnext_tiny": 16}  # sprite size: it halves the resolution four times


@dataclass(frozen=True)
class PredictorConfig(TrainingConfig):
    """Settings that the classifier and the regression share."""

    minutes: float = with_default(TrainingConfig, "minutes", 3.0)
    holdout: float = with_default(TrainingConfig, "holdout", 0.1)
    weight_decay: float = with_default(TrainingConfig, "weight_decay", 0.05)
    network: str = setting(
        OWN,
        "studio: a small residual network for sprites. perceptron: the tutorials' network, two hidden layers over grey "
        "pixels. The others are torchvision's, untrained, and train much slower.",
        choices=(OWN, TUTORIAL, *TORCHVISION), legacy_default=OWN,
    )  # fmt: skip
    width: int = setting(32, "Channels of the first level of the studio network.", low=16, high=512)
    dropout: float = setting(
        0.1,
        "Share of the last features dropped in training, against overfitting.",
        low=0.0,
        high=0.9,
        advanced=True,
        low_text="Off",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


FIXED_BY_WEIGHTS = ("network", "width")  # see Recipe.fixed_by_weights
PLANNER = Planner(
    width=PredictorConfig.width, widths=(16, 32, 48, 64), slowing=1.4, most_epochs=1000, most_tuning_epochs=1000
)
RELATIVE_COST = 4.1  # see Recipe.relative_cost


class Predictor(nn.Module):
    """Base class of networks that predict outputs [B, outputs] from sprites x [B, 4, S, S].

    A subclass computes features [B, features]; the linear layer `leave` turns them into outputs.
    """

    leave: nn.Linear
    dropout: float

    def features(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the outputs [B, outputs] for sprites x [B, 4, S, S].

        mask: dropout mask [B, features] for training, drawn by the caller from a seeded generator.
        """
        features = self.features(x)
        if mask is not None:
            features = features * mask / (1 - self.dropout)
        return self.leave(features)  # type: ignore[no-any-return]


class ResNet(Predictor):
    """A residual network with three levels and global average pooling (He et al. 2016, with GroupNorm)."""

    def __init__(self, outputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, width, 3, 1, 1)
        self.blocks = nn.Sequential(
            ResidualBlock(width, width),  # [B, width, S, S]
            ResidualBlock(width, 2 * width, stride=2),  # [B, 2 * width, S / 2, S / 2]
            ResidualBlock(2 * width, 2 * width),
            ResidualBlock(2 * width, 4 * width, stride=2),  # [B, 4 * width, S / 4, S / 4]
            ResidualBlock(4 * width, 4 * width),
        )
        self.norm, self.dropout = group_norm(4 * width), dropout
        self.leave = nn.Linear(4 * width, outputs)

    def features(self, x: Tensor) -> Tensor:
        return F.hardswish(self.norm(self.blocks(self.enter(x)))).mean((2, 3))


class Perceptron(Predictor):
    """The Fashion-MNIST network of the PyTorch tutorials, with layers of S * S, 128, 64 and `outputs` units.

    The inputs are grey values (ITU-R BT.601). A perceptron doesn't know which pixels are neighbours.
    """

    def __init__(self, size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(size**2, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.dropout, self.leave = dropout, nn.Linear(64, outputs)

    def features(self, x: Tensor) -> Tensor:
        weights = torch.tensor([[0.299, 0.587, 0.114, 0.0]], dtype=x.dtype, device=x.device)
        return self.hidden((weights @ x.flatten(2)).flatten(1))  # type: ignore[no-any-return]


class TorchvisionNetwork(Predictor):
    """A network of torchvision.models with random weights, adapted to small RGBA sprites.

    The first layer has four input channels and reduces the resolution less.
    BatchNorm is replaced by GroupNorm (Wu & He 2018), because batch statistics would make micro-batches differ from
    whole batches. Dropout and stochastic depth (Huang et al. 2016) inside the network are off: their random numbers
    would not depend on the step's seed.
    """

    def __init__(self, network: str, outputs: int, dropout: float) -> None:
        from torchvision import models  # imported late: it takes a second

        super().__init__()
        options: dict[str, dict[str, Any]] = {  # GroupNorm, and no randomness
            "resnet18": {"norm_layer": group_norm},
            "mobilenet_v3_small": {"norm_layer": group_norm, "dropout": 0.0},
            "efficientnet_b0": {"norm_layer": group_norm, "dropout": 0.0, "stochastic_depth_prob": 0.0},
            "convnext_tiny": {"stochastic_depth_prob": 0.0},
        }
        body: Any = models.get_model(network, weights=None, **options[network])
        is_resnet = network == "resnet18"
        last = body.fc if is_resnet else body.classifier[-1]
        if is_resnet:
            body.conv1, body.maxpool = nn.Conv2d(4, 64, 3, 1, 1, bias=False), nn.Identity()
            body.fc = nn.Identity()
        else:
            first = body.features[0][0]
            patch = (2, 2, 0) if network == "convnext_tiny" else (3, 1, 1)  # kernel, stride, padding
            body.features[0][0] = nn.Conv2d(4, first.out_channels, *patch, bias=first.bias is not None)
            body.classifier[-1] = nn.Identity()
        self.body, self.dropout, self.leave = body, dropout, nn.Linear(last.in_features, outputs)

    def features(self, x: Tensor) -> Tensor:
        return self.body(x)  # type: ignore[no-any-return]


def predictor_class(network: str) -> type[Predictor]:
    """Return the network class that the setting `network` names."""
    return {OWN: ResNet, TUTORIAL: Perceptron}.get(network, TorchvisionNetwork)


def predictor_arguments(config: PredictorConfig, spec: Spec) -> dict[str, Value]:
    """Return the keyword arguments that create the network, except the number of outputs."""
    if config.network == OWN:
        return {"width": config.width, "dropout": config.dropout}
    if config.network == TUTORIAL:
        return {"size": spec.size, "dropout": config.dropout}
    return {"network": config.network, "dropout": config.dropout}


def check_size(config: PredictorConfig, sprites: Sprites) -> None:
    """Raise TrainingError if the sprites are too small for the chosen network."""
    smallest = _SMALLEST_PX.get(config.network, 1)
    if sprites.size < smallest:
        needs = f"needs sprites of {smallest} x {smallest} pixels or more; these have {sprites.size}."
        hint = "Choose another network, or a larger canvas on the Sprites page."
        raise TrainingError(f"{config.network} {needs}", hint)


def feature_mask(network: Predictor, rng: BatchRng) -> Tensor | None:
    """Return a random dropout mask, bool [B, features], True where features stay; None without dropout."""
    return rng.rand(network.leave.in_features) >= network.dropout if network.dropout else None
