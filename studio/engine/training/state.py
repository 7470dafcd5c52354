"""The state of a training: network, optimizers, EMA, data and run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from studio.core import formatting
from studio.core.arrays import Rgba
from studio.core.config import TrainingConfig
from studio.core.events import Event, Notice, Validated
from studio.data.colour.pixel_art import PixelStyle
from studio.data.sprites import Sprites
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import LossScaler
from studio.engine.distributed.ranks import ALONE, Ranks, StartCommand, Tick
from studio.engine.models.model import TrainedModel
from studio.engine.runs.folder import RunDir, RunRecord
from studio.engine.runs.split import Split
from studio.engine.steps.batches import DeviceSprites, TrainSet
from studio.engine.steps.optim import EMA, learning_rate
from studio.engine.training.layer_stats import LayerMonitor
from studio.engine.training.recovery import Recovery, SideWork
from studio.recipes.base import Recipe, Spec


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
    layer_monitor: LayerMonitor = field(init=False)
    side_work: SideWork = field(init=False)
    validated: Validated | None = None
    headline: Mapping[str, float] = field(default_factory=dict)  # as in RunProgress
    extended_min: float = 0.0  # as `minutes` in RunProgress; they are in `config`, too

    def __post_init__(self) -> None:
        self.layer_monitor = LayerMonitor(self.network, is_on=self.config.log_layer_stats and self.ranks.is_first)
        self.side_work = SideWork(self.device, self.notices)

    def broadcast_start(self) -> None:
        """Have all ranks begin with the same weights, and take the same steps from here on. Raises ProcessGoneError."""
        self.ranks.send_command(
            StartCommand(str(self.run.path.absolute()), self.saved_step, self.precision, self.extended_min)
        )
        with self.ranks.faults(), self.ranks.collective():
            self.ranks.broadcast_weights(self.network)
            self.ranks.broadcast_weights(self.ema.network)

    def send_tick(self, steps: int) -> None:
        """Have the other ranks take so many steps as this one is about to; none: it ends. Raises ProcessGoneError."""
        recovery = self.recovery
        self.ranks.send_command(Tick(steps, self.elapsed_s, recovery.nan_rollbacks, recovery.micro_batches.count))

    def apply_tick(self, tick: Tick) -> None:
        """Be where the first rank was when it said so."""
        self.elapsed_s, self.recovery = tick.elapsed_s, Recovery(tick.nan_rollbacks, tick.micro_batches)

    def model(self) -> TrainedModel:
        """The live model: the averaged weights, which change as training goes on."""
        return TrainedModel(
            self.recipe, self.config, self.spec, self.ema.network, self.device, self.precision, self.step,
            self.record.name, self.style, self.record.ancestors, run=self.run.path,
        )  # fmt: skip

    def budget_share(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        return self.config.budget_share(self.step, self.elapsed_s, len(self.train_set))

    def budget_steps(self) -> int:
        """Steps after which the training ends; 0: its minutes decide."""
        return self.config.budget_steps(len(self.train_set))

    def planned_s(self) -> float:
        """Seconds of training that the budget stands for, as far as that is known."""
        if self.budget_steps():
            return self.elapsed_s / max(self.budget_share(), 1e-6)
        return 60 * self.config.minutes

    def may_change_threads(self) -> bool:
        """Whether it may compute with fewer CPU threads for a while: that changes its results by a rounding.

        Those of a number of steps or epochs are the same each time, and of several ranks in all of them; a number of
        threads that was asked for is heeded.
        """
        is_free = self.device.type == "cpu" and self.ranks.is_alone
        return is_free and not self.budget_steps() and not self.config.threads

    def can_replay_graph(self) -> bool:
        """Whether the next step is as all others are: of one process and one part, and nobody looks at its layers."""
        return self.ranks.is_alone and self.recovery.micro_batches.count == 1 and not self.layer_monitor.is_probing

    def epoch(self) -> float:
        """How often each sprite has been trained on."""
        return self.step * self.config.batch_size / len(self.train_set)

    def learning_rate(self) -> float:
        """The rate of the next step: that of the schedule, halved by each rollback."""
        return learning_rate(self.config, self.step, self.budget_share()) * self.recovery.lr_scale()

    def is_validated(self) -> bool:
        """Whether there are held-out figures of this step."""
        return self.validated is not None and self.validated.step == self.step

    def split_micro_batches(self, why: str) -> None:
        """Use twice as many micro-batches, half as large, whose gradients are added up."""
        if self.recovery.micro_batches.double(self.ranks.world_size):
            self.notices.append(self.continues(why, f"with batches {self.recovery.micro_batches.in_words()}"))

    def report_micro_batches(self) -> None:
        """Say of a run that is resumed that it still uses micro-batches, if it does."""
        micro_batches = self.recovery.micro_batches
        if micro_batches.count > 1:
            title = f"Batches are still taken {micro_batches.in_words()}: the device had no room for more."
            self.notices.append(Notice("info", title, "Larger parts are tried again after a while."))

    def has_smallest_micro_batch(self) -> bool:
        """Whether a micro-batch is a single sprite, so that none can be smaller."""
        return self.recovery.micro_batches.count >= self.config.batch_size

    def pop_notices(self) -> list[Event]:
        """What there is to say now, each once."""
        notices = self.notices[:]
        self.notices.clear()
        return notices

    def continues(self, why: str, how: str) -> Notice:
        """The warning that training continues after a problem. how: with what change."""
        return Notice("warning", why, f"Training goes on from step {formatting.number(self.step)}, {how}.")

    def close(self) -> None:
        """End what works in the background and give the run's lock back."""
        self.train_set.close()
        self.run.release()
