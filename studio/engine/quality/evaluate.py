"""How good a generator's sprites are: the protocol by which runs, and other programs, are compared.

New sprites, in the classes and proportions of the training data, are set against held-out and against training
sprites, in features learnt from the training sprites alone. The same figures for real sprites and for a cheat who
hands training sprites back stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.config import Config, setting
from studio.core.errors import UsageError
from studio.core.events import Evaluated, Event, Events, Notice, Validated
from studio.data.colour.pixel_art import measure_pixel_art
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.models.model import TrainedModel
from studio.engine.quality.copies import Nearest, find_copies
from studio.engine.quality.features import TrainedFeatures, fixed_features, learn_features
from studio.engine.quality.scores import frechet_distance, kid, likelihood_divergence, overlap, probability_below
from studio.engine.quality.surprisal import PatchSurprisal
from studio.engine.runs.evaluation import CheckpointEvaluation, save_evaluation
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import MIN_REPORT_SPRITES, Indices, shuffle_by_group, split_sprites
from studio.engine.sampling.generate import Labels, draw
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import DeviceSprites, stride_subsample, subsample
from studio.engine.steps.timing import with_progress
from studio.recipes.base import Recipe

FEWEST_LOOKS = 128  # at held-out sprites, for a steady loss of a generator
FEWEST = 20  # sprites on each side: with fewer, the figures are noise
MOST_HELDOUT = 4096  # sprites that new ones are compared with: a seeded choice of more, as each is with each
MOST_TRAINING = 8192  # likewise, for the distances from those learnt from
_AT_ONCE = 256  # sprites, at most
_FITTED = 1024  # training sprites that the likelihood divergence is fitted to


@dataclass(frozen=True)
class EvaluateSettings(Config):
    """How new sprites are drawn to be judged."""

    count: int = setting(
        2048,
        "How many sprites to judge, of others at most: more give steadier figures.",
        unit="sprites",
        low=FEWEST,
        high=10_000,
    )
    seed: int = setting(0, "The same seed gives the same sprites.", low=0, high=2**31 - 1)
    guidance: float = setting(
        GenerateSettings().guidance, "How strongly the class shapes the sprite, as in generating.", low=0.0, high=10.0
    )
    steps: int = setting(GenerateSettings().steps, "In how many steps a sprite is drawn.", low=1, high=1000)
    quick: bool = setting(False, "Judge what the distilled network draws.")
    true_pixels: bool = setting(True, "Judge the sprites with few colours and crisp edges; off, as drawn.")


@dataclass(frozen=True, eq=False)
class RealSprites:
    """What new sprites are judged by.

    training: those learnt from, of very many a choice. heldout: those that were not. known: where copies are looked
    for, at the indices `learnt`, int64; None stands for all.
    """

    training: Sprites
    heldout: Sprites
    known: Sprites
    learnt: Indices | None = None


def evaluate(model: TrainedModel, run: Path, settings: EvaluateSettings) -> Events:
    """Judge a generator of this run: yields Progress, then Evaluated; of what draws nothing, one Validated.

    The figures are kept with the run; a Notice says where they can't be. Raises UsageError when too few sprites were
    held out, RunError when the run's data are gone, and DeviceError.
    """
    real = yield from _data(run, model)
    if model.recipe.makes != "sprites":
        if not len(real.heldout):
            raise UsageError("No sprites were held out.", "Train with a share of the sprites held out.")
        with detection.wrap_device_errors(model.device):
            heldout = DeviceSprites(real.heldout, model.device)
            figures = evaluate_heldout(model, heldout, heldout_batch_size(heldout, model.recipe))
        yield from save_evaluation(
            run, CheckpointEvaluation.from_validation(figures, len(real.heldout), len(real.training))
        )
        yield figures
        return
    _check_counts(real)
    title = f"{model.title}, step {model.step:,}"
    labels = sample_classes(real.training, settings.count, settings.seed)
    with detection.wrap_device_errors(model.device):
        features = yield from learn_features(real.training, model.device, model.precision)
        new = yield from draw(model, labels, settings)
        judged = yield from judge(title, new, labels, real, features)
        of_new = {**judged.figures["new"], "loss_gap": loss_gap(model, real.training, real.heldout)}
    found = replace(judged, figures={**judged.figures, "new": of_new})
    yield from save_evaluation(run, CheckpointEvaluation.from_generator(found, model.step, settings.to_json()))
    yield found


def loss_gap(model: TrainedModel, training: Sprites, heldout: Sprites) -> float:
    """By which share the loss on held-out sprites is above that on as many learnt from, with the same times and noise.

    It rises when sprites are learnt by heart, before copies are drawn.
    """
    losses = []
    for sprites in (heldout, training.take(stride_subsample(np.arange(len(training)), len(heldout)))):
        on_device = DeviceSprites(sprites, model.device)
        losses.append(evaluate_heldout(model, on_device, heldout_batch_size(on_device, model.recipe)).metrics["loss"])
    return losses[0] / losses[1] - 1


def sample_classes(training: Sprites, count: int, seed: int) -> Labels:
    """Classes int64 [count] in the proportions of the training sprites."""
    return training.labels[np.random.default_rng(seed).integers(len(training), size=count)]


def heldout_batch_size(heldout: DeviceSprites, recipe: Recipe) -> AutoBatchSize:
    """How many of these sprites go through a network at once."""
    return AutoBatchSize(heldout.device, min(_AT_ONCE, _looks(heldout, recipe)), heldout.rgba.shape[-1])


def evaluate_heldout(model: TrainedModel, heldout: DeviceSprites, batch_size: AutoBatchSize) -> Validated:
    """The recipe's own figures on held-out sprites, so many at once as fit. Raises DeviceFullError."""
    count = _looks(heldout, model.recipe)
    found = None
    while found is None:
        with batch_size.halve_if_full(), torch.no_grad(), autocast(model.device.type, model.precision):
            batches = heldout.plain_batches(batch_size.count, count)
            found = model.recipe.evaluate(model.network, batches, model.config, model.spec)
    confusion = None if found.confusion is None else found.confusion.numpy()
    pairs = None if found.pairs is None else found.pairs.numpy()
    return Validated(model.step, found.metrics, confusion, found.baseline, pairs)


