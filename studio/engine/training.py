"""A training as it stands: network, optimizer, average, data and run folder, made new or taken up from a checkpoint."""

from __future__ import annotations

import contextlib
import datetime
import platform
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

import studio
from studio.core import places, wording
from studio.core.config import TrainingConfig
from studio.core.errors import DamagedError, DeviceFullError, TrainingError
from studio.core.events import Event, Notice, Rgba, SteppedBack, Validated
from studio.core.file_systems import news_of_lacks
from studio.data import packed
from studio.data.groups import grouped
from studio.data.sprites import Sprites
from studio.data.true_pixels import PixelStyle
from studio.engine import catalogue, checkpoints, devices
from studio.engine.batches import DeviceSprites, TrainSet, at_most, sampled
from studio.engine.checkpoints import CheckpointInfo
from studio.engine.devices import Device
from studio.engine.model import TrainedModel
from studio.engine.optim import Average, LossScaler, learning_rate, make_optimizers
from studio.engine.pace import seldom, told
from studio.engine.placing import placed
from studio.engine.rundir import Progress, RunDir, RunRecord, RunState, reading, sweep_starts, writing
from studio.engine.split import BY_GROUP, Split, split_of
from studio.engine.style_file import load_style, save_style
from studio.recipes.base import Recipe, Spec

VALIDATION_LIMIT = 1024  # held-out sprites that are looked at: enough for a steady figure
SOUND_CHECKPOINTS = 10  # in a row, after which it is tried whether all is as well as it was before some trouble


