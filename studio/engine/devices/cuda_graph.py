"""Training steps as CUDA graphs: what a step asks of a card is recorded once, and from then on asked for in one go.

A small network's kernels take a card less time than it takes the CPU to ask for them, one after the other.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, cast

import torch
from torch import Tensor
from typing_extensions import TypeVar

Inputs = TypeVar("Inputs", bound=tuple[Tensor, ...])

_STREAM_POOL_SIZE = 32  # of a card: torch hands out the same ones, in turns


def supports_cuda_graphs(device: torch.device) -> bool:
    """Whether steps may be recorded there: on NVIDIA's cards. AMD's, called so too, were never tried."""
    return device.type == "cuda" and not torch.version.hip


class CapturedStep(Generic[Inputs]):
    """A step that was recorded, with its inputs in memory that others can be put into."""

    def __init__(
        self, step: Callable[[Inputs], Tensor], inputs: Inputs, generators: tuple[torch.Generator, ...] = ()
    ) -> None:
        """Record what `step` asks of the card; nothing of it is done yet.

        It is to have been taken before, on the card of the inputs, and reads nothing back. generators: of its random
        numbers, beside torch's own; they may be given another seed before each replay. Whatever else changes from step
        to step is in tensors that stay where they are. Raises RuntimeError where the step can't be recorded.
        """
        self._inputs = cast(Inputs, tuple(tensor.clone() for tensor in inputs))
        self._graph = torch.cuda.CUDAGraph()
        for generator in generators:
            self._graph.register_generator_state(generator)
        device = self._inputs[0].device
        self.stream = _unused_stream(device)  # torch's own for this is on the card that was recorded first
        # Of other threads nothing is recorded: one may pin memory meanwhile.
        recording = torch.cuda.graph(self._graph, stream=self.stream, capture_error_mode="thread_local")
        with torch.cuda.device(device), recording:
            self._result = step(self._inputs)
        _captured_steps.add(self)

    def replay(self, inputs: Inputs) -> Tensor:
        """Take the step with these inputs, of the same shapes; returns what it gives, without waiting for it."""
        torch._foreach_copy_(self._inputs, inputs)
        self._graph.replay()
        return self._result.clone()


_captured_steps: weakref.WeakSet[CapturedStep[Any]] = weakref.WeakSet()  # those that are still there


def _unused_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream on which none of these graphs was recorded. Raises RuntimeError where there is none.

    Matrix products keep memory for each stream, and a graph that goes takes it from all that were recorded on its own
    (https://github.com/pytorch/pytorch/issues/193402): what is then in it, the others go on using.
    """
    taken = {graph.stream.cuda_stream for graph in _captured_steps}
    for _ in range(_STREAM_POOL_SIZE):
        if (stream := torch.cuda.Stream(device)).cuda_stream not in taken:
            return stream
    raise RuntimeError("Too many graphs were recorded.")
