"""What an export is: one file format for a trained model, written and then read back by other means.

A new format is one new file in this folder (or in a package that names its module in the entry-point group
'studio.exports'): a subclass of `ModelExport`. The window's dialog, the command line and the contract tests find it.
"""

from __future__ import annotations

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

from studio.core import former_names
from studio.core.config import Config, TrainingConfig, Value
from studio.core.errors import ExportError
from studio.exports.model_cards import ModelSource

Makes = Literal["sprites", "labels", "numbers"]
ReadBack = Tensor | Generator[float, None, Tensor]
ConfigT = TypeVar("ConfigT", bound=Config, default=Any)

LARGEST_DIFFERENCE = 1e-4  # from the live model, as a share of its largest output, of a format that loses nothing


@dataclass(frozen=True)
class Probe:
    """The fixed inputs at which an exported model is compared with the live one."""

    count: int = 4
    seed: int = 7
    guidance: float = 2.0
    steps: int = 3

    def labels(self, classes: int) -> Tensor:
        """Classes to sample: int64 [count], the last one 'any' (-1)."""
        labels = torch.arange(self.count) % max(1, classes)
        labels[-1] = -1
        return labels

    def sprites(self, size: int) -> Tensor:
        """Sprites to be looked at: float32 [count, 4, size, size] in [-1, 1], noise."""
        noise = torch.rand(self.count, 4, size, size, generator=torch.Generator().manual_seed(self.seed))
        return noise * 2 - 1

    def pixels(self, size: int) -> Tensor:
        """Sprites to be looked at, as pictures have them: float32 [count, size, size, 4] in [0, 1], straight alpha."""
        return (self.sprites(size).permute(0, 2, 3, 1) + 1) / 2


PROBE = Probe()


@dataclass(frozen=True, eq=False)
class TrainingCode:
    """How a model was trained, for a format that writes this down as a program.

    config: the settings. data: the file of the run that holds its sprites, see `data.store.packed`; None: not known.
    portable: classes and functions whose sources, with what they need, train a network with torch and numpy: the
        recipe's `arguments`, `loss` and, if it has its own, `statistics`, with `subsample` if they are of so many
        sprites that not all are looked at; and the loop's parts, whatever the recipe.
    loss: of a network for x [B, 4, S, S], y [B] and targets [B, T] as in `Batch`, its randomness from a seed.
    """

    config: TrainingConfig
    data: Path | None
    portable: tuple[Any, ...]
    loss: Callable[[nn.Module, Tensor, Tensor, Tensor, int], Tensor]


@dataclass(frozen=True, eq=False)
class ExportableModel:
    """Everything that exports need to know of a trained model.

    network: float32 on the CPU, in eval mode, a copy of its own that nobody trains.
    architecture: the network's class name under 'class' and its plain keyword arguments under 'arguments'.
    ancestors: the models whose weights it started from, the nearest first, as in run.json; none: it learnt from its own
        sprites alone.
    portable: classes and functions whose sources, with what they need, rebuild and run the network with torch alone:
        its class, and for makes='sprites' `draw` (as in Recipe) and `to_rgba`, else `to_input`.
    fresh: makes an untrained network of the same architecture.
    outputs: what a network of this architecture gives at `PROBE`: float32 on the CPU.
    can, solver: what its recipe can, and its constants where it can 'flow', as in Recipe.
    style: by which its sprites are made pixel art, as in style.json.
    noise: what `draw_from` takes for the sprites of `PROBE`; None for a recipe that can't be given its noise.
    draw_from: as in Recipe, the sprites alone. predict: as in Recipe.
    training: how it came to be what it is. source: of which run, and of which sprites; None: of no run.
    premultiplied, straight: RGBA float32 [B, 4, S, S] as pictures have it, in [0, 1], to x as in `Batch` and back.
    """

    title: str
    recipe: str
    makes: Makes
    config: Mapping[str, Value]
    size: int
    class_names: tuple[str, ...]
    target_names: tuple[str, ...]
    architecture: Mapping[str, Any]
    step: int
    ancestors: Sequence[Mapping[str, Any]]
    network: nn.Module
    portable: tuple[Any, ...]
    fresh: Callable[[], nn.Module]
    outputs: Callable[[nn.Module], Tensor]
    capabilities: Collection[str]
    solver: Mapping[str, float]
    style: Mapping[str, Any]
    noise: Tensor | None
    draw_from: Callable[[Any, Tensor, Tensor, float | Tensor, int], Tensor]
    predict: Callable[[nn.Module, Tensor], Tensor]
    training: TrainingCode
    source: ModelSource | None
    premultiplied: Callable[[Tensor], Tensor]
    straight: Callable[[Tensor], Tensor]

    can = former_names.alias("ExportableModel.can", "capabilities")

    @property
    def palette(self) -> NDArray[np.uint8]:
        """Of the sprites that it learnt from: uint8 [K, 3]."""
        return np.frombuffer(bytes.fromhex(self.style["palette"]), np.uint8).reshape(-1, 3)

    def about(self) -> dict[str, str]:
        """All that is known of it, as texts by name; what is not a text is JSON."""
        return {
            "made_by": "Sprite Training Studio",
            "title": self.title.encode("utf-8", "replace").decode(),  # names of files may hold what UTF-8 can't
            "recipe": self.recipe,
            "makes": self.makes,
            "config": json.dumps(dict(self.config)),
            "size": str(self.size),
            "class_names": json.dumps(list(self.class_names)),
            "target_names": json.dumps(list(self.target_names)),
            "architecture": json.dumps(dict(self.architecture)),
            "step": str(self.step),
            "started_from": json.dumps(self.ancestors),
            **({} if self.source is None else self.source.checksums()),
        }

    def weights(self) -> dict[str, Tensor]:
        """The state dict: contiguous tensors on the CPU, none of which shares memory with another."""
        return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.network.state_dict().items()}


