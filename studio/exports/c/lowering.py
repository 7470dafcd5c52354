"""Lower PyTorch operators to calls of C functions.

To support another operator, add its C function to operators.c and a lowering here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from studio.exports.c.builder import Builder, unsupported
from studio.exports.c.program import (
    Constant,
    StridedLoop,
    TensorView,
    contiguous,
    retyped,
)

Lowering = Callable[..., Any]

_PATCH_PIXELS = 4  # PIXELS in operators.c
LOWERINGS: dict[str, Lowering] = {}  # by operator name; a lowering takes the builder, then the operator's arguments


def _lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register the decorated function as the lowering of the named operators."""

    def register(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return register


def _binary(function: str, commutes: bool) -> Lowering:
    def lower(builder: Builder, a: Any, b: Any, *, alpha: float = 1) -> Any:
        if alpha != 1:
            raise unsupported(f"This network calls {function} with a factor (alpha).")
        a, b = builder.view(a), builder.view(b)
        out = builder.new(torch.broadcast_shapes(a.shape, b.shape))
        if isinstance(b.source, Constant) and b.source.value == {"aten_mul": 1, "aten_add": 0}.get(function):
            return a
        grid = builder.grid(out, a, b)
        if commutes and grid.a[-1] == 0 < grid.b[-1]:  # the C function prefers a dense first input
            a, b, grid = b, a, builder.grid(out, b, a)
        builder.call(function, out, a, b, grid)
        return out

    return lower


_COMMUTING = ("add", "mul", "maximum", "minimum")
for _name in (*_COMMUTING, "sub", "div"):
    for _overload in ("Tensor", "default"):
        _lowers(f"aten.{_name}.{_overload}")(_binary(f"aten_{_name}", _name in _COMMUTING))


@_lowers("aten.sym_size.int")
def _size(builder: Builder, a: TensorView, axis: int) -> int:
    return a.shape[axis]


@_lowers("aten.eq.Tensor", "aten.eq.Scalar")
def _equal(builder: Builder, a: Any, b: Any) -> Any:
    a, b = builder.whole(a), builder.whole(b)
    out = builder.new(torch.broadcast_shapes(a.shape, b.shape), torch.bool)
    builder.call("aten_eq", out, a, b, builder.grid(out, a, b))
    return out


@_lowers("aten._to_copy.default")
def _to_copy(builder: Builder, a: TensorView, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    """Change the layout's dtype only: C stores integers and truth values as floats. `trace` rejects the rest."""
    return a.with_layout(retyped(a.layout, torch.float32)) if dtype == torch.float32 else a


def _unary(function: str) -> Lowering:
    def lower(builder: Builder, a: Any) -> Any:
        a = builder.dense(a)
        out = builder.new(a.shape)
        builder.call(function, out, a, a.layout.numel())
        return out

    return lower


_UNARY = ("abs", "cos", "erf", "exp", "log", "neg", "reciprocal", "relu", "rsqrt", "sigmoid", "sin", "sqrt", "tanh")
for _name in _UNARY:
    _lowers(f"aten.{_name}.default")(_unary(f"aten_{_name}"))


@_lowers("aten.log1p.default")
def _log1p(builder: Builder, a: Any) -> Any:
    return LOWERINGS["aten.log.default"](builder, LOWERINGS["aten.add.Tensor"](builder, a, 1))


@_lowers("aten.clamp.default")
def _clamp(builder: Builder, a: Any, low: float | None = None, high: float | None = None) -> Any:
    a = builder.dense(a)
    out = builder.new(a.shape)
    least, most = -torch.inf if low is None else float(low), torch.inf if high is None else float(high)
    builder.call("aten_clamp", out, a, least, most, a.layout.numel())
    return out


@_lowers("aten.cat.default")
def _cat(builder: Builder, values: Sequence[Any], axis: int = 0) -> Any:
    views = [view for view in map(builder.view, values) if view.shape != (0,)]  # torch.cat skips empty 1-D tensors
    joined = torch.cat([view.layout for view in views], axis)
    out, start = builder.new(joined.shape), 0
    for view in views:
        builder.copy(out.with_layout(out.layout.narrow(axis, start, view.shape[axis])), view)
        start += view.shape[axis]
    return out


@_lowers("aten.constant_pad_nd.default")
def _pad(builder: Builder, a: Any, border: Sequence[int], value: float = 0) -> Any:
    if min(border) < 0:
        raise unsupported("This network has negative padding.")
    a = builder.view(a)
    out = builder.new(torch.constant_pad_nd(a.layout, list(border)).shape)
    builder.call("aten_fill", out, float(value), out.layout.numel())
    inner = out.layout
    for number, start in enumerate(border[::2]):
        axis = inner.dim() - 1 - number
        inner = inner.narrow(axis, start, a.shape[axis])
    builder.copy(out.with_layout(inner), a)
    return out


@_lowers("aten.flip.default")
def _flip(builder: Builder, a: Any, axes: Sequence[int]) -> Any:
    a = builder.view(a)
    out, flipped, last = builder.new(a.shape), {axis % a.layout.dim() for axis in axes}, a.layout
    for axis in flipped:
        last = last.narrow(axis, last.shape[axis] - 1, 1)  # the loop runs backwards from the last element
    strides = tuple(-step if axis in flipped else step for axis, step in enumerate(a.layout.stride()))
    builder.call("aten_copy", out, a.with_layout(last), StridedLoop(a.shape, out.layout.stride(), strides, strides))
    return out


@_lowers("aten.gather.default")
def _gather(builder: Builder, a: Any, axis: int, index: Any, *, sparse_grad: bool = False) -> Any:
    a, index = builder.view(a), builder.whole(index)
    out = builder.new(index.shape)
    loop, step = _indexed_loop(out.layout, a.layout, index.layout, axis)
    builder.call("aten_gather", out, a, index, StridedLoop(index.shape, *loop), step)
    return out


@_lowers("aten.scatter_add.default")
def _scatter_add(builder: Builder, a: Any, axis: int, index: Any, values: Any) -> Any:
    values, index = builder.view(values), builder.whole(index)
    out = builder.new(a.shape)
    builder.copy(out, builder.view(a))
    (from_, to, at), step = _indexed_loop(values.layout, out.layout, index.layout, axis)
    builder.call("aten_scatter_add", out, values, index, StridedLoop(index.shape, to, from_, at), step)
    return out


def _indexed_loop(
    own: Tensor, indexed: Tensor, index: Tensor, axis: int
) -> tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], int]:
    """Return the strides of a loop over `index`, and the stride of `indexed` along `axis`.

    own, indexed, index: layouts of equal rank, whose strides are returned in this order. own has the index's shape.
    """
    strides, step = list(indexed.stride()), indexed.stride(axis)
    strides[axis] = 0
    return (own.stride(), tuple(strides), index.stride()), step


