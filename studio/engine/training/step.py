"""Run training steps on the device, in ticks of several steps without read-backs from the device."""

import bisect
import contextlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.errors import NotFiniteError, StepTooLargeError
from studio.engine.devices import detection
from studio.engine.devices.precision import autocast
from studio.engine.steps.batches import RawBatch, augment, step_seed
from studio.engine.steps.graphed_step import GraphedStep
from studio.engine.steps.optim import set_learning_rate
from studio.engine.training.state import Training
from studio.recipes.base import Batch, BatchRng


@dataclass(frozen=True, eq=False)
class TickResult:
    """The results of a tick: a number of consecutive training steps."""

    first_step: int
    statistics: NDArray[np.float32]  # [2, steps], losses and gradient norms
    layer_values: NDArray[np.float32]  # for `LayerMonitor.read`
    learning_rate: float  # of the last step

    def raise_unless_finite(self) -> None:
        """Raise NotFiniteError with the first step whose loss or gradient norm is not finite."""
        not_finite = np.flatnonzero(~np.isfinite(self.statistics.sum(0)))
        if len(not_finite):
            raise NotFiniteError(self.first_step + int(not_finite[0]))


class StepRunner:
    """Runs training steps: passes, clipping, optimizers, EMA. All ranks of a distributed run create it together."""

    def __init__(self, training: Training) -> None:
        self._training = training
        # Frozen weights have no gradient and don't count in the gradient norm.
        self._weights = [weight for weight in training.network.parameters() if weight.requires_grad]
        self._graphed_step = GraphedStep(training.device, training.network, training.notices)
        loss_of, network, config = training.recipe.loss_of(training.spec), training.network, training.config

        def loss(batch: Batch, rng: BatchRng) -> Tensor:  # holds no runner: a cycle would keep its memory
            return loss_of(network, batch, config, rng)

        with training.ranks.wrap_rank_errors(), training.ranks.collective():
            self._loss = training.ranks.wrap_ddp(network, loss)

    def run(self, count: int) -> TickResult:
        """Run `count` steps. Raises StepTooLargeError if the device has no memory for a step."""
        training = self._training
        first_step, statistics = training.step, list[Tensor]()  # loss and gradient norm of each step, [2]
        training.network.train()  # training mode: dropout is on
        for _ in range(count):
            learning_rate = training.learning_rate()
            set_learning_rate(training.optimizers, learning_rate)  # the schedule sets a new rate before every step
            statistics.append(self._run_one())
            training.step += 1
        values = [torch.stack(statistics).T.flatten(), *(value[None] for value in training.layer_monitor.values)]
        read = torch.cat(values).cpu().numpy()  # the only read-back of the tick: it waits for the device
        return TickResult(first_step, read[: 2 * count].reshape(2, count), read[2 * count :], learning_rate)

    def _run_one(self) -> Tensor:
        """Run the next step; returns its loss and its gradient norm before clipping, float32 [2] on the device."""
        training, config, graphed = self._training, self._training.config, self._graphed_step
        seed = step_seed(config.seed, training.step)
        training.ema.begin_step((training.step + 1) * config.batch_size, config.batch_size)
        with detection.wrap_device_errors(training.device, full=StepTooLargeError):
            rows = training.ranks.batch_slice(config.batch_size)
            batch = training.train_set.raw_batch(training.step, config.batch_size, rows)
            if not training.can_replay_graph():
                return graphed.run_eager(self._step, batch, seed)
            return graphed.run(self._step, batch, seed, bisect.bisect(training.recipe.stages, training.budget_share()))

    def _step(self, raw: RawBatch) -> Tensor:
        """Train on a raw batch; returns loss and gradient norm, float32 [2]. CUDA graphs capture it: no read-back."""
        training = self._training
        loss = self._accumulate_gradients(raw)
        training.scaler.unscale_gradients()  # before clipping, which compares real norms with the limit
        with training.layer_monitor.probe_step():
            grad_norm = torch.nn.utils.clip_grad_norm_(self._weights, training.config.clip_grad_norm)
            training.scaler.update(loss, grad_norm)  # a loss that is not finite makes the optimizers skip the step
            for optimizer in training.optimizers:
                optimizer.step()
                optimizer.zero_grad()  # sets .grad to None, so the next backward pass allocates anew
        training.ema.update()
        return torch.stack([loss, grad_norm])  # [2]

    def _accumulate_gradients(self, raw: RawBatch) -> Tensor:
        """Run forward and backward passes of a whole batch; returns the loss, float32 [] on the device.

        If the device is full, it releases the CUDA graph or halves the micro-batches, and starts the batch again. A
        rank of a distributed run can't do that alone and raises StepTooLargeError.
        """
        training = self._training
        while True:
            try:
                with detection.wrap_device_errors(training.device, full=StepTooLargeError):
                    return self._forward_backward(raw)
            except StepTooLargeError as error:
                if self._graphed_step.is_recording or not training.ranks.is_alone:
                    raise
                if not self._graphed_step.release():
                    if training.has_smallest_micro_batch():
                        raise
                    training.split_micro_batches(error.title)
            # Not inside the except clause, where the traceback still keeps the failed step's tensors in memory.
            training.network.zero_grad(set_to_none=True)
            detection.empty_cache(training.device)
            self._graphed_step.rng.manual_seed(step_seed(training.config.seed, training.step))

    def _forward_backward(self, raw: RawBatch) -> Tensor:
        """Add up the gradients of all micro-batches; returns the batch's loss, float32 [] on the device."""
        training, rng = self._training, self._graphed_step.rng
        config, recipe, ranks = training.config, training.recipe, training.ranks
        batch = augment(
            raw, config.batch_size, flip=config.flip, shift_px=config.shift_px, rng=rng,
            progress=training.budget_share(), rows=ranks.batch_slice(config.batch_size),
        )  # fmt: skip
        # Each loss counts by the micro-batch's share of the batch's weight, because weights may differ.
        weight = ranks.all_reduce_sum(recipe.weight(batch), training.device)
        total = torch.zeros((), device=training.device)  # stays on the device: .item() would wait for it
        micro_batches = list(batch.micro_batches(-(-training.recovery.micro_batches.count // ranks.world_size), rng))
        for number, (micro_batch, numbers) in enumerate(micro_batches, 1):
            is_last = number == len(micro_batches)  # DDP averages gradients once, in the last backward pass
            with contextlib.nullcontext() if is_last else ranks.no_sync(self._loss):
                with autocast(training.device.type, training.precision):  # forward pass in bf16 or fp16
                    loss = self._loss(micro_batch, numbers) * (recipe.weight(micro_batch) / weight)
                # .backward() adds to .grad; the scaler keeps small fp16 gradients from becoming 0.
                training.scaler.scale(ranks.scale_for_ddp_mean(loss)).backward()
            total += loss.detach()  # without detach, the sum would keep every micro-batch's graph
        return ranks.all_reduce_sum(total, training.device)  # the loss of the whole batch: []
