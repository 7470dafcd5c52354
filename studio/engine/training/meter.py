"""Measure the quality of a model's new sprites while the model trains, in slices as short as a training step."""

from __future__ import annotations

import copy
import dataclasses
import logging
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import torch

from studio.core.arrays import Indices, Rgba
from studio.core.errors import RunError
from studio.core.events import Blocked, Event, Events, Notice, Progress, QualityMeasured
from studio.core.formatting import percent
from studio.core.generators import Steps
from studio.core.metrics import Quality
from studio.data.sprites import Sprites
from studio.engine.control.control import Control, retry_until_writable, until_stopped
from studio.engine.models.model import TrainedModel
from studio.engine.quality.copies import find_copies
from studio.engine.quality.evaluate import MIN_SPRITES, sample_classes
from studio.engine.quality.features import SpriteFeatures, learn_features
from studio.engine.quality.scores import Features, kid
from studio.engine.runs import checkpoints
from studio.engine.runs.analysis.advice import FINAL_SPRITES, QUALITY_SPRITES, copies_too_much
from studio.engine.runs.checkpoints import add_metrics
from studio.engine.runs.split import split_in_halves
from studio.engine.sampling.generate import Drawing, draw
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import stride_subsample
from studio.engine.steps.timing import Stopwatch, Throttle
from studio.engine.training.state import Training

_log = logging.getLogger(__name__)

MAX_REFERENCE = 4096  # limit of real sprites in a distance, because the kernel matrix grows with the square
TIME_SHARE = 0.05  # limit of the time for measuring, as a share of the run's time
FEATURE_SHARE = 0.2  # limit at the start, because features must be ready early
FINAL_SHARE = 0.15  # limit per checkpoint at the end of a run too short for measurements
CHECKPOINT_SHARE = 0.01  # least time between checkpoints saved only for a measurement, as a share of the run's time
OOM_RETRY_S = 300.0  # pause before measuring again on a full device
_WORK = "quality measurements"
_WARM_UP = 20  # first, slower slices of feature training
_FORECAST = 30  # slices after which the rest can be estimated


