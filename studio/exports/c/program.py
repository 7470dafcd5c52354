"""What a network computes, as calls of C functions on buffers of floats, and where in memory these lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

ALIGNMENT = 16  # floats: each buffer begins at a multiple of it


@dataclass(frozen=True, eq=False)
class Buffer:
    """Floats in a row. With a `name` they are an argument of the C function, without one they are in its memory."""

    count: int
    name: str = ""


@dataclass(frozen=True, eq=False)
class WeightTensor:
    """Numbers of the weights file: float32 [rows, columns]. A matrix may be held as int8, with a scale a column."""

    values: Tensor
    is_matrix: bool


@dataclass(frozen=True, eq=False)
class Constant:
    """A number in the source."""

    value: float


@dataclass(frozen=True, eq=False)
class TensorView:
    """A tensor: how `layout`, which has no data, lies in what holds the numbers."""

    source: Buffer | WeightTensor | Constant
    layout: Tensor

    @property
    def shape(self) -> torch.Size:
        return self.layout.shape

    def with_layout(self, layout: Tensor) -> TensorView:
        return TensorView(self.source, layout)


@dataclass(frozen=True)
class StridedLoop:
    """Extents of the axes, and the strides along them of an output and two inputs."""

    size: tuple[int, ...]
    out: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]

    @classmethod
    def over(cls, out: TensorView, a: TensorView, b: TensorView) -> StridedLoop:
        """Axes that can be walked as one are one; there is at least one."""
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
    """A call of the C function of that name: where it writes comes first."""

    function: str
    arguments: tuple[Argument, ...]

    def views(self) -> list[TensorView]:
        """The tensors that it touches, the one it writes first."""
        return [argument for argument in self.arguments if isinstance(argument, TensorView)]

    def buffers(self) -> Iterator[Buffer]:
        """Those in memory that it touches."""
        sources = (view.source for view in self.views())
        return (source for source in sources if isinstance(source, Buffer) and not source.name)


@dataclass(eq=False)
class Program:
    """Calls in order, and the weights that they use."""

    calls: list[Call] = field(default_factory=list)
    parts: list[WeightTensor] = field(default_factory=list)

    def memory_offsets(self) -> tuple[dict[Buffer, int], int]:
        """Where in memory each buffer begins, and how many floats there are; those that live at once don't overlap.

        The largest are placed first, each as low as it can be.
        """
        lives: dict[Buffer, tuple[int, int]] = {}
        for number, call in enumerate(self.calls):
            for buffer in call.buffers():
                lives[buffer] = (lives.get(buffer, (number, number))[0], number)
        places: dict[Buffer, int] = {}
        for buffer in sorted(lives, key=lambda one: -one.count):
            first, last = lives[buffer]
            beside = sorted(
                (place, other.count)
                for other, place in places.items()
                if lives[other][0] <= last and first <= lives[other][1]
            )
            start = 0
            for place, count in beside:
                if start + buffer.count <= place:
                    break
                start = max(start, aligned(place + count))
            places[buffer] = start
        return places, max((place + buffer.count for buffer, place in places.items()), default=0)

    def boundary_matrices(self) -> set[WeightTensor]:
        """The matrices that are the first or the last on a way from an input to the output, but for tables of rows."""
        found = set[WeightTensor]()
        for calls in (self.calls, self.calls[::-1]):
            beyond = set[Buffer]()  # what has a matrix behind it
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
        """Where among the weights each part begins, and how many floats there are."""
        offsets, end = dict[WeightTensor, int](), 0
        for part in self.parts:
            offsets[part] = end
            end += aligned(part.values.numel())
        return offsets, end


def aligned(count: int) -> int:
    """The next whole multiple of ALIGNMENT."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def contiguous(shape: Sequence[int]) -> Tensor:
    """The layout of a tensor of that shape without gaps."""
    return torch.empty(tuple(shape), device="meta")
