"""What becomes of few sprites: the quality of new ones, and how many are copies, as a training goes on and at its end.

    python -m tests.bench.bench_small_data SPRITES --counts 60 200 800 [--from starter] [--every 60] [--with flip=true]

Takes so many sprites at random from the largest classes, about twenty of each class, and trains on them alone as the
preset 'Standard' would; then judges new sprites of the model that is kept as the best against those of the same classes
that it never saw, in features learnt from all and in fixed ones. --every: judges the live model, too, after so many
steps; the time of that is not the training's. 'nearer': new ones that are nearer to those learnt from than unseen ones.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from studio.core.config import TrainingConfig, settings_of
from studio.core.events import LossChunk
from studio.core.generators import run_to_end
from studio.data.sprites import Sprites
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.devices.detection import choose_device, find_device, probe_devices, resolve_precision
from studio.engine.devices.types import STARTER
from studio.engine.models.loading import load_model
from studio.engine.models.model import TrainedModel
from studio.engine.quality.evaluate import loss_gap, sample_classes
from studio.engine.quality.features import SpriteFeatures, fixed_features, learn_features
from studio.engine.quality.scores import kid, probability_below
from studio.engine.quality.surprisal import PatchSurprisal
from studio.engine.sampling.generate import draw
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.benchmark import training_budget
from studio.engine.training.loop import train_new
from studio.engine.training.parents import Parent, load_parent
from studio.recipes.base import Recipe
from tests.bench.tools import command_line, say
from tests.data.making import imported
from tests.engine.tools import nearest_training_sprites

CPU = torch.device("cpu")
A_CLASS = 20  # sprites, on average


def some_of(sprites: Sprites, count: int, choice: int) -> tuple[Sprites, Sprites]:
    """So many sprites of the largest classes, chosen by that seed, and the others of these classes."""
    rng = np.random.default_rng(choice)
    largest = np.argsort(-sprites.class_counts(), kind="stable")[: max(1, count // A_CLASS)]
    order = rng.permutation(np.flatnonzero(np.isin(sprites.labels, largest)))
    names = tuple(sprites.class_names[i] for i in np.sort(largest))

    def part(places: NDArray[np.int64]) -> Sprites:
        taken = sprites.take(np.sort(places))
        labels = np.searchsorted(np.sort(largest), taken.labels).astype(np.int64)
        return Sprites(taken.rgba, labels, names, taken.names, f"{len(places)} sprites", groups=taken.groups)

    return part(order[:count]), part(order[count:])


@dataclass(eq=False)
class Judge:
    """Judges models by sprites that they never saw."""

    few: Sprites
    unseen: Sprites
    features: SpriteFeatures

    def __post_init__(self) -> None:
        self._fixed = fixed_features(CPU)
        self._real, self._real_fixed = self.features.of(self.unseen.rgba), self._fixed.of(self.unseen.rgba)
        self._patches = PatchSurprisal(self.unseen.rgba, self.unseen.groups, self.few.rgba)
        self._near_unseen = nearest_training_sprites(self.unseen.rgba, self.few, None, CPU)

    def of_real_sprites(self) -> str:
        """What the sprites that are learnt from get, and how many of the unseen ones are copies of them."""
        return f"{self._distances(self.few.rgba)}  copies {self._near_unseen.is_copy.mean():.1%}"

    def of(self, model: TrainedModel, count: int) -> str:
        """What so many new sprites get."""
        new = run_to_end(draw(model, sample_classes(self.few, count, seed=1), GenerateSettings()))
        near = nearest_training_sprites(new, self.few, None, CPU)
        return (
            f"{self._distances(new)}  copies {near.is_copy.mean():.1%}  "
            f"nearer {probability_below(near.distance, self._near_unseen.distance):.0%}  "
            f"loss gap {loss_gap(model, self.few, self.unseen):.0%}"
        )

    def _distances(self, rgba: NDArray[np.uint8]) -> str:
        distance, fixed = kid(self._real, self.features.of(rgba)), kid(self._real_fixed, self._fixed.of(rgba))
        return (
            f"KID {distance.value:.3f} +- {distance.error:.3f}  fixed {fixed.value:.3f}  "
            f"surprisal {self._patches.distance(rgba):.2f}"
        )


def follow(judge: Judge, recipe: Recipe, config: TrainingConfig, parent: Parent | None, every: int, count: int) -> None:
    """Train on the few, and print a line for each time of judging."""
    device, control, judging_s, next_step = choose_device(probe_devices(), "cpu"), Control(), 0.0, every
    with tempfile.TemporaryDirectory() as scratch:
        run, start_s = Path(scratch) / "run", time.perf_counter()
        for event in train_new(run, judge.few, recipe, config, device, control, parent):
            if not every or not isinstance(event, LossChunk) or control.live is None:
                continue
            step, before_s = event.first_step + len(event.losses), time.perf_counter()
            if step >= next_step:
                epochs, next_step = step * config.batch_size / len(judge.few), step + every
                say(f"{step:>7} steps {epochs:>6.0f} epochs  {judge.of(control.live, count // 4)}")
                judging_s += time.perf_counter() - before_s
        took_s = time.perf_counter() - start_s - judging_s
        best = load_model(run, "best", device)
        say(f"   best: {best.step} steps, the run took {took_s:.0f} s  {judge.of(best, count)}")


def main() -> None:
    """Follow a training for each number, choice and seed."""
    parser = command_line(__doc__)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[60, 200, 800])
    parser.add_argument("--choices", type=int, nargs="+", default=[0], help="seeds by which the sprites are chosen")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the trainings")
    parser.add_argument("--from", dest="parent", type=lambda text: text if text == STARTER else Path(text))
    parser.add_argument("--every", type=int, default=0, metavar="STEPS")
    parser.add_argument("--drawn", type=int, default=1024)
    parser.add_argument("--with", nargs="*", default=[], dest="settings", metavar="NAME=VALUE")
    chosen = parser.parse_args()
    sprites, recipe, device = (
        imported(chosen.sprites).sprites,
        catalog.recipe("generator"),
        find_device("cpu", probe=True),
    )
    parent = load_parent(chosen.parent, recipe) if chosen.parent else None
    features = run_to_end(learn_features(sprites, CPU, resolve_precision(device, "auto")))
    known = {item.name: item for item in settings_of(recipe.Config)}
    changes = {name: known[name].parse(text) for name, _, text in (word.partition("=") for word in chosen.settings)}
    for count in chosen.counts:
        for choice in chosen.choices:
            few, unseen = some_of(sprites, count, choice)
            judge = Judge(few, unseen, features)
            budget = training_budget(recipe, few, device, parent.settings if parent else None)
            preset = next(preset for preset in recipe.presets(budget) if preset.title == "Standard")
            for seed in chosen.seeds:
                config = recipe.defaults(budget).replace(**{**preset.changes, **changes, "seed": seed})
                say(f"{count} sprites, choice {choice}, seed {seed}, from {chosen.parent or 'nothing'}, "
                    f"{config.changed()}: those learnt from {judge.of_real_sprites()}")  # fmt: skip
                follow(judge, recipe, config, parent, chosen.every, chosen.drawn)


if __name__ == "__main__":
    main()
