"""The tutorials' programs: a training in plain PyTorch, and the studio's training of the same job beside it.

A subclass gives the program. `code` writes the sprites as files for the program, up to 4,096 in the studio's Lab
folder, so that a learner can run and change the program.
"""

import contextlib
import dataclasses
import io
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from studio.core import files, paths
from studio.core.config import TrainingConfig, Value
from studio.core.events import Events, Progress
from studio.core.formatting import count, decimal, duration, number
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.devices import detection
from studio.engine.steps.batches import device_examples, to_rgba
from studio.engine.steps.benchmark import BenchmarkTrainer
from studio.engine.training.loop import TICK_S
from studio.lab.experiments.base import Experiment, ExperimentContext
from studio.lab.outcome import Outcome, Picture, Table
from studio.recipes.base import Recipe

BATCH = 64
_LARGEST = 32  # pixels; larger sprites are made smaller by leaving out rows and columns
_FASTER = 1.05  # a smaller ratio of two times is noise
_TESTED = 5  # every fifth sprite belongs to the test set


@dataclass(frozen=True)
class Examples:
    """Sprites of at most 32 x 32 pixels in random order, split into training and test set."""

    training: Sprites
    test: Sprites


class Program(Experiment):
    """Base class: runs a tutorial's program on files of the sprites, then trains the studio's model for the same job.

    The program trains for `epochs` with batches of 64, and defines `seconds`, the time of its training loop, and
    `figure`, its result on the test set. A program that draws sprites defines `drawn`, float32 [N, 4, S, S].
    """

    subject = "sprites"
    recipe_name: ClassVar[str]
    epochs: ClassVar[int] = 5
    most_sprites: ClassVar[int] = 1024
    # Of the studio's training: without what the program lacks.
    settings: ClassVar[Mapping[str, Value]] = {"shift_px": 0, "dropout": 0.0}
    metric: ClassVar[str] = ""  # of the recipe, the same as `figure`
    figure_name: ClassVar[str]

    @abstractmethod
    def write_files(self, examples: Examples, folder: Path) -> None:
        """Write the files that the program reads."""

    @abstractmethod
    def figure_text(self, figure: float) -> str:
        """Return a result on the test set as text."""

    def prepare(self, sprites: Sprites) -> Sprites:
        """Return the sprites with what the job needs."""
        return sprites

    def studio_config(self, recipe: Recipe) -> TrainingConfig:
        """Return the settings of the studio's training."""
        config: TrainingConfig = recipe.Config().replace(batch_size=BATCH, epochs=self.epochs, **self.settings)
        return config

    def judge(self, training: BenchmarkTrainer, test: Sprites) -> tuple[float, Tensor | None]:
        """Return the studio's figure on the test set, and the sprites that the network drew: float32 [N, 4, S, S]."""
        return _evaluate(training, test, self.metric), None

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(0, 2, "trainings; now the tutorial's program")
        names: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(self.code(context), f"{self.name}.py", "exec"), names)  # the class's own program
        yield Progress(1, 2, "trainings; now the studio's")
        recipe, examples = catalog.recipe(self.recipe_name), self._examples(context)
        training = BenchmarkTrainer(recipe, self.studio_config(recipe), examples.training, context.target)
        training.time_steps()  # warm-up
        steps, start_s, told_s = self.epochs * -(-len(examples.training) // BATCH), time.perf_counter(), 0.0
        for step in range(steps):
            training.train_step()
            if time.perf_counter() - told_s > TICK_S:
                told_s = time.perf_counter()
                yield Progress(step, steps, "steps of the studio's training")
        training.wait()
        seconds = time.perf_counter() - start_s
        yield Progress(2, 2, "trainings")
        figure, drawn = self.judge(training, examples.test)
        outcome = self._outcome(context, examples, (names["seconds"], names["figure"]), (seconds, figure), steps)
        made = (("by the program", names.get("drawn")), ("by the studio", drawn))
        pictures = tuple(_strip(f"Drawn {who}", part) for who, part in made if part is not None)
        yield dataclasses.replace(outcome, pictures=pictures)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        folder = paths.lab() / "programs" / self.name
        with files.wrap_export_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.write_files(self._examples(context), folder)
        return {"folder": repr(str(folder)), "epochs": self.epochs, "batch": BATCH}

    def _examples(self, context: ExperimentContext) -> Examples:
        """Return the context's sprites for the job. Raises TrainingError if too few suit."""
        recipe = catalog.recipe(self.recipe_name)
        sprites, _ = recipe.select(self.prepare(context.sprites), self.studio_config(recipe))
        stride = -(-sprites.size // _LARGEST)
        small = np.ascontiguousarray(sprites.rgba[:, ::stride, ::stride])
        order = np.random.default_rng(0).permutation(len(sprites))[: self.most_sprites]
        is_test = np.arange(len(order)) % _TESTED == 0
        sprites = dataclasses.replace(sprites, rgba=small)
        return Examples(sprites.take(order[~is_test]), sprites.take(order[is_test]))

    def _outcome(
        self, context: ExperimentContext, examples: Examples, theirs: Sequence[float], own: Sequence[float], steps: int
    ) -> Outcome:
        rows = tuple(
            (name, duration(seconds), f"{1000 * seconds / steps:,.1f} ms", self.figure_text(figure))
            for name, (seconds, figure) in (("the tutorial's program", theirs), ("the studio", own))
        )
        table = Table(("training", ">time", ">per step", f">{self.figure_name}"), rows)
        train, test = (count(len(part), "sprite") for part in (examples.training, examples.test))
        quicker, times = ("program", own[0] / theirs[0]) if theirs[0] < own[0] else ("studio", theirs[0] / own[0])
        compared = f"The {quicker} was {times:.2g} times as fast." if times >= _FASTER else "Both took equally long."
        sentences = (
            f"Both trained {count(self.epochs, 'epoch')} on {train}: {number(steps)} steps of {number(BATCH)} on "
            f"{context.device.name}. {test} were kept for the test.",
            f"{compared} The {self.figure_name} of the program is "
            f"{self.figure_text(theirs[1])}, the studio's is {self.figure_text(own[1])}.",
            "Change the program below and run it: more epochs, another network, another learning rate.",
        )
        return Outcome((), (table,), sentences)


@torch.no_grad()
def _evaluate(training: BenchmarkTrainer, test: Sprites, metric: str) -> float:
    """Return a metric of the trained network on the test set."""
    recipe, data = training.recipe, device_examples(training.recipe, test, training.device)
    network = training.network.eval()
    evaluation = recipe.evaluate(network, data.plain_batches(BATCH, len(test)), training.config, training.spec)
    detection.synchronize(training.device)
    return evaluation.metrics[metric]


def _strip(title: str, drawn: Tensor) -> Picture:
    """Return a picture of drawn sprites side by side. drawn: float32 [N, 4, S, S] in [-1, 1], premultiplied."""
    rgba = to_rgba(drawn.clamp(-1, 1)).numpy()
    return Picture.of(title, np.concatenate(list(rgba), axis=1), f"{count(len(rgba), 'sprite')} after this training.")


def save_arrays(path: Path, examples: Examples, **values: tuple[Any, Any]) -> None:
    """Write 'sprites.npz' with x_train, x_test, uint8 [N, S, S, 4], and `values` as NAME_train and NAME_test."""
    arrays = {"x": (examples.training.rgba, examples.test.rgba), **values}
    named = {
        f"{name}_{part}": array
        for name, pair in arrays.items()
        for part, array in zip(("train", "test"), pair, strict=True)
    }
    file = io.BytesIO()
    np.savez(file, **named)
    files.write_atomic(path / "sprites.npz", file.getvalue())


def grey(rgba: Any) -> Any:
    """Return the grey values of sprites over black: uint8 [N, S, S]."""
    weighted = rgba[..., :3] @ np.array([0.299, 0.587, 0.114]) * (rgba[..., 3] / 255)
    return weighted.round().astype(np.uint8)


def percent_text(figure: float) -> str:
    """Return an accuracy as text: 0.875 -> '87.5 %'."""
    return f"{decimal(100 * figure)} %"