def _looks(heldout: DeviceSprites, recipe: Recipe) -> int:
    """How many sprites a network looks at: few are shown to a generator again, each time with other noise."""
    return max(len(heldout), FEWEST_LOOKS) if recipe.makes == "sprites" else len(heldout)


def evaluate_sprites(model: TrainedModel, run: Path, sprites: Rgba, title: str, settings: EvaluateSettings) -> Events:
    """Judge other sprites, uint8 [N, S, S, 4] of the run's size, by the run's data: yields Progress, then Evaluated.

    Of more than `settings.count`, a choice that follows from its seed: equal numbers compare. Raises what `evaluate`
    does.
    """
    real = yield from _data(run, model)
    _check_counts(real)
    if len(sprites) < FEWEST:
        raise UsageError(f"{formatting.count(len(sprites), 'sprite')}: too few to judge.", f"Give {FEWEST} at least.")
    if len(sprites) > settings.count:
        rng = np.random.default_rng(settings.seed)
        sprites = sprites[np.sort(rng.choice(len(sprites), settings.count, replace=False))]
    with detection.wrap_device_errors(model.device):
        features = yield from learn_features(real.training, model.device, model.precision)
        yield (yield from judge(title, sprites, None, real, features))


def judge(
    title: str, new: Rgba, labels: Labels | None, real: RealSprites, features: TrainedFeatures
) -> Generator[Event, None, Evaluated]:
    """All figures of sprites uint8 [N, S, S, 4], of the classes int64 [N] if they were asked for by class.

    Yields Progress.
    """
    training, heldout = real.training, real.heldout
    order = shuffle_by_group(training.groups, seed=0)
    first, second = training.take(order[: len(new)]), training.take(order[::-1][: len(new)])
    half = min(len(new), len(training) // 2)
    others = training.take(stride_subsample(order[half:], MOST_TRAINING))
    judged_by = Judge(real, features)
    near = partial(find_copies, training=real.known, indices=real.learnt, device=features.device)
    near_new, near_heldout, near_cheat = (
        (yield from near(new)),
        (yield from near(heldout.rgba)),
        (yield from near(second.rgba)),
    )
    # Real against real: each distance is between sprites that have nothing to do with each other, and of as many as are
    # new, if there are that many: few are farther away by Fréchet's distance.
    apart, known = features.of(first.rgba[:half]), features.of(others.rgba)
    as_real = {
        **judged_by.distances(first.rgba),
        **_distances("training", apart, known),
        "likelihood": likelihood_divergence(apart, stride_subsample(known, _FITTED), features.of(heldout.rgba)),
        **judged_by.looks(heldout.rgba, heldout.labels, near_heldout, near_heldout),
    }
    table = {
        "new": {**judged_by.distances(new), **judged_by.looks(new, labels, near_new, near_heldout)},
        "real": as_real,
        "cheat": {
            **judged_by.distances(second.rgba),
            **judged_by.looks(second.rgba, second.labels, near_cheat, near_heldout),
        },
    }
    return Evaluated(title, len(new), len(heldout), len(training), table)


class Judge:
    """Real sprites, as all measures see them."""

    def __init__(self, real: RealSprites, features: TrainedFeatures) -> None:
        self._real, self._features, self._fixed = real, features, fixed_features(features.device)
        self._heldout = features.of(real.heldout.rgba)
        self._training = features.of(stride_subsample(real.training.rgba, MOST_TRAINING))
        self._heldout_fixed = self._fixed.of(real.heldout.rgba)
        self._patches = PatchSurprisal(real.heldout.rgba, real.heldout.groups, real.training.rgba)

    def distances(self, sprites: Rgba) -> dict[str, float]:
        """How far a set of sprites is from the real ones."""
        values = self._features.of(sprites)
        return {
            **_distances("heldout", values, self._heldout),
            **_distances("training", values, self._training),
            **_distances("fixed", self._fixed.of(sprites), self._heldout_fixed),
            **vars(overlap(self._heldout, values)),
            "likelihood": likelihood_divergence(values, stride_subsample(self._training, _FITTED), self._heldout),
            "surprisal": self._patches.distance(sprites),
        }

    def looks(self, sprites: Rgba, asked: Labels | None, nearest: Nearest, heldout: Nearest) -> dict[str, float]:
        """What can be said of sprites one by one. nearest, heldout: the training sprites nearest to them, and to the
        held-out ones.
        """
        found: dict[str, float] = dict(vars(measure_pixel_art(sprites, self._real.training.rgba)))
        found["copies"] = float(nearest.is_copy.mean())
        found["nearer"] = probability_below(nearest.distance, heldout.distance)
        if asked is not None and self._features.knows_classes:
            found["class_agreement"] = float((self._features.classes_of(sprites) == asked).mean())
        return found


def _distances(name: str, values: np.ndarray, real: np.ndarray) -> dict[str, float]:
    distance = kid(real, values)
    return {
        f"kid_{name}": distance.value,
        f"kid_{name}_error": distance.error,
        f"fd_{name}": frechet_distance(real, values),
    }


def _data(run: Path, model: TrainedModel) -> Generator[Event, None, RealSprites]:
    """What the run learnt from and what it kept for the report; says where that chose 'best', too."""
    folder = RunDir(run)
    sprites, _ = yield from with_progress(packed.load_in_slices(folder.data), 0, "sprites checked")
    record = folder.record()
    split = split_sprites(record, model.config, sprites)
    heldout = split.report
    if len(heldout) and not split.is_report_apart:
        hint = f"Where {MIN_REPORT_SPRITES} or more are held out, a third of them is kept for this report alone."
        if sprites.is_test.any():
            hint = "Hold a share of the others out: then those choose it, and the test set judges alone."
        yield Notice("info", "The sprites that this is judged by have also chosen the best checkpoint.", hint)
    if len(heldout) > MOST_HELDOUT and model.recipe.makes == "sprites":
        heldout = np.sort(np.random.default_rng(0).choice(heldout, MOST_HELDOUT, replace=False))
    return RealSprites(subsample(sprites, split.training), subsample(sprites, heldout), sprites, split.training)


def _check_counts(real: RealSprites) -> None:
    training, heldout = real.training, real.heldout
    if min(len(training), len(heldout)) >= FEWEST:
        return
    total = len(training) + len(heldout)
    if total < 2 * FEWEST:
        hint = f"It takes {2 * FEWEST} sprites, half of them held out."
    else:
        share = math.ceil(100 * FEWEST / total) / 100
        hint = f"Train with more sprites, or with a share of {share:g} held out: {FEWEST} sprites at least."
    raise UsageError(f"{formatting.count(len(heldout), 'sprite')} held out of {total}: too few to judge by.", hint)
