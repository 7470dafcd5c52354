"""The base of recipes. A recipe describes a kind of model: settings, network, loss, evaluation and use.

To add a recipe, add a file with a subclass of `Recipe` and a `Config` to this folder, or to a package that names the
module in the entry-point group 'studio.recipes'. The studio derives forms, flags, JSON, runs and exports from the
recipe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from studio.core import former_names
from studio.core.arrays import Indices
from studio.core.config import TrainingConfig, Value
from studio.core.metrics import LOSS, Metric
from studio.data.sprites import Examples, Sprites
from studio.recipes.capabilities import Capability

Makes = Literal["sprites", "sets", "labels", "numbers"]
ConfigT = TypeVar("ConfigT", bound=TrainingConfig, default=Any)
NetworkT = TypeVar("NetworkT", bound=nn.Module, default=Any)

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Batch:
    """A batch of sprites, or of sets with C cells each, on the training device.

    augment_labels: the augmentation: mirrored (0 or 1), and the shift right and down before mirroring, in units of 8
    pixels.
    """

    x: Tensor  # float32 [B, 4, S, S], premultiplied RGBA in [-1, 1]; [B, 4 C, S, S] for sets
    y: Tensor  # int64 [B], class indices
    augment_labels: Tensor  # float32 [B, 3]
    # float32 [B, T], the numbers to predict, NaN where missing. For sets [B, C]: 1 if the set has the cell, else 0.
    # For a recipe that learns attributes [B, A]: indices of the attributes' values in `Spec.labels`, -1 where missing.
    targets: Tensor
    progress: float = 0.0  # finished share of the training, 0 to 1
    first: int = 0  # index of the first sprite in the global batch of a distributed run
    whole: int = 0  # global batch size of a distributed run

    def micro_batches(self, count: int, generator: torch.Generator) -> Iterator[tuple[Batch, BatchRng]]:
        """Split the batch into at most `count` micro-batches; yields each with its random number generator."""
        size, drawn = len(self.x), list[Tensor]()
        count = min(count, size)
        for start, stop in pairwise(size * number // count for number in range(count + 1)):
            rows = slice(start, stop)
            parts = self.x[rows], self.y[rows], self.augment_labels[rows], self.targets[rows]
            yield Batch(*parts, self.progress), BatchRng(generator, self, rows, drawn)


def evenly_spread(first: int, count: int) -> Tensor:
    """Return elements `first` to `first + count - 1` of a sequence that covers [0, 1) evenly: float64, on the CPU.

    Consecutive elements differ by the golden ratio modulo 1.
    """
    return (0.5 + _GOLDEN * torch.arange(first, first + count, dtype=torch.float64)) % 1


class BatchRng:
    """Random number generator of a micro-batch, independent of the number of micro-batches and processes.

    The first micro-batch draws random tensors for the whole batch; later micro-batches reuse the tensors in the same
    order. A micro-batch gets the rows of its own sprites. drawn: the random tensors, shared by all micro-batches.
    """

    def __init__(
        self, generator: torch.Generator, batch: Batch, rows: slice = slice(None), drawn: list[Tensor] | None = None
    ) -> None:
        start, stop, _ = rows.indices(len(batch.x))
        self._generator, self._device, self._batch, self._own_rows = generator, batch.x.device, batch, rows
        self._size, self._rows = batch.whole or len(batch.x), slice(batch.first + start, batch.first + stop)
        self._drawn = [] if drawn is None else drawn
        self._asked = 0

    def randn(self, *shape: int) -> Tensor:
        """Return standard normal numbers, float32 [B, *shape]."""
        return self._rows_of(torch.randn, shape)

    def rand(self, *shape: int) -> Tensor:
        """Return uniform numbers in [0, 1), float32 [B, *shape]."""
        return self._rows_of(torch.rand, shape)

    def previous(self) -> Batch:
        """Return, by example of the micro-batch, the previous example in this process's batch, in cyclic order."""
        whole = self._batch
        order = torch.arange(len(whole.x), device=self._device).roll(1)[self._own_rows]
        return Batch(whole.x[order], whole.y[order], whole.augment_labels[order], whole.targets[order], whole.progress)

    def _rows_of(self, draw: Callable[..., Tensor], shape: tuple[int, ...]) -> Tensor:
        if self._asked == len(self._drawn):
            size = (self._size, *shape)
            self._drawn.append(draw(size, device=self._device, generator=self._generator))
        self._asked += 1
        return self._drawn[self._asked - 1][self._rows]


