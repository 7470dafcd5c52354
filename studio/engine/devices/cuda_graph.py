"""Capture training steps as CUDA graphs, whose kernels the CPU launches at once, which small networks need."""

import weakref
from collections.abc import Callable
from typing import Any, Generic, cast

import torch
from torch import Tensor
from typing_extensions import TypeVar

Inputs = TypeVar("Inputs", bound=tuple[Tensor, ...])

_STREAM_POOL_SIZE = 32  # per GPU; torch hands out streams round-robin


def supports_cuda_graphs(device: torch.device) -> bool:
    """Return whether training steps can be captured on this device: on NVIDIA GPUs, but not on untested AMD GPUs."""
    return device.type == "cuda" and not torch.version.hip


class CapturedStep(Generic[Inputs]):
    """A training step captured as a CUDA graph, with fixed input buffers."""

    def __init__(
        self, step: Callable[[Inputs], Tensor], inputs: Inputs, generators: tuple[torch.Generator, ...] = ()
    ) -> None:
        """Capture a training step as a CUDA graph, without running it.

        step: must have run before, on the device of the inputs, and must not read values back from the GPU. Its other
        tensors must keep their addresses. inputs: examples, copied into buffers. generators: random generators of the
        step besides the default one; the caller may reseed them before a replay. Raises RuntimeError if the capture
        fails.
        """
        self._inputs = cast(Inputs, tuple(tensor.clone() for tensor in inputs))  # fixed addresses for the graph
        self._graph = torch.cuda.CUDAGraph()
        for generator in generators:
            self._graph.register_generator_state(generator)
        device = self._inputs[0].device
        self.stream = _unused_stream(device)  # the default stream for captures belongs to the first GPU that captured
        # Capture this thread only: another thread may pin memory meanwhile.
        recording = torch.cuda.graph(self._graph, stream=self.stream, capture_error_mode="thread_local")
        with torch.cuda.device(device), recording:
            self._result = step(self._inputs)
        _captured_steps.add(self)

    def replay(self, inputs: Inputs) -> Tensor:
        """Replay the captured step with inputs of the same shapes; return its result without waiting for the GPU."""
        torch._foreach_copy_(self._inputs, inputs)
        self._graph.replay()
        return self._result.clone()  # the next replay overwrites the result


_captured_steps: weakref.WeakSet[CapturedStep[Any]] = weakref.WeakSet()  # alive


def _unused_stream(device: torch.device) -> torch.cuda.Stream:
    """Return a CUDA stream without a captured graph in use. Raises RuntimeError if all streams have one.

    cuBLAS allocates workspace per stream, and deleting a graph frees the workspace of all graphs captured on its stream
    (https://github.com/pytorch/pytorch/issues/193402), so two graphs must not share a stream.
    """
    taken = {graph.stream.cuda_stream for graph in _captured_steps}
    for _ in range(_STREAM_POOL_SIZE):
        if (stream := torch.cuda.Stream(device)).cuda_stream not in taken:
            return stream
    raise RuntimeError("Too many CUDA graphs were captured.")
