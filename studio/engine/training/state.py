"""The state of a training: network, optimizers, EMA, data and run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.config import TrainingConfig
from studio.core.events import Event, Notice, RolledBack, Validated
from studio.data.colour.pixel_art import PixelStyle
from studio.data.sprites import Sprites
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import LossScaler
from studio.engine.distributed.ranks import ALONE, Ranks, StartCommand, Tick
from studio.engine.models.model import TrainedModel
from studio.engine.runs import checkpoints
from studio.engine.runs.checkpoints import CheckpointInfo
from studio.engine.runs.folder import RunDir, RunProgress, RunRecord, RunState
from studio.engine.runs.split import Split
from studio.engine.steps.batches import DeviceSprites, TrainSet
from studio.engine.steps.optim import EMA, learning_rate
from studio.engine.training.layer_stats import LayerWatch
from studio.engine.training.recovery import Recovery, SideWork
from studio.recipes.base import Batch, BatchRng, Recipe, Spec


class _Loss(nn.Module):
    """A recipe's loss as a module that holds the network: what DistributedDataParallel takes."""

    def __init__(self, recipe: Recipe, network: nn.Module, config: TrainingConfig) -> None:
        super().__init__()
        self._recipe, self._config = recipe, config
        self.network = network

    def forward(self, batch: Batch, rng: BatchRng) -> Tensor:
        return self._recipe.loss(self.network, batch, self._config, rng)


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
    heldout_batch_size: AutoBatchSize  # how many of them the device has room for
    network: nn.Module
    ema: EMA
    optimizers: list[torch.optim.Optimizer]
    scaler: LossScaler
    sprites: Sprites
    split: Split  # of `sprites`; `train_set` and `heldout` are those for training and for validation
    train_sample: Sprites  # of those in `train_set`; all of them unless there are very many
    heldout_sprites: Rgba  # uint8 [N, S, S, 4], for people to look at
    style: PixelStyle
    ranks: Ranks = ALONE  # that train it
    step: int = 0
    elapsed_s: float = 0.0
    checkpoint_number: int = 0
    saved_step: int = -1  # of the newest checkpoint that is known to be sound
    logged_step: int = -1  # of the newest checkpoint that metrics.jsonl has been told of
    measuring_step: int | None = None  # of the checkpoint whose sprites are being measured, which takes a while
    recovery: Recovery = field(default_factory=Recovery)
    notices: list[Event] = field(default_factory=list)  # to be said after this tick
    loss: nn.Module = field(init=False)  # of a micro-batch
    watch: LayerWatch = field(init=False)
    side_work: SideWork = field(init=False)
    validated: Validated | None = None
    headline: Mapping[str, float] = field(default_factory=dict)  # as in RunProgress
    extended_min: float = 0.0  # as `minutes` in RunProgress; they are in `config`, too

    def __post_init__(self) -> None:
        self.loss = _Loss(self.recipe, self.network, self.config)
        self.watch = LayerWatch(self.network, is_on=self.config.log_layer_stats and self.ranks.is_first)
        self.side_work = SideWork(self.device, self.notices)

    def join(self) -> None:
        """Have all ranks begin with the same weights, and take the same steps from here on. Raises ProcessGoneError."""
        self.ranks.send_command(
            StartCommand(str(self.run.path.absolute()), self.saved_step, self.precision, self.extended_min)
        )
        with self.ranks.faults(), self.ranks.collective():
            self.ranks.broadcast_weights(self.network)
            self.ranks.broadcast_weights(self.ema.network)
            self.loss = self.ranks.wrap_ddp(self.loss)

    def tell_tick(self, steps: int) -> None:
        """Have the other ranks take so many steps as this one is about to; none: it ends. Raises ProcessGoneError."""
        recovery = self.recovery
        self.ranks.send_command(Tick(steps, self.elapsed_s, recovery.nan_rollbacks, recovery.micro_batches.count))

    def follow(self, tick: Tick) -> None:
        """Be where the first rank was when it said so."""
        self.elapsed_s, self.recovery = tick.elapsed_s, Recovery(tick.nan_rollbacks, tick.micro_batches)

    def model(self) -> TrainedModel:
        """The live model: the averaged weights, which change as training goes on."""
        return TrainedModel(
            self.recipe, self.config, self.spec, self.ema.network, self.device, self.precision, self.step,
            self.record.name, self.style, self.record.ancestors, run=self.run.path,
        )  # fmt: skip

    def used_up(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        return self.config.budget_share(self.step, self.elapsed_s, len(self.train_set))

    def budget_steps(self) -> int:
        """Steps after which the training ends; 0: its minutes decide."""
        return self.config.budget_steps(len(self.train_set))

    def planned_s(self) -> float:
        """Seconds of training that the budget stands for, as far as that is known."""
        if self.budget_steps():
            return self.elapsed_s / max(self.used_up(), 1e-6)
        return 60 * self.config.minutes

    def may_change_threads(self) -> bool:
        """Whether it may compute with fewer CPU threads for a while: that changes its results by a rounding.

        Those of a number of steps or epochs are the same each time, and of several ranks in all of them; a number of
        threads that was asked for is heeded.
        """
        is_free = self.device.type == "cpu" and self.ranks.is_alone
        return is_free and not self.budget_steps() and not self.config.threads

    def takes_plain_steps(self) -> bool:
        """Whether the next step is as all others are: of one process and one part, and nobody looks at its layers."""
        return self.ranks.is_alone and self.recovery.micro_batches.count == 1 and not self.watch.is_looking

    def epoch(self) -> float:
        """How often each sprite has been trained on."""
        return self.step * self.config.batch_size / len(self.train_set)

    def learning_rate(self) -> float:
        """The rate of the next step: that of the schedule, halved by each rollback."""
        return learning_rate(self.config, self.step, self.used_up()) * self.recovery.lr_scale()

    def save(self) -> Path:
        """Write a checkpoint, whose folder is returned, and how far the run is; drop checkpoints no longer needed.

        Raises UnwritableError; the older ones are then untouched, and another call does what is left to do.
        """
        if self.saved_step != self.step:
            self._save_checkpoint()
            self.notices += self.recovery.checkpoint_saved()
        if self.validated is not None:
            self.run.save_confusion(self.validated)
        self.write_state("training")
        if self.logged_step != self.step:
            self.run.append({"checkpoint": self.step, "elapsed_s": round(self.elapsed_s, 3)})
            self.logged_step = self.step
        with self.run.wrap_write_errors():
            checkpoints.remove_quarantined(self.run.checkpoints)
            checkpoints.rotate(self.run.checkpoints, self.recipe.best_by, in_use=(self.measuring_step,))
        return checkpoints.checkpoint_path(self.run.checkpoints, self.step)

    def checkpoints_found(self) -> checkpoints.Checkpoints:
        """The run's checkpoints, the oldest first. Raises UnwritableError."""
        with self.run.wrap_write_errors():
            return checkpoints.list_checkpoints(self.run.checkpoints)

    def add_figures(self) -> None:
        """Write to the newest checkpoint what validation has found out about it since. Raises UnwritableError."""
        if self.is_validated():
            assert self.validated is not None
            with self.run.wrap_write_errors():
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
            "average": self.ema.network.state_dict(),
            "optimizer": checkpoints.optimizer_tensors(self.optimizers) | self.scaler.state_tensors(),
        }
        with self.run.wrap_write_errors():
            checkpoints.save(self.run.checkpoints, info, parts)
        self.checkpoint_number, self.saved_step = self.checkpoint_number + 1, self.step

    def write_state(self, state: RunState, message: str = "") -> None:
        """Say in state.json how far the run is. Raises UnwritableError."""
        if self.validated is not None:
            self.set_headline(self.validated.metrics)
        self.run.write_progress(
            RunProgress(
                state, self.step, self.elapsed_s, self.headline, message, self.recovery.nan_rollbacks,
                self.recovery.micro_batches.count, self.device_name, self.extended_min,
            )
        )  # fmt: skip

    def set_headline(self, metrics: Mapping[str, float]) -> None:
        """Remember, of figures on held-out sprites, the one that stands for a run."""
        self.headline = {name: value for name, value in metrics.items() if name == self.recipe.headline.name}

    def roll_back(self, why: str, failed_step: int) -> None:
        """Go on from this checkpoint at half the learning rate. Raises UnwritableError."""
        self.recovery.count_rollback()
        rollback = RolledBack(failed_step, self.step, self.recovery.lr_scale())
        self.run.append(asdict(rollback))
        self.notices += [rollback, self._goes_on(why, "at half the rate")]
        self.write_state("training")

    def split_micro_batches(self, why: str) -> None:
        """Use twice as many micro-batches, half as large, whose gradients are added up."""
        if self.recovery.micro_batches.double(self.ranks.count):
            self.notices.append(self._goes_on(why, f"with batches {self.recovery.micro_batches.in_words()}"))

    def note_micro_batches(self) -> None:
        """Say of a run that is resumed that it still uses micro-batches, if it does."""
        micro_batches = self.recovery.micro_batches
        if micro_batches.count > 1:
            title = f"Batches are still taken {micro_batches.in_words()}: the device had no room for more."
            self.notices.append(Notice("info", title, "Larger parts are tried again after a while."))

    def step_is_too_large(self) -> bool:
        """Whether a micro-batch is a single sprite, so that none can be smaller."""
        return self.recovery.micro_batches.count >= self.config.batch_size

    def take_notices(self) -> list[Event]:
        """What there is to say now, each once."""
        notices = self.notices[:]
        self.notices.clear()
        return notices

    def _goes_on(self, why: str, how: str) -> Notice:
        return Notice("warning", why, f"Training goes on from step {formatting.number(self.step)}, {how}.")

    def close(self) -> None:
        """End what works in the background and give the run's lock back."""
        self.train_set.close()
        self.run.release()
