"""The training loop, a generator of events. The caller drives the training by advancing the generator."""

import contextlib
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from studio.core import formatting
from studio.core.config import TrainingConfig
from studio.core.errors import DeviceFullError, NotFiniteError, ProcessGoneError, StepTooLargeError, UnwritableError
from studio.core.events import Event, Events, LossChunk, Notice, RunStarted
from studio.core.observers import Observer, observed
from studio.data.sprites import Sprites
from studio.engine.control.control import Control, retry_until_writable
from studio.engine.devices import detection
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.memory import MemoryMeter
from studio.engine.devices.types import Device
from studio.engine.distributed.ranks import ALONE, Group, Ranks, StartCommand, TickCommand
from studio.engine.runs.folder import MAX_ROLLBACKS
from studio.engine.steps.cpu_threads import ThreadTuner
from studio.engine.steps.timing import Speedometer, Stopwatch
from studio.engine.training.create import NewRun, new_training, resumed_training, worker_training
from studio.engine.training.live_samples import live_samples
from studio.engine.training.maintenance import Maintenance
from studio.engine.training.parents import Parent
from studio.engine.training.recovery import Recovery
from studio.engine.training.saving import roll_back, write_state
from studio.engine.training.state import Training
from studio.engine.training.step import StepRunner, TickResult
from studio.recipes.base import Recipe

TICK_S = 0.05


def train_new(
    path: Path, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, control: Control,
    parent: Parent | None = None, ranks: Ranks = ALONE, observers: Sequence[Observer] = (),
) -> Events:  # fmt: skip
    """Train a new run in the folder `path`; yields RunStarted first and RunFinished last. Raises StudioError.

    parent: gives the start weights. observers: see each event. In a distributed run, call this on rank 0.
    """
    start = new_training(NewRun(path, sprites, recipe, config, device, parent), ranks)
    return _run(start, path, device, control, ranks, observers)


def train_resumed(
    path: Path, device: Device, control: Control, more_min: float = 0.0, ranks: Ranks = ALONE,
    observers: Sequence[Observer] = (),
) -> Events:  # fmt: skip
    """Continue to train a run from its newest valid checkpoint; yields the training's events.

    more_min: minutes from there; 0: the rest of the budget. In a distributed run, for rank 0. Raises StudioError.
    """
    return _run(resumed_training(path, device, more_min, ranks), path, device, control, ranks, observers)


def train_worker(device: Device, control: Control, ranks: Group) -> None:
    """Run a worker rank of a distributed run: take the training steps that rank 0 announces.

    Raises StudioError, and KeyboardInterrupt if `control.stop` is set and rank 0 sends nothing for a while.
    """
    while (command := ranks.receive_command(control)) is not None:
        if isinstance(command, StartCommand):  # a TickCommand here ends a failed training
            with detection.wrap_device_errors(device.torch):
                _run_ticks(worker_training(command, device, ranks), control, ranks)
            detection.empty_cache(device.torch)


def _run_ticks(training: Training, control: Control, ranks: Group) -> None:
    """Train on a worker rank until rank 0 ends the training or a loss is not finite."""
    with contextlib.closing(training):
        training.broadcast_start()
        runner = StepRunner(training)
        while isinstance(tick := ranks.receive_command(control), TickCommand) and tick.steps:
            training.apply_tick(tick)
            try:
                with ranks.wrap_rank_errors():
                    runner.run(tick.steps).raise_unless_finite()
            except NotFiniteError:
                return
            except StepTooLargeError as error:
                ranks.report_oom(error.title)
                raise


def train(training: Training, control: Control, clock: Stopwatch, memory: MemoryMeter) -> Events:
    """Train until the budget is used up, `control.stop` is set, or the run stops early by its settings.

    RunFinished comes last, after the work has been saved. A tick is a number of steps that take about TICK_S together.
    Within it nothing is read back from the device: losses and gradient norms stay there. After a loss or gradient that
    is not finite, later steps leave the weights unchanged, and the tick ends with NotFiniteError; fp16 overflows skip a
    step.
    """
    runner, budget_steps, ranks = StepRunner(training), training.budget_steps(), training.ranks
    speed, steps_per_tick = Speedometer(training.config.batch_size), 1  # grows once the first step was timed
    threads = ThreadTuner(torch.get_num_threads(), may_change=training.may_change_threads())
    clock.start(training.elapsed_s)
    with contextlib.closing(Maintenance(training, control, clock)) as maintenance:
        control.live = training.model()
        yield from training.pop_notices()
        yield _run_started(training)
        if training.step == 0:  # not throttled: the first drawing is slow and would delay the next
            yield from ranks.with_all_threads(live_samples(training, control))

        while not control.stop and training.budget_share() < 1 and maintenance.stop_advice() is None:
            tick_start_s, first_step = clock.now_s(), training.step
            steps = min(steps_per_tick, budget_steps - first_step) if budget_steps else steps_per_tick
            training.send_tick(steps)  # the other ranks start the same steps
            training.layer_monitor.begin_tick(tick_start_s, training.planned_s())
            with ranks.collective():
                result = runner.run(steps)  # losses and gradient norms: float32 [2, steps]

            tick_s = clock.now_s() - tick_start_s
            training.elapsed_s = clock.now_s()  # saved in checkpoints and state.json
            control.live.step = training.step
            speed.add(steps, tick_s)
            # Aim at TICK_S, but at most double: one fast measurement must not start a very long tick.
            steps_per_tick = max(1, min(2 * steps_per_tick, round(steps * TICK_S / max(tick_s, 1e-6))))
            result.raise_unless_finite()
            losses = _loss_chunk(training, result, speed.sprites_per_s(), memory.read())
            yield from retry_until_writable(control, training.run.append, losses)
            for layers in training.layer_monitor.read(first_step + 1, result.layer_values):
                yield from retry_until_writable(control, training.run.append, layers)
            yield losses
            yield from threads.tick(steps, tick_s)  # may change the number of CPU threads
            yield from ranks.with_all_threads(maintenance.after_tick())

        yield from maintenance.finish()


