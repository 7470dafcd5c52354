"""What an experiment is: a question about training, a way to measure the answer, and the words for it.

A new experiment is one new file in this folder (or in a package that names its module in the entry-point group
'studio.lab.experiments'): a subclass of `Experiment`. The page, the command and the reports follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

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
from studio.engine.steps.bench_steps import BenchmarkTrainer
from studio.engine.steps.timing import with_progress
from studio.lab.outcome import Axis, Line, Plot
from studio.recipes.base import Recipe

MOST_S = 120.0  # seconds that an experiment may take
_MOST_SPRITES = 4096  # an experiment learns little in its time from more


@dataclass(frozen=True, eq=False)
class ExperimentContext:
    """What to experiment with. seconds: how long, about; what an experiment needs at least may take longer.

    run, checkpoint: the folder of a run to look into, and where: 'best', 'last' or a step. Its sprites are then those
    that it held out or, if it did not (`is_heldout`), those that it learnt from.
    """

    recipe: Recipe
    config: TrainingConfig
    sprites: Sprites
    device: Device
    seconds: float
    run: Path | None = None
    checkpoint: str = "best"
    is_heldout: bool = False

    @classmethod
    def of(
        cls, recipe: Recipe, config: TrainingConfig, sprites: Sprites, device: Device, seconds: float
    ) -> ExperimentContext:
        """With sprites that the recipe can learn from; of very many, some from all over. Raises TrainingError."""
        chosen, _ = recipe.select(sprites, config)
        if len(chosen) > _MOST_SPRITES:
            chosen = chosen.take(_some_of(np.arange(len(chosen))))
        return cls(recipe, config, chosen, device, seconds)

    @classmethod
    def of_run(
        cls, run: Path, checkpoint: str, device: Device, seconds: float
    ) -> Generator[Event, None, ExperimentContext]:
        """What a run says of itself; nothing in its folder is changed. Yields Progress while its sprites are checked.

        Raises RunError, BadInputError, UsageError.
        """
        folder = RunDir(run)
        record = folder.record()
        recipe = catalog.recipe(record.recipe)
        config = recipe.Config.from_json(record.config)
        sprites, _ = yield from with_progress(packed.load_in_slices(folder.data), record.data_count, "sprites checked")
        split = split_sprites(record, config, sprites)
        heldout = np.union1d(split.validation, split.report)
        chosen = sprites.take(_some_of(heldout if len(heldout) else split.training))
        return cls(recipe, config, chosen, device, seconds, run.resolve(), checkpoint, bool(len(heldout)))

    def loaded_model(self) -> Generator[Event, None, TrainedModel]:
        """The model of the run, on the device; yields what there is to say of it. Raises RunError, UsageError,
        DeviceError.
        """
        assert self.run is not None
        model = load_model(self.run, self.checkpoint, self.device)
        yield from model.notices
        return model

    def sprites_in_words(self) -> str:
        """'held-out sprites', or what they are instead."""
        return "held-out sprites" if self.is_heldout else "sprites learnt from, as none were held out"

    @property
    def target(self) -> torch.device:
        """The device as torch knows it."""
        return self.device.torch

    def precision(self) -> str:
        """That of the settings, or what suits the device. Raises DeviceError."""
        return detection.resolve_precision(self.device, self.config.precision)

    def training(self, precision: str = "fp32", *, use_graph: bool = False, **changes: Value) -> BenchmarkTrainer:
        """A training at its beginning, with these settings changed. use_graph: as `BenchmarkTrainer` takes it.

        Raises DeviceFullError.
        """
        config = self.config.replace(**changes)
        return BenchmarkTrainer(self.recipe, config, self.sprites, self.target, precision, use_graph=use_graph)


def _some_of(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of very many, some from all over."""
    places = np.linspace(0, len(indices) - 1, min(len(indices), _MOST_SPRITES)).astype(np.int64)
    return indices[places]


if not TYPE_CHECKING:  # a checker would accept any name
    __getattr__ = former_names.attributes_of(__name__)


class Experiment(ABC):
    """A kind of experiment; one instance does for all, so it holds no state."""

    name: str = ""  # on the command line
    title: ClassVar[str] = ""
    question: ClassVar[str] = ""  # that it answers, in one sentence
    order: ClassVar[int] = 100
    seconds: ClassVar[float] = 60.0  # that it takes, unless it is given others
    # What it is done with: sprites, which it trains networks on, or a run, into which it looks and changes nothing.
    subject: ClassVar[Literal["sprites", "run"]] = "sprites"
    # Of PyTorch's own, on the same subject: the title of a page and where it is.
    read_on: ClassVar[tuple[str, str]] = ("", "")
    plain: ClassVar[str] = ""  # what `code` gives, with {device}, {batch_size} and {size} to be filled in

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        former_names.rename_members(cls)

    def obstacle(self, device: Device) -> str:
        """Why it can't be done on this device, in a sentence; empty where it can."""
        return ""

    def unsupported_reason(self, recipe: Recipe) -> str:
        """Why it can't be done with this kind of model, in a sentence; empty where it can."""
        return ""

    @abstractmethod
    def run(self, context: ExperimentContext) -> Events:
        """Measure: yields Progress, and an Outcome whenever there is more to show; the last one has the sentences.

        Runs in a process of its own, which is killed to cancel it: it needs to tidy nothing up but files.
        """

    def code(self, context: ExperimentContext) -> str:
        """Lines of plain PyTorch that do the same, for a reader who has a network and sprites."""
        device, size = context.device.id, context.sprites.size
        return self.plain.format(
            device=device, batch_size=context.config.batch_size, size=size, **self.template_values(context)
        )

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        """What else the plain lines are filled in with."""
        return {}


def evenly(count: int, most: int) -> list[int]:
    """At most so many of the places 0 to count - 1: the first, the last, and those evenly between."""
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def kept_bytes(work: Callable[[], object]) -> int:
    """Bytes of what forward passes in `work` keep for their backward passes; memory that is kept twice counts once."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work()
    return sum(kept.values())


def seconds_in_turns(passed_s: float, seconds: float) -> Progress:
    """How far trainings are that take their steps in turns for so many seconds."""
    return Progress(min(round(passed_s), round(seconds)), round(seconds), "seconds of training in turns")


def loss_curve(name: str, losses: list[Tensor], smoothed: float) -> Line:
    """Losses, float32 [] on the device, up to the first that is no number, smoothed over this share of them all."""
    values = while_finite(torch.stack(losses).cpu().numpy())
    steps = np.arange(1, len(values) + 1, dtype=np.float64)
    curve = smooth_curve(steps, values, max(1.0, len(losses) * smoothed))
    return Line(name, tuple(steps.tolist()), tuple(curve.tolist()), dots=False)


def loss_plot(title: str, lines: tuple[Line, ...]) -> Plot:
    """Losses by step; on a logarithmic scale where all of them have logarithms."""
    return Plot(title, Axis("step"), Axis("loss", min((y for line in lines for y in line.y), default=0.0) > 0), lines)


def while_finite(losses: NDArray[np.floating] | list[float]) -> NDArray[np.float64]:
    """The losses up to the first that is no number: float64 [n]."""
    values = np.asarray(losses, np.float64)
    return values if np.isfinite(values).all() else values[: np.argmin(np.isfinite(values))]
