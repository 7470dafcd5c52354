"""Run training steps eagerly at first, then as a replayed CUDA graph where possible, with the same results."""

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

_WARM_UP_STEPS = 3  # eager steps before the recording: libraries and optimizers allocate their state


class GraphedStep:
    """Runs training steps: eagerly at first, then as a CUDA graph on an NVIDIA GPU with enough memory, if `enabled`.

    rng: the device's random generator, seeded for each step. notices: receives a Notice if recording fails.
    """

    def __init__(self, device: torch.device, network: nn.Module, notices: list[Event], *, enabled: bool = True) -> None:
        self._device, self._network, self._notices = device, network, notices
        self.rng = torch.Generator(device)
        self._enabled = enabled and supports_cuda_graphs(device)
        self._graph: CapturedStep[RawBatch] | None = None
        self._stage, self._eager_steps = 0, 0  # eager steps in this stage
        self._step_bytes = 0  # peak memory of an eager step
        self.is_recording = False

    def run(self, step: Step, batch: RawBatch, seed: int, stage: int) -> Tensor:
        """Train one step, from a CUDA graph if possible. step: always the same function. stage: needs its own graph."""
        if stage != self._stage:
            self._graph = None
            self._stage, self._eager_steps = stage, 0  # the loss of a new stage differs, so the old graph is useless
        if self._enabled and self._graph is None and self._eager_steps >= _WARM_UP_STEPS:
            self._record(step, batch)
        if self._graph is None:
            return self.run_eager(step, batch, seed)
        self.rng.manual_seed(seed)
        return self._graph.replay(batch)

    def run_eager(self, step: Step, batch: RawBatch, seed: int) -> Tensor:
        """Train a step without a graph: one with layer statistics or micro-batches differs from the recorded step."""
        self._eager_steps += 1
        self.rng.manual_seed(seed)
        if not self._enabled or self._graph is not None:
            return step(batch)
        torch.cuda.reset_peak_memory_stats(self._device)  # to measure this step's peak
        before = torch.cuda.memory_allocated(self._device)
        result = step(batch)
        self._step_bytes = torch.cuda.max_memory_allocated(self._device) - before
        return result

    def release(self) -> bool:
        """Delete the CUDA graph to free a step's memory, and record no further graph; return True if one existed."""
        had_one, self._graph, self._enabled = self._graph is not None, None, False
        return had_one

    def _record(self, step: Step, batch: RawBatch) -> None:
        """Record the step as a CUDA graph, unless the graph would leave too little memory for other work."""
        if detection.memory_free(self._device) < 2 * self._step_bytes:
            self._enabled = False
            return
        self.is_recording = True
        try:
            self._graph = CapturedStep(step, batch, (self.rng,))
        except (RuntimeError, DeviceError) as error:
            self._enabled = False
            self.rng = torch.Generator(self._device)  # the old generator stays registered with the failed graph
            _log.warning("A step can't be recorded.", exc_info=error)
            title = "Training is slower than possible: recording a CUDA graph failed."
            self._notices.append(Notice("info", title, str(error.__cause__ or error).partition("\n")[0]))
        finally:
            self.is_recording = False
        # Recording allocated gradients in the graph's memory, and never computed them.
        self._network.zero_grad(set_to_none=True)
