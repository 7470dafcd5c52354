"""The base of experiments. An experiment answers a question about training by a measurement.

A new experiment is one new file in this folder (or in a package that names its module in the entry-point group
'studio.lab.experiments'): a subclass of `Experiment`. The Lab page, the command and reports follow from it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core import former_names
from studio.core.config import TrainingConfig, Value
from studio.core.curves import smooth_curve
from studio.core.events import Event, Events, Progress
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine import catalog
from studio.engine.devices import detection
from studio.engine.devices.types import Device
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import split_sprites
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.engine.steps.timing import with_progress
from studio.lab.outcome import Axis, Line, Plot
from studio.recipes.base import Recipe

MOST_S = 120.0  # longest duration that the user can choose
# Beginnings of the plain code of experiments.
IMPORTS = "import torch\nfrom torch import nn\n\n"
TIMED_IMPORTS = f"import time\n\n{IMPORTS}"
_MOST_SPRITES = 4096  # more make no difference in the time of an experiment


@dataclass(frozen=True, eq=False)
class ExperimentContext:
    """The inputs of an experiment: recipe (kind of model), settings, sprites and device."""

    recipe: Recipe
    config: TrainingConfig
    sprites: Sprites
    device: Device
    seconds: float  # the planned duration
    run: Path | None = None  # the run folder to examine
    checkpoint: str = "best"  # 'best', 'last' or a step
    is_heldout: bool = False  # whether `sprites` are validation sprites; False for a run without validation

    @classmethod
    def of(cls, recipe: Recipe, config: TrainingConfig, sprites: Sprites, device: Device, seconds: float) -> Self:
        """Create a context with at most 4,096 evenly chosen, suitable sprites. Raises TrainingError if too few suit."""
        chosen, _ = recipe.select(sprites, config)
        if len(chosen) > _MOST_SPRITES:
            chosen = chosen.take(_spread(np.arange(len(chosen))))
        return cls(recipe, config, chosen, device, seconds)

    @classmethod
    def of_run(cls, run: Path, checkpoint: str, device: Device, seconds: float) -> Generator[Event, None, Self]:
        """Create a context for examining a run; yields Progress. Raises RunError, BadInputError, UsageError."""
        folder = RunDir(run)
        record = folder.record()
        recipe = catalog.recipe(record.recipe)
        config = recipe.Config.from_json(record.config)
        sprites, _ = yield from with_progress(packed.load_in_slices(folder.data), record.data_count, "sprites checked")
        split = split_sprites(record, config, sprites)
        heldout = np.union1d(split.validation, split.report)
        chosen = sprites.take(_spread(heldout if len(heldout) else split.training))
        return cls(recipe, config, chosen, device, seconds, run.resolve(), checkpoint, bool(len(heldout)))

    def load_model(self) -> Generator[Event, None, TrainedModel]:
        """Load the run's model on the device; yields notices of loading. Raises RunError, UsageError, DeviceError."""
        assert self.run is not None
        model = load_model(self.run, self.checkpoint, self.device)
        yield from model.notices
        return model

    loaded_model = former_names.alias("ExperimentContext.loaded_model", "load_model")
    sprites_in_words = former_names.alias("ExperimentContext.sprites_in_words", "describe_sprites")

    def describe_sprites(self) -> str:
        """Return whether the sprites are validation or training sprites, as a text for findings."""
        examples = f"{self.recipe.noun}s"
        return f"validation {examples}" if self.is_heldout else f"training {examples} (without validation {examples})"

    @property
    def target(self) -> torch.device:
        """The device as a torch.device."""
        return self.device.torch

    def precision(self) -> str:
        """Return the precision of the settings, with 'auto' replaced by the device's best. Raises DeviceError."""
        return detection.resolve_precision(self.device, self.config.precision)

    def training(self, precision: str = "fp32", *, use_graph: bool = False, **changes: Value) -> BenchmarkTrainer:
        """Create a trainer for the sprites, with `changes` to the settings. Raises DeviceFullError.

        use_graph: whether to run steps as a CUDA graph where the device supports it.
        """
        config = self.config.replace(**changes)
        return BenchmarkTrainer(self.recipe, config, self.sprites, self.target, precision, use_graph=use_graph)


