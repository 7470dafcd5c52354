"""How good a generator's sprites are while it trains, measured in slices so short that training hardly waits."""

from __future__ import annotations

import copy
import dataclasses
import logging
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import torch

from studio.core.arrays import Rgba
from studio.core.errors import RunError
from studio.core.events import Blocked, Event, Events, Notice, Progress, QualityMeasured
from studio.core.formatting import percent
from studio.core.metrics import Quality
from studio.data.sprites import Sprites
from studio.engine.control.control import Control, retry_until_writable, until_stopped
from studio.engine.models.model import TrainedModel
from studio.engine.quality.copies import find_copies
from studio.engine.quality.evaluate import FEWEST, sample_classes
from studio.engine.quality.features import SpriteFeatures, learn_features
from studio.engine.quality.scores import Features, kid
from studio.engine.runs import checkpoints
from studio.engine.runs.analysis.advice import FINAL_SPRITES, QUALITY_SPRITES, copies_too_much
from studio.engine.runs.checkpoints import add_metrics
from studio.engine.runs.split import Indices, split_in_halves
from studio.engine.sampling.generate import draw
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import stride_subsample
from studio.engine.steps.timing import Stopwatch, Throttle
from studio.engine.training.state import Training

_log = logging.getLogger(__name__)

MAX_REFERENCE = 4096  # real sprites in a distance: its kernel matrix has as many rows and columns
TIME_SHARE = 0.05  # of the run's time, all in all
FEATURE_SHARE = 0.2  # at the beginning, so that there is something to measure with early on
FINAL_SHARE = 0.15  # at the end of a run that was too short to be measured, for each model
CHECKPOINT_SHARE = 0.01  # of the run's time, at least, between a checkpoint and one that is saved only to be measured
OOM_RETRY_S = 300.0  # before measuring is tried again on a device that had no room for it
_WHAT = "measurements of new sprites"
_WARM_UP = 20  # slices of learning features that take longer than all others
_FORECAST = 30  # slices after which it is known how long the others take


class QualityMeter:
    """Measures new sprites of a training over and over; a recipe that draws none is never measured.

    The models that are measured are those of checkpoints, so that the best one can be had back.
    """

    def __init__(self, training: Training, control: Control, clock: Stopwatch) -> None:
        self._training, self._control, self._clock = training, control, clock
        self._start_s = clock.now_s()
        self._spent_s = 0.0
        self._warm_up_s = 0.0  # of them, on the first slices
        self._features_s = 0.0  # of them, learning features
        self._ready_s = 0.0  # when measuring began
        self._measured_step = -1
        self._is_training_features = True  # features
        self._waits_for_checkpoint = False  # for a checkpoint
        self._retry_at_s = 0.0  # after the device had no room for measuring
        self._reference: _Reference | None = None
        self._slices: Events | None = None
        self._can_measure = training.recipe.makes == "sprites" and len(training.train_sample) >= FEWEST
        if self._can_measure:
            self._slices = self.measure_forever()

    def advance(self) -> Events:
        """Work on for about as long as a training step takes, if its share of the time allows that.

        Yields QualityMeasured when a measurement is done, Halted when it can't be written.
        """
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
        """Whether new sprites are measured, or will be."""
        return self._slices is not None

    def wants_checkpoint(self, saving: Throttle) -> bool:
        """Whether to save one now to measure it; else the next that is due will do. A fast disk is not to be worn."""
        if not self._waits_for_checkpoint or not self._is_affordable():
            return False
        return saving.is_affordable() and saving.since_last_s() >= CHECKPOINT_SHARE * self._training.planned_s()

    def finish(self) -> Events:
        """Measure the model of the run's end, if it can be measured: yields Progress and QualityMeasured. Where the run
        was too short for that, see at least whether it copies: may yield a Notice.

        Gives way, without a measurement, as soon as `control.stop` is set.
        """
        if not self._can_measure or self._measured_step == self._training.step:
            return
        last = self._count_final_copies() if self._reference is None else self._measure(self._reference)
        with self._training.side_work.skip_if_full(_WHAT):
            yield from until_stopped(last, self._control)

    def close(self) -> None:
        """Measure no more. The slices hold this meter as it holds them: the training would stay in memory."""
        self._slices = None

    def cannot_finish(self, learning: Progress) -> bool:
        """Whether so short a run would end before anything is measured."""
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
        share = (allowance_s - self._features_s) / left_s
        return self._spent_s - self._features_s <= share * (now_s - self._ready_s)

    def _allowance_s(self) -> float:
        return TIME_SHARE * (self._training.planned_s() - self._start_s)

    def measure_forever(self) -> Events:
        """Measure while the device has room for it; where it has none, try again after a while."""
        while True:
            with self._training.side_work.skip_if_full(_WHAT):
                yield from self._measure_each_checkpoint()
            self._training.measuring_step = None
            self._retry_at_s = self._clock.now_s() + OOM_RETRY_S
            yield Progress(0, 1, "waiting for room")

    def _measure_each_checkpoint(self) -> Events:
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
        """Draw and judge: yields Progress after each slice, then QualityMeasured.

        Sprites are drawn as users get them, always of the same classes and noise, from the weights as they are now.
        """
        training = self._training
        model = _frozen_copy(training.model())
        training.measuring_step = model.step
        new = yield from _draw(model, training, QUALITY_SPRITES)
        quality = yield from reference.judge(new)
        measured = QualityMeasured(model.step, quality, reference.against)
        yield from retry_until_writable(self._control, _save, training, measured)
        training.measuring_step = None
        self._measured_step = model.step
        yield measured

    def _count_final_copies(self) -> Events:
        """Count the copies that the newest checkpoint draws and, where they are too many, those of older ones that have
        learnt enough, until one draws fewer: `checkpoints.best_of` goes by that. None are counted where that takes too
        much of the time.
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
            newest = newest or f"{percent(copies)} of what the newest model draws are copies of your sprites."
        if newest:
            yield Notice("warning", newest, "The best is now the one that copies least among those that are kept.")


@dataclass(frozen=True, eq=False)
class _Reference:
    """What new sprites are compared with: the features of real sprites, and the figures that real sprites get."""

    features: SpriteFeatures
    real: Features
    known: Sprites  # where copies are looked for, at the indices `learnt`
    learnt: Indices
    against: Literal["held-out", "training"]
    kid_real: float  # what real sprites get
    copies_real: float

    def judge(self, new: Rgba) -> Generator[Event, None, Quality]:
        """The quality of sprites uint8 [N, S, S, 4]; yields Progress between its figures."""
        distance = kid(self.real, self.features.of(new))
        yield Progress(1, 2, "sprites judged")
        copies = yield from _copies(new, self.known, self.learnt, self.features.device)
        return Quality(distance.value, distance.error, self.kid_real, copies, self.copies_real)


def _find_checkpoints(training: Training) -> checkpoints.Checkpoints:
    """The run's checkpoints, the oldest first. Raises UnwritableError."""
    with training.run.wrap_write_errors():
        return checkpoints.list_checkpoints(training.run.checkpoints)


