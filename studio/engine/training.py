"""A training as it stands: network, optimizer, average, data and run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from studio.core import wording
from studio.core.config import TrainingConfig
from studio.core.errors import DeviceFullError
from studio.core.events import Event, Notice, Rgba, SteppedBack, Validated
from studio.data.colour.true_pixels import PixelStyle
from studio.data.sprites import Sprites
from studio.engine import devices
from studio.engine.batches import DeviceSprites, TrainSet
from studio.engine.fitting import AtOnce
from studio.engine.model import TrainedModel
from studio.engine.optim import EMA, LossScaler, learning_rate
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import CheckpointInfo
from studio.engine.runs.folder import Progress, RunDir, RunRecord, RunState
from studio.engine.runs.split import Split
from studio.recipes.base import Recipe, Spec

SOUND_CHECKPOINTS = 10  # in a row, after which it is tried whether all is as well as it was before some trouble


class MicroBatches:
    """In how many parts a batch is taken: in more when the device is full, in fewer again when it may be no longer."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._checkpoints_since = 0  # the last change of `count`
        self._patience = SOUND_CHECKPOINTS  # before fewer are tried
        self._on_trial = False  # fewer, since the last checkpoint

    def double(self) -> bool:
        """Take twice as many. False when that was to be expected: it was only a trial whether fewer would do."""
        was_trial = self._on_trial
        if was_trial:
            self._patience *= 2
        self.count, self._checkpoints_since, self._on_trial = 2 * self.count, 0, False
        return not was_trial

    def checkpoint_saved(self) -> bool:
        """Try half as many after some time without trouble. True when a trial has just turned out well."""
        went_well, self._on_trial = self._on_trial, False
        if went_well:
            self._patience = SOUND_CHECKPOINTS
        self._checkpoints_since += 1
        if self.count > 1 and self._checkpoints_since >= self._patience:
            self.count, self._checkpoints_since, self._on_trial = self.count // 2, 0, True
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
    heldout_fit: AtOnce  # how many of them the device has room for
    network: nn.Module
    average: EMA
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
    told_step: int = -1  # of the newest checkpoint that metrics.jsonl has been told of
    measuring_step: int | None = None  # of the checkpoint whose sprites are being measured, which takes a while
    setbacks: int = 0  # as in Progress
    sound_checkpoints: int = 0  # since the last setback, or since one was forgiven
    micro_batches: MicroBatches = field(default_factory=MicroBatches)
    notices: list[Event] = field(default_factory=list)  # to be said at the next opportunity
    _left_out: set[str] = field(default_factory=set)  # what the device had no room for, beside the steps
    _holds_too_much: bool = False  # memory, since then
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
        return learning_rate(self.config, self.step, self.used_up()) * self.lr_scale()

    def lr_scale(self) -> float:
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
        if self.told_step != self.step:
            self.run.append({"checkpoint": self.step, "elapsed_s": round(self.elapsed_s, 3)})
            self.told_step = self.step
        with self.run.writing():
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
            with self.run.writing():
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
        with self.run.writing():
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
        self.setbacks, self.sound_checkpoints = self.setbacks + 1, 0
        setback = SteppedBack(failed_step, self.step, self.lr_scale())
        self.run.append(asdict(setback))
        self.notices.append(setback)
        self._say_how_it_goes_on(why, "at half the rate")
        self.write_state("training")

    def make_micro_batches_smaller(self, why: str) -> None:
        """Take a batch in twice as many micro-batches from here on; their gradients are added up."""
        if self.micro_batches.double():
            self._say_how_it_goes_on(why, f"with batches {_in_parts(self.micro_batches.count)}")

    def say_how_it_was_left(self) -> None:
        """Say of a run that is resumed that its batches are still taken in parts, if they are."""
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
        self._holds_too_much = True

    def give_back_memory(self) -> None:
        """Let other programs have the memory of work that was left out, once its error, which kept it, is gone."""
        if self._holds_too_much:
            devices.give_back_memory(self.device)
            self._holds_too_much = False

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
            title = f"Training learns at {self.lr_scale():.0%} of its rate again: its losses have long been sound."
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
