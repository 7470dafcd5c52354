"""A network as a sequence of C function calls on float buffers, and the memory layout of the buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

ALIGNMENT = 16  # floats; each buffer starts at a multiple


@dataclass(frozen=True, eq=False)
class Buffer:
    """A contiguous array of floats: an argument of the C function if it has a name, otherwise in its memory."""

    count: int
    name: str = ""


@dataclass(frozen=True, eq=False)
class WeightTensor:
    """A constant tensor in the weights file: float32 [rows, columns]. Matrices can be int8 with a scale per column."""

    values: Tensor
    is_matrix: bool


@dataclass(frozen=True, eq=False)
class Constant:
    """A number in the source code."""

    value: float


@dataclass(frozen=True, eq=False)
class TensorView:
    """A tensor view. layout: a meta tensor with the shape and the strides inside `source`."""

    source: Buffer | WeightTensor | Constant
    layout: Tensor

    @property
    def shape(self) -> torch.Size:
        return self.layout.shape

    def with_layout(self, layout: Tensor) -> TensorView:
        return TensorView(self.source, layout)


@dataclass(frozen=True)
class StridedLoop:
    """A loop over an output and two inputs: extents of the axes, and each tensor's strides along them."""

    size: tuple[int, ...]
    out: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]

    @classmethod
    def over(cls, out: TensorView, a: TensorView, b: TensorView) -> StridedLoop:
        """Return the loop over `out` with `a` and `b` broadcast to it. Mergeable axes are merged into one."""
        layouts = (out.layout, a.layout.expand(out.shape), b.layout.expand(out.shape))
        axes: list[tuple[int, tuple[int, ...]]] = []
        for axis, extent in enumerate(out.shape):
            strides = tuple(layout.stride(axis) for layout in layouts)
            if extent == 1:
                continue
            if axes and all(before == extent * stride for before, stride in zip(axes[-1][1], strides, strict=True)):
                axes[-1] = (axes[-1][0] * extent, strides)
            else:
                axes.append((extent, strides))
        axes = axes or [(1, (1, 1, 1))]
        by_layout = zip(*(strides for _, strides in axes), strict=True)
        return cls(tuple(extent for extent, _ in axes), *by_layout)


Argument = TensorView | StridedLoop | int | float | tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a C function. The first argument is the output."""

    function: str
    arguments: tuple[Argument, ...]

    def views(self) -> list[TensorView]:
        """Return the tensors among the arguments, the output first."""
        return [argument for argument in self.arguments if isinstance(argument, TensorView)]

    def buffers(self) -> Iterator[Buffer]:
        """Yield the buffers in memory that the call reads or writes."""
        sources = (view.source for view in self.views())
        return (source for source in sources if isinstance(source, Buffer) and not source.name)


@dataclass(eq=False)
class Program:
    """Function calls in order, and the weights they use."""

    calls: list[Call] = field(default_factory=list)
    parts: list[WeightTensor] = field(default_factory=list)

    def memory_offsets(self) -> tuple[dict[Buffer, int], int]:
        """Assign buffers to memory offsets, in floats; return the offsets and the memory size.

        Buffers that are alive at the same time don't overlap. The largest buffer is placed first, each buffer as low
        as possible.
        """
        lifetimes: dict[Buffer, tuple[int, int]] = {}  # first and last call
        for number, call in enumerate(self.calls):
            for buffer in call.buffers():
                lifetimes[buffer] = (lifetimes.get(buffer, (number, number))[0], number)
        offsets: dict[Buffer, int] = {}
        for buffer in sorted(lifetimes, key=lambda buffer: -buffer.count):
            first, last = lifetimes[buffer]
            neighbours = sorted(
                (offset, other.count)
                for other, offset in offsets.items()
                if lifetimes[other][0] <= last and first <= lifetimes[other][1]
            )
            start = 0
            for offset, count in neighbours:
                if start + buffer.count <= offset:
                    break
                start = max(start, aligned(offset + count))
            offsets[buffer] = start
        return offsets, max((offset + buffer.count for buffer, offset in offsets.items()), default=0)

    def boundary_matrices(self) -> set[WeightTensor]:
        """Return the first and the last matrices between inputs and output, except embedding tables."""
        found = set[WeightTensor]()
        for calls in (self.calls, self.calls[::-1]):
            beyond = set[Buffer]()  # buffers that depend on a matrix
            for call in calls:
                out, *inputs = call.views()
                sources, goal = {view.source for view in inputs}, {out.source}
                before, after = (sources, goal) if calls is self.calls else (goal, sources)
                matrices = {source for source in sources if isinstance(source, WeightTensor) and source.is_matrix}
                if matrices and not before & beyond and call.function != "aten_embedding":
                    found |= matrices
                if matrices or before & beyond:
                    beyond |= {source for source in after if isinstance(source, Buffer)}
        return found

    def weight_offsets(self) -> tuple[dict[WeightTensor, int], int]:
        """Return the offset of each weight tensor among all weights, in floats, and the total size."""
        offsets, end = dict[WeightTensor, int](), 0
        for part in self.parts:
            offsets[part] = end
            end += aligned(part.values.numel())
        return offsets, end


def aligned(count: int) -> int:
    """Round up to a multiple of ALIGNMENT."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def contiguous(shape: Sequence[int]) -> Tensor:
    """Return the layout of a contiguous tensor, as a meta tensor."""
    return torch.empty(tuple(shape), device="meta")