@dataclass(frozen=True)
class Spec:
    """The shape of the training data: sprite size in pixels, and the names of classes, predicted numbers and cells.

    attributes: the possible values by attribute name: {'element': ('fire', 'ice')}.
    """

    size: int
    class_names: tuple[str, ...]
    target_names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()  # of a set, as in SetLayout: 'down/step'
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, sprites: Sprites) -> Spec:
        """Create a spec with the size, class names, number names, cells and attributes of these sprites."""
        attributes = dict(zip(sprites.attributes.names, sprites.attributes.values, strict=True))
        return cls(sprites.size, sprites.class_names, sprites.target_names, sprites.sets.cells, attributes)

    @property
    def values(self) -> tuple[str, ...]:
        """Attribute values in order: 'element=fire'."""
        return tuple(f"{name}={value}" for name, values in self.attributes.items() for value in values)

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names, then attribute values."""
        return (*self.class_names, *self.values)


def with_attributes(sprites: Sprites) -> Sprites:
    """Return a copy of the sprites with the attributes as targets, in the form of `Batch.targets`."""
    names, table = sprites.attributes.names, sprites.attributes.table  # int16 [N, A]
    if not names:
        return replace(sprites, target_names=()) if sprites.target_names else sprites
    counts = [len(sprites.class_names), *map(len, sprites.attributes.values)]
    firsts = np.cumsum(counts)[:-1]  # [A], the index of each attribute's first value in `Spec.labels`
    targets = np.where(table < 0, -1, table + firsts).astype(np.float32)
    return replace(sprites, targets=targets, target_names=names)


class CellSlices(NamedTuple):
    """A dimension of a weight whose slices belong to cells.

    names: a cell for each slice, '' for a slice without a cell. All cells have equally many slices.
    """

    dim: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Preset:
    """Training settings with a name, for example 'Quick'."""

    title: str
    help: str
    changes: Mapping[str, Value]  # values by name of the setting
    about_s: float = 0.0  # estimated training time in seconds; 0 if `changes` sets the time


@dataclass(frozen=True)
class TrainingBudget:
    """The sprites, speed and devices available to a training; 0 stands for unknown."""

    sprites: int = 0  # number of training examples
    sprites_per_s: float = 0.0  # training speed of the recipe's default network on all devices together
    parent_settings: Mapping[str, Value] | None = None  # settings fixed by the initial weights; None for new weights
    devices: int = 1  # number of devices that share a batch

    given = former_names.alias("TrainingBudget.given", "parent_settings")


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a network on the validation set. Tensors are on the CPU."""

    metrics: Mapping[str, float]  # always with 'loss'
    confusion: Tensor | None = None  # int64 [K, K], rows are true classes; None without classes
    baseline: Mapping[str, float] = field(default_factory=dict)  # metrics of a constant prediction, if known
    # float32 [2, N, T], predicted and true numbers of up to 1,000 sprites, NaN where unknown; None without numbers.
    pairs: Tensor | None = None
    predicted: Tensor | None = None  # int64 [N], predicted classes in the order of the batches
    # By attribute: confusion int64 [V, V] over sprites with a value, and predicted value by sprite, int64 [N].
    attributes: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)