class RecipeTraits(Protocol):
    """What a format may ask of a recipe, before there is a model: see `Recipe`."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def makes(self) -> Makes: ...
    @property
    def capabilities(self) -> Collection[str]: ...


class ModelExport(ABC, Generic[ConfigT]):
    """One format, with the settings that it has. Stateless; `suffix` is the ending of the main file."""

    name: str = ""
    title: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    help: ClassVar[str] = ""  # one sentence: what it is good for
    opened_by: ClassVar[str] = ""  # the programs that open it: 'onnxruntime, Unity'
    order: ClassVar[int] = 100  # formats with a lower one come first; the first is the one that is proposed
    Config: type[Config] = Config  # a ConfigT; the usual one has no settings

    def missing(self) -> str:
        """What has to be installed before this format can be written, in a sentence; empty when nothing."""
        return ""

    def problem(self, recipe: RecipeTraits) -> str:
        """Why this format can't hold a model of that recipe, in a sentence; empty when it can."""
        return ""

    def unused(self, recipe: RecipeTraits) -> Collection[str]:
        """Settings, by name, that make no difference to a model of that recipe."""
        return ()

    def companions(self, target: Path, config: ConfigT) -> tuple[Path, ...]:
        """The files that are written beside `target`."""
        return ()

    @abstractmethod
    def write(self, model: ExportableModel, target: Path, config: ConfigT) -> list[Path]:
        """Write `model` to `target` and its companions, each atomically; returns what was written, the main file first.

        Raises ExportError for a model that this format can't hold, OSError when the disk says no.
        """

    @abstractmethod
    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: ConfigT) -> ReadBack:
        """Return the outputs of the model on disk at `PROBE`: float32 on the CPU, without the live network.

        paths: the files that `write` returned. Raises ExportError for a damaged file, and for a file of another model.
        A format that needs more than a second returns a generator, which yields the share done, 0 to 1, at least ten
        times a second, and stops the work when closed.
        """

    def live(self, model: ExportableModel, config: ConfigT) -> Tensor:
        """What the live model gives where `read_back` tells what the file gives."""
        return model.outputs(model.network)

    def largest_difference(self, model: ExportableModel, config: ConfigT) -> float:
        """By how much the file may differ from the live model, as a share of the largest output; more fails."""
        return LARGEST_DIFFERENCE

    @abstractmethod
    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: ConfigT) -> Mapping[str, str]:
        """A few lines that load and use what was written, by the language that they are in, 'Python' first if it is."""


def check_finite(weights: Mapping[str, Tensor], source: Path) -> None:
    """Raises ExportError for weights that are no numbers."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ExportError(f"{source.name} holds numbers that are not finite.", f"They are in {name}.")


def fill(network: nn.Module, weights: Mapping[str, Tensor], source: Path) -> nn.Module:
    """Put `weights` into a fresh network and return it in eval mode. Raises ExportError when the two don't fit."""
    check_finite(weights, source)
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise ExportError(f"{source.name} does not fit its model.", str(error).splitlines()[-1].strip()) from error
    return network.eval()
