"""The training loop: a generator of events. Whoever advances it drives it; not to advance it is to pause."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from studio.core import wording
from studio.core.config import TrainingConfig
from studio.core.errors import NotFiniteError, StepTooLargeError, UnwritableError
from studio.core.events import (
    CheckpointSaved,
    Classified,
    Event,
    Events,
    LossChunk,
    NumbersPredicted,
    RunFinished,
    RunStarted,
    SamplesReady,
)
from studio.data.sprites import Sprites
from studio.engine import devices
from studio.engine.batches import step_seed
from studio.engine.devices import Device
from studio.engine.fitting import AtOnce
from studio.engine.generate import GenerateSettings, draw, predict
from studio.engine.holding import retry_until_writable
from studio.engine.model import Control, TrainedModel
from studio.engine.optim import current_rate, set_learning_rate
from studio.engine.pace import Speedometer, Stopwatch, Throttle
from studio.engine.quality.evaluate import heldout_figures
from studio.engine.quality.meter import QualityMeter
from studio.engine.runs.advice import advised
from studio.engine.runs.folder import MOST_SETBACKS
from studio.engine.runs.history import read_history
from studio.engine.starting import begin, take_up
from studio.engine.threads import ThreadTuner, tuned
from studio.engine.training import MicroBatches, Training
from studio.recipes.base import Recipe

T = TypeVar("T")

TICK_S = 0.05
SAMPLE_COUNT = 16
SAMPLE_STEPS = 10
SAMPLE_SEED = 7
LONGEST_UNVALIDATED_S = 60.0


def train_new(
    path: Path, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, control: Control
) -> Events:
    """Train a new run in the folder `path`, from RunStarted to RunFinished. Raises StudioError."""
    yield from _run_with_recovery(begin(path, sprites, recipe, config, device), path, device, control)


def train_resumed(path: Path, device: Device, control: Control) -> Events:
    """Go on with a run from its newest sound checkpoint. Raises StudioError."""
    yield from _run_with_recovery(take_up(path, device), path, device, control)


def train(training: Training, control: Control, clock: Stopwatch, quality: QualityMeter) -> Events:  # noqa: PLR0915
    """Train until the budget is used up or `control.stop`; the work is on disk when RunFinished comes.

    Inside a tick nothing is read back from the device: losses and gradient norms go to a buffer there, and a step whose
    loss or gradient is not finite leaves the weights alone, on the device itself, as do all that follow it in the tick.
    After the tick one copy brings the buffer over; if it holds such a step, NotFiniteError is raised. A step left out
    because its loss was scaled too much for fp16 is none.
    """
    config, optimizers, scaler = training.config, training.optimizers, training.scaler
    weights = [weight for weight in training.network.parameters() if weight.requires_grad]
    rng = torch.Generator(training.device)
    speed, steps_a_tick = Speedometer(config.batch_size), 1
    sampling, saving = Throttle(config.sample_every_s, clock), Throttle(config.checkpoint_every_s, clock)
    validating = Throttle(0.0, clock)
    threads = ThreadTuner(torch.get_num_threads(), may_change=training.may_change_threads())
    validated_epoch = training.step * config.batch_size // len(training.train_set)

    control.live = training.model()
    yield from training.take_notices()
    yield _started(training)
    if training.step == 0:
        yield from sampling.timed(live_samples(training, control))

    while not control.stop and training.used_up() < 1:
        tick_start_s = clock.now_s()
        first_step = training.step
        count = min(steps_a_tick, config.steps - first_step) if config.steps else steps_a_tick
        seen = torch.zeros(2, count, device=training.device)  # losses and gradient norms
        training.network.train()
        for i in range(count):
            set_learning_rate(optimizers, training.learning_rate())
            seen[0, i] = _add_gradients(training, rng)
            with devices.faults(training.device, full=StepTooLargeError):
                scaler.unscale_gradients()
                seen[1, i] = torch.nn.utils.clip_grad_norm_(weights, config.clip_grad_norm)
                scaler.update(seen[:, i])
                for optimizer in optimizers:
                    optimizer.step()
            training.network.zero_grad(set_to_none=True)
            training.step += 1
            training.average.update(training.step * config.batch_size, config.batch_size)
        losses, norms = seen.cpu().numpy()  # the one read-back of the tick
        tick_s = clock.now_s() - tick_start_s
        training.elapsed_s = clock.now_s()
        control.live.step = training.step
        speed.add(count, tick_s)
        steps_a_tick = max(1, min(2 * steps_a_tick, round(count * TICK_S / max(tick_s, 1e-6))))
        _raise_unless_finite(first_step, losses + norms)
        chunk = _chunk(training, first_step, losses, norms, speed)
        yield from retry_until_writable(control, training.run.append, chunk)
        yield chunk
        yield from tuned(threads, count, tick_s)

        epoch = training.step * config.batch_size // len(training.train_set)
        if (epoch > validated_epoch and validating.affordable()) or validating.idle_s() > LONGEST_UNVALIDATED_S:
            validated_epoch = epoch
            yield from validating.timed(validate(training, control))
        if control.checkpoint_now or saving.due() or quality.wants_checkpoint(saving):
            control.checkpoint_now = False
            yield from saving.timed(save(training, control))
        if control.sample_now or sampling.due():
            control.sample_now = False
            yield from sampling.timed(live_samples(training, control))
        yield from quality.advance()
        training.give_back_memory()
        yield from training.take_notices()

    yield from save(training, control)
    if not control.stop:
        yield from live_samples(training, control)
        yield from quality.finish()
    yield from training.take_notices()
    reason: Literal["stopped", "finished"] = "stopped" if training.used_up() < 1 else "finished"
    training.elapsed_s = clock.now_s()
    yield from retry_until_writable(control, training.write_state, reason)
    yield RunFinished(reason, training.step, training.elapsed_s, training.run.path)


def _add_gradients(training: Training, rng: torch.Generator) -> Tensor:
    """Forward and backward of the next step's batch; returns its loss, a scalar on the device.

    Where the device has no room for that, it is done anew in smaller micro-batches. Raises StepTooLargeError.
    """
    while True:
        try:
            with devices.faults(training.device, full=StepTooLargeError):
                return _batch_gradients(training, rng)
        except StepTooLargeError as error:
            if training.step_is_too_large():
                raise
            training.make_micro_batches_smaller(error.title)
        # Not inside the except clause: as long as the error is handled, it keeps what has failed in memory.
        training.network.zero_grad(set_to_none=True)
        devices.give_back_memory(training.device)


def _batch_gradients(training: Training, rng: torch.Generator) -> Tensor:
    config, recipe = training.config, training.recipe
    rng.manual_seed(step_seed(config.seed, training.step))
    batch = training.train_set.batch(
        training.step, config.batch_size, flip=config.flip, shift_px=config.shift_px, rng=rng
    )
    total = torch.zeros((), device=training.device)
    for micro_batch, numbers in batch.micro_batches(training.micro_batches.count, rng):
        with devices.autocast(training.device.type, training.precision):
            share = recipe.weight(micro_batch) / recipe.weight(batch)
            loss = recipe.loss(training.network, micro_batch, config, numbers) * share
        training.scaler.scaled(loss).backward()
        total += loss.detach()
    return total


def validate(training: Training, control: Control) -> Events:
    """The averaged weights on held-out sprites: yields one Validated, or nothing when none are held out."""
    if not len(training.heldout):
        return
    with training.left_out_if_full("figures of held-out sprites"):
        training.validated = heldout_figures(training.model(), training.heldout, training.heldout_fit)
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


def live_samples(training: Training, control: Control) -> Events:
    """Samples of the fixed seed, or held-out sprites with what is said of them: Progress, then one SamplesReady.

    Gives way, without samples, as soon as `control.stop` is set.
    """
    with training.left_out_if_full("live samples"):
        model = training.model()
        if model.recipe.makes != "sprites":
            yield _heldout_samples(training, model)
        else:
            yield from _drawn_samples(training, model, control)


def _drawn_samples(training: Training, model: TrainedModel, control: Control) -> Events:
    names = training.spec.class_names
    common = np.argsort(-np.bincount(training.train_set.labels_host, minlength=len(names)), kind="stable")[
        :SAMPLE_COUNT
    ]
    labels = np.resize(np.sort(common), SAMPLE_COUNT)
    drawing = draw(model, labels, GenerateSettings(steps=SAMPLE_STEPS, seed=SAMPLE_SEED))
    sprites = yield from _unless_stopped(drawing, control)
    if sprites is not None:
        samples = SamplesReady(training.step, sprites, tuple(names[label] for label in labels))
        yield from retry_until_writable(control, training.run.save_samples, samples)
        yield samples


def _unless_stopped(work: Generator[Event, None, T], control: Control) -> Generator[Event, None, T | None]:
    """Hand on the events of `work` and return what it does; None as soon as `control.stop` is set."""
    while not control.stop:
        try:
            event = next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        yield event
    return None


def _heldout_samples(training: Training, model: TrainedModel) -> SamplesReady:
    """Some held-out sprites, with the class or the numbers that the model gives them."""
    places = slice(None, None, max(1, len(training.heldout_sprites) // SAMPLE_COUNT))
    chosen = training.heldout_sprites[places][:SAMPLE_COUNT]
    *_, found = predict(model, chosen)
    if isinstance(found, Classified):
        return SamplesReady(training.step, chosen, tuple(found.class_names[k] for k in found.probabilities.argmax(1)))
    assert isinstance(found, NumbersPredicted)
    true = training.heldout.targets[places][:SAMPLE_COUNT].cpu().numpy()
    captions = tuple("; ".join(map(wording.decimal, row)) for row in found.numbers.tolist())
    return SamplesReady(training.step, chosen, captions, found.numbers, true)


def _run_with_recovery(make: Generator[Event, None, Training], path: Path, device: Device, control: Control) -> Events:
    """Drive a training; what more care may help against does not end it: it goes on from its newest checkpoint.

    A loss that is no number: at half the rate, MOST_SETBACKS times at most, of which some are forgiven in time. No room
    for the optimizers' work: with smaller micro-batches, which leave more to it.
    """
    target = torch.device(device.id)
    take_care: Callable[[Training], None] = Training.say_how_it_was_left
    while True:
        with devices.faults(target):
            training = yield from make
        try:
            yield from _guarded(training, take_care, control)
            return
        except NotFiniteError as error:
            if training.setbacks == MOST_SETBACKS:
                raise
            take_care = functools.partial(Training.slow_down, why=error.title, failed_step=error.step)
        except StepTooLargeError as error:
            if training.step_is_too_large():
                raise
            take_care = functools.partial(Training.make_micro_batches_smaller, why=error.title)
        finally:
            found_out = training.micro_batches, training.sound_checkpoints, training.heldout_fit
            del training
            devices.give_back_memory(target)
        make = _taken_up_again(path, device, *found_out)


def _taken_up_again(
    path: Path, device: Device, micro_batches: MicroBatches, sound_checkpoints: int, heldout_fit: AtOnce
) -> Generator[Event, None, Training]:
    """The run at its newest checkpoint; what this process has found out about the device is not on disk, and stays."""
    training = yield from take_up(path, device)
    training.micro_batches, training.sound_checkpoints = micro_batches, sound_checkpoints
    training.heldout_fit = heldout_fit
    return training


def _guarded(training: Training, take_care: Callable[[Training], None], control: Control) -> Events:
    """Drive a training; whatever ends it, the lock is given back, and the record says if it failed."""
    clock = Stopwatch(training.elapsed_s)
    quality = QualityMeter(training, control, clock)
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(torch.set_num_threads, torch.get_num_threads())
        at_the_end.callback(_let_go, training, control, quality)
        at_the_end.push(functools.partial(_record_failure, training))
        take_care(training)
        with devices.faults(training.device):
            yield from advised(clock.timed(train(training, control, clock, quality)), read_history(training.run.path))


def _record_failure(
    training: Training, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    """Write down what has ended a training: any error, not that it was closed or interrupted."""
    if isinstance(error, Exception):
        words = wording.error_words(error, otherwise="Something went wrong inside the studio.")
        with contextlib.suppress(UnwritableError):  # to be said is what has ended the run
            training.write_state("failed", " ".join(words).strip())


def _let_go(training: Training, control: Control, quality: QualityMeter) -> None:
    control.live = None
    quality.close()
    training.close()


def _started(training: Training) -> RunStarted:
    return RunStarted(
        training.run.path, training.recipe.name, training.record.device, training.precision, training.record.parameters,
        len(training.train_set), len(training.heldout), training.step, training.elapsed_s,
    )  # fmt: skip


def _chunk(training: Training, first_step: int, losses: np.ndarray, norms: np.ndarray, speed: Speedometer) -> LossChunk:
    config, rate = training.config, speed.sprites_per_s()
    left_s = 60 * config.minutes - training.elapsed_s
    if config.steps:
        left_s = (config.steps - training.step) * config.batch_size / rate if rate else math.inf
    return LossChunk(
        first_step, losses, norms, current_rate(training.optimizers), rate, training.elapsed_s, max(0.0, left_s),
        training.step * config.batch_size / len(training.train_set), devices.memory_in_use(training.device),
    )  # fmt: skip


def _raise_unless_finite(first_step: int, values: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise NotFiniteError(first_step + int(bad[0]))
