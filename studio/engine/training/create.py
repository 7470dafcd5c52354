"""Create a training: a new run, a run for the queue, or a run resumed from its newest checkpoint."""

import datetime
import platform
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

import studio
from studio.core import paths
from studio.core.config import TrainingConfig, settings_of
from studio.core.errors import BusyRunError, DamagedError, RunError, TrainingError
from studio.core.events import Event, Events, Notice
from studio.core.file_systems import new_limitations
from studio.core.formatting import duration, percent
from studio.core.names import nfc
from studio.data.similarity.groups import group_near_duplicates
from studio.data.sprites import Sprites
from studio.data.store import packed
from studio.engine import catalog
from studio.engine.devices import detection
from studio.engine.devices.precision import LossScaler
from studio.engine.devices.types import Device
from studio.engine.distributed.ranks import ALONE, Ranks, StartCommand
from studio.engine.models.loading import precision_for
from studio.engine.models.model import load_style, save_style
from studio.engine.quality.evaluate import heldout_batch_size
from studio.engine.remote.marker import raise_if_remote
from studio.engine.runs import checkpoints, evaluation, folder, queue
from studio.engine.runs.checkpoints import CheckpointInfo
from studio.engine.runs.creating import new_run, remove_failed_starts
from studio.engine.runs.folder import RunDir, RunRecord, RunState, wrap_read_errors, wrap_write_errors
from studio.engine.runs.split import BY_GROUP, split_sprites
from studio.engine.steps.batches import DeviceSprites, stride_subsample, subsample
from studio.engine.steps.optim import EMA, make_optimizers
from studio.engine.steps.streamed import make_train_set
from studio.engine.steps.timing import throttle_events, with_progress
from studio.engine.training.parents import Parent, load_start, save_start
from studio.engine.training.recovery import Recovery
from studio.engine.training.saving import set_headline, write_state
from studio.engine.training.state import Training
from studio.recipes.base import Recipe, Spec

MAX_VALIDATION = 1024  # most sprites per validation: enough for a steady metric
_MANY_CLASSES = 10  # with more classes, adding sprites to every class is too much work


class NewRun(NamedTuple):
    """The arguments for creating a run."""

    path: Path  # its folder, empty or missing
    sprites: Sprites
    recipe: Recipe
    config: TrainingConfig
    device: Device
    parent: Parent | None = None  # whose weights the run starts from; fixes some settings, such as the width


def new_training(new: NewRun, ranks: Ranks = ALONE) -> Generator[Event, None, Training]:
    """Create a run; return its training, at step 0. Yields Progress. Raises TrainingError, RunError, UsageError."""
    ranks.check_batch_size(new.config)
    plan, run = _make_plan(new), RunDir(new.path)
    remove_failed_starts()
    with new_run(run) as on_error:
        record, chosen = yield from populate_run_dir(run, plan, new)
        with wrap_write_errors(run.path):
            chosen = packed.map_saved(chosen, run.data)  # pixels come from the run's file, not from memory
        training = _assemble(run, record, new.recipe, plan.config, chosen, plan.network, new.device, ranks, on_error)
        write_state(training, "training")
        run.create(record)
    training.notices += plan.notices
    return training


def create_run(new: NewRun, state: RunState = "stopped") -> Events:
    """Create a run for later training, here or in another process.

    The run folder holds settings, sprites and the parent's weights, so later changes to the originals have no effect.
    Nothing is moved to the device. Yields Progress and Notices. Raises TrainingError, RunError.
    """
    plan, run = _make_plan(new), RunDir(new.path)
    remove_failed_starts()
    with new_run(run):
        record, _ = yield from populate_run_dir(run, plan, new)
        run.write_progress(folder.RunProgress(state, 0, 0.0, {}))
        run.create(record)
    run.release()
    yield from plan.notices


def create_queued_run(new: NewRun) -> Events:
    """Create a run and queue it; yields Progress, Notices, last RunQueued. Raises TrainingError, RunError."""
    yield from create_run(new, "queued")
    queue.append(new.path)
    yield queue.RunQueued(new.path)


class _Plan(NamedTuple):
    """What a new run consists of, before its files are written. A parent determines the weights and some settings."""

    sprites: Sprites
    config: TrainingConfig
    network: nn.Module
    automatic: dict[str, Any]  # as in RunRecord
    notices: list[Notice]


