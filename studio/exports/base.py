"""The base class of export formats. A format writes a trained model, then reads the file back to verify it.

To add a format, add a module with a subclass of `ModelExport` to this folder, or list a module of your package in the
entry-point group 'studio.exports'. The export dialog, the command line and the contract tests find it.
"""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import TypeVar

from studio.core import files, former_names
from studio.core.config import Config, TrainingConfig, Value
from studio.core.errors import ExportError
from studio.exports.model_cards import ModelSource

Makes = Literal["sprites", "sets", "labels", "numbers"]
ReadBack = Tensor | Generator[float, None, Tensor]
ConfigT = TypeVar("ConfigT", bound=Config, default=Any)

ALL: frozenset[Makes] = frozenset({"sprites", "sets", "labels", "numbers"})
LARGEST_DIFFERENCE = 1e-4  # allowed difference for a lossless format, as a share of the largest output


@dataclass(frozen=True)
class Probe:
    """Fixed inputs for comparing an exported model with the live model."""

    count: int = 4
    seed: int = 7
    guidance: float = 2.0
    steps: int = 3  # solver steps, or rounds for models of sets
    variety: float = 0.5

    def labels(self, classes: int) -> Tensor:
        """Return class indices for the probe sprites: int64 [count]. The last index, -1, means any class."""
        labels = torch.arange(self.count) % max(1, classes)
        labels[-1] = -1
        return labels

    def label_indices(self, counts: Sequence[int]) -> list[Tensor]:
        """Return indices of classes, then of values by attribute: int64 [count] each, -1 for any.

        counts: number of classes, then number of values by attribute. In every tensor, another sprite has -1.
        """
        return [self.labels(count).roll(number) for number, count in enumerate(counts)]

    def sprites(self, size: int) -> Tensor:
        """Return random sprites in the network's layout: float32 [count, 4, size, size], premultiplied, in [-1, 1]."""
        noise = torch.rand(self.count, 4, size, size, generator=torch.Generator().manual_seed(self.seed))
        return noise * 2 - 1

    def pixels(self, size: int) -> Tensor:
        """Return the result of `sprites` as RGBA images: float32 [count, size, size, 4] in [0, 1]."""
        return (self.sprites(size).permute(0, 2, 3, 1) + 1) / 2

    def sets(self, cells: int, size: int) -> tuple[Tensor, Tensor]:
        """Return random sets in five colours. A set has a given cell, except the last set.

        Returns the cells, uint8 [count, cells, size, size, 4], straight RGBA, and a mask of the given cells, bool
        [count, cells].
        """
        rng = torch.Generator().manual_seed(self.seed)
        colours = torch.randint(0, 256, (self.count, 5, 4), generator=rng, dtype=torch.uint8)
        colours[:, 1:, 3], colours[:, 0] = 255, 0  # entry 0 is transparent
        index = torch.randint(0, 5, (self.count, cells * size * size, 1), generator=rng)
        pixels = colours.gather(1, index.expand(-1, -1, 4)).view(self.count, cells, size, size, 4)
        numbers = torch.arange(self.count)
        given = (numbers[:, None] % cells == torch.arange(cells)) & (numbers < self.count - 1)[:, None]
        return pixels, given

    def palettes(self, colours: int) -> Tensor:
        """Return random palettes for a network of sets: float32 [count, colours, 4], opaque, in [-1, 1]."""
        rgb = torch.rand(self.count, colours, 3, generator=torch.Generator().manual_seed(self.seed)) * 2 - 1
        return torch.cat([rgb, torch.ones(self.count, colours, 1)], 2)

    def chances(self, rounds: int, cells: int, size: int) -> Tensor:
        """Return uniform random numbers for drawing sets: float32 [count, rounds, 2, cells, size, size] in (0, 1)."""
        shape = (self.count, rounds, 2, cells, size, size)
        return torch.rand(shape, generator=torch.Generator().manual_seed(self.seed)).clamp(min=1e-6)


PROBE = Probe()


