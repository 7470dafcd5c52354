"""The state of a training: network, optimizers, EMA weights, data, and the run folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from studio.core import formatting
from studio.core.arrays import Indices, Rgba
from studio.core.config import TrainingConfig
from studio.core.events import Event, Notice, Validated
from studio.data.colour.pixel_art import PixelStyle
from studio.data.sprites import Sprites
from studio.engine.devices.auto_batch import AutoBatchSize
from studio.engine.devices.precision import LossScaler
from studio.engine.distributed.ranks import ALONE, Ranks, StartCommand, TickCommand
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
    """A training's mutable state, used on the engine thread. It holds the run's lock until `close`."""

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
    heldout_batch_size: AutoBatchSize  # sprites per validation batch that fit in memory
    network: nn.Module
    ema: EMA
    optimizers: list[torch.optim.Optimizer]
    scaler: LossScaler
    sprites: Sprites
    split: Split  # indices into `sprites` of the training and the validation set
    train_sample: Sprites  # the training sprites; of very many, a seeded choice
    heldout_sprites: Rgba  # validation set as pixels, uint8 [N, S, S, 4]
    heldout_indices: Indices  # of the validation set in `sprites`
    style: PixelStyle
    ranks: Ranks = ALONE  # the processes of a distributed run
    step: int = 0
    elapsed_s: float = 0.0
    checkpoint_number: int = 0
    saved_step: int = -1  # step of the newest valid checkpoint; -1: none
    logged_step: int = -1  # step of the newest checkpoint in metrics.jsonl
    measuring_step: int | None = None  # the checkpoint being measured, which must not be removed meanwhile
    recovery: Recovery = field(default_factory=Recovery)
    notices: list[Event] = field(default_factory=list)  # yielded after this tick
    layer_monitor: LayerMonitor = field(init=False)
    side_work: SideWork = field(init=False)
    validated: Validated | None = None
    headline: Mapping[str, float] = field(default_factory=dict)  # as in RunProgress
    extended_min: float = 0.0  # as `minutes` in RunProgress; also in `config`

    def __post_init__(self) -> None:
        self.layer_monitor = LayerMonitor(self.network, is_on=self.config.log_layer_stats and self.ranks.is_first)
        self.side_work = SideWork(self.device, self.notices)

    def broadcast_start(self) -> None:
        """Announce the training to the other ranks and send them this rank's weights. Raises ProcessGoneError."""
        path = str(self.run.path.absolute())
        self.ranks.send_command(StartCommand(path, self.saved_step, self.precision, self.extended_min))
        with self.ranks.wrap_rank_errors(), self.ranks.collective():
            self.ranks.broadcast_weights(self.network)
            self.ranks.broadcast_weights(self.ema.network)

    def send_tick(self, steps: int) -> None:
        """Tell the other ranks to train for `steps` steps; 0 ends their training. Raises ProcessGoneError."""
        rollbacks, micro_batches = self.recovery.nan_rollbacks, self.recovery.micro_batches.count
        self.ranks.send_command(TickCommand(steps, self.elapsed_s, rollbacks, micro_batches))

    def apply_tick(self, tick: TickCommand) -> None:
        """Set the elapsed time and the recovery state from rank 0's command."""
        self.elapsed_s, self.recovery = tick.elapsed_s, Recovery(tick.nan_rollbacks, tick.micro_batches)

    def model(self) -> TrainedModel:
        """Return the model in training, with the EMA weights, which change at every step."""
        return TrainedModel(
            self.recipe, self.config, self.spec, self.ema.network, self.device, self.precision, self.step,
            self.record.name, self.style, self.record.ancestors, run=self.run.path,
        )  # fmt: skip

    def budget_share(self) -> float:
        """Return the share of the training budget used so far, 0 to 1."""
        return self.config.budget_share(self.step, self.elapsed_s, len(self.train_set))

    def budget_steps(self) -> int:
        """Return the budget as a number of steps; 0 for a budget in minutes."""
        return self.config.budget_steps(len(self.train_set))

    def planned_s(self) -> float:
        """Return the estimated seconds of the whole training."""
        if self.budget_steps():
            return self.elapsed_s / max(self.budget_share(), 1e-6)
        return 60 * self.config.minutes

    def may_change_threads(self) -> bool:
        """Return whether the training may compute with fewer CPU threads, which changes rounding errors.

        Not if the run must be reproducible (a budget in steps), the user set the number, or several ranks train.
        """
        is_free = self.device.type == "cpu" and self.ranks.is_alone
        return is_free and not self.budget_steps() and not self.config.threads

    def can_replay_graph(self) -> bool:
        """Return whether a CUDA graph may run the next step: a single rank, an unsplit batch, no layer probe."""
        return self.ranks.is_alone and self.recovery.micro_batches.count == 1 and not self.layer_monitor.is_probing

    def epoch(self) -> float:
        """Return the number of epochs so far: how often each sprite has been trained on."""
        return self.step * self.config.batch_size / len(self.train_set)

    def learning_rate(self) -> float:
        """Return the learning rate of the next step: the schedule's rate, halved once per rollback."""
        return learning_rate(self.config, self.step, self.budget_share()) * self.recovery.lr_scale()

    def is_validated(self) -> bool:
        """Return whether the current step has been validated."""
        return self.validated is not None and self.validated.step == self.step

    def split_micro_batches(self, why: str) -> None:
        """Split batches into twice as many micro-batches, adding up gradients. why: for the notice."""
        if self.recovery.micro_batches.double(self.ranks.world_size):
            self.notices.append(self.continue_notice(why, f"with batches {self.recovery.micro_batches.describe()}"))

    def report_micro_batches(self) -> None:
        """Add a notice if a resumed run still splits its batches to save device memory."""
        micro_batches = self.recovery.micro_batches
        if micro_batches.count > 1:
            title = f"Batches are still split {micro_batches.describe()}: the device had too little memory."
            self.notices.append(Notice("info", title, "Training tries larger parts again after a while."))

    def has_smallest_micro_batch(self) -> bool:
        """Return whether micro-batches are single sprites and can't be split further."""
        return self.recovery.micro_batches.count >= self.config.batch_size

    def pop_notices(self) -> list[Event]:
        """Return the notices that wait to be shown, and clear the list."""
        notices = self.notices[:]
        self.notices.clear()
        return notices

    def continue_notice(self, why: str, how: str) -> Notice:
        """Return a warning that training continues. why: the problem. how: what changed for the next steps."""
        return Notice("warning", why, f"Training continues from step {formatting.number(self.step)}, {how}.")

    def close(self) -> None:
        """Stop the background threads and release the run's lock."""
        self.train_set.close()
        self.run.release()