def _make_plan(new: NewRun) -> _Plan:
    """Select sprites, and build the network with the parent's weights. Raises TrainingError, UnwritableError."""
    config, parent = new.config, new.parent
    with wrap_write_errors(new.path):
        chosen, notes = new.recipe.select(new.sprites, config)
    if len(chosen) == 0:
        raise TrainingError("No sprites to train on.", "Open a folder of sprites first.")
    if parent is not None:
        notes += _differences(config, parent.adapt(config))
        config = parent.adapt(config)  # width and depth must equal the parent's
    asked = config.to_json()
    config = new.recipe.resolve(config, chosen)
    automatic = {name: asked[name] for name, value in config.to_json().items() if value != asked[name]}
    torch.manual_seed(config.seed)  # the seed determines the initial weights
    network = new.recipe.build(config, Spec.of(chosen))
    if parent is not None:
        left = parent.copy_weights(network, new.recipe, Spec.of(chosen))
        notes += [f"{left} start weights don't fit {chosen.size} pixels and are random instead."] if left else []
    return _Plan(chosen, config, network, automatic, [Notice("info", note) for note in notes])


def populate_run_dir(run: RunDir, plan: _Plan, new: NewRun) -> Generator[Event, None, tuple[RunRecord, Sprites]]:
    """Write a new run's sprites, style and start weights to its folder, but not run.json and state.json.

    Yields Progress. Returns the run's record, and the sprites with their groups of near duplicates.
    """
    chosen = yield from throttle_events(group_near_duplicates(plan.sprites, paths.cache()))
    record = _new_record(new, chosen, plan)
    with wrap_write_errors(run.path):
        yield from with_progress(packed.link_or_save(chosen, run.data), len(chosen), "sprites copied to the run folder")
    save_style(run, record, chosen)
    if new.parent is not None:
        record = replace(record, start_sha256=save_start(run, plan.network))  # the parent may change later
    return record, chosen


def resumed_training(
    path: Path, device: Device, more_min: float = 0.0, ranks: Ranks = ALONE
) -> Generator[Event, None, Training]:
    """Load a run's training from its newest valid checkpoint.

    Yields Progress while the run's sprites are checked. more_min: minutes to train from the checkpoint, whatever the
    budget was; 0 keeps the budget. Raises RunError, BadInputError, UsageError.
    """
    raise_if_remote(path)
    run = RunDir(path)
    record = run.record()
    recipe = catalog.recipe(record.recipe)
    config = recipe.Config.from_json(record.config)
    ranks.check_batch_size(config)
    seen = run.progress()
    with run.held_on_success() as on_error:
        before = run.progress()
        if before != seen:  # a short run can end while this process waits for its lock
            title = f"Another process has trained {path.name} meanwhile."
            raise BusyRunError(title, "Look at the run, and resume it again if it should train longer.")
        extended_min = before.elapsed_s / 60 + more_min if more_min else before.minutes
        config = _with_minutes(config, extended_min)
        with wrap_write_errors(path):
            run.remove_leftovers()
        sprites, _ = yield from with_progress(packed.load_in_slices(run.data), record.data_count, "sprites checked")
        torch.manual_seed(config.seed)
        network = recipe.build(config, Spec.of(sprites))
        if record.start_sha256 and not _has_checkpoint(run):
            load_start(run, record, network)
        training = _assemble(run, record, recipe, config, sprites, network, device, ranks, on_error)
        _load_newest(training)
        training.extended_min = extended_min
        is_same_device = before.device_name == device.name
        training.recovery = Recovery(before.nan_rollbacks, before.micro_batches if is_same_device else 1)
        if before.micro_batches > 1 and not is_same_device:
            training.notices.append(Notice("info", "Batches are no longer split, because the device changed."))
        if more_min and before.step:
            training.notices.append(_schedule_notice(training))
        evaluation.remove_evaluations_after(run, training.step)
        if before.state != "queued":
            run.mark_resume(training.step, device.id)  # a line of metrics.jsonl
        write_state(training, "training")
    return training