def _run_started(training: Training) -> RunStarted:
    return RunStarted(
        training.run.path, training.recipe.name, training.record.device, training.precision, training.record.parameters,
        len(training.train_set), len(training.heldout), training.step, training.elapsed_s,
        next((ancestor.title for ancestor in training.record.ancestors), ""), training.record.examples,
    )  # fmt: skip


def _loss_chunk(training: Training, result: TickResult, sprites_per_s: float, memory_bytes: int) -> LossChunk:
    config, (losses, grad_norms) = training.config, result.statistics
    left_s = 60 * config.minutes - training.elapsed_s
    if steps := training.budget_steps():
        left_sprites = (steps - training.step) * config.batch_size
        left_s = left_sprites / sprites_per_s if sprites_per_s else math.inf  # unknown before the first tick
    return LossChunk(
        result.first_step, losses, grad_norms, result.learning_rate, sprites_per_s, training.elapsed_s,
        max(0.0, left_s), training.epoch(), memory_bytes,
    )  # fmt: skip


def _run(
    start: Generator[Event, None, Training], path: Path, device: Device, control: Control, ranks: Ranks,
    observers: Sequence[Observer],
) -> Events:  # fmt: skip
    clock = Stopwatch()
    return observed(_train_with_recovery(start, path, device, control, ranks, clock), [clock, *observers])


def _train_with_recovery(
    start: Generator[Event, None, Training], path: Path, device: Device, control: Control, ranks: Ranks,
    clock: Stopwatch,
) -> Events:  # fmt: skip
    """Train, and restart from the newest checkpoint after an error that the training can recover from.

    start: creates the training. After NotFiniteError, halve the learning rate, at most MAX_ROLLBACKS times. After
    StepTooLargeError, raised when the optimizers find no memory, halve the micro-batches, which leaves more memory to
    the optimizers. A distributed run does so after torchrun has restarted its ranks.
    """
    prepare: Callable[[Training], None] = Training.report_micro_batches
    if oom_title := ranks.pop_oom_report():
        prepare = partial(Training.split_micro_batches, why=oom_title)
    kept: tuple[Recovery, AutoBatchSize] | None = None
    memory = MemoryMeter(device.torch)
    while True:
        with detection.wrap_device_errors(device.torch):
            training = yield from start
        ranks.set_current_run(path)  # torchrun's restart resumes this run
        if kept is not None:  # state.json does not hold these
            training.recovery, training.heldout_batch_size = kept
        elif ranks.world_size > 1:
            training.notices.append(Notice("info", f"{ranks.world_size} processes share each batch."))
        try:
            with _opened(training, control), detection.wrap_device_errors(device.torch), ranks.wrap_rank_errors():
                prepare(training)
                training.broadcast_start()
                yield from train(training, control, clock, memory)
            return
        except NotFiniteError as error:
            if training.recovery.nan_rollbacks == MAX_ROLLBACKS:
                raise
            prepare = partial(roll_back, why=error.title, failed_step=error.step)
        except StepTooLargeError as error:
            if training.has_smallest_micro_batch():
                raise DeviceFullError(error.title, error.hint) from error
            if not ranks.is_alone:
                raise
            prepare = partial(Training.split_micro_batches, why=error.title)
        finally:
            kept = training.recovery, training.heldout_batch_size
            del training
            detection.empty_cache(device.torch)
        start = resumed_training(path, device, ranks=ranks)  # from the newest checkpoint


@contextlib.contextmanager
def _opened(training: Training, control: Control) -> Iterator[None]:
    """Hold a training open for the block; then write a failure to state.json and release the run's lock."""
    threads = torch.get_num_threads()
    try:
        yield
    except Exception as error:  # not KeyboardInterrupt, and not the end of the generator
        is_alone, recovery = training.ranks.is_alone, training.recovery
        if isinstance(error, StepTooLargeError) and not (is_alone or training.has_smallest_micro_batch()):
            recovery.micro_batches.double(training.ranks.world_size)  # the next start of torchrun reads the count
        words = formatting.describe_error(error, otherwise="Something went wrong inside the studio.")
        with contextlib.suppress(UnwritableError):  # report the error that ended the run, not this one
            write_state(training, "failed", " ".join(words).strip())
        raise
    finally:
        torch.set_num_threads(threads)
        control.live = None
        with contextlib.suppress(ProcessGoneError, StepTooLargeError):  # the other ranks have ended already
            training.send_tick(0)
        training.close()
