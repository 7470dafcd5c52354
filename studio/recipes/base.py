"""What a recipe is: a kind of model, how it is built, what it minimises and what it is good for once trained.

A new recipe is one new file in this folder (or in a package that names its module in the entry-point group
'studio.recipes'): a subclass of `Recipe` with a `Config`. Forms, flags, JSON, runs and exports come from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from studio.core.config import TrainingConfig, Value
from studio.data.sprites import Sprites

Makes = Literal["sprites", "labels", "numbers"]


@dataclass(frozen=True)
class Batch:
    """Sprites on the training device.

    x: float32 [B, 4, S, S], premultiplied RGBA in [-1, 1].
    y: int64 [B], class indices.
    changes: float32 [B, 3], what augmentation did: mirrored (0 or 1), and moved right and down before that, in
        units of 8 pixels.
    targets: float32 [B, T], the numbers that go with each sprite, NaN where one is missing.
    """

    x: Tensor
    y: Tensor
    changes: Tensor
    targets: Tensor

    def micro_batches(self, count: int) -> list[Batch]:
        """The same sprites in so many batches, at most one for each."""
        columns = (self.x, self.y, self.changes, self.targets)
        parts = [column.tensor_split(min(count, len(self.x))) for column in columns]
        return [Batch(*part) for part in zip(*parts, strict=True)]


@dataclass(frozen=True)
class Spec:
    """What a network must know of its data: the side of a sprite in pixels, and the names of classes and numbers."""

    size: int
    class_names: tuple[str, ...]
    target_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, sprites: Sprites) -> Spec:
        """What there is to know of these."""
        return cls(sprites.size, sprites.class_names, sprites.target_names)


@dataclass(frozen=True)
class Preset:
    """Settings that belong together, offered by one name ('Quick')."""

    title: str
    help: str
    changes: Mapping[str, Value]


@dataclass(frozen=True)
class TrainingBudget:
    """What there is to train with; 0 for what is not known.

    sprites: how many; sprites_per_s: how fast the recipe's default network learns from them on the device.
    """

    sprites: int = 0
    sprites_per_s: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """Figures on held-out sprites: `metrics` always holds 'loss'. `confusion` is int64 [K, K] on the CPU, or None.

    baseline: the same figures, as far as they can be told, of who says the same of every sprite.
    pairs: float32 [2, N, T] on the CPU, the numbers that are predicted and the true ones, NaN where not known; of many
    sprites some. None for recipes that predict no numbers.
    """

    metrics: Mapping[str, float]
    confusion: Tensor | None = None
    baseline: Mapping[str, float] = field(default_factory=dict)
    pairs: Tensor | None = None


@dataclass(frozen=True)
class SampleSettings:
    """How to sample: classes int64 [N] (-1: any), guidance scale (1: none), solver steps, and the seed of the noise.

    `first` is the place of the first of these sprites in a longer list of the same seed.
    """

    labels: Tensor
    guidance: float
    steps: int
    seed: int
    first: int = 0


class Recipe(ABC):
    """One kind of model. Stateless: everything that is learnt lives in the network that `build` makes."""

    name: str = ""
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""  # one sentence, shown beside the title
    makes: ClassVar[Makes] = "sprites"
    Config: ClassVar[type[TrainingConfig]] = TrainingConfig
    probes: ClassVar[float] = 1.0  # how many sprites the devices' probe trains on in the time of one here, at 32 pixels
    headline: ClassVar[str] = "loss"  # the metric that tells a better checkpoint from a worse one
    headline_is_better: ClassVar[Literal["low", "high"]] = "low"
    # Classes and functions, in order, whose sources rebuild the network from torch alone; see exports/state_dict.py.
    portable: ClassVar[tuple[Any, ...]] = ()

    def select(self, sprites: Sprites, config: TrainingConfig) -> tuple[Sprites, list[str]]:
        """The sprites that this recipe can learn from, and a sentence for each thing left out. Raises TrainingError."""
        return sprites, []

    def presets(self, means: TrainingBudget) -> tuple[Preset, ...]:
        """A short, a usual and a long training, as suits these means. Each takes the time that it states."""
        return ()

    @abstractmethod
    def build(self, config: TrainingConfig, spec: Spec) -> nn.Module:
        """A new network on the CPU, its weights drawn from torch's global generator."""

    def statistics(self, sprites: Sprites) -> Mapping[str, Tensor]:
        """What a network must know of the sprites that it will learn from: values of its buffers, by their names."""
        return {}

    @abstractmethod
    def architecture(self, config: TrainingConfig, spec: Spec) -> dict[str, Any]:
        """Name of the network's class under 'class', and its plain keyword arguments under 'arguments'."""

    @abstractmethod
    def loss(self, network: nn.Module, batch: Batch, config: TrainingConfig, rng: torch.Generator) -> Tensor:
        """The scalar to minimise, on the device. All randomness comes from `rng`, which lives on the device."""

    def weight(self, batch: Batch) -> float | Tensor:
        """How much a batch counts: of how many `loss` is the mean. A tensor is a scalar on the batch's device."""
        return len(batch.x)

    @abstractmethod
    def evaluate(self, network: nn.Module, batches: Iterable[Batch], config: TrainingConfig, spec: Spec) -> Evaluation:
        """Figures over held-out batches, the same for the same network, however large the batches are.

        Called without gradients, in eval mode; anew, in smaller batches, where the device had no room for these.
        """

    def sample(self, network: nn.Module, spec: Spec, settings: SampleSettings) -> Iterator[Tensor | None]:
        """Yield None after each solver step, then x float32 [N, 4, S, S] as in `Batch`. For makes='sprites'."""
        raise NotImplementedError(f"{self.name} makes no sprites")

    def predict(self, network: nn.Module, x: Tensor) -> Tensor:
        """Of x [B, 4, S, S]: class probabilities float32 [B, K] for makes='labels', for makes='numbers' the numbers
        float32 [B, T] in their own units.
        """
        raise NotImplementedError(f"{self.name} predicts nothing")