@_lowers("aten.embedding.default")
def _embedding(
    builder: Builder, table: Any, rows: TensorView, padding: int = -1, by_frequency: bool = False,
    is_sparse: bool = False,
) -> Any:  # fmt: skip
    """Add a call that looks up an embedding row. padding, by_frequency and is_sparse only affect gradients."""
    if not isinstance(table, Tensor) or rows.layout.numel() != 1:
        raise unsupported("This network looks up several embedding rows at once.")
    out = builder.new((*rows.shape, table.shape[1]))
    builder.call("aten_embedding", out, builder.matrix(table), rows, table.shape[1])
    return out


def _last(a: TensorView, axes: Sequence[int]) -> tuple[Tensor, list[int]]:
    """Move `axes` to the end; return the permuted layout of `a`, and the permutation."""
    chosen = sorted(axis % a.layout.dim() for axis in axes)
    order = [axis for axis in range(a.layout.dim()) if axis not in chosen] + chosen
    return a.layout.permute(order), order


@_lowers("aten._softmax.default")
def _softmax(builder: Builder, a: Any, axis: int, half_to_float: bool) -> Any:
    a = builder.view(a)
    layout, order = _last(a, [axis])
    a = builder.dense(a.with_layout(layout))
    out = builder.new(a.shape)
    builder.call("aten_softmax", out, a, a.layout.numel() // a.shape[-1], a.shape[-1])
    return out.with_layout(out.layout.permute([order.index(place) for place in range(len(order))]))


def _reduction(function: str) -> Lowering:
    def lower(
        builder: Builder, a: Any, axes: Sequence[int] | None = None, keep: bool = False, *, dtype: Any = None
    ) -> Any:
        """Add a call that reduces `a` over `axes`, such as a sum. Ignores dtype: `trace` rejects dtype conversions."""
        a = builder.view(a)
        axes = list(axes or range(a.layout.dim()))
        shape = a.layout.sum(axes, keepdim=keep).shape
        layout, _order = _last(a, axes)
        a = builder.dense(a.with_layout(layout))
        out = builder.new(shape)
        builder.call(function, out, a, out.layout.numel(), a.layout.numel() // out.layout.numel())
        return out

    return lower


_lowers("aten.mean.dim", "aten.mean.default")(_reduction("aten_mean"))
_lowers("aten.sum.dim_IntList", "aten.sum.default")(_reduction("aten_sum"))


@_lowers("aten.addmm.default")
def _addmm(builder: Builder, bias: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    if (beta, alpha) != (1, 1):
        raise unsupported("This network calls addmm with factors (alpha, beta).")
    a, (inner, columns) = builder.dense(a), b.shape
    if bias.shape != (columns,):
        return LOWERINGS["aten.add.Tensor"](builder, _mm(builder, a, b), bias)
    out = builder.new((a.shape[0], columns))
    builder.call("aten_addmm", out, builder.dense(bias), a, builder.matrix(b), a.shape[0], inner, columns)
    return out


@_lowers("aten.mm.default", "aten.bmm.default")
def _mm(builder: Builder, a: Any, b: Any) -> Any:
    a, b = builder.dense(a), builder.matrix(b)
    out = builder.new((*a.shape[:-1], b.shape[-1]))
    function = "aten_mm" if len(out.shape) == 2 else "aten_bmm"
    builder.call(function, out, a, b, *a.shape, b.shape[-1])
    return out


@_lowers("aten.native_group_norm.default")
def _group_norm(
    builder: Builder, a: Any, weight: Any, bias: Any, images: int, channels: int, area: int, groups: int, epsilon: float
) -> Any:
    a = builder.planes(a)
    out = builder.new(a.shape)
    weight = builder.dense(torch.ones(channels) if weight is None else weight)
    bias = builder.dense(torch.zeros(channels) if bias is None else bias)
    builder.call("aten_native_group_norm", out, a, weight, bias, images, channels, area, groups, epsilon)
    return out, None, None


@_lowers("aten.upsample_nearest2d.vec")
def _upsample(builder: Builder, a: Any, size: Sequence[int] | None, factors: Sequence[float] | None) -> Any:
    a = builder.planes(a)
    images, channels, height, width = a.shape
    out = builder.new(torch.ops.aten.upsample_nearest2d.vec(a.layout, size, factors).shape)
    if out.shape[2] % height or out.shape[3] % width or any(factor % 1 for factor in factors or ()):
        raise unsupported("This network upsamples by a factor that is not an integer.")
    builder.call("aten_upsample_nearest2d", out, a, images * channels, height, width, *out.shape[2:])
    return out


@_lowers("aten.upsample_bilinear2d.vec")
def _upsample_bilinear(
    builder: Builder, a: Any, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
) -> Any:
    a = builder.planes(a)
    images, channels, height, width = a.shape
    if align_corners or list(factors or ()) != [2.0, 2.0]:
        raise unsupported("This network upsamples bilinearly by a factor other than 2.")
    out = builder.new((images, channels, 2 * height, 2 * width))
    builder.call("aten_upsample_bilinear2d", out, a, images * channels, height, width)
    return out


@_lowers("aten.avg_pool2d.default")
def _avg_pool(
    builder: Builder, a: Any, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (),
    is_ceil: bool = False, counts_padding: bool = True, divisor: int | None = None,
) -> Any:  # fmt: skip
    sides, steps = set(kernel), set(stride or kernel)
    if len(sides) > 1 or len(steps) > 1 or any(padding):
        raise unsupported("This network has pooling with padding or non-square windows.")
    if divisor is not None:
        raise unsupported("This network has pooling with divisor_override.")
    a = builder.planes(a)
    images, channels, height, width = a.shape
    out = builder.new(torch.ops.aten.avg_pool2d(a.layout, list(kernel), list(stride), [0], is_ceil).shape)
    builder.call("aten_avg_pool2d", out, a, images * channels, height, width, *out.shape[2:], *sides, *steps)
    return out


def _rows(builder: Builder, weight: TensorView | Tensor) -> TensorView:
    """Reshape a convolution weight [outputs, inputs, height, width] to [taps, outputs], padded to an even row count."""
    outputs, taps = weight.shape[0], math.prod(weight.shape[1:])
    if isinstance(weight, Tensor):
        return builder.matrix(nn.functional.pad(weight.permute(1, 2, 3, 0).reshape(taps, outputs), (0, 0, 0, taps % 2)))
    turned = builder.dense(weight.with_layout(weight.layout.permute(1, 2, 3, 0)))
    rows = turned.with_layout(contiguous((taps, outputs)))
    return LOWERINGS["aten.constant_pad_nd.default"](builder, rows, (0, 0, 0, 1)) if taps % 2 else rows


@_lowers("aten.convolution.default")
def _convolution(
    builder: Builder, a: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Any:  # fmt: skip
    """Add a 2-D convolution. Ignores output_padding, which only transposed convolutions use; they raise ExportError."""
    if len(set(padding)) > 1:
        a = LOWERINGS["aten.constant_pad_nd.default"](builder, a, [padding[1], padding[1], padding[0], padding[0]])
        padding = [0, 0]
    settings = [set(stride), set(padding), set(dilation)]
    if transposed or groups != 1 or len(weight.shape) != 4 or any(len(both) > 1 for both in settings):
        raise unsupported("This network has grouped, transposed or non-square convolutions.")
    a = builder.planes(a)
    (images, inputs, height, width), (outputs, _, *kernel) = a.shape, weight.shape
    (step,), (border,), (spread,) = settings
    rows = _rows(builder, weight)
    bias = torch.zeros(outputs) if bias is None else bias
    meta = contiguous(weight.shape)
    out = builder.new(torch.convolution(a.layout, meta, None, stride, padding, dilation, False, [0, 0], 1).shape)
    padded = builder.new((inputs, height + 2 * border, width + 2 * border) if border else ())
    patch = builder.new((rows.shape[0], _PATCH_PIXELS))
    shape = (images, inputs, height, width, outputs, *out.shape[2:], *kernel, step, border, spread)
    builder.call("aten_convolution", out, a, rows, builder.dense(bias), padded, patch, shape)
    return out