class Recipe(ABC, Generic[ConfigT, NetworkT]):
    """Base class of a kind of model: its settings, network, loss, evaluation and use. Recipes hold no state.

    With makes='sprites' a subclass defines `draw`. With makes='labels' its network returns logits [B, K], with
    makes='numbers' numbers [B, T] in their own units. These networks take float32 [B, 4, S, S], premultiplied RGBA.
    With makes='sets' it is a `CompletesSets`.
    """

    name: str = ""
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""  # one sentence beside the title
    makes: ClassVar[Makes] = "sprites"
    capabilities: ClassVar[frozenset[Capability]] = frozenset()  # in addition to `makes`
    Config: type[ConfigT]
    Network: type[NetworkT]
    small: ConfigT  # settings of a small network, for tests
    order: ClassVar[int] = 100  # position in lists of recipes; the first recipe is the default
    # Training time for a 32-pixel sprite, relative to the device probe's time, from 'studio devices --measure --recipe
    # NAME'. 0: unknown, so presets can't follow the device's speed.
    relative_cost: ClassVar[float] = 0.0
    solver: ClassVar[Mapping[str, float]] = MappingProxyType({})  # flow.CONSTANTS, for the capability 'flow'
    fixed_by_weights: ClassVar[tuple[str, ...]] = ()  # settings that a trained network fixes
    fine_tuning: ClassVar[Mapping[str, Value]] = {}  # defaults for a training with a parent
    # Largest batch size for several devices: the noise scale of the recipe's runs, from 'studio lab noise-scale RUN'.
    # 0: unknown, so the batch size does not grow with the devices.
    largest_batch: ClassVar[int] = 0
    # Values of `Batch.progress` at which the computation of the loss changes. Between two values, every step launches
    # equal kernels, so a captured CUDA graph can replay the steps.
    stages: ClassVar[tuple[float, ...]] = ()
    headline: ClassVar[Metric] = LOSS  # the validation metric that represents a run

    can = former_names.alias("Recipe.can", "capabilities")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        former_names.rename_members(cls)

    @property
    def kind(self) -> str:
        """The kind of model in a sentence: 'a generator', 'an autoencoder', 'a model of sets'."""
        if self.makes == "sets":
            return f"a model of {self.title.lower()}"
        return f"{'an' if self.title[:1].lower() in 'aeiou' else 'a'} {self.title.lower()}"

    @property
    def best_by(self) -> Metric | None:
        """The validation metric that selects the best checkpoint; None: the newest checkpoint is the best.

        None for models that draw single sprites: on small data sets, the validation loss rises while new sprites still
        improve.
        """
        return None if self.makes == "sprites" else self.headline

    @property
    def noun(self) -> str:
        """The word for a training example: 'sprite' or 'character'."""
        return self.Config.noun

    def select(self, sprites: Sprites, config: ConfigT) -> tuple[Sprites, list[str]]:
        """Return the usable training sprites, and a sentence about every group left out. Raises TrainingError."""
        return sprites, []

    def resolve(self, config: ConfigT, sprites: Sprites) -> ConfigT:
        """Return the config of a training on these sprites: settings on *Auto* get the values that suit them."""
        return config

    def examples(self, sprites: Sprites, indices: Indices) -> tuple[Examples, Indices]:
        """Return training examples, and the indices among them of the examples with the sprites at `indices`."""
        return sprites, indices

    def count_examples(self, sprites: Sprites) -> int:
        """Return the number of training examples: sprites, or sets for a recipe of sets."""
        return len(sprites.sets) if self.makes == "sets" else len(sprites)

    def obstacle(self, sprites: Sprites) -> str:
        """Return why sprites don't suit the recipe, and what to do, by a quick check; '' for suitable sprites."""
        return ""

    def defaults(self, budget: TrainingBudget) -> ConfigT:
        """Return the default settings for a training with this budget."""
        usual = self.Config()
        if budget.parent_settings is not None:
            usual = usual.replace(**{**self.fine_tuning, **budget.parent_settings})
        larger = min(budget.devices * usual.batch_size, self.largest_batch)
        return usual.replace(batch_size=larger) if larger > usual.batch_size else usual

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        """Return the presets that suit the budget, with the standard preset in the middle."""
        return ()

    def usual_changes(self, budget: TrainingBudget) -> Mapping[str, Value]:
        """Return the settings that the standard preset changes; empty if the recipe has no presets."""
        presets = self.presets(budget)
        return presets[len(presets) // 2].changes if presets else {}

    def fixed_settings(self, config: ConfigT, size: int) -> dict[str, Value]:
        """Return the values of `fixed_by_weights`, by setting, of a network trained on sprites of this size."""
        return {name: getattr(config, name) for name in self.fixed_by_weights}

    def cost(self, size: int) -> float:
        """Return the training time for a sprite, relative to the device's speed test. size: sprite width in pixels.

        A quarter of the cost doesn't depend on the size: the optimizer step, and launching the operations.
        """
        return self.relative_cost * (0.25 + 0.75 * (size / 32) ** 2)

    @abstractmethod
    def arguments(self, config: ConfigT, spec: Spec) -> dict[str, Value]:
        """Return the keyword arguments for creating the network, as plain values for exports."""

    def attribute_arguments(self, spec: Spec) -> dict[str, Value]:
        """Return the arguments that differ for a network that learns attributes; empty without attributes."""
        return {}

    def network_class(self, config: ConfigT) -> type[NetworkT]:
        """Return the network's class for these settings."""
        return self.Network

    def build(self, config: ConfigT, spec: Spec) -> NetworkT:
        """Create a network on the CPU, with random weights from the global generator of torch."""
        return self.network_class(config)(**{**self.arguments(config, spec), **self.attribute_arguments(spec)})

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        """Return the names of a weight's rows, by the weight's name: the class or number that each row belongs to.

        A training that starts from another run's weights copies the rows with equal names. An embedding may end with a
        row without a name, for sprites of any class.
        """
        return {}

    def cell_slices(self, spec: Spec) -> Mapping[str, tuple[CellSlices, ...]]:
        """Return the dimensions with slices for cells, by weight name.

        A training from another run's weights copies the slices of the best matching cells.
        """
        return {}

    def statistics(self, sprites: Sprites, config: ConfigT) -> Mapping[str, Tensor]:
        """Compute the network's buffers that depend on the training sprites; return the values by buffer name."""
        return {}

    @abstractmethod
    def loss(self, network: NetworkT, batch: Batch, config: ConfigT, rng: BatchRng) -> Tensor:
        """Return the training loss, a scalar on the device, averaged over the batch. Draw random numbers from `rng`."""

    def loss_of(self, spec: Spec) -> Callable[[NetworkT, Batch, ConfigT, BatchRng], Tensor]:
        """Return the training loss for this spec: `loss`, or with attributes a loss that teaches attributes too."""
        return self.loss

    def weight(self, batch: Batch) -> float | Tensor:
        """Return the weight of a micro-batch's loss, the items that it averages over: a number, or a device scalar."""
        return len(batch.x)

    @abstractmethod
    def evaluate(self, network: NetworkT, batches: Iterable[Batch], config: ConfigT, spec: Spec) -> Evaluation:
        """Compute metrics over the batches of the validation set; the result must not depend on the batch size.

        Runs in eval mode without gradients. If the device runs out of memory, the studio retries with smaller batches.
        """

    @staticmethod
    def draw(
        network: NetworkT, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        """Draw one sprite per label; yields x [N, 4, S, S] after each solver step, the finished sprites last.

        labels: int64 [N] on the network's device, -1 for any class; with the capability 'mix' also float32 [N, K],
        shares of classes. guidance: guidance scale, 1 for none. A sprite depends on the seed and its index, which
        counts from `first`. Exported models contain the source of this function, which may import only torch and the
        studio.
        """
        raise NotImplementedError("this recipe draws no sprites")

    def predict(self, network: NetworkT, x: Tensor) -> Tensor:
        """Return class probabilities float32 [B, K], or numbers float32 [B, T] in their own units, for sprites x."""
        outputs = network(x).float()
        return outputs.softmax(1) if self.makes == "labels" else outputs  # type: ignore[no-any-return]

    def predictor_of(self, spec: Spec) -> Callable[[NetworkT, Tensor], Tensor]:
        """Return `predict`, or with attributes a function that returns probabilities [B, K] of `Spec.labels`."""
        return self.predict
