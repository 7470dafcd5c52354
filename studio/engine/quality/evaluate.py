"""How good a generator's sprites are: the protocol by which runs, and other programs, are compared.

New sprites, in the classes and proportions of the training data, are set against held-out and against training
sprites, in features learnt from the training sprites alone. The same figures for real sprites and for a cheat who
hands training sprites back stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from studio.core import wording
from studio.core.config import Config, setting
from studio.core.errors import UsageError
from studio.core.events import Evaluated, Event, Events, Notice, Rgba, Validated
from studio.data.colour.true_pixels import pixel_truth
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine import devices
from studio.engine.batch_size import AutoBatchSize
from studio.engine.batches import DeviceSprites, at_most, sampled
from studio.engine.generate import Labels, draw
from studio.engine.model import TrainedModel
from studio.engine.pace import with_progress
from studio.engine.quality.copies import look_for_copies
from studio.engine.quality.features import SpriteFeatures, features_of
from studio.engine.quality.scores import frechet_distance, kid, overlap
from studio.engine.runs.folder import RunDir
from studio.engine.runs.split import FEWEST_REPORTED, Indices, shuffled_by_group, split_of
from studio.engine.types import GenerateSettings

FEWEST = 20  # sprites on each side: with fewer, the figures are noise
MOST_HELDOUT = 4096  # sprites that are looked at: a seeded choice of more; the figures compare each with each
MOST_TRAINING = 8192  # likewise, for the distances from those learnt from
_AT_ONCE = 256  # sprites, at most


@dataclass(frozen=True)
class EvaluateSettings(Config):
    """How new sprites are drawn to be judged."""

    count: int = setting(
        512,
        "How many sprites to judge, of others at most: more give steadier figures.",
        unit="sprites",
        low=FEWEST,
        high=10_000,
    )
    seed: int = setting(0, "The same seed gives the same sprites.", low=0, high=2**31 - 1)
    guidance: float = setting(
        GenerateSettings().guidance, "How strongly the class shapes the sprite, as in generating.", low=0.0, high=10.0
    )
    steps: int = setting(GenerateSettings().steps, "Solver steps a sprite.", low=1, high=1000)
    true_pixels: bool = setting(True, "Judge the sprites with few colours and crisp edges; off, as drawn.")


@dataclass(frozen=True)
class Figure:
    """One line of the evaluation. `unit`: '' for a plain number, '%' for a share."""

    name: str
    title: str
    better: Literal["low", "high", "as real"]
    unit: Literal["", "%"] = ""


FIGURES = (
    Figure("kid_heldout", "KID, held out", "low"),
    Figure("fd_heldout", "Fréchet, held out", "low"),
    Figure("kid_training", "KID, training", "low"),
    Figure("fd_training", "Fréchet, training", "low"),
    Figure("precision", "Precision", "high", "%"),
    Figure("recall", "Recall", "high", "%"),
    Figure("coverage", "Coverage", "high", "%"),
    Figure("class_agreement", "Right class", "as real", "%"),
    Figure("copies", "Copies", "low", "%"),
    Figure("half_transparent", "Half-transparent", "as real", "%"),
    Figure("colours", "Colours a sprite", "as real"),
    Figure("off_palette", "Off palette", "as real", "%"),
)  # fmt: skip


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

    Raises UsageError when too few sprites were held out, RunError when the run's data are gone, and DeviceError.
    """
    real = yield from _data(run, model)
    if model.recipe.makes != "sprites":
        if not len(real.heldout):
            raise UsageError("No sprites were held out.", "Train with a share of the sprites held out.")
        with devices.faults(model.device):
            heldout = DeviceSprites(real.heldout, model.device)
            figures = heldout_figures(model, heldout, heldout_batch_size(heldout))
        yield figures
        return
    _check_counts(real)
    title = f"{model.title}, step {model.step:,}"
    labels = classes_to_draw(real.training, settings.count, settings.seed)
    with devices.faults(model.device):
        features = yield from features_of(real.training, model.device, model.precision)
        new = yield from draw(model, labels, settings)
        yield (yield from judge(title, new, labels, real, features))


def classes_to_draw(training: Sprites, count: int, seed: int) -> Labels:
    """Classes int64 [count] in the proportions of the training sprites."""
    return training.labels[np.random.default_rng(seed).integers(len(training), size=count)]


def heldout_batch_size(heldout: DeviceSprites) -> AutoBatchSize:
    """How many of these sprites go through a network at once."""
    return AutoBatchSize(heldout.device, min(_AT_ONCE, len(heldout)), heldout.rgba.shape[-1])


def heldout_figures(model: TrainedModel, heldout: DeviceSprites, batch_size: AutoBatchSize) -> Validated:
    """The recipe's own figures on held-out sprites, so many at once as fit. Raises DeviceFullError."""
    found = None
    while found is None:
        with batch_size.room(), torch.no_grad(), devices.autocast(model.device.type, model.precision):
            batches = heldout.plain_batches(batch_size.count, len(heldout))
            found = model.recipe.evaluate(model.network, batches, model.config, model.spec)
    confusion = None if found.confusion is None else found.confusion.numpy()
    pairs = None if found.pairs is None else found.pairs.numpy()
    return Validated(model.step, found.metrics, confusion, found.baseline, pairs)