class MicroBatches:
    """In how many parts a batch is taken: in more when the device is full, in fewer again when it may be no longer."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._sound = 0  # checkpoints since the last change
        self._patience = SOUND_CHECKPOINTS  # before fewer are tried
        self._on_trial = False  # fewer, since the last checkpoint

    def make_smaller(self) -> bool:
        """Take twice as many. False when that was to be expected: it was only a trial whether fewer would do."""
        was_trial = self._on_trial
        if was_trial:
            self._patience *= 2
        self.count, self._sound, self._on_trial = 2 * self.count, 0, False
        return not was_trial

    def checkpoint_saved(self) -> bool:
        """Try half as many after some time without trouble. True when a trial has just turned out well."""
        went_well, self._on_trial = self._on_trial, False
        if went_well:
            self._patience = SOUND_CHECKPOINTS
        self._sound += 1
        if self.count > 1 and self._sound >= self._patience:
            self.count, self._sound, self._on_trial = self.count // 2, 0, True
        return went_well


@dataclass(eq=False)
class Training:
    """Everything that changes while a run trains. Lives on the engine thread; holds the run's lock until `close`."""

    run: RunDir
    record: RunRecord
    recipe: Recipe
    config: TrainingConfig
    spec: Spec
    device: torch.device
    device_name: str
    precision: str
    train_set: TrainSet
    heldout: DeviceSprites
    network: nn.Module
    average: Average
    optimizers: list[torch.optim.Optimizer]
    scaler: LossScaler
    sprites: Sprites
    split: Split  # of `sprites`; `train_set` and `heldout` are those for training and for validation
    train_sample: Sprites  # of those in `train_set`; all of them unless there are very many
    heldout_sprites: Rgba  # uint8 [N, S, S, 4], for people to look at
    style: PixelStyle
    step: int = 0
    elapsed_s: float = 0.0
    checkpoint_number: int = 0
    saved_step: int = -1  # of the newest checkpoint that is known to be sound
    measuring_step: int | None = None  # of the checkpoint whose sprites are being measured, which takes a while
    setbacks: int = 0  # as in Progress
    sound_checkpoints: int = 0  # since the last setback, or since one was forgiven
    micro_batches: MicroBatches = field(default_factory=MicroBatches)
    notices: list[Event] = field(default_factory=list)  # to be said at the next opportunity
    _left_out: set[str] = field(default_factory=set)  # what the device had no room for, beside the steps
    validated: Validated | None = None
    headline: Mapping[str, float] = field(default_factory=dict)  # as in Progress

    def model(self) -> TrainedModel:
        """The live model: the averaged weights, which change as training goes on."""
        return TrainedModel(
            self.recipe, self.config, self.spec, self.average.network, self.device, self.precision, self.step,
            self.record.name, self.style,
        )  # fmt: skip

    def used_up(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        if self.config.steps:
            return min(1.0, self.step / self.config.steps)
        return min(1.0, self.elapsed_s / (60 * self.config.minutes))

    def planned_s(self) -> float:
        """Seconds of training that the budget stands for, as far as that is known."""
        if self.config.steps:
            return self.elapsed_s / max(self.used_up(), 1e-6)
        return 60 * self.config.minutes

    def may_change_threads(self) -> bool:
        """Whether it may compute with fewer CPU threads for a while: that changes its results by a rounding.

        Those of a number of steps are the same each time, and a number of threads that was asked for is heeded.
        """
        return self.device.type == "cpu" and not self.config.steps and not self.config.threads

    def learning_rate(self) -> float:
        """The rate of the next step: that of the settings, halved by each setback."""
        return learning_rate(self.config, self.step, self.used_up()) * self.rate_share()

    def rate_share(self) -> float:
        """What is left of the learning rate of the settings, 0 to 1."""
        return 0.5**self.setbacks

    def save(self) -> Path:
        """Write a checkpoint, whose folder is returned, and how far the run is; drop checkpoints no longer needed.

        Raises UnwritableError; the older ones are then untouched, and another call does what is left to do.
        """
        if self.saved_step != self.step:
            self._save_checkpoint()
            self._recover()
        if self.validated is not None:
            self.run.save_confusion(self.validated)
        self.write_state("training")
        self.run.append({"checkpoint": self.step, "elapsed_s": round(self.elapsed_s, 3)})
        with writing(self.run.path):
            checkpoints.remove_set_aside(self.run.checkpoints)
            checkpoints.rotate(
                self.run.checkpoints, self.recipe.headline, measuring_step=self.measuring_step,
                low_is_better=self.recipe.headline_is_better == "low",
            )  # fmt: skip
        return checkpoints.path_of(self.run.checkpoints, self.step)

    def add_figures(self) -> None:
        """Write to the newest checkpoint what validation has found out about it since. Raises UnwritableError."""
        if self.is_validated():
            assert self.validated is not None
            with writing(self.run.path):
                checkpoints.add_metrics(self.run.checkpoints, self.step, self.validated.metrics)
            self.run.save_confusion(self.validated)
            self.write_state("training")

    def is_validated(self) -> bool:
        """Whether there are held-out figures of this step."""
        return self.validated is not None and self.validated.step == self.step

    def _save_checkpoint(self) -> None:
        metrics = dict(self.validated.metrics) if self.validated and self.is_validated() else {}
        info = CheckpointInfo(self.step, self.checkpoint_number + 1, self.elapsed_s, metrics, {})
        parts = {
            "model": self.network.state_dict(),
            "average": self.average.network.state_dict(),
            "optimizer": checkpoints.optimizer_tensors(self.optimizers) | self.scaler.tensors(),
        }
        with writing(self.run.path):
            checkpoints.save(self.run.checkpoints, info, parts)
        self.checkpoint_number, self.saved_step = self.checkpoint_number + 1, self.step

    def write_state(self, state: RunState, message: str = "") -> None:
        """Say in state.json how far the run is. Raises UnwritableError."""
        if self.validated is not None:
            self.set_headline(self.validated.metrics)
        self.run.write_progress(
            Progress(
                state, self.step, self.elapsed_s, self.headline, message, self.setbacks, self.micro_batches.count,
                self.device_name,
            )
        )  # fmt: skip

    def set_headline(self, metrics: Mapping[str, float]) -> None:
        """Remember, of figures on held-out sprites, the one that stands for a run."""
        self.headline = {name: value for name, value in metrics.items() if name == self.recipe.headline}

    def slow_down(self, why: str, failed_step: int) -> None:
        """Learn at half the rate from here on. Raises UnwritableError."""
        self.setbacks += 1
        setback = SteppedBack(failed_step, self.step, self.rate_share())
        self.run.append(asdict(setback))
        self.notices.append(setback)
        self._say_how_it_goes_on(why, "at half the rate")
        self.write_state("training")

    def make_micro_batches_smaller(self, why: str) -> None:
        """Take a batch in twice as many micro-batches from here on; their gradients are added up."""
        if self.micro_batches.make_smaller():
            self._say_how_it_goes_on(why, f"with batches {_in_parts(self.micro_batches.count)}")

    def say_how_it_was_left(self) -> None:
        """Nothing has gone wrong now; what did before still shows."""
        if self.micro_batches.count > 1:
            title = f"Batches are still taken {_in_parts(self.micro_batches.count)}: the device had no room for more."
            self.notices.append(Notice("info", title, "Larger parts are tried again after a while."))

    def step_is_too_large(self) -> bool:
        """Whether nothing is left to be made smaller: a micro-batch is one sprite."""
        return self.micro_batches.count >= self.config.batch_size

    @contextlib.contextmanager
    def left_out_if_full(self, what: str) -> Iterator[None]:
        """Around work beside the training step: where the device has no room even for one sprite, it goes on without.

        `what` is left out then; that is said once.
        """
        try:
            with devices.faults(self.device):
                yield
            return
        except DeviceFullError as error:
            if what not in self._left_out:
                self._left_out.add(what)
                hint = f"Training goes on without {what} until there is room for them."
                self.notices.append(Notice("warning", error.title, hint))
        devices.give_back_memory(self.device)

    def take_notices(self) -> list[Event]:
        """What is to be said now; it is said once."""
        notices, self.notices = self.notices, []
        return notices

    def _recover(self) -> None:
        """Another sound checkpoint: after some of them a setback is forgiven, or larger micro-batches are tried."""
        if self.micro_batches.checkpoint_saved():
            title = f"Batches are taken {_in_parts(self.micro_batches.count)} again: the device has room for that."
            self.notices.append(Notice("info", title))
        self.sound_checkpoints += 1
        if self.setbacks and self.sound_checkpoints >= SOUND_CHECKPOINTS:
            self.setbacks, self.sound_checkpoints = self.setbacks - 1, 0
            title = f"Training learns at {self.rate_share():.0%} of its rate again: its losses have long been sound."
            self.notices.append(Notice("info", title))

    def _say_how_it_goes_on(self, why: str, how: str) -> None:
        hint = f"Training goes on from step {wording.number(self.step)}, {how}."
        self.notices.append(Notice("warning", why, hint))

    def close(self) -> None:
        """End what works in the background and give the run's lock back."""
        self.train_set.close()
        self.run.release()


def _in_parts(count: int) -> str:
    return "whole" if count == 1 else f"in {count} parts"


def begin(
    path: Path, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device
) -> Generator[Event, None, Training]:
    """A new run in the folder `path`, which must be empty or missing; yields Progress where there is much to copy.

    Raises TrainingError, RunError.
    """
    with writing(path):
        chosen, notes = recipe.select(sprites, config)
    chosen = yield from seldom(grouped(chosen, places.cache()))
    if len(chosen) == 0:
        raise TrainingError("There are no sprites to learn from.", "Open a folder of sprites first.")
    torch.manual_seed(config.seed)
    network = recipe.build(config, Spec.of(chosen))
    run = RunDir(path)
    sweep_starts(path.parent)
    with run.being_made():
        record = _new_record(path, chosen, recipe, config, device, network)
        with writing(path):
            yield from told(packed.keeping(chosen, run.data), len(chosen), "sprites put into the run's folder")
            chosen = packed.reopened(chosen, run.data)
        save_style(run, record, chosen)
        training = _assemble(run, record, recipe, config, chosen, network, device)
        training.write_state("training")
        run.create(record)
    training.notices += [Notice("info", note) for note in notes]
    return training


def take_up(path: Path, device: Device) -> Generator[Event, None, Training]:
    """A run as its newest sound checkpoint left it; yields Progress where there is much to check.

    Raises RunError, BadInputError, UsageError.
    """
    run = RunDir(path)
    record = run.record()
    recipe = catalogue.recipe(record.recipe)
    config = recipe.Config.from_json(record.config)
    with run.held_on_success():
        with writing(path):
            run.sweep()
        sprites, _ = yield from told(packed.loading(run.data), record.data_count, "sprites checked")
        torch.manual_seed(config.seed)
        network = recipe.build(config, Spec.of(sprites))
        training = _assemble(run, record, recipe, config, sprites, network, device)
        _load_newest(training)
        progress = run.progress()
        training.setbacks = progress.setbacks
        if (progress.device_name or record.device_name) == device.name:
            training.micro_batches = MicroBatches(progress.pieces)
        elif progress.pieces > 1:
            training.notices.append(Notice("info", "Batches are taken whole again: this is another device."))
        run.mark_resume(training.step, device.id)
        training.write_state("training")
    return training


def _assemble(
    run: RunDir, record: RunRecord, recipe: Recipe, config: TrainingConfig, sprites: Sprites, network: nn.Module,
    device: Device,
) -> Training:  # fmt: skip
    """Put data and network on the device; the optimizer is made after the move, so that its state lives there too."""
    if device.kind == "cpu":
        torch.set_num_threads(config.threads or device.threads)
    target = torch.device(device.id)
    precision = devices.precision_of(record, device, config.precision)
    split = split_of(record, config, sprites)
    heldout = sprites.take(at_most(split.validation, VALIDATION_LIMIT))
    train_set, notices = placed(sprites, split.training, target, config)
    if not len(split.validation) and int(config.holdout * len(sprites)):
        title = "No sprites are held out: each class is a single animation, or near twins of one sprite."
        notices.append(
            Notice("info", title, "Nothing tells what is learnt by heart. Other sprites of each class would.")
        )
    sample = sampled(sprites, split.training)
    for name, values in recipe.statistics(sample).items():
        network.get_buffer(name).copy_(values)
    # Convolutions on the CPU and on tensor cores are faster with channels innermost.
    network = network.to(target).to(memory_format=torch.channels_last)
    if lacks := news_of_lacks(run.path):
        notices = [*notices, Notice("info", f"The drive of {run.path} can't do all that others can.", lacks)]
    optimizers = make_optimizers(network, config, precision)
    return Training(
        run=run, record=record, recipe=recipe, config=config, spec=Spec.of(sprites),
        device=target, device_name=device.name, precision=precision,
        train_set=train_set, heldout=DeviceSprites(heldout, target),
        network=network, average=Average(network, config.ema_halflife_sprites),
        optimizers=optimizers, scaler=LossScaler(network, optimizers, precision, target), sprites=sprites, split=split,
        train_sample=sample, heldout_sprites=heldout.rgba, style=load_style(run, record), notices=[*notices],
    )  # fmt: skip


def _load_newest(training: Training) -> None:
    """Load the newest checkpoint that is sound. Each damaged one that is passed over is noted and set aside, so that
    no later look takes it for the newest. Without any checkpoint, begin anew.
    """
    folder = training.run.checkpoints
    with reading(folder):
        found, damaged = checkpoints.look_over(folder)
    number = max((info.number for _, info in found), default=0)
    while found:
        path, info = found[-1]
        try:
            with reading(path):
                parts = {part: checkpoints.load_part(path, info, part) for part in checkpoints.PARTS}
            break
        except DamagedError:
            damaged.append(found.pop()[0])
    if not found and damaged:
        raise checkpoints.none_sound(training.record.name)
    with writing(folder):
        for broken in damaged:
            checkpoints.set_aside(broken)
            training.notices.append(Notice("warning", f"Checkpoint {broken.name} is damaged.", "It is passed over."))
    if found:
        checkpoints.load_into(training.network, parts["model"], path.name)
        checkpoints.load_into(training.average.network, parts["average"], path.name)
        training.scaler.load(parts["optimizer"])
        checkpoints.load_optimizers(training.optimizers, parts["optimizer"])
        training.step, training.elapsed_s, training.saved_step = info.step, info.elapsed_s, info.step
        training.checkpoint_number = number
        training.set_headline(info.metrics)
    elif training.run.progress().step > 0:
        training.notices.append(Notice("warning", "There is no checkpoint to go on from.", "Training begins anew."))


def _new_record(
    path: Path, sprites: Sprites, recipe: Recipe, config: TrainingConfig, device: Device, network: nn.Module
) -> RunRecord:
    return RunRecord(
        name=path.name,
        recipe=recipe.name,
        config=config.to_json(),
        size=sprites.size,
        class_names=sprites.class_names,
        target_names=sprites.target_names,
        data_title=sprites.title,
        data_count=len(sprites),
        data_fingerprint=sprites.fingerprint,
        data_origin=sprites.origin,
        split=BY_GROUP,
        device=device.id,
        device_name=device.name,
        precision=devices.resolve_precision(device, config.precision),
        parameters=sum(weight.numel() for weight in network.parameters()),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions={"studio": studio.__version__, "torch": torch.__version__, "python": platform.python_version()},
    )