def _frozen_copy(model: TrainedModel) -> TrainedModel:
    """A model whose weights stay as they are."""
    return dataclasses.replace(model, network=copy.deepcopy(model.network))


def _draw(model: TrainedModel, training: Training, count: int) -> Generator[Progress, None, Rgba]:
    """So many sprites as users get them, always of the same classes and noise."""
    return draw(model, sample_classes(training.train_sample, count, seed=0), GenerateSettings())


def _within(
    most_s: float, drawing: Generator[Progress, None, Rgba], clock: Stopwatch
) -> Generator[Event, None, Rgba | None]:
    """What is drawn; None as soon as it is seen to take longer than that."""
    start_s = clock.now_s()
    while True:
        try:
            progress = next(drawing)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if progress.done and (clock.now_s() - start_s) * progress.total > most_s * progress.done:
            return None
        yield progress


def _save(training: Training, measured: QualityMeasured) -> None:
    """Write figures to the checkpoint that they are of, and to the record. Raises UnwritableError."""
    _save_metrics(training, measured.step, asdict(measured.quality))
    training.run.append(measured)


def _save_metrics(training: Training, step: int, figures: Mapping[str, float]) -> None:
    with training.run.wrap_write_errors():
        add_metrics(training.run.checkpoints, step, figures)


def _make_reference(training: Training, features: SpriteFeatures) -> Generator[Event, None, _Reference]:
    """Measure real sprites; yields Progress after each slice.

    Where too few sprites are held out, new ones are to be like those learnt from, and of these every second one shows
    what real sprites get.
    """
    yield Progress(0, 3, "real sprites measured")
    known, heldout = training.train_sample.rgba, training.heldout_sprites
    learnt = training.split.training
    enough = len(heldout) >= FEWEST
    first, second = split_in_halves(training.train_sample.groups)
    seen, unseen = (known, heldout) if enough else (known[first], known[second])
    real = features.of(stride_subsample(heldout if enough else known, MAX_REFERENCE))
    yield Progress(1, 3, "real sprites measured")
    kid_real = kid(
        features.of(stride_subsample(unseen, MAX_REFERENCE)), features.of(stride_subsample(seen, QUALITY_SPRITES))
    ).value
    yield Progress(2, 3, "real sprites measured")
    copies_real = yield from _copies_among_unseen(training)
    yield Progress(3, 3, "real sprites measured")
    against: Literal["held-out", "training"] = "held-out" if enough else "training"
    return _Reference(features, real, training.sprites, learnt, against, kid_real, copies_real)


def _copies_among_unseen(training: Training) -> Generator[Event, None, float]:
    """The share of copies of what is learnt from among sprites that were made without it."""
    learnt, heldout = training.split.training, training.heldout_sprites
    if len(heldout) >= FEWEST:
        return (
            yield from _copies(stride_subsample(heldout, QUALITY_SPRITES), training.sprites, learnt, training.device)
        )
    first, second = split_in_halves(training.sprites.groups[learnt])
    unseen = training.sprites.rgba[learnt[stride_subsample(second, QUALITY_SPRITES)]]
    return (yield from _copies(unseen, training.sprites, learnt[first], training.device))


def _copies(sprites: Rgba, known: Sprites, learnt: Indices, device: torch.device) -> Generator[Event, None, float]:
    found = yield from find_copies(sprites, known, learnt, device)
    return float(found.is_copy.mean())
