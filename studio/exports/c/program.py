"""A network as a sequence of C function calls on float buffers, and the buffers' memory layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

ALIGNMENT = 16  # floats; each buffer starts at a multiple
MAX_AXES = 6  # of a StridedLoop; the struct `grid` in operators.c has the same limit


@dataclass(frozen=True, eq=False)
class Buffer:
    """A contiguous array of floats. Buffers with a name are C parameters; other buffers lie in the workspace."""

    count: int
    name: str = ""


@dataclass(frozen=True, eq=False)
class WeightTensor:
    """A tensor in the weights file: float32 [rows, columns]. Matrices may become int8, scaled per column."""

    values: Tensor
    is_matrix: bool


@dataclass(frozen=True, eq=False)
class Constant:
    """A number written into the C code as a literal."""

    value: float


@dataclass(frozen=True, eq=False)
class TensorView:
    """A strided view of a buffer, a weight or a literal. layout: meta tensor with shape, strides and offset."""

    source: Buffer | WeightTensor | Constant
    layout: Tensor

    @property
    def shape(self) -> torch.Size:
        return self.layout.shape

    def with_layout(self, layout: Tensor) -> TensorView:
        return TensorView(self.source, layout)


@dataclass(frozen=True)
class StridedLoop:
    """A nested loop over an output and two inputs. size: extent per axis. out, a, b: stride per axis, in floats."""

    size: tuple[int, ...]
    out: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]

    @classmethod
    def over(cls, out: TensorView, a: TensorView, b: TensorView) -> StridedLoop:
        """Create the loop over all elements of `out`. Broadcasts `a` and `b` to the shape of `out`; merges axes."""
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
    """A C function call. The output comes first among the arguments."""

    function: str
    arguments: tuple[Argument, ...]

    def views(self) -> list[TensorView]:
        """Return the tensor arguments of the call, the output first."""
        return [argument for argument in self.arguments if isinstance(argument, TensorView)]

    def buffers(self) -> Iterator[Buffer]:
        """Yield the workspace buffers that the call reads or writes."""
        sources = (view.source for view in self.views())
        return (source for source in sources if isinstance(source, Buffer) and not source.name)


@dataclass(eq=False)
class Program:
    """A network as C function calls in order, with the calls' weights.

    A variant handles inputs with certain sizes. A run executes a single variant. starts: first call by variant.
    """

    calls: list[Call] = field(default_factory=list)
    parts: list[WeightTensor] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])

    def variants(self) -> list[list[Call]]:
        """Return the calls by variant."""
        return [self.calls[start:end] for start, end in pairwise([*self.starts, len(self.calls)])]

    def memory_offsets(self) -> tuple[dict[Buffer, int], int]:
        """Place the buffers in a workspace; return the offset by buffer, and the workspace size, in floats.

        Buffers with overlapping lifetimes don't share memory. Larger buffers go first, at the lowest free offset.
        """
        lifetimes: dict[Buffer, tuple[int, int]] = {}  # first and last call
        for number, call in enumerate(self.calls):
            for buffer in call.buffers():
                lifetimes[buffer] = (lifetimes.get(buffer, (number, number))[0], number)
        offsets: dict[Buffer, int] = {}
        for buffer in sorted(lifetimes, key=lambda buffer: -buffer.count):
            first, last = lifetimes[buffer]
            rivals = [other for other in offsets if lifetimes[other][0] <= last and first <= lifetimes[other][1]]
            start = 0
            for offset, count in sorted((offsets[other], other.count) for other in rivals):
                if start + buffer.count <= offset:
                    break
                start = max(start, aligned(offset + count))
            offsets[buffer] = start
        return offsets, max((offset + buffer.count for buffer, offset in offsets.items()), default=0)

    def boundary_matrices(self) -> set[WeightTensor]:
        """Return the matrices next to the inputs and the output, without embeddings. int8 would distort these most."""
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
        """Return the offset by weight tensor in the array of weights, and the array's size, in floats."""
        offsets, end = dict[WeightTensor, int](), 0
        for part in self.parts:
            offsets[part] = end
            end += aligned(part.values.numel())
        return offsets, end


def aligned(count: int) -> int:
    """Round a number of floats up to a multiple of ALIGNMENT."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def contiguous(shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a layout: a contiguous meta tensor with the given shape."""
    return torch.empty(tuple(shape), dtype=dtype, device="meta")


def retyped(layout: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a copy of the layout with another dtype. Shape, strides and offset don't change."""
    last = sum((extent - 1) * step for extent, step in zip(layout.shape, layout.stride(), strict=True))
    offset = int(layout.storage_offset())
    return contiguous([offset + last + 1], dtype).as_strided(layout.shape, layout.stride(), offset)