def worker_training(start: StartCommand, device: Device, ranks: Ranks) -> Training:
    """Create a worker rank's training of the announced run, without a lock. Raises RunError, BadInputError."""
    run = RunDir(Path(start.path))
    record = run.record()
    recipe = catalog.recipe(record.recipe)
    config = _with_minutes(recipe.Config.from_json(record.config), start.minutes)
    sprites = packed.load(run.data)
    network = recipe.build(config, Spec.of(sprites))
    with ExitStack() as on_error:
        training = _assemble(run, record, recipe, config, sprites, network, device, ranks, on_error, start.precision)
        if start.step >= 0:
            _load_step(training, start.step)
        on_error.pop_all()
    return training


def _load_step(training: Training, step: int) -> None:
    """Load the optimizer state from the checkpoint of `step`. Raises RunError if it is missing."""
    folder = training.run.checkpoints
    with wrap_read_errors(folder):
        found = [(path, info) for path, info in checkpoints.list_checkpoints(folder) if info.step == step]
    if not found:
        raise RunError(f"{folder} holds no checkpoint of step {step:,}.", "Give every process access to this folder.")
    ((path, info),) = found
    with wrap_read_errors(path):
        restore_optimizer_state(training, info, checkpoints.load_tensors(path, info, "optimizer"))


def restore_optimizer_state(training: Training, info: CheckpointInfo, optimizers: checkpoints.Tensors) -> None:
    """Load a checkpoint's optimizer state, loss scale, step and elapsed time into the training."""
    training.scaler.load(optimizers)
    checkpoints.load_optimizers(training.optimizers, optimizers)
    training.step, training.elapsed_s, training.saved_step = info.step, info.elapsed_s, info.step


def _with_minutes(config: TrainingConfig, minutes: float) -> TrainingConfig:
    """Return the config with a budget of `minutes` instead of its own; 0 keeps the budget."""
    return config.replace(minutes=minutes, steps=0, epochs=0) if minutes else config


def _schedule_notice(training: Training) -> Notice:
    """Return a notice that says how the learning rate goes on in a run with an extended budget."""
    title = f"The run now trains for {duration(60 * training.extended_min)} in total."
    share, rate = training.config.lr_decay_share, training.learning_rate()
    if training.budget_share() >= 1 - share:
        way = f"The learning rate is {rate:.2g} and falls from there"
    else:
        way = f"The learning rate is back at its peak, {rate:g}, and falls in the last {percent(share)}"
    return Notice("info", title, f"{way}. The loss may rise at first.")


def _no_validation_notice(sprites: Sprites, recipe: Recipe) -> Notice:
    """Return a notice that no sprites are left for validation, with what helps for few or for many classes."""
    if recipe.makes == "sets":
        hint = f"All {recipe.noun}s look alike, as recolours do. To validate the model, add different {recipe.noun}s."
        return Notice("info", f"No {recipe.noun}s are left for validation.", hint)
    is_split_up = (sprites.class_counts() > 0).sum() > _MANY_CLASSES
    remedy = "use larger classes, such as one per folder" if is_split_up else "add different sprites to each class"
    hint = f"Each class is one group of similar sprites. To measure memorization, {remedy}."
    return Notice("info", "No sprites are left for validation.", hint)


def _assemble(
    run: RunDir, record: RunRecord, recipe: Recipe, config: TrainingConfig, sprites: Sprites, network: nn.Module,
    device: Device, ranks: Ranks, on_error: ExitStack, precision: str = "",
) -> Training:  # fmt: skip
    """Create a Training: split the sprites, and move data and network to the device.

    on_error: receives a callback that closes the train set. precision: as rank 0 announced; '' for the run's own.
    """
    if device.kind == "cpu":
        torch.set_num_threads(ranks.thread_share(config.threads or device.threads))  # local ranks share the cores
    target = device.torch
    precision = precision or precision_for(record, device, config.precision)
    split = split_sprites(record, config, sprites)  # by group: no frame of an animation is on both sides
    validation, heldout_indices = recipe.examples(sprites, split.validation)
    heldout_indices = stride_subsample(heldout_indices, MAX_VALIDATION)  # every k-th: all classes stay
    heldout = validation.take(heldout_indices)
    train_set, notices = make_train_set(*recipe.examples(sprites, split.training), target, config, ranks.on_device)
    on_error.callback(train_set.close)
    if not len(split.validation) and int(config.holdout * len(sprites)):
        notices.append(_no_validation_notice(sprites, recipe))
    sample = subsample(sprites, split.training)  # enough for statistics and measurements
    for name, values in recipe.statistics(sample, config).items():
        network.get_buffer(name).copy_(values)  # e.g. mean colours, which recipes store in the network
    # Channels last: convolutions on the CPU and on tensor cores are faster with channels innermost in memory.
    network = network.to(target).to(memory_format=torch.channels_last)
    if ranks.is_first and (lacks := new_limitations(run.path)):
        notices = [*notices, Notice("info", f"The drive of {run.path} lacks features.", lacks)]
    # After the move: an optimizer creates its state on the device of the weights.
    optimizers, on_device = make_optimizers(network, config, precision), DeviceSprites(heldout, target)
    return Training(
        run=run, record=record, recipe=recipe, config=config, spec=Spec.of(sprites),
        device=target, device_name=device.name, precision=precision,
        train_set=train_set, heldout=on_device, heldout_batch_size=heldout_batch_size(on_device, recipe),
        network=network, ema=EMA(network, config.ema_halflife_sprites),
        optimizers=optimizers, scaler=LossScaler(network, optimizers, precision, target), sprites=sprites, split=split,
        train_sample=sample, heldout_sprites=heldout.rgba, heldout_indices=heldout_indices,
        style=load_style(run, record), ranks=ranks, notices=[*notices],
    )  # fmt: skip