class QualityMeter:
    """Measures the quality of new sprites again and again during a training.

    Does nothing for models that don't draw sprites. Measures only checkpoints, to load the best later.
    """

    def __init__(self, training: Training, control: Control, clock: Stopwatch) -> None:
        self._training, self._control, self._clock = training, control, clock
        self._start_s = clock.now_s()
        self._spent_s = 0.0
        self._warm_up_s = 0.0  # in the first slices
        self._features_s = 0.0  # in feature training
        self._ready_s = 0.0  # time when the features became ready
        self._measured_step = -1
        self._is_training_features = True
        self._waits_for_checkpoint = False
        self._retry_at_s = 0.0  # don't measure before, because the device was full
        self._reference: _Reference | None = None  # None until features are ready
        self._can_measure = training.recipe.makes == "sprites" and len(training.train_sample) >= MIN_SPRITES
        # The running measurement, advanced one slice at a time.
        self._slices: Events | None = self.measure_forever() if self._can_measure else None

    def advance(self) -> Events:
        """Run a slice of a measurement, if affordable; yields QualityMeasured, and Blocked while the disk is full."""
        if self._slices is None or not self._is_affordable():
            return
        start_s = self._clock.now_s()
        event = next(self._slices)
        while isinstance(event, Blocked):
            yield event
            event = next(self._slices)
        self._spent_s += self._clock.now_s() - start_s
        if isinstance(event, QualityMeasured):
            yield event
        elif isinstance(event, Progress) and self._is_training_features and self.cannot_finish(event):
            self._slices = None

    def is_measuring(self) -> bool:
        """Return whether a quality measurement is running or will start later in the training."""
        return self._slices is not None

    def wants_checkpoint(self, saving: Throttle) -> bool:
        """Return whether to save one for the next measurement. saving: limits the rate, to spare the disk."""
        if not self._waits_for_checkpoint or not self._is_affordable():
            return False
        return saving.is_affordable() and saving.since_last_s() >= CHECKPOINT_SHARE * self._training.planned_s()

    def finish(self) -> Events:
        """Measure the final model; yields Progress and QualityMeasured.

        After a run too short for measurements, only counts copies of training sprites, and yields a Notice for many
        copies. Ends without a result once `control.stop` is set.
        """
        if not self._can_measure or self._measured_step == self._training.step:
            return
        last = self._count_final_copies() if self._reference is None else self._measure(self._reference)
        with self._training.side_work.skip_if_full(_WORK):
            yield from until_stopped(last, self._control)

    def close(self) -> None:
        """Stop measuring, and break the reference cycle that would keep the training in memory."""
        self._slices = None

    def cannot_finish(self, learning: Progress) -> bool:
        """Return whether the run will end before the first measurement. learning: progress of feature training."""
        if learning.done == _WARM_UP:
            self._warm_up_s = self._spent_s
        if learning.done != _FORECAST:
            return False
        slice_s = (self._spent_s - self._warm_up_s) / (_FORECAST - _WARM_UP)
        return self._spent_s + slice_s * (learning.total - learning.done) > self._allowance_s()

    def _is_affordable(self) -> bool:
        now_s, allowance_s = self._clock.now_s(), self._allowance_s()
        if now_s < self._retry_at_s:
            return False
        if self._reference is None:
            return self._spent_s <= min(allowance_s, FEATURE_SHARE * (now_s - self._start_s))
        left_s = max(1.0, self._training.planned_s() - self._ready_s)
        share = (allowance_s - self._features_s) / left_s  # spread over the rest of the run
        return self._spent_s - self._features_s <= share * (now_s - self._ready_s)

    def _allowance_s(self) -> float:
        return TIME_SHARE * (self._training.planned_s() - self._start_s)

    def measure_forever(self) -> Events:
        """Measure every new checkpoint; on a full device, wait OOM_RETRY_S and continue."""
        while True:
            with self._training.side_work.skip_if_full(_WORK):
                yield from self._measure_each_checkpoint()
            self._training.measuring_step = None
            self._retry_at_s = self._clock.now_s() + OOM_RETRY_S
            yield Progress(0, 1, "waiting for device memory")

    def _measure_each_checkpoint(self) -> Events:
        """Train the feature network, then measure the newest checkpoint again and again."""
        training = self._training
        if self._reference is None:
            features = yield from learn_features(training.train_sample, training.device, training.precision)
            self._is_training_features = False
            self._reference = yield from _make_reference(training, features)
            self._features_s, self._ready_s = self._spent_s, self._clock.now_s()
        while True:
            self._waits_for_checkpoint = True
            while training.saved_step != training.step:
                yield Progress(0, 2, "waiting for the checkpoint")
            self._waits_for_checkpoint = False
            yield from self._measure(self._reference)

    def _measure(self, reference: _Reference) -> Events:
        """Draw sprites with a copy of the current weights and compute their quality.

        Equal classes, noise and settings every time. Yields Progress after each slice, then QualityMeasured.
        """
        training = self._training
        model = _frozen_copy(training.model())
        training.measuring_step = model.step  # keeps this checkpoint from being deleted
        new = yield from _draw(model, training, QUALITY_SPRITES)
        quality = yield from reference.judge(new)
        measured = QualityMeasured(model.step, quality, reference.against)
        yield from retry_until_writable(self._control, _save, training, measured)
        training.measuring_step = None
        self._measured_step = model.step
        yield measured

    def _count_final_copies(self) -> Events:
        """Count copies of training sprites among sprites that the newest checkpoint draws.

        Goes on with older checkpoints while there are too many: `checkpoints.best_of` prefers fewer copies. Skips
        counting if drawing takes too long. Yields Progress, and a Notice if the newest model copies.
        """
        training, control, clock = self._training, self._control, self._clock
        most_s, by_chance, newest = FINAL_SHARE * clock.now_s(), None, ""
        found = yield from retry_until_writable(control, _find_checkpoints, training)
        for path, info in reversed(checkpoints.from_lowest_loss(found)):
            model = _frozen_copy(training.model())
            try:
                checkpoints.load_into(model.network, checkpoints.load_tensors(path, info, "average"), path.name)
            except (RunError, OSError) as error:
                _log.warning("%s is not counted.", path, exc_info=error)
                continue
            new = yield from _within(most_s, _draw(model, training, FINAL_SPRITES), clock)
            if new is None:
                break
            if by_chance is None:
                by_chance = yield from _copies_among_unseen(training)
            copies = yield from _copies(new, training.sprites, training.split.training, training.device)
            figures = {"copies": copies, "copies_real": by_chance}
            yield from retry_until_writable(control, _save_metrics, training, info.step, figures)
            if not copies_too_much(copies, by_chance, FINAL_SPRITES):
                break
            newest = newest or f"{percent(copies)} of the newest model's sprites are copies of your sprites."
        if newest:
            yield Notice("warning", newest, "'Best' is now the saved model with the fewest copies.")


