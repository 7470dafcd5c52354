"""What a recipe is: a kind of model, how it is built, what it minimises and what it is good for once trained.

A new recipe is one new file in this folder (or in a package that names its module in the entry-point group
'studio.recipes'): a subclass of `Recipe` with a `Config`. Forms, flags, JSON, runs and exports come from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from studio.core import former_names
from studio.core.config import TrainingConfig, Value
from studio.core.metrics import LOSS, Metric
from studio.data.sprites import Sprites
from studio.recipes.capabilities import Capability

Makes = Literal["sprites", "labels", "numbers"]
ConfigT = TypeVar("ConfigT", bound=TrainingConfig, default=Any)
NetworkT = TypeVar("NetworkT", bound=nn.Module, default=Any)

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Batch:
    """Sprites on the training device.

    x: float32 [B, 4, S, S], premultiplied RGBA in [-1, 1].
    y: int64 [B], class indices.
    augment_labels: float32 [B, 3], what augmentation did: mirrored (0 or 1), and moved right and down before that, in
        units of 8 pixels.
    targets: float32 [B, T], the numbers that go with each sprite, NaN where one is missing.
    progress: how much of the training is done, 0 to 1.
    first, whole: where several processes share a batch, these sprites are those from `first` on of so many; else 0.
    """

    x: Tensor
    y: Tensor
    augment_labels: Tensor
    targets: Tensor
    progress: float = 0.0
    first: int = 0
    whole: int = 0

    def micro_batches(self, count: int, generator: torch.Generator) -> Iterator[tuple[Batch, BatchRng]]:
        """The same sprites in so many batches, at most one for each, each with its rows of the same random numbers."""
        size, drawn = len(self.x), list[Tensor]()
        count = min(count, size)
        for start, stop in pairwise(size * number // count for number in range(count + 1)):
            rows = slice(start, stop)
            parts = self.x[rows], self.y[rows], self.augment_labels[rows], self.targets[rows]
            yield Batch(*parts, self.progress), BatchRng(generator, self, rows, drawn)


def evenly_spread(first: int, count: int) -> Tensor:
    """Numbers float64 [count] in [0, 1), on the CPU, for the places from `first` on.

    However many they are, multiples of the golden ratio are spread evenly.
    """
    return (0.5 + _GOLDEN * torch.arange(first, first + count, dtype=torch.float64)) % 1


class BatchRng:
    """Random numbers for the sprites of a micro-batch, on the device: rows of those of the whole batch.

    What the first micro-batch asks for is drawn for the whole batch and kept for the others, which ask for the same in
    the same order. So it makes no difference in how many parts a batch is taken, nor how many processes share it.
    """

    def __init__(
        self, generator: torch.Generator, batch: Batch, rows: slice = slice(None), drawn: list[Tensor] | None = None
    ) -> None:
        """rows: of the micro-batch in `batch`. drawn: what was asked for, of the whole batch."""
        start, stop, _ = rows.indices(len(batch.x))
        self._generator, self._device = generator, batch.x.device
        self._size, self._rows = batch.whole or len(batch.x), slice(batch.first + start, batch.first + stop)
        self._drawn = [] if drawn is None else drawn
        self._asked = 0

    def randn(self, *shape: int) -> Tensor:
        """Standard normal float32 [B, *shape]."""
        return self._rows_of(torch.randn, shape)

    def rand(self, *shape: int) -> Tensor:
        """Uniform float32 [B, *shape] in [0, 1)."""
        return self._rows_of(torch.rand, shape)

    def _rows_of(self, draw: Callable[..., Tensor], shape: tuple[int, ...]) -> Tensor:
        if self._asked == len(self._drawn):
            size = (self._size, *shape)
            self._drawn.append(draw(size, device=self._device, generator=self._generator))
        self._asked += 1
        return self._drawn[self._asked - 1][self._rows]


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
    """Settings that belong together, offered by one name ('Quick').

    about_s: seconds that a training with them takes, nearly, where that is not what they say.
    """

    title: str
    help: str
    changes: Mapping[str, Value]
    about_s: float = 0.0


@dataclass(frozen=True)
class TrainingBudget:
    """What there is to train with; 0 for what is not known.

    sprites: how many; sprites_per_s: how fast the recipe's default network learns from them on all devices.
    given: settings that follow from the weights that the training starts from; None where it starts from nothing.
    devices: how many share each batch.
    """

    sprites: int = 0
    sprites_per_s: float = 0.0
    given: Mapping[str, Value] | None = None
    devices: int = 1


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


if not TYPE_CHECKING:  # a checker would accept any name
    __getattr__ = former_names.attributes_of(__name__)


class Recipe(ABC, Generic[ConfigT, NetworkT]):
    """One kind of model, with the config and the network that it has. Stateless: what is learnt is in the network.

    For makes='sprites' it has `draw`. For makes='labels' its network gives logits [B, K], for makes='numbers' numbers
    [B, T] in their own units, of x as in `Batch`.
    """

    name: str = ""
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""  # one sentence, shown beside the title
    makes: ClassVar[Makes] = "sprites"
    capabilities: ClassVar[frozenset[Capability]] = frozenset()  # beyond what it `makes`
    Config: type[ConfigT]
    Network: type[NetworkT]
    small: ConfigT  # of a network that learns in seconds, for the tests
    order: ClassVar[int] = 100  # recipes with a lower one come first; the first is the one that is proposed
    # How many sprites the devices' probe trains on in the time of one here, at 32 pixels, as 'studio devices --measure
    # --recipe NAME' says; 0 where that is not known: presets are not told how fast the device is.
    relative_cost: ClassVar[float] = 0.0
    solver: ClassVar[Mapping[str, float]] = MappingProxyType({})  # of one that can 'flow': flow.CONSTANTS
    fixed_by_weights: ClassVar[tuple[str, ...]] = ()  # settings that follow from the weights of a trained network
    fine_tuning: ClassVar[Mapping[str, Value]] = {}  # settings that suit a training that starts from trained weights
    # How far batches grow with the devices that share them: to the noise scale of its runs, beyond which larger ones
    # stop helping, as 'studio lab noise-scale RUN' says; 0 where that is not known: they don't grow.
    largest_batch: ClassVar[int] = 0
    # Shares of a training from which on the loss asks other things of the device. Between them it asks the same in each
    # step, whatever `Batch.progress` is, so that a CUDA graph can stand for it.
    stages: ClassVar[tuple[float, ...]] = ()
    headline: ClassVar[Metric] = LOSS  # the figure on held-out sprites that stands for a run

    can = former_names.alias("Recipe.can", "capabilities")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        former_names.rename_members(cls)

    @property
    def best_by(self) -> Metric | None:
        """The figure on held-out sprites by which a better checkpoint is told from a worse one.

        None where sprites are drawn: of few sprites, the loss on held-out ones rises while new ones still get better.
        """
        return None if self.makes == "sprites" else self.headline

    def select(self, sprites: Sprites, config: ConfigT) -> tuple[Sprites, list[str]]:
        """The sprites that this recipe can learn from, and a sentence for each thing left out. Raises TrainingError."""
        return sprites, []

    def defaults(self, means: TrainingBudget) -> ConfigT:
        """The settings that are changed by a preset and by the user."""
        usual = self.Config()
        if means.given is not None:
            usual = usual.replace(**{**self.fine_tuning, **means.given})
        larger = min(means.devices * usual.batch_size, self.largest_batch)
        return usual.replace(batch_size=larger) if larger > usual.batch_size else usual

    def presets(self, means: TrainingBudget) -> tuple[Preset, ...]:
        """Trainings as suit these means, the usual one in the middle. Each takes the time that it states."""
        return ()

    def usual_changes(self, means: TrainingBudget) -> Mapping[str, Value]:
        """What the preset in the middle changes; nothing where there are no presets."""
        presets = self.presets(means)
        return presets[len(presets) // 2].changes if presets else {}

    def cost(self, size: int) -> float:
        """`relative_cost` for sprites of so many pixels a side. A quarter of it is the same for all of them: the
        optimizer's step, and what each operation costs whatever its size.
        """
        return self.relative_cost * (0.25 + 0.75 * (size / 32) ** 2)

    @abstractmethod
    def arguments(self, config: ConfigT, spec: Spec) -> dict[str, Value]:
        """The keyword arguments of `network_class` for these settings and sprites: plain values, for exports too."""

    def network_class(self, config: ConfigT) -> type[NetworkT]:
        """Of the network for these settings: `Network`, or a subclass of it where there are several."""
        return self.Network

    def build(self, config: ConfigT, spec: Spec) -> NetworkT:
        """A new network on the CPU, its weights drawn from torch's global generator."""
        return self.network_class(config)(**self.arguments(config, spec))

    def rows(self, spec: Spec) -> Mapping[str, tuple[str, ...]]:
        """Weights that have a row for each class or number, with the names of these rows; a last row without a name
        stands for any of them. By these names a training that starts from other weights finds the rows it can take.
        """
        return {}

    def statistics(self, sprites: Sprites, config: ConfigT) -> Mapping[str, Tensor]:
        """What a network must know of the sprites that it will learn from: values of its buffers, by their names."""
        return {}

    @abstractmethod
    def loss(self, network: NetworkT, batch: Batch, config: ConfigT, rng: BatchRng) -> Tensor:
        """The scalar to minimise, on the device: a mean over the batch. All randomness comes from `rng`."""

    def weight(self, batch: Batch) -> float | Tensor:
        """How much a batch counts: of how many `loss` is the mean. A tensor is a scalar on the batch's device."""
        return len(batch.x)

    @abstractmethod
    def evaluate(self, network: NetworkT, batches: Iterable[Batch], config: ConfigT, spec: Spec) -> Evaluation:
        """Figures over held-out batches, the same for the same network, however large the batches are.

        Called without gradients, in eval mode; anew, in smaller batches, where the device had no room for these.
        """

    @staticmethod
    def draw(
        network: NetworkT, labels: Tensor, guidance: float, steps: int, seed: int, first: int = 0
    ) -> Iterator[Tensor]:
        """Draw a sprite of each class in int64 [N] (-1: any), on the network's device: yields x as in `Batch` after
        each of its steps, the sprites last. A recipe that can mix takes shares of classes as well: float32 [N, K].

        guidance: 1 for the class as it was learnt, more for what sets it apart. A sprite depends on the seed and its
        place, that of the first being `first`. Its source, and what that needs, is written into loaders of exported
        models, as is the network's: of other packages than this one's it uses torch alone.
        """
        raise NotImplementedError("this recipe draws no sprites")

    def predict(self, network: NetworkT, x: Tensor) -> Tensor:
        """Of x as in `Batch`: class probabilities float32 [B, K], or numbers float32 [B, T] in their own units."""
        outputs = network(x).float()
        return outputs.softmax(1) if self.makes == "labels" else outputs  # type: ignore[no-any-return]
