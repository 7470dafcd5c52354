"""Build a C program step by step: tensors, weights and C function calls."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from studio.core.errors import ExportError
from studio.exports.c.program import (
    MAX_AXES,
    Argument,
    Buffer,
    Call,
    Constant,
    Program,
    StridedLoop,
    TensorView,
    WeightTensor,
    contiguous,
)


def unsupported(title: str) -> ExportError:
    """Create the error for a network without a C form. title: message naming the obstacle."""
    return ExportError(title, "Choose another format.")


class Builder:
    """Builds a `Program` step by step: allocates tensors and appends C function calls."""

    def __init__(self) -> None:
        self.program = Program()
        self._parts: dict[tuple[torch.Size, bool, bytes], WeightTensor] = {}

    def call(self, function: str, *arguments: Argument) -> None:
        self.program.calls.append(Call(function, arguments))

    def new(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> TensorView:
        """Allocate a contiguous, uninitialised tensor for the result of a call. Tensors of any dtype hold floats."""
        layout = contiguous(shape, dtype)
        return TensorView(Buffer(layout.numel()), layout)

    def copy(self, out: TensorView, value: TensorView) -> None:
        self.call("aten_copy", out, value, self.grid(out, value, value))

    def grid(self, out: TensorView, a: TensorView, b: TensorView) -> StridedLoop:
        grid = StridedLoop.over(out, a, b)
        if len(grid.size) > MAX_AXES:
            raise unsupported(f"This network has tensors with more than {MAX_AXES} axes.")
        return grid

    def view(self, value: TensorView | Tensor | float) -> TensorView:
        """Convert to a view: tensors become weights, numbers become literals. Raises ExportError unless float32."""
        if isinstance(value, TensorView) and value.layout.dtype != torch.float32:
            raise unsupported(f"This network computes in {value.layout.dtype}.")
        return self.whole(value)

    def whole(self, value: TensorView | Tensor | float) -> TensorView:
        """Convert a value of any real dtype to a view. Integers and truth values become floats."""
        if isinstance(value, TensorView):
            return value
        if not isinstance(value, Tensor):
            return TensorView(Constant(float(value)), contiguous(()))
        if value.is_complex():
            raise unsupported(f"This network computes in {value.dtype}.")
        if value.numel() > 1 and not any(value.stride()):  # an expanded scalar
            return TensorView(Constant(float(value.flatten()[0])), contiguous(()).expand(value.shape))
        return TensorView(self.part(value.float().reshape(1, -1), is_matrix=False), contiguous(value.shape))

    def dense(self, value: TensorView | Tensor) -> TensorView:
        """Convert a value to a contiguous tensor view; add a copy call if its strides need it."""
        view = self.view(value)
        out = view if view.layout.is_contiguous() else self.new(view.shape)
        if out is not view:
            self.copy(out, view)
        return out

    def planes(self, value: TensorView | Tensor) -> TensorView:
        """Convert images to a contiguous view [images, channels, height, width]. Raises ExportError for other ranks."""
        view = self.dense(value)
        if view.layout.dim() != 4:
            raise unsupported(f"This network uses an operator for images on a tensor with {view.layout.dim()} axes.")
        return view

    def part(self, values: Tensor, *, is_matrix: bool) -> WeightTensor:
        """Add a tensor to the weights. Equal tensors are stored once."""
        values = values.detach().contiguous()
        key = values.shape, is_matrix, values.numpy().tobytes()
        if key not in self._parts:
            self._parts[key] = WeightTensor(values, is_matrix)
            self.program.parts.append(self._parts[key])
        return self._parts[key]

    def matrix(self, values: TensorView | Tensor) -> TensorView:
        """Convert matrices [..., rows, columns] to a contiguous view. A constant matrix may be stored as int8."""
        if isinstance(values, Tensor) and values.dim() == 2:
            return TensorView(self.part(values.float(), is_matrix=True), contiguous(values.shape))
        return self.dense(values)