def label_shares(indices: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
    """Return labels for a model with attributes: float32 [B, K], 1 for chosen classes and values.

    indices: class index, then value index by attribute, int64 [B] each, -1 for any. counts: as in
    `Probe.label_indices`, with the sum K.
    """
    pairs = zip(indices, counts, strict=True)
    return torch.cat([(index[:, None] == torch.arange(count)).float() for index, count in pairs], 1)


@dataclass(frozen=True, eq=False)
class TrainingCode:
    """A model's training, for an exported training script.

    portable: classes and functions whose source code trains the network with torch and numpy: the parts of the training
    loop, and the recipe's `arguments`, loss and own `statistics`, with `subsample` for data sets too large for
    statistics over every sprite.
    """

    config: TrainingConfig  # the run's settings
    data: Path | None  # file with the training sprites (see `data.store.packed`); None if unknown
    portable: tuple[Any, ...]
    # Returns a network's loss for x [B, 4, S, S], y [B] and targets [B, T] (as in `Batch`) and a random seed.
    loss: Callable[[nn.Module, Tensor, Tensor, Tensor, int], Tensor]
    loss_name: str = "loss"  # the loss function's name in `portable`


@dataclass(frozen=True, eq=False)
class ExportableModel:
    """A trained model with everything that an export needs to know about it.

    portable: classes and functions whose source code builds and runs the network with torch alone: the network's class,
    `draw` (as in Recipe) and `to_rgba` for makes='sprites', `complete`, `draw_missing` and `normal_rows` for
    makes='sets', `to_input` for other models.
    premultiplied, straight: convert RGBA float32 [B, 4, S, S], straight alpha in [0, 1], to x as in `Batch`, and back.
    """

    title: str
    recipe: str
    makes: Makes
    config: Mapping[str, Value]
    size: int
    class_names: tuple[str, ...]
    target_names: tuple[str, ...]
    cells: tuple[str, ...]  # a set's cells; empty for other models
    # Values by attribute name. Labels of classes come first, then labels of values.
    attributes: Mapping[str, tuple[str, ...]]
    architecture: Mapping[str, Any]  # the network's class name under 'class', its keyword arguments under 'arguments'
    step: int
    ancestors: Sequence[Mapping[str, Any]]  # models that provided the initial weights, nearest first, as in run.json
    network: nn.Module  # float32 on the CPU in eval mode; a copy, untouched by training
    portable: tuple[Any, ...]
    fresh: Callable[[], nn.Module]  # creates an untrained network of equal architecture
    outputs: Callable[[nn.Module], Tensor]  # returns a network's outputs for the inputs `PROBE`: float32 on the CPU
    capabilities: Collection[str]  # as in Recipe
    solver: Mapping[str, float]  # `Recipe.solver`, for the capability 'flow'
    style: Mapping[str, Any]  # palette, colour counts and alpha levels for pixel art, as in style.json
    noise: Tensor | None  # the noise at `PROBE` for `draw_from`; None if the recipe can't draw from given noise
    draw_from: Callable[[Any, Tensor, Tensor, float | Tensor, int], Tensor]  # as in Recipe; only the finished sprites
    predict: Callable[[nn.Module, Tensor], Tensor]  # as in Recipe
    # Draws missing cells from network, cells, given, chances and variety, see `recipes.set_drawing`.
    draw_missing: Callable[[Any, Tensor, Tensor, Tensor, float | Tensor], Tensor]
    training: TrainingCode
    source: ModelSource | None  # the run and the data behind the model; None without a run
    premultiplied: Callable[[Tensor], Tensor]
    straight: Callable[[Tensor], Tensor]

    can = former_names.alias("ExportableModel.can", "capabilities")

    @property
    def palette(self) -> NDArray[np.uint8]:
        """The palette of the training sprites: uint8 [K, 3]."""
        return np.frombuffer(bytes.fromhex(self.style["palette"]), np.uint8).reshape(-1, 3)

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names, then attribute values: 'element=fire'."""
        values = (f"{name}={value}" for name, each in self.attributes.items() for value in each)
        return (*self.class_names, *values)

    @property
    def label_counts(self) -> tuple[int, ...]:
        """Number of classes, then number of values by attribute."""
        return (len(self.class_names), *map(len, self.attributes.values()))

    @property
    def probe_labels(self) -> Tensor:
        """The labels in `PROBE` for `draw`: int64 [N], or float32 [N, K] for a model with attributes."""
        if not self.attributes:
            return PROBE.labels(len(self.class_names))
        return label_shares(PROBE.label_indices(self.label_counts), self.label_counts)

    def ancestry(self) -> str:
        """Return the models that the training started from, as text; '' for a training from scratch."""
        return ", ".join(f"{model['title']} (trained on {model['data_title']})" for model in self.ancestors)

    def about(self) -> dict[str, str]:
        """Return the metadata of an exported file: title, recipe, settings, class names and others, encoded as text."""
        return {
            "made_by": "Sprite Training Studio",
            "title": self.title.encode("utf-8", "replace").decode(),  # a file name may hold lone surrogates
            "recipe": self.recipe,
            "makes": self.makes,
            "config": json.dumps(dict(self.config)),
            "size": str(self.size),
            "class_names": json.dumps(list(self.class_names)),
            "target_names": json.dumps(list(self.target_names)),
            **({"cell_names": json.dumps(list(self.cells))} if self.makes == "sets" else {}),
            **({"attributes": json.dumps(self.attributes)} if self.attributes else {}),
            "architecture": json.dumps(dict(self.architecture)),
            "step": str(self.step),
            "started_from": json.dumps(self.ancestors),
            **({} if self.source is None else self.source.checksums()),
        }

    def probe_sets(self, rounds: int = PROBE.steps) -> tuple[Tensor, Tensor, Tensor]:
        """Return the sets in `PROBE` as inputs for `draw_missing`: cells, given and chances."""
        return *PROBE.sets(len(self.cells), self.size), PROBE.chances(rounds, len(self.cells), self.size)

    def draw_probe(self, network: Any, rounds: int = PROBE.steps) -> Tensor:
        """Draw the sets in `PROBE`: float32 [N, C, S, S, 4] in [0, 1], straight RGBA."""
        with torch.no_grad():
            return self.draw_missing(network, *self.probe_sets(rounds), PROBE.variety).float() / 255

    def weights(self) -> dict[str, Tensor]:
        """Return the state dict as contiguous CPU tensors without shared memory."""
        return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.network.state_dict().items()}


class RecipeTraits(Protocol):
    """The recipe attributes by which an export format accepts or rejects a recipe's models."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def makes(self) -> Makes: ...
    @property
    def capabilities(self) -> Collection[str]: ...


class ModelExport(ABC, Generic[ConfigT]):
    """A file format for trained models: writes a file and reads it back to verify it. Subclasses hold no state."""

    name: str = ""
    title: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    help: ClassVar[str] = ""  # a sentence about the format's purpose
    opened_by: ClassVar[str] = ""  # programs for opening the file: 'onnxruntime, Unity'
    order: ClassVar[int] = 100  # sorts the formats; the first is the default
    holds: ClassVar[frozenset[Makes]] = frozenset({"sprites", "labels", "numbers"})  # by `Recipe.makes`
    takes_attributes: ClassVar[bool] = False  # also models with attributes
    Config: type[Config] = Config  # a ConfigT; by default without settings

    def missing(self) -> str:
        """Return a sentence on what to install before exporting; '' if nothing is missing."""
        return ""

    def problem(self, recipe: RecipeTraits) -> str:
        """Return a sentence on why the format can't export a recipe's models; '' without a problem."""
        return "" if recipe.makes in self.holds else f"{self.title} can't hold a {recipe.title.lower()} model."

    def unused(self, recipe: RecipeTraits) -> Collection[str]:
        """Return the names of settings without an effect for a recipe's models."""
        return ()

    def companions(self, target: Path, config: ConfigT) -> tuple[Path, ...]:
        """Return the paths of further files that `write` creates next to `target`."""
        return ()

    @abstractmethod
    def write(self, model: ExportableModel, target: Path, config: ConfigT) -> list[Path]:
        """Write `model` to `target` and companions; return the files' paths, the main file first.

        Writes every file atomically. Raises ExportError for a model unsuitable for the format, OSError for an
        unwritable file.
        """

    @abstractmethod
    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: ConfigT) -> ReadBack:
        """Run the exported file on the inputs of `PROBE`; return the outputs: float32 on the CPU.

        paths: the files that `write` returned. Raises ExportError for a damaged file and for a file of another model.
        Slow formats return a generator instead, which yields the progress, 0 to 1, at least ten times a second and
        returns the outputs. Closing the generator cancels the work.
        """

    def live(self, model: ExportableModel, config: ConfigT) -> Tensor:
        """Run the model in memory on the inputs of `read_back`; return the outputs."""
        return model.outputs(model.network)

    def largest_difference(self, model: ExportableModel, config: ConfigT) -> float:
        """Return the allowed difference between `read_back` and `live`, as a share of the largest output."""
        return LARGEST_DIFFERENCE

    @abstractmethod
    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: ConfigT) -> Mapping[str, str]:
        """Return example code for loading and using the files, by programming language; 'Python' first."""


def write_all(contents: Mapping[Path, bytes]) -> list[Path]:
    """Write several files through temporary files; return the paths. On OSError, delete the written files."""
    with contextlib.ExitStack() as undo_on_error:
        for path, data in contents.items():
            files.write_atomic(path, data)
            undo_on_error.callback(files.remove, path)
        undo_on_error.pop_all()
    return list(contents)


def check_finite(weights: Mapping[str, Tensor], source: Path) -> None:
    """Raise ExportError if a weight is NaN or infinite."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ExportError(f"{source.name} contains NaN or infinite weights.", f"They are in {name}.")


def fill(network: nn.Module, weights: Mapping[str, Tensor], source: Path) -> nn.Module:
    """Load `weights` into a network and return it in eval mode. Raises ExportError if names or shapes don't match."""
    check_finite(weights, source)
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise ExportError(f"{source.name} does not fit the network.", str(error).splitlines()[-1].strip()) from error
    return network.eval()
