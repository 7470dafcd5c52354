"""Evaluate a generator with a fixed protocol, to compare runs with each other and with other programs.

Learned features compare new sprites, in the training set's class proportions, with validation and training sprites. For
comparison, the report also shows the scores of real sprites and of a cheat that returns training sprites.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from studio.core import formatting
from studio.core.arrays import Indices, Rgba
from studio.core.config import Config, setting
from studio.core.errors import UsageError
from studio.core.events import ClassPredictions, Evaluated, Event, Events, Notice, Validated, ValueConfusion
from studio.data.colour.pixel_art import measure_pixel_art
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import autocast
from studio.engine.models.model import TrainedModel
from studio.engine.quality.copies import Nearest, find_copies
from studio.engine.quality.features import TrainedFeatures, fixed_features, learn_features
from studio.engine.quality.judge_sets import judge_sets
from studio.engine.quality.scores import frechet_distance, kid, likelihood_divergence, overlap, probability_below
from studio.engine.quality.surprisal import PatchSurprisal
from studio.engine.runs.evaluation import CheckpointEvaluation, save_evaluation
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import MIN_REPORT_SPRITES, shuffle_by_group, split_sprites
from studio.engine.sampling.generate import Labels, draw, model_label
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import DeviceSprites, device_examples, stride_subsample, subsample
from studio.engine.steps.timing import with_progress
from studio.recipes.base import Recipe

MIN_EVALUATIONS = 128  # evaluations of validation sprites for a stable generator loss
MIN_SPRITES = 20  # sprites per side: fewer give only noise
MAX_HELDOUT = 4096  # limit of validation sprites, because scores compare every pair
MAX_TRAINING = 8192  # limit of training sprites for distances
_MAX_BATCH = 256  # limit of sprites
_FITTED = 1024  # training sprites for fitting the likelihood divergence
Scores = dict[str, float]  # by a figure's name in core/metrics.py


@dataclass(frozen=True)
class EvaluateSettings(Config):
    """The settings for drawing and evaluating new sprites."""

    count: int = setting(
        2048, "Number of sprites to evaluate. More give more stable scores.",
        unit="sprites", low=MIN_SPRITES, high=10_000,
    )  # fmt: skip
    seed: int = setting(0, "The same seed draws the same sprites.", low=0, high=2**31 - 1)
    guidance: float = setting(
        GenerateSettings().guidance, "Guidance scale: how strongly the class shapes the sprite.", low=0.0, high=10.0
    )
    steps: int = setting(GenerateSettings().steps, "Solver steps per sprite.", low=1, high=1000)
    quick: bool = setting(False, "Evaluate the distilled network.")
    true_pixels: bool = setting(True, "Evaluate sprites with few colours and crisp edges, as they are saved.")


@dataclass(frozen=True, eq=False)
class RealSprites:
    """The real sprites for an evaluation, to compare new sprites with."""

    training: Sprites  # the training set, or a sample
    heldout: Sprites
    known: Sprites  # the sprites among which to search copied ones
    learnt: Indices | None = None  # indices in `known` to search; None for all


def evaluate(model: TrainedModel, run: Path, settings: EvaluateSettings) -> Events:
    """Evaluate a run's model: yields Progress, then Evaluated for a generator, Validated for other recipes.

    Saves the scores with the run. Raises UsageError for too few validation sprites, RunError and DeviceError.
    """
    real = yield from _load_real_sprites(run, model)
    if model.recipe.makes != "sprites":
        if not len(real.heldout):
            title = f"The run has no validation {model.recipe.noun}s."
            raise UsageError(title, "Train with a validation share above 0.")
        with detection.wrap_device_errors(model.device):
            heldout = device_examples(model.recipe, real.heldout, model.device)
            figures = evaluate_heldout(model, heldout, heldout_batch_size(heldout, model.recipe))
            if model.recipe.makes == "sets":
                figures = yield from judge_sets(model, figures, real.heldout, real.training)
        found = CheckpointEvaluation.from_validation(figures, len(real.heldout), len(real.training))
        yield from save_evaluation(run, found)
        yield figures
        return
    labels = sample_classes(real.training, settings.count, settings.seed)
    with detection.wrap_device_errors(model.device):
        features = yield from learn_features(real.training, model.device, model.precision)
        new = yield from draw(model, labels, settings)
        judged = yield from judge(model_label(model), new, labels, real, features)
        of_new = {**judged.figures["new"], "loss_gap": loss_gap(model, real.training, real.heldout)}
    evaluated = replace(judged, figures={**judged.figures, "new": of_new})
    yield from save_evaluation(run, CheckpointEvaluation.from_generator(evaluated, model.step, settings.to_json()))
    yield evaluated


def loss_gap(model: TrainedModel, training: Sprites, heldout: Sprites) -> float:
    """Return the relative excess of the loss on validation sprites over the loss on training sprites.

    Both losses use equal numbers, times and noise. The gap rises once the model memorizes sprites, before the model
    draws copies.
    """
    losses = []
    for sprites in (heldout, training.take(stride_subsample(np.arange(len(training)), len(heldout)))):
        on_device = device_examples(model.recipe, sprites, model.device)
        losses.append(evaluate_heldout(model, on_device, heldout_batch_size(on_device, model.recipe)).metrics["loss"])
    return losses[0] / losses[1] - 1  # 0 without memorization


def sample_classes(training: Sprites, count: int, seed: int) -> Labels:
    """Return `count` random classes, int64 [count], in the proportions of the training sprites."""
    return training.labels[np.random.default_rng(seed).integers(len(training), size=count)]


def heldout_batch_size(heldout: DeviceSprites, recipe: Recipe) -> AutoBatchSize:
    """Return the batch size for evaluating the validation sprites. The batch size shrinks on a full device."""
    return AutoBatchSize(heldout.device, min(_MAX_BATCH, _evaluations(heldout, recipe)), heldout.rgba.shape[-1])


def evaluate_heldout(
    model: TrainedModel, heldout: DeviceSprites, batch_size: AutoBatchSize, indices: Indices | None = None
) -> Validated:
    """Compute the recipe's metrics on validation sprites. Raises DeviceFullError if a single sprite does not fit.

    indices: int64 [N], sprite indices in the run's data; None leaves the predicted classes out of the result.
    """
    count = _evaluations(heldout, model.recipe)
    found = None
    while found is None:
        with batch_size.halve_if_full(), torch.no_grad(), autocast(model.device.type, model.precision):
            batches = heldout.plain_batches(batch_size.count, count)
            found = model.recipe.evaluate(model.network, batches, model.config, model.spec)
    confusion = None if found.confusion is None else found.confusion.numpy()
    pairs = None if found.pairs is None else found.pairs.numpy()
    predictions = None
    if indices is not None and found.predicted is not None and len(found.predicted) == len(indices):
        predictions = ClassPredictions(indices, found.predicted.numpy())
    attributes = {}
    for name, (counts, values) in found.attributes.items():
        of_values = None if predictions is None else ClassPredictions(predictions.sprites, values.numpy())
        attributes[name] = ValueConfusion(counts.numpy(), of_values)
    return Validated(model.step, found.metrics, confusion, found.baseline, pairs, predictions, attributes)


def _evaluations(heldout: DeviceSprites, recipe: Recipe) -> int:
    """Return the number of sprites to evaluate. A generator sees few sprites several times, with different noise."""
    return max(len(heldout), MIN_EVALUATIONS) if recipe.makes == "sprites" else len(heldout)


def evaluate_sprites(model: TrainedModel, run: Path, sprites: Rgba, title: str, settings: EvaluateSettings) -> Events:
    """Evaluate another program's sprites against a run's real sprites.

    sprites: uint8 [N, S, S, 4] in the run's size. Only equal numbers compare, so more than `settings.count` sprites are
    sampled with a seed. Yields Progress, then Evaluated. Raises UsageError, RunError, DeviceError.
    """
    real = yield from _load_real_sprites(run, model)
    if len(sprites) < MIN_SPRITES:
        title = f"{formatting.count(len(sprites), 'sprite')}: too few to evaluate."
        raise UsageError(title, f"Give at least {MIN_SPRITES} sprites.")
    if len(sprites) > settings.count:
        rng = np.random.default_rng(settings.seed)
        sprites = sprites[np.sort(rng.choice(len(sprites), settings.count, replace=False))]
    with detection.wrap_device_errors(model.device):
        features = yield from learn_features(real.training, model.device, model.precision)
        yield (yield from judge(title, sprites, None, real, features))


def judge(
    title: str, new: Rgba, labels: Labels | None, real: RealSprites, features: TrainedFeatures
) -> Generator[Event, None, Evaluated]:
    """Score new sprites, uint8 [N, S, S, 4]; yields Progress, returns the scores.

    labels: requested classes int64 [N], or None. For comparison, the result includes scores of real sprites and of a
    cheat that copies training sprites.
    """
    training, heldout = real.training, real.heldout
    order = shuffle_by_group(training.groups, seed=0)
    first, second = training.take(order[: len(new)]), training.take(order[::-1][: len(new)])  # disjoint if possible
    half = min(len(new), len(training) // 2)  # two disjoint halves
    others = training.take(stride_subsample(order[half:], MAX_TRAINING))
    scorer = Scorer(real, features)
    nearest = partial(find_copies, training=real.known, indices=real.learnt, device=features.device)
    nearest_to_new, nearest_to_heldout = (yield from nearest(new)), (yield from nearest(heldout.rgba))
    nearest_to_cheat = yield from nearest(second.rgba)
    # Real against real: distances between disjoint sets, as large as the new set if possible, because the Fréchet
    # distance grows for smaller sets.
    apart, known = features.of(first.rgba[:half]), features.of(others.rgba)
    as_real = {
        **scorer.distances(first.rgba),
        **_distance_scores("training", apart, known),
        "likelihood": likelihood_divergence(apart, stride_subsample(known, _FITTED), features.of(heldout.rgba)),
        **scorer.sprite_scores(heldout.rgba, heldout.labels, nearest_to_heldout, nearest_to_heldout),
    }
    as_new = scorer.distances(new) | scorer.sprite_scores(new, labels, nearest_to_new, nearest_to_heldout)
    cheat_scores = scorer.sprite_scores(second.rgba, second.labels, nearest_to_cheat, nearest_to_heldout)
    table = {"new": as_new, "real": as_real, "cheat": scorer.distances(second.rgba) | cheat_scores}
    return Evaluated(title, len(new), len(heldout), len(training), table)


class Scorer:
    """Scores new sprites; computes the real sprites' features once."""

    def __init__(self, real: RealSprites, features: TrainedFeatures) -> None:
        self._real, self._features, self._fixed = real, features, fixed_features(features.device)
        self._heldout = features.of(real.heldout.rgba)
        self._training = features.of(stride_subsample(real.training.rgba, MAX_TRAINING))
        self._heldout_fixed = self._fixed.of(real.heldout.rgba)
        self._patches = PatchSurprisal(real.heldout.rgba, real.heldout.groups, real.training.rgba)

    def distances(self, sprites: Rgba) -> Scores:
        """Return the distances between the set `sprites` and the real sprites, by name."""
        values = self._features.of(sprites)
        return {
            **_distance_scores("heldout", values, self._heldout),
            **_distance_scores("training", values, self._training),
            **_distance_scores("fixed", self._fixed.of(sprites), self._heldout_fixed),
            **vars(overlap(self._heldout, values)),
            "likelihood": likelihood_divergence(values, stride_subsample(self._training, _FITTED), self._heldout),
            "surprisal": self._patches.distance(sprites),
        }

    def sprite_scores(self, sprites: Rgba, asked: Labels | None, nearest: Nearest, heldout: Nearest) -> Scores:
        """Return scores averaged over sprites: pixel art, copies, class agreement.

        asked: requested classes int64 [N], or None. nearest: nearest training sprites for `sprites`. heldout: nearest
        training sprites for the validation sprites.
        """
        found: Scores = dict(vars(measure_pixel_art(sprites, self._real.training.rgba)))
        found["copies"] = float(nearest.is_copy.mean())
        found["nearer"] = probability_below(nearest.distance, heldout.distance)
        if asked is not None and self._features.knows_classes:
            found["class_agreement"] = float((self._features.classes_of(sprites) == asked).mean())
        return found


