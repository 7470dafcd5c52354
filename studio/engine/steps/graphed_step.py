"""When the steps of a training become a CUDA graph, and when they do not: what is recorded is the same in each."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor, nn

from studio.core.errors import DeviceError
from studio.core.events import Event, Notice
from studio.engine.devices import detection
from studio.engine.devices.cuda_graph import CapturedStep, supports_cuda_graphs
from studio.engine.steps.batches import RawBatch

_log = logging.getLogger(__name__)

Step = Callable[[RawBatch], Tensor]

_WARM_UP_STEPS = 3  # before one is recorded: libraries set themselves up in the first, optimizers make their state


class GraphedStep:
    """Takes steps: on an NVIDIA card the first ones as they are, and then as a graph of them where there is room.

    rng: of the random numbers of the step that is taken, with its seed.
    """

    def __init__(self, device: torch.device, network: nn.Module, notices: list[Event], *, enabled: bool = True) -> None:
        """network: that learns. notices: where a Notice of a failure is put. enabled: whether to record at all."""
        self._device, self._network, self._notices = device, network, notices
        self.rng = torch.Generator(device)
        self._enabled = enabled and supports_cuda_graphs(device)
        self._graph: CapturedStep[RawBatch] | None = None
        self._stage, self._eager_steps = 0, 0  # steps as they are in this stage
        self._step_bytes = 0  # that a step takes for itself
        self.is_recording = False

    def run(self, step: Step, batch: RawBatch, seed: int, stage: int) -> Tensor:
        """A step with these sprites: `step` is always the same. stage: in which of the recipe's the training is; each
        has its own graph.
        """
        if stage != self._stage:
            self._graph = None
            self._stage, self._eager_steps = stage, 0
        if self._enabled and self._graph is None and self._eager_steps >= _WARM_UP_STEPS:
            self._record(step, batch)
        if self._graph is None:
            return self.run_eager(step, batch, seed)
        self.rng.manual_seed(seed)
        return self._graph.replay(batch)

    def run_eager(self, step: Step, batch: RawBatch, seed: int) -> Tensor:
        """A step that differs from others, by being looked at or in how many parts it is taken."""
        self._eager_steps += 1
        self.rng.manual_seed(seed)
        if not self._enabled or self._graph is not None:
            return step(batch)
        torch.cuda.reset_peak_memory_stats(self._device)
        before = torch.cuda.memory_allocated(self._device)
        result = step(batch)
        self._step_bytes = torch.cuda.max_memory_allocated(self._device) - before
        return result

    def release(self) -> bool:
        """Let the graph go, and record no more. Whether there was one: it has held the memory of a whole step."""
        had_one, self._graph, self._enabled = self._graph is not None, None, False
        return had_one

    def _record(self, step: Step, batch: RawBatch) -> None:
        """A graph keeps what a step takes: as much again must be left for samples, measurements and other programs."""
        if detection.memory_free(self._device) < 2 * self._step_bytes:
            self._enabled = False
            return
        self.is_recording = True
        try:
            self._graph = CapturedStep(step, batch, (self.rng,))
        except (RuntimeError, DeviceError) as error:
            self._enabled = False
            self.rng = torch.Generator(self._device)  # the other one still takes itself to be recorded
            _log.warning("A step can't be recorded.", exc_info=error)
            title = "Training is slower than it could be: its steps can't be recorded as a CUDA graph."
            self._notices.append(Notice("info", title, str(error.__cause__ or error).partition("\n")[0]))
        finally:
            self.is_recording = False
        # Gradients that a recording leaves behind are in its memory, and hold nothing.
        self._network.zero_grad(set_to_none=True)