def _spread(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    chosen = np.linspace(0, len(indices) - 1, min(len(indices), _MOST_SPRITES)).astype(np.int64)
    return indices[chosen]


class Experiment(ABC):
    """Base class of experiments, which answer a question about training by a measurement. Holds no state."""

    name: str = ""  # on the command line
    title: ClassVar[str] = ""
    question: ClassVar[str] = ""  # one sentence
    order: ClassVar[int] = 100
    seconds: ClassVar[float] = 60.0  # default duration
    # sprites: train networks on sprites. run: examine a run and leave it unchanged.
    subject: ClassVar[Literal["sprites", "run"]] = "sprites"
    # A sentence why the experiment can't examine models of sets; '' if it can.
    sets_obstacle: ClassVar[str] = "This experiment needs a model of single sprites."
    # A page of PyTorch's documentation on the subject: title and address.
    read_on: ClassVar[tuple[str, str]] = ("", "")
    plain: ClassVar[str] = ""  # template for `code` with {device}, {batch_size} and {size}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        former_names.rename_members(cls)

    def obstacle(self, device: Device) -> str:
        """Return why the experiment can't run on this device, in a sentence; empty if it can."""
        return ""

    def unsupported_reason(self, recipe: Recipe) -> str:
        """Return why the experiment can't examine models of this recipe, and what to choose; empty if it can."""
        if recipe.makes != "sets" or not self.sets_obstacle:
            return ""
        return f"{self.sets_obstacle} Choose another {'run' if self.subject == 'run' else 'recipe'}."

    def choose_recipe(self, recipe: Recipe, config: TrainingConfig) -> tuple[Recipe, TrainingConfig]:
        """Return the recipe and settings of the experiment's trainings; by default the user's recipe and settings."""
        return recipe, config

    def prepare(self, sprites: Sprites) -> Sprites:
        """Return the sprites as the experiment needs them; unchanged by default. Raises TrainingError."""
        return sprites

    def context(
        self, recipe: Recipe, config: TrainingConfig, sprites: Sprites, device: Device, seconds: float
    ) -> ExperimentContext:
        """Create the inputs of an experiment on sprites from the user's choices. Raises TrainingError."""
        own_recipe, own_config = self.choose_recipe(recipe, config)
        return ExperimentContext.of(own_recipe, own_config, self.prepare(sprites), device, seconds)

    @abstractmethod
    def run(self, context: ExperimentContext) -> Events:
        """Run the measurement; yields Progress, and an Outcome whenever there are new results.

        The last Outcome has the findings as sentences. Runs in a child process; cancelling kills the process.
        """

    def code(self, context: ExperimentContext) -> str:
        """Return a short PyTorch program that does the same measurement without the studio."""
        batch_size, more = context.config.batch_size, self.template_values(context)
        return self.plain.format(device=context.device.id, batch_size=batch_size, size=context.sprites.size, **more)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        """Return the values of additional placeholders in the code template `plain`, by name."""
        return {}


def evenly_spaced(count: int, most: int) -> list[int]:
    """Return at most `most` of the indices 0 to count - 1, evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    return [round(index * (count - 1) / (most - 1)) for index in range(most)]


def kept_bytes(work: Callable[[], object]) -> int:
    """Return the bytes that `work`'s forward passes keep for backward passes, counting shared memory once."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work()
    return sum(kept.values())


def seconds_in_turns(passed_s: float, seconds: float) -> Progress:
    """Return the progress after `passed_s` of `seconds` of training."""
    return Progress(min(round(passed_s), round(seconds)), round(seconds), "seconds of training")


def loss_curve(name: str, losses: list[Tensor], smoothed: float) -> Line:
    """Smooth losses, float32 [] each, up to a NaN or infinity. smoothed: time constant, share of all losses."""
    values = finite_prefix(torch.stack(losses).cpu().numpy())
    steps = np.arange(1, len(values) + 1, dtype=np.float64)
    curve = smooth_curve(steps, values, max(1.0, len(losses) * smoothed))
    return Line(name, tuple(steps.tolist()), tuple(curve.tolist()), dots=False)


def loss_plot(title: str, lines: tuple[Line, ...]) -> Plot:
    """Return a plot of losses by step, on a logarithmic axis if all losses are positive."""
    return Plot(title, Axis("step"), Axis("loss", min((y for line in lines for y in line.y), default=0.0) > 0), lines)


def finite_prefix(losses: NDArray[np.floating] | list[float]) -> NDArray[np.float64]:
    """Return the losses up to the first NaN or infinity: float64 [n]."""
    values = np.asarray(losses, np.float64)
    return values if np.isfinite(values).all() else values[: np.argmin(np.isfinite(values))]
