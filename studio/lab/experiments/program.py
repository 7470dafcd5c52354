"""The tutorials' programs: a training in plain PyTorch, and the studio's training of the same job beside it.

A subclass gives the program. `code` writes the sprites as files for the program, up to 4,096 in the studio's Lab
folder, so that a learner can run and change the program.
"""

import contextlib
import dataclasses
import io
import time
from abc import abstractmethod
from collections.abc import Generator, Mapping
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
_SHARE = 0.4  # largest share of the experiment's seconds for each of the two trainings
_TESTED = 5  # every fifth sprite belongs to the test set


@dataclass(frozen=True)
class Examples:
    """Sprites of at most 32 x 32 pixels in random order, split into training and test set."""

    training: Sprites
    test: Sprites


@dataclass(frozen=True)
class Trained:
    """A training of the program or of the studio. figure: the result on the test set."""

    steps: int
    seconds: float
    figure: float

    @property
    def step_s(self) -> float:
        """The mean seconds per step."""
        return self.seconds / self.steps


class Program(Experiment):
    """Base class: runs a tutorial's program on files of the sprites, then trains the studio's model for the same job.

    The program trains for `epochs` with batches of 64, on a slow computer for {limit} seconds. The program defines
    `steps` and `seconds`, the number of steps and the duration of its training loop, and `figure`, its result on the
    test set. A program that draws sprites defines `drawn`, float32 [N, 4, S, S]. The studio takes as many steps.
    """

    subject = "sprites"
    recipe_name: ClassVar[str]
    epochs: ClassVar[int] = 5
    most_sprites: ClassVar[int] = 1024
    # The studio's training gets settings that switch off methods missing in the program.
    settings: ClassVar[Mapping[str, Value]] = {"shift_px": 0, "dropout": 0.0}
    metric: ClassVar[str] = ""  # the recipe's metric that corresponds to `figure`
    figure_name: ClassVar[str]

    @abstractmethod
    def write_files(self, examples: Examples, folder: Path) -> None:
        """Write the files that the program reads."""

    @abstractmethod
    def figure_text(self, figure: float) -> str:
        """Return a result on the test set as text."""

    def choose_recipe(self, recipe: Recipe, config: TrainingConfig) -> tuple[Recipe, TrainingConfig]:
        """Return the recipe for the program's job, with the settings of the studio's training."""
        own = catalog.recipe(self.recipe_name)
        return own, self.studio_config(own).replace(batch_size=BATCH, epochs=self.epochs, precision="fp32")

    def studio_config(self, recipe: Recipe) -> TrainingConfig:
        """Return the settings of the studio's training, except batch size, epochs and precision."""
        config: TrainingConfig = recipe.Config().replace(**self.settings)
        return config

    def judge(self, training: BenchmarkTrainer, test: Sprites) -> tuple[float, Tensor | None]:
        """Return the studio's figure on the test set, and the sprites that the network drew: float32 [N, 4, S, S]."""
        return _evaluate(training, test, self.metric), None

    def run(self, context: ExperimentContext) -> Events:
        yield Progress(0, 0, "writing the sprites for the tutorial's program")
        limit_s = _SHARE * context.seconds
        program = compile(self.code(context), f"{self.name}.py", "exec")
        yield Progress(0, 0, f"training with the tutorial's program, for at most {duration(limit_s)}")
        names: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()):  # without a yield: other code would print in vain
            exec(program, names)
        theirs = Trained(names["steps"], names["seconds"], names["figure"])
        examples = self._examples(context)
        training = BenchmarkTrainer(context.recipe, context.config, examples.training, context.target)
        steps, seconds = yield from _trained(training, theirs.steps, limit_s)
        yield Progress(steps, steps, "steps of the studio's training")
        figure, drawn = self.judge(training, examples.test)
        outcome = self.compare(context, examples, theirs, Trained(steps, seconds, figure))
        made = (("by the program", names.get("drawn")), ("by the studio", drawn))
        pictures = tuple(_strip(f"Drawn {who}", part) for who, part in made if part is not None)
        yield dataclasses.replace(outcome, pictures=pictures)

    def template_values(self, context: ExperimentContext) -> dict[str, object]:
        folder = paths.lab() / "programs" / self.name
        with files.wrap_export_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.write_files(self._examples(context), folder)
        limit_s = round(_SHARE * context.seconds, 1)
        return {"folder": repr(str(folder)), "epochs": self.epochs, "batch": BATCH, "limit": f"{limit_s:g}"}

    def _examples(self, context: ExperimentContext) -> Examples:
        """Return the context's sprites in the program's size and number, split into training and test set."""
        sprites = context.sprites
        stride = -(-sprites.size // _LARGEST)
        small = np.ascontiguousarray(sprites.rgba[:, ::stride, ::stride])
        order = np.random.default_rng(0).permutation(len(sprites))[: self.most_sprites]
        is_test = np.arange(len(order)) % _TESTED == 0
        sprites = dataclasses.replace(sprites, rgba=small)
        return Examples(sprites.take(order[~is_test]), sprites.take(order[is_test]))

    def compare(self, context: ExperimentContext, examples: Examples, theirs: Trained, own: Trained) -> Outcome:
        """Compare the program's training with the studio's, in a table and in sentences."""
        rows = tuple(
            (
                name, number(training.steps), duration(training.seconds), f"{1000 * training.step_s:,.1f} ms",
                self.figure_text(training.figure),
            )
            for name, training in (("the tutorial's program", theirs), ("the studio", own))
        )  # fmt: skip
        table = Table(("training", ">steps", ">time", ">per step", f">{self.figure_name}"), rows)
        test = count(len(examples.test), "sprite")
        quicker, slower = (theirs, own) if theirs.step_s < own.step_s else (own, theirs)
        times, name = slower.step_s / quicker.step_s, "program" if quicker is theirs else "studio"
        compared = f"The {name} was {times:.2g} times as fast." if times >= _FASTER else "Both were equally fast."
        sentences = (
            f"{self._describe_steps(context, examples, theirs, own)} {test} were kept for the test.",
            f"{compared} The {self.figure_name} of the program is "
            f"{self.figure_text(theirs.figure)}, the studio's is {self.figure_text(own.figure)}.",
            "Change the program below and run it: more epochs, another network, another learning rate.",
        )
        return Outcome((), (table,), sentences)

    def _describe_steps(self, context: ExperimentContext, examples: Examples, theirs: Trained, own: Trained) -> str:
        """Describe the length of both trainings: all epochs, or the steps within the time limit."""
        train, batches = count(len(examples.training), "sprite"), f"batches of {BATCH} on {context.device.name}"
        planned = self.epochs * -(-len(examples.training) // BATCH)
        if theirs.steps == own.steps == planned:
            epochs = count(self.epochs, "epoch")
            return f"Both trained {epochs} on {train}: {count(planned, 'step')} with {batches}."
        return (
            f"Both trained on {train} with {batches}. {count(self.epochs, 'epoch')} are {count(planned, 'step')}, but "
            f"each training stops after {duration(_SHARE * context.seconds)}: the program took "
            f"{count(theirs.steps, 'step')}, the studio {count(own.steps, 'step')}."
        )


def _trained(training: BenchmarkTrainer, steps: int, limit_s: float) -> Generator[Progress, None, tuple[int, float]]:
    """Train for at most `steps` steps and `limit_s`; return the steps taken and the seconds. Yields Progress."""
    training.time_steps()  # warm-up
    taken, start_s = 0, time.perf_counter()
    told_s = start_s
    while taken < steps and (taken == 0 or told_s - start_s < limit_s):
        training.train_step()
        taken += 1
        if time.perf_counter() - told_s > TICK_S:
            training.wait()  # else a device with queued steps would pass the limit
            told_s = time.perf_counter()
            yield _seconds(start_s, limit_s, "the studio's training")
    training.wait()
    return taken, time.perf_counter() - start_s


def _seconds(start_s: float, limit_s: float, what: str) -> Progress:
    """Return the progress of a training with a time limit."""
    limit, passed = max(1, round(limit_s)), round(time.perf_counter() - start_s)
    return Progress(min(passed, limit), limit, f"seconds of {what}")


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
