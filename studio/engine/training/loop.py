"""The training loop: a generator of events. Whoever advances it drives it; not to advance it is to pause."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import Literal

import torch

from studio.core import formatting
from studio.core.config import TrainingConfig
from studio.core.errors import DeviceFullError, NotFiniteError, ProcessGoneError, StepTooLargeError, UnwritableError
from studio.core.events import (
    CheckpointSaved,
    Event,
    Events,
    LossChunk,
    Notice,
    RunFinished,
    RunStarted,
    SamplesSpaced,
)
from studio.data.sprites import Sprites
from studio.engine.control.control import Control, retry_until_writable
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.types import Device
from studio.engine.distributed.ranks import ALONE, Group, Ranks, StartCommand, Tick
from studio.engine.quality.evaluate import heldout_figures
from studio.engine.runs.analysis.advice import Adviser
from studio.engine.runs.folder import MAX_ROLLBACKS
from studio.engine.runs.history import read_history
from studio.engine.steps.timing import Speedometer, Stopwatch, Throttle
from studio.engine.training.cpu_threads import ThreadTuner, tuned
from studio.engine.training.create import NewRun, new_training, resumed_training, worker_training
from studio.engine.training.early_stop import EarlyEnd
from studio.engine.training.live_samples import live_samples
from studio.engine.training.meter import QualityMeter
from studio.engine.training.parents import Parent
from studio.engine.training.recovery import Recovery
from studio.engine.training.state import Training
from studio.engine.training.step import StepRunner, TickResult
from studio.recipes.base import Recipe

TICK_S = 0.05
LONGEST_UNVALIDATED_S = 60.0
FIRST_CHECKPOINT_S = 10.0  # of training: the most that a kill before the first checkpoint costs
BEST_APART_SHARE = 0.05  # of the run's time, at least, between checkpoints that are saved only as the best so far


def train_new(
    path: Path, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, control: Control,
    parent: Parent | None = None, ranks: Ranks = ALONE,
) -> Events:  # fmt: skip
    """Train a new run in the folder `path`, from RunStarted to RunFinished, starting from `parent`'s weights if there
    is one. With several ranks this is what the first one does. Raises StudioError.
    """
    start = new_training(NewRun(path, sprites, recipe, config, device, parent), ranks)
    yield from _run_with_recovery(start, path, device, control, ranks)


def train_resumed(path: Path, device: Device, control: Control, more_min: float = 0.0, ranks: Ranks = ALONE) -> Events:
    """Go on with a run from its newest sound checkpoint; for so many minutes more, if any. With several ranks this is
    what the first one does. Raises StudioError.
    """
    yield from _run_with_recovery(resumed_training(path, device, more_min, ranks), path, device, control, ranks)


def train_along(device: Device, control: Control, ranks: Group) -> None:
    """What all ranks but the first do: take the steps that it says, as often as it begins or goes on.

    Raises StudioError, and KeyboardInterrupt as `Group.receive_command` does.
    """
    target = device.torch
    while (said := ranks.receive_command(control)) is not None:
        if isinstance(said, StartCommand):  # else it is the end of a training that was not finite
            with detection.wrap_device_errors(target):
                _follow(worker_training(said, device, ranks), control, ranks)
            detection.empty_cache(target)


def train(training: Training, control: Control, clock: Stopwatch, quality: QualityMeter) -> Events:
    """Train until the budget is used up, `control.stop` or, where the settings say so, the advice is to stop; the work
    is on disk when RunFinished comes.

    A tick is a number of steps that take about TICK_S. Inside it nothing is read back from the device: losses and
    gradient norms stay there, and from the first step on whose loss or gradient is not finite, steps leave the weights
    alone. Raises NotFiniteError after the tick of such a step; one that only overflowed in fp16 is skipped.
    """
    all_steps, budget_steps, ranks = StepRunner(training), training.budget_steps(), training.ranks
    speed, steps_a_tick = Speedometer(training.config.batch_size), 1
    threads = ThreadTuner(torch.get_num_threads(), may_change=training.may_change_threads())
    maintenance = _Maintenance(training, control, clock, quality)

    control.live = training.model()
    yield from training.take_notices()
    yield _started(training)
    if training.step == 0:  # untimed: the first drawing is slow, and would delay the next samples
        yield from ranks.by_all_threads(live_samples(training, control))

    while not control.stop and training.used_up() < 1 and maintenance.early_end.advice() is None:
        tick_start_s, first_step = clock.now_s(), training.step
        steps = min(steps_a_tick, budget_steps - first_step) if budget_steps else steps_a_tick
        training.tell_tick(steps)
        training.watch.begin(tick_start_s, training.planned_s())
        with ranks.collective():
            taken = all_steps.take(steps)

        tick_s = clock.now_s() - tick_start_s
        training.elapsed_s = clock.now_s()
        control.live.step = training.step
        speed.add(steps, tick_s)
        steps_a_tick = max(1, min(2 * steps_a_tick, round(steps * TICK_S / max(tick_s, 1e-6))))
        taken.raise_unless_finite()
        yield from _recorded(training, control, taken, speed.sprites_per_s())
        yield from tuned(threads, steps, tick_s)
        yield from ranks.by_all_threads(maintenance.once_a_tick())

    yield from _finish(training, control, clock, maintenance)


class _Maintenance:
    """What is done between ticks, each at its own pace: validation, checkpoints, samples, quality, advice, notices."""

    def __init__(self, training: Training, control: Control, clock: Stopwatch, quality: QualityMeter) -> None:
        self._training, self._control, self._quality = training, control, quality
        self._sampling = Throttle(training.config.sample_every_s, clock)
        first_s = math.inf if training.saved_step >= 0 else FIRST_CHECKPOINT_S
        self._saving = Throttle(training.config.checkpoint_every_s, clock, first_s)
        self._validating = Throttle(0.0, clock)
        self._validated_epoch = int(training.epoch())
        self._best_saved: float | None = None  # the best figure of a checkpoint, where held-out sprites tell
        self._adviser = Adviser(read_history(training.run.path), training.used_up)
        self.early_end = EarlyEnd(training, self._adviser, quality)

    def once_a_tick(self) -> Events:
        """What is due after a tick."""
        yield from self._adviser.follow(self._what_is_due())

    def sample(self) -> Events:
        """Live samples now."""
        sampling = self._sampling
        yield from sampling.timed(live_samples(self._training, self._control))
        yield SamplesSpaced(self._training.config.sample_every_s, sampling.spacing_s(), sampling.cost_s)

    def at_the_end(self) -> Events:
        """What is due after the last tick; only the checkpoint where training was stopped."""
        yield from self._adviser.follow(save(self._training, self._control))
        if not self._control.stop:
            yield from live_samples(self._training, self._control)
            yield from self._adviser.follow(self._quality.finish())
        yield from self._training.take_notices()

    def _what_is_due(self) -> Events:
        training, control = self._training, self._control
        if self._validation_is_due():
            self._validated_epoch = int(training.epoch())
            yield from self._validating.timed(validate(training, control))
        wanted = self._is_best_yet() or self._quality.wants_checkpoint(self._saving)
        if control.checkpoint_now or self._saving.due() or wanted:
            control.checkpoint_now = False
            yield from self._saving.timed(save(training, control))
            self._note_saved()
        if control.sample_now or self._sampling.due():
            control.sample_now = False
            yield from self.sample()
        yield from self._quality.advance()
        yield from self.early_end.warn()
        training.side_work.give_back_memory()
        yield from training.take_notices()

    def _is_best_yet(self) -> bool:
        """Whether this model is better by held-out sprites than any that is saved, and may be saved for that alone."""
        training, saving = self._training, self._saving
        found, best_by, best = training.validated, training.recipe.best_by, self._best_saved
        if best_by is None or found is None or not training.is_validated() or training.saved_step == training.step:
            return False
        if not saving.affordable() or saving.idle_s() < BEST_APART_SHARE * training.planned_s():
            return False
        return best is None or best_by.is_better(found.metrics[best_by.name], best)

    def _note_saved(self) -> None:
        found, best_by = self._training.validated, self._training.recipe.best_by
        if best_by is not None and found is not None and found.step == self._training.saved_step:
            value = found.metrics[best_by.name]
            if self._best_saved is None or best_by.is_better(value, self._best_saved):
                self._best_saved = value

    def _validation_is_due(self) -> bool:
        """After each epoch, unless that takes too much of the time; and at least once in LONGEST_UNVALIDATED_S."""
        if int(self._training.epoch()) > self._validated_epoch and self._validating.affordable():
            return True
        return self._validating.idle_s() > LONGEST_UNVALIDATED_S


def _finish(training: Training, control: Control, clock: Stopwatch, maintenance: _Maintenance) -> Events:
    """Save the work and record how the training has ended: yields RunFinished last."""
    advice = maintenance.early_end.advice()
    yield from training.ranks.by_all_threads(maintenance.at_the_end())
    if advice is not None:
        yield maintenance.early_end.notice(advice)
    reason: Literal["stopped", "finished"] = "finished" if advice or training.used_up() >= 1 else "stopped"
    training.elapsed_s = clock.now_s()
    why = f"Ended early. {advice.why}" if advice else ""
    yield from retry_until_writable(control, training.write_state, reason, why)
    yield RunFinished(reason, training.step, training.elapsed_s, training.run.path)


def validate(training: Training, control: Control) -> Events:
    """The averaged weights on held-out sprites: yields one Validated, or nothing when none are held out."""
    if not len(training.heldout):
        return
    with training.side_work.skip_if_full("figures of held-out sprites"):
        training.validated = heldout_figures(training.model(), training.heldout, training.heldout_batch_size)
        yield from retry_until_writable(control, training.run.append, training.validated)
        yield training.validated


def save(training: Training, control: Control) -> Events:
    """Write a checkpoint, and validate it if that was not just done: yields Validated and CheckpointSaved.

    First comes what can't be had again: whatever validation meets, the weights are kept. Nothing happens when this step
    is on disk already: replacing a sound checkpoint would put it at risk.
    """
    if training.saved_step == training.step:
        return
    path = yield from retry_until_writable(control, training.save)
    if not training.is_validated():
        yield from validate(training, control)
        yield from retry_until_writable(control, training.add_figures)
    yield CheckpointSaved(training.step, path)


def _follow(training: Training, control: Control, ranks: Group) -> None:
    """Take part in a training to its end, or until a step that is not finite: the first rank says what is next."""
    with contextlib.closing(training):
        training.join()
        steps = StepRunner(training)
        while isinstance(tick := ranks.receive_command(control), Tick) and tick.steps:
            training.follow(tick)
            try:
                with ranks.faults():
                    steps.take(tick.steps).raise_unless_finite()
            except NotFiniteError:
                return
            except StepTooLargeError as error:
                ranks.report_oom(error.title)
                raise


def _run_with_recovery(
    start: Generator[Event, None, Training], path: Path, device: Device, control: Control, ranks: Ranks
) -> Events:
    """Drive a training; after an error that it may get over it goes on from its newest checkpoint.

    A loss that is not finite: at half the learning rate, at most MOST_ROLLBACKS times, of which some are forgiven in
    time. No room for the optimizers' work: in smaller micro-batches, which leave more to it; several ranks do so when
    torchrun has started all of them again.
    """
    target = device.torch
    prepare: Callable[[Training], None] = Training.note_micro_batches
    if was_full := ranks.take_oom_report():
        prepare = functools.partial(Training.split_micro_batches, why=was_full)
    kept: tuple[Recovery, AutoBatchSize] | None = None
    while True:
        with detection.wrap_device_errors(target):
            training = yield from start
        ranks.remember(path)
        if kept is not None:  # what this process has learnt of the device is not on disk
            training.recovery, training.heldout_batch_size = kept
        elif ranks.count > 1:
            training.notices.append(Notice("info", f"{ranks.count} processes share each batch."))
        try:
            yield from _run_locked(training, prepare, control)
            return
        except NotFiniteError as error:
            if training.recovery.nan_rollbacks == MAX_ROLLBACKS:
                raise
            prepare = functools.partial(Training.roll_back, why=error.title, failed_step=error.step)
        except StepTooLargeError as error:
            if training.step_is_too_large():
                raise DeviceFullError(error.title, error.hint) from error
            if not ranks.is_alone:
                raise
            prepare = functools.partial(Training.split_micro_batches, why=error.title)
        finally:
            kept = training.recovery, training.heldout_batch_size
            del training
            detection.empty_cache(target)
        start = resumed_training(path, device, ranks=ranks)


def _run_locked(training: Training, prepare: Callable[[Training], None], control: Control) -> Events:
    """Drive a training, beginning with `prepare`; however it ends, the lock is released and a failure recorded."""
    clock = Stopwatch(training.elapsed_s)
    quality = QualityMeter(training, control, clock)
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(torch.set_num_threads, torch.get_num_threads())
        at_the_end.callback(_let_go, training, control, quality)
        at_the_end.push(functools.partial(_record_failure, training))
        prepare(training)
        with detection.wrap_device_errors(training.device), training.ranks.faults():
            training.join()
            yield from clock.timed(train(training, control, clock, quality))


def _record_failure(
    training: Training, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    """Write down what has ended a training: any error, not that it was closed or interrupted."""
    if isinstance(error, StepTooLargeError) and not (training.ranks.is_alone or training.step_is_too_large()):
        training.recovery.micro_batches.double(training.ranks.count)  # with which the next start goes on
    if isinstance(error, Exception):
        words = formatting.describe_error(error, otherwise="Something went wrong inside the studio.")
        with contextlib.suppress(UnwritableError):  # to be said is what has ended the run
            training.write_state("failed", " ".join(words).strip())


def _let_go(training: Training, control: Control, quality: QualityMeter) -> None:
    control.live = None
    quality.close()
    with contextlib.suppress(ProcessGoneError, StepTooLargeError):  # the others know
        training.tell_tick(0)
    training.close()


def _started(training: Training) -> RunStarted:
    return RunStarted(
        training.run.path, training.recipe.name, training.record.device, training.precision, training.record.parameters,
        len(training.train_set), len(training.heldout), training.step, training.elapsed_s,
        next((ancestor.title for ancestor in training.record.ancestors), ""),
    )  # fmt: skip


def _loss_chunk(training: Training, taken: TickResult, sprites_per_s: float) -> LossChunk:
    """The event of a tick."""
    config, (losses, grad_norms) = training.config, taken.statistics
    left_s = 60 * config.minutes - training.elapsed_s
    if steps := training.budget_steps():
        left_sprites = (steps - training.step) * config.batch_size
        left_s = left_sprites / sprites_per_s if sprites_per_s else math.inf
    return LossChunk(
        taken.first_step, losses, grad_norms, taken.learning_rate, sprites_per_s, training.elapsed_s, max(0.0, left_s),
        training.epoch(), detection.memory_in_use(training.device),
    )  # fmt: skip


def _recorded(training: Training, control: Control, taken: TickResult, sprites_per_s: float) -> Events:
    """Write what a tick has to say into metrics.jsonl, and yield it."""
    chunk = _loss_chunk(training, taken, sprites_per_s)
    yield from retry_until_writable(control, training.run.append, chunk)
    for seen in training.watch.seen(taken.first_step + 1, taken.layer_figures):
        yield from retry_until_writable(control, training.run.append, seen)
    yield chunk
