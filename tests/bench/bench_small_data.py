"""Train on few sprites, from nothing or from a starter: quality of new sprites and share of copies.

    python -m tests.bench.bench_small_data SPRITES --counts 60 200 800 [--from nothing starter FILE RUN] [--steps 400]
        [--choices 0 1 2] [--seeds 0 1 2] [--every 60] [--with flip=true] [--sets sheets]

Takes --counts sprites at random from the largest classes, about twenty per class and at most nine tenths, and trains
on them alone as the preset 'Standard' would, or for --steps. Then judges new sprites of the best checkpoint by
the unseen sprites of these classes, in features learnt from all sprites and in fixed features. A summary compares the
starts. FILE: a starter of assets/starter/make_starter.py that never saw SPRITES; '--with width=32' gives a training
from nothing the width of the starter. --every: also judges the live model after that many steps, outside the training's
time. 'nearer': new sprites that are nearer to the training sprites than unseen sprites. --sets: how characters are cut
out of sheets, as in `studio train`.
"""

from __future__ import annotations

from studio.core.process import prepare_for_training

if __name__ == "__main__":
    prepare_for_training()  # before torch comes in

import itertools
import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
from studio.engine.devices.types import NOTHING, STARTER
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
from studio.engine.training.parents import Parent, load_parent, parse_starter
from studio.recipes.base import Recipe
from tests.bench.tools import command_line, say
from tests.data.making import imported
from tests.engine.tools import nearest_training_sprites

CPU = torch.device("cpu")
A_CLASS = 20  # sprites, on average
MOST_LEARNT = 0.9  # share of the sprites; the rest judges


class Scores(NamedTuple):
    """Distances from unseen sprites, and shares in [0, 1]."""

    kid: float
    kid_error: float
    fixed_kid: float  # in the fixed features
    surprisal: float
    copies: float
    nearer: float = math.nan
    loss_gap: float = math.nan

    def __str__(self) -> str:
        text = (
            f"KID {self.kid:.3f} +- {self.kid_error:.3f}  fixed {self.fixed_kid:.3f}  surprisal {self.surprisal:.2f}  "
            f"copies {self.copies:.1%}"
        )
        return text if math.isnan(self.nearer) else f"{text}  nearer {self.nearer:.0%}  loss gap {self.loss_gap:.0%}"


class Setup(NamedTuple):
    """The settings that compared trainings share."""

    sprites: int
    steps: int  # 0: as the preset says
    choice: int
    seed: int