def _has_checkpoint(run: RunDir) -> bool:
    with wrap_read_errors(run.checkpoints):
        return bool(checkpoints.list_checkpoints(run.checkpoints))


def _load_newest(training: Training) -> None:
    """Load the newest valid checkpoint into the training; without checkpoints, it starts at step 0.

    Damaged checkpoints are quarantined, with a notice for each. Raises RunError if all checkpoints are damaged.
    """
    with wrap_read_errors(training.run.checkpoints):
        found, damaged = checkpoints.scan(training.run.checkpoints)
    number = max((info.number for _, info in found), default=0)  # checkpoint numbers continue from the newest
    while found:
        path, info = found[-1]
        try:
            with wrap_read_errors(path):
                parts = {part: checkpoints.load_tensors(path, info, part) for part in checkpoints.PARTS}
            break
        except DamagedError:
            damaged.append(found.pop()[0])
    if not found and damaged:
        raise checkpoints.no_valid_checkpoint_error(training.record.name)
    with training.run.wrap_write_errors():
        for broken in damaged:
            checkpoints.quarantine(broken)
            title = f"Checkpoint {broken.name} is damaged."
            training.notices.append(Notice("warning", title, "Training uses an older checkpoint."))
    if found:
        checkpoints.load_into(training.network, parts["model"], path.name)
        checkpoints.load_into(training.ema.network, parts["average"], path.name)  # EMA weights
        restore_optimizer_state(training, info, parts["optimizer"])
        training.checkpoint_number = number
        set_headline(training, info.metrics)
    elif folder.file_exists(training.run.path / folder.METRICS_FILE):
        training.notices.append(Notice("warning", "No checkpoint was saved. Training starts at step 0."))


def _differences(wanted: TrainingConfig, taken: TrainingConfig) -> list[str]:
    """Return a sentence for each setting whose value changes from `wanted` to `taken`, the start model's."""
    return [
        f"{item.label}: {item.text(getattr(taken, item.name))}, taken from the start model."
        for item in settings_of(type(taken))
        if getattr(taken, item.name) != getattr(wanted, item.name)
    ]


def _new_record(new: NewRun, sprites: Sprites, plan: _Plan) -> RunRecord:
    device = new.device
    return RunRecord(
        name=nfc(new.path.name), recipe=new.recipe.name, config=plan.config.to_json(), automatic=plan.automatic,
        size=sprites.size, class_names=sprites.class_names, target_names=sprites.target_names,
        cells=sprites.sets.cells, attributes=Spec.of(sprites).attributes,
        data_title=sprites.title, data_count=len(sprites),
        set_count=len(sprites.sets) if new.recipe.makes == "sets" else 0, noun=new.recipe.noun,
        data_fingerprint=sprites.fingerprint, data_origin=sprites.origin, split=BY_GROUP,
        device=device.id, device_name=device.name,
        precision=detection.resolve_precision(device, plan.config.precision),
        parameters=sum(weight.numel() for weight in plan.network.parameters()),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        ancestors=() if new.parent is None else new.parent.ancestors,
        versions={"studio": studio.__version__, "torch": torch.__version__, "python": platform.python_version()},
    )  # fmt: skip