def _distance_scores(name: str, values: np.ndarray, real: np.ndarray) -> Scores:
    found, frechet = kid(real, values), frechet_distance(real, values)
    return {f"kid_{name}": found.value, f"kid_{name}_error": found.error, f"fd_{name}": frechet}


def _load_real_sprites(run: Path, model: TrainedModel) -> Generator[Event, None, RealSprites]:
    """Load a run's real sprites; yields Progress, and a Notice if validation sprites also selected the checkpoint."""
    folder = RunDir(run)
    sprites, _ = yield from with_progress(packed.load_in_slices(folder.data), 0, "sprites checked")
    record = folder.record()
    split = split_sprites(record, model.config, sprites)
    heldout = split.report
    if len(heldout) and not split.is_report_apart:
        hint = f"With {MIN_REPORT_SPRITES} or more, the report gets a third of its own."
        if sprites.is_test.any():
            hint = "Use a share of the other sprites for validation: the test set then serves only the report."
        yield Notice("info", "The validation sprites also selected the best checkpoint.", hint)
    if model.recipe.makes == "sprites":
        _check_counts(len(split.training), len(heldout))
        if len(heldout) > MAX_HELDOUT:
            heldout = np.sort(np.random.default_rng(0).choice(heldout, MAX_HELDOUT, replace=False))
    return RealSprites(subsample(sprites, split.training), subsample(sprites, heldout), sprites, split.training)


def _check_counts(training: int, heldout: int) -> None:
    if min(training, heldout) >= MIN_SPRITES:
        return
    total = training + heldout
    share = math.ceil(100 * MIN_SPRITES / total) / 100
    hint = f"Train with more sprites, or a validation share of {share:g}: at least {MIN_SPRITES} sprites."
    if total < 2 * MIN_SPRITES:
        hint = f"An evaluation needs {2 * MIN_SPRITES} sprites, half of them for validation."
    found = formatting.count(heldout, "validation sprite")
    raise UsageError(f"{found} of {total} in all: too few for an evaluation.", hint)