def some_of(sprites: Sprites, count: int, choice: int) -> tuple[Sprites, Sprites]:
    """Split the largest classes into `count` sprites, chosen by the seed `choice`, and the rest.

    At most MOST_LEARNT of the sprites are chosen.
    """
    rng = np.random.default_rng(choice)
    largest = np.argsort(-sprites.class_counts(), kind="stable")[: max(1, count // A_CLASS)]
    order = rng.permutation(np.flatnonzero(np.isin(sprites.labels, largest)))
    names = tuple(sprites.class_names[i] for i in np.sort(largest))
    count = min(count, int(MOST_LEARNT * len(order)))

    def part(places: NDArray[np.int64]) -> Sprites:
        taken = sprites.take(np.sort(places))
        labels = np.searchsorted(np.sort(largest), taken.labels).astype(np.int64)
        return Sprites(taken.rgba, labels, names, taken.names, f"{len(places)} sprites", groups=taken.groups)

    return part(order[:count]), part(order[count:])


@dataclass(eq=False)
class Judge:
    """Judges models by unseen sprites."""

    few: Sprites
    unseen: Sprites
    features: SpriteFeatures

    def __post_init__(self) -> None:
        self._fixed = fixed_features(CPU)
        self._real, self._real_fixed = self.features.of(self.unseen.rgba), self._fixed.of(self.unseen.rgba)
        self._patches = PatchSurprisal(self.unseen.rgba, self.unseen.groups, self.few.rgba)
        self._near_unseen = nearest_training_sprites(self.unseen.rgba, self.few, None, CPU)

    def of_real_sprites(self) -> Scores:
        """Return the scores of the training sprites; copies: of the unseen sprites, the share of copies."""
        return self._scores(self.few.rgba, float(self._near_unseen.is_copy.mean()))

    def of(self, model: TrainedModel, count: int) -> Scores:
        """Return the scores of `count` new sprites."""
        new = run_to_end(draw(model, sample_classes(self.few, count, seed=1), GenerateSettings()))
        near = nearest_training_sprites(new, self.few, None, CPU)
        return self._scores(new, float(near.is_copy.mean()))._replace(
            nearer=probability_below(near.distance, self._near_unseen.distance),
            loss_gap=loss_gap(model, self.few, self.unseen),
        )

    def _scores(self, rgba: NDArray[np.uint8], copies: float) -> Scores:
        distance, fixed = kid(self._real, self.features.of(rgba)), kid(self._real_fixed, self._fixed.of(rgba))
        return Scores(distance.value, distance.error, fixed.value, self._patches.distance(rgba), copies)


def follow(
    judge: Judge, recipe: Recipe, config: TrainingConfig, parent: Parent | None, every: int, count: int
) -> Scores:
    """Train on the few sprites, print scores on the way, and return the scores of the best checkpoint."""
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
        scores = judge.of(best, count)
        say(f"   best: {best.step} steps, the run took {took_s:.0f} s  {scores}")
    return scores


def parent_from(source: str, recipe: Recipe) -> Parent | None:
    """Load a start: 'nothing', 'starter', a starter's file or a run's folder."""
    if source == NOTHING:
        return None
    if source == STARTER:
        return load_parent(STARTER, recipe)
    path = Path(source)
    return parse_starter(path.read_bytes(), "CC0-1.0") if path.is_file() else load_parent(path, recipe)


def comparison(results: Mapping[str, Mapping[Setup, Scores]], own: Mapping[tuple[int, int], Scores]) -> list[str]:
    """Compare the starts: a line per start, number of sprites and number of steps.

    results: by start. own: scores of the training sprites themselves, by number and choice.
    """
    lines = []
    for start, found in results.items():
        for count, steps in sorted({(setup.sprites, setup.steps) for setup in found}):
            here = {setup: scores for setup, scores in found.items() if (setup.sprites, setup.steps) == (count, steps)}
            others = results.get(NOTHING, {})
            apart = [scores.kid - others[setup].kid for setup, scores in here.items() if setup in others]
            by_choice = [
                f"{np.mean([scores.kid for setup, scores in here.items() if setup.choice == choice]):.3f} "
                f"(its sprites {own[count, choice].kid:.3f})"
                for choice in sorted({setup.choice for setup in here})
            ]
            copies = max(scores.copies for scores in here.values())
            line = f"{count} sprites, {steps or 'usual'} steps, from {start}: KID {', '.join(by_choice)}"
            line += f", copies up to {copies:.1%}"
            if start != NOTHING and apart:
                error = np.std(apart, ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else math.nan
                line += f", KID against nothing {np.mean(apart):+.3f} +- {error:.3f}"
            lines.append(line)
    return lines


def main() -> None:
    """Train for every combination of the flags, and compare the starts."""
    parser = command_line(__doc__)
    parser.add_argument("sprites", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[60, 200, 800])
    parser.add_argument("--choices", type=int, nargs="+", default=[0], help="seeds for choosing the sprites")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the trainings")
    parser.add_argument("--from", dest="starts", nargs="+", default=[NOTHING])
    parser.add_argument("--steps", type=int, nargs="+", default=[0], help="0: as many as the preset 'Standard'")
    parser.add_argument("--every", type=int, default=0, metavar="STEPS")
    parser.add_argument("--drawn", type=int, default=1024)
    parser.add_argument("--with", nargs="*", default=[], dest="settings", metavar="NAME=VALUE")
    parser.add_argument("--sets", default="auto")
    chosen = parser.parse_args()
    sprites, recipe = imported(chosen.sprites, sets=chosen.sets).sprites, catalog.recipe("generator")
    device = find_device("cpu", probe=True)
    parents = {start: parent_from(start, recipe) for start in chosen.starts}
    features = run_to_end(learn_features(sprites, CPU, resolve_precision(device, "auto")))
    known = {item.name: item for item in settings_of(recipe.Config)}
    changes = {name: known[name].parse(text) for name, _, text in (word.partition("=") for word in chosen.settings)}
    results: dict[str, dict[Setup, Scores]] = {start: {} for start in parents}
    own: dict[tuple[int, int], Scores] = {}
    for count, choice in itertools.product(chosen.counts, chosen.choices):
        few, unseen = some_of(sprites, count, choice)
        judge = Judge(few, unseen, features)
        own[count, choice] = judge.of_real_sprites()
        say(f"{count} sprites, choice {choice}: {len(few)} to learn from, {len(unseen)} unseen. {own[count, choice]}")
        for steps, seed, (start, parent) in itertools.product(chosen.steps, chosen.seeds, parents.items()):
            budget = training_budget(recipe, few, device, parent.settings if parent else None)
            length = {"steps": steps, "epochs": 0} if steps else {}
            settings = {**recipe.usual_changes(budget), **changes, **length, "seed": seed}
            config = recipe.defaults(budget).replace(**settings)
            say(f"{count} sprites, choice {choice}, seed {seed}, from {start}, {config.changed()}")
            results[start][Setup(count, steps, choice, seed)] = follow(
                judge, recipe, config, parent, chosen.every, chosen.drawn
            )
    for line in comparison(results, own):
        say(line)


if __name__ == "__main__":
    main()