def evaluate_sprites(model: TrainedModel, run: Path, sprites: Rgba, title: str, settings: EvaluateSettings) -> Events:
    """Judge other sprites, uint8 [N, S, S, 4] of the run's size, by the run's data: yields Progress, then Evaluated.

    Of more than `settings.count`, a choice that follows from its seed: equal numbers compare. Raises what `evaluate`
    does.
    """
    real = yield from _data(run, model)
    _check_counts(real)
    if len(sprites) < FEWEST:
        raise UsageError(f"{wording.count(len(sprites), 'sprite')}: too few to judge.", f"Give {FEWEST} at least.")
    if len(sprites) > settings.count:
        rng = np.random.default_rng(settings.seed)
        sprites = sprites[np.sort(rng.choice(len(sprites), settings.count, replace=False))]
    with devices.faults(model.device):
        features = yield from features_of(real.training, model.device, model.precision)
        yield (yield from judge(title, sprites, None, real, features))


def judge(
    title: str, new: Rgba, labels: Labels | None, real: RealSprites, features: SpriteFeatures
) -> Generator[Event, None, Evaluated]:
    """All figures of sprites uint8 [N, S, S, 4], of the classes int64 [N] if they were asked for by class.

    Yields Progress.
    """
    training, heldout = real.training, real.heldout
    order = shuffled_by_group(training.groups, seed=0)
    first, second = training.take(order[: len(new)]), training.take(order[::-1][: len(new)])
    half = min(len(new), len(training) // 2)
    others = training.take(at_most(order[half:], MOST_TRAINING))
    real_heldout, real_first = features.of(heldout.rgba), features.of(first.rgba)
    real_training = features.of(at_most(training.rgba, MOST_TRAINING))

    def figures(sprites: Rgba, asked: Labels | None) -> Generator[Event, None, dict[str, float]]:
        values = features.of(sprites)
        looks = yield from _looks(sprites, asked, real, features)
        return {**_distances("heldout", values, real_heldout), **_distances("training", values, real_training),
                **vars(overlap(real_heldout, values)), **looks}  # fmt: skip

    # Real against real: each distance is between sprites that have nothing to do with each other, and of as many as are
    # new, if there are that many: few are farther away by Fréchet's distance.
    as_real = {
        **(yield from _looks(heldout.rgba, heldout.labels, real, features)),
        **_distances("heldout", real_first, real_heldout),
        **_distances("training", real_first[:half], features.of(others.rgba)),
        **vars(overlap(real_heldout, real_first)),
    }
    of_new = yield from figures(new, labels)
    of_cheat = yield from figures(second.rgba, second.labels)
    table = {"new": of_new, "real": as_real, "cheat": of_cheat}
    return Evaluated(title, len(new), len(heldout), len(training), table)


def _distances(name: str, values: np.ndarray, real: np.ndarray) -> dict[str, float]:
    distance = kid(real, values)
    return {
        f"kid_{name}": distance.value,
        f"kid_{name}_error": distance.error,
        f"fd_{name}": frechet_distance(real, values),
    }


def _looks(
    sprites: Rgba, asked: Labels | None, real: RealSprites, features: SpriteFeatures
) -> Generator[Event, None, Mapping[str, float]]:
    """What can be said of sprites one by one."""
    found: dict[str, float] = dict(vars(pixel_truth(sprites, real.training.rgba)))
    nearest = yield from look_for_copies(sprites, real.known, real.learnt, features.device)
    found["copies"] = float(nearest.is_copy.mean())
    if asked is not None and features.knows_classes:
        found["class_agreement"] = float((features.classes_of(sprites) == asked).mean())
    return found


def _data(run: Path, model: TrainedModel) -> Generator[Event, None, RealSprites]:
    """What the run learnt from and what it kept for the report; says where that chose 'best', too."""
    folder = RunDir(run)
    sprites, _ = yield from with_progress(packed.loading(folder.data), 0, "sprites checked")
    record = folder.record()
    split = split_of(record, model.config, sprites)
    heldout = split.report
    if len(heldout) and not split.is_report_apart:
        hint = f"Where {FEWEST_REPORTED} or more are held out, a third of them is kept for this report alone."
        yield Notice("info", "The sprites that this is judged by have also chosen the best checkpoint.", hint)
    if len(heldout) > MOST_HELDOUT:
        heldout = np.sort(np.random.default_rng(0).choice(heldout, MOST_HELDOUT, replace=False))
    return RealSprites(sampled(sprites, split.training), sprites.take(heldout), sprites, split.training)


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
    raise UsageError(f"{wording.count(len(heldout), 'sprite')} held out of {total}: too few to judge by.", hint)