@dataclass(frozen=True, eq=False)
class _Reference:
    """Real sprites for comparison with new sprites: features, and scores between real sprites."""

    features: SpriteFeatures
    real: Features
    known: Sprites  # sprites at the indices `learnt`: search among them for copied ones
    learnt: Indices
    against: Literal["held-out", "training"]
    kid_real: float  # real sprites against real sprites
    copies_real: float

    def judge(self, new: Rgba) -> Generator[Event, None, Quality]:
        """Return the quality of new sprites, uint8 [N, S, S, 4]; yields Progress in between."""
        distance = kid(self.real, self.features.of(new))  # smaller is better
        yield Progress(1, 2, "sprites judged")
        copies = yield from _copies(new, self.known, self.learnt, self.features.device)
        return Quality(distance.value, distance.error, self.kid_real, copies, self.copies_real)


def _find_checkpoints(training: Training) -> checkpoints.Checkpoints:
    with training.run.wrap_write_errors():
        return checkpoints.list_checkpoints(training.run.checkpoints)


def _frozen_copy(model: TrainedModel) -> TrainedModel:
    return dataclasses.replace(model, network=copy.deepcopy(model.network))


def _draw(model: TrainedModel, training: Training, count: int) -> Drawing:
    """Draw `count` sprites with the default settings, from equal classes and equal noise in every call."""
    return draw(model, sample_classes(training.train_sample, count, seed=0), GenerateSettings())


def _within(most_s: float, drawing: Drawing, clock: Stopwatch) -> Generator[Event, None, Rgba | None]:
    """Return the sprites from the generator `drawing`; None if drawing would take over `most_s` seconds."""
    start_s = clock.now_s()
    for progress in (steps := Steps(drawing)):
        if progress.done and (clock.now_s() - start_s) * progress.total > most_s * progress.done:
            return None
        yield progress
    return steps.result


def _save(training: Training, measured: QualityMeasured) -> None:
    """Write a measurement to its checkpoint and to metrics.jsonl. Raises UnwritableError."""
    _save_metrics(training, measured.step, asdict(measured.quality))
    training.run.append(measured)


def _save_metrics(training: Training, step: int, figures: Mapping[str, float]) -> None:
    with training.run.wrap_write_errors():
        add_metrics(training.run.checkpoints, step, figures)


def _make_reference(training: Training, features: SpriteFeatures) -> Generator[Event, None, _Reference]:
    """Compute features and scores of real sprites, to compare new sprites with; yields Progress.

    With too few validation sprites, uses training sprites, and compares two halves of the training sprites.
    """
    yield Progress(0, 3, "real sprites measured")
    known, heldout = training.train_sample.rgba, training.heldout_sprites
    enough = len(heldout) >= MIN_SPRITES
    first, second = split_in_halves(training.train_sample.groups)
    seen, unseen = (known, heldout) if enough else (known[first], known[second])
    real = features.of(stride_subsample(heldout if enough else known, MAX_REFERENCE))  # float64 [N, 128]
    yield Progress(1, 3, "real sprites measured")
    others, own = stride_subsample(unseen, MAX_REFERENCE), stride_subsample(seen, QUALITY_SPRITES)
    kid_real = kid(features.of(others), features.of(own)).value
    yield Progress(2, 3, "real sprites measured")
    copies_real = yield from _copies_among_unseen(training)
    yield Progress(3, 3, "real sprites measured")
    against: Literal["held-out", "training"] = "held-out" if enough else "training"
    return _Reference(features, real, training.sprites, training.split.training, against, kid_real, copies_real)


def _copies_among_unseen(training: Training) -> Generator[Event, None, float]:
    """Return the share of unseen real sprites that resemble copies of training sprites by chance."""
    learnt, heldout = training.split.training, training.heldout_sprites
    unseen = stride_subsample(heldout, QUALITY_SPRITES)
    if len(heldout) < MIN_SPRITES:
        first, second = split_in_halves(training.sprites.groups[learnt])
        unseen = training.sprites.rgba[learnt[stride_subsample(second, QUALITY_SPRITES)]]
        learnt = learnt[first]
    return (yield from _copies(unseen, training.sprites, learnt, training.device))


def _copies(sprites: Rgba, known: Sprites, learnt: Indices, device: torch.device) -> Generator[Event, None, float]:
    """Return the share of `sprites` that copy a training sprite. learnt: indices of training sprites in `known`."""
    found = yield from find_copies(sprites, known, learnt, device)
    return float(found.is_copy.mean())
