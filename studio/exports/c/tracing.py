"""Trace a network with torch.export and lower its graph, node by node, to a program of C calls.

View operators (reshape, permute, slice, ...) only change strides and cost nothing at run time. Tracing computes nodes
that depend only on weights. For inputs of several sizes, a network is traced once and lowered once per size.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.utils import _pytree as pytree

from studio.core.errors import ExportError
from studio.exports.c.builder import Builder, unsupported
from studio.exports.c.lowering import LOWERINGS
from studio.exports.c.program import Buffer, Program, TensorView, contiguous

_IGNORED = frozenset({"aten._assert_tensor_metadata.default"})
_SAME = frozenset({"aten.alias.default", "aten.clone.default", "aten.detach.default"})
_FULL = "aten.full.default"


def trace(
    network: nn.Module, inputs: Sequence[Tensor], names: Sequence[str], others: Sequence[Sequence[Tensor]] = ()
) -> Program:
    """Convert a network in eval mode to a program.

    inputs: example tensors. names: C names of the inputs. others: example tensors of other sizes, for further variants
    after the variant for `inputs`. Raises ExportError if the network can't be traced or uses an operator without a C
    function.
    """
    builder, variants = Builder(), (inputs, *others)
    exported = _exported(network, variants)
    for number, examples in enumerate(variants):
        if number:
            builder.program.starts.append(len(builder.program.calls))
        _lower(exported, builder, examples, names)
    return builder.program


def _exported(network: nn.Module, variants: Sequence[Sequence[Tensor]]) -> ExportedProgram:
    """Trace a network. An axis becomes dynamic if its size differs between variants. Raises ExportError."""
    dynamic = []
    for values in zip(*variants, strict=True):  # tensors of an input, one per variant
        sizes = enumerate(zip(*(value.shape for value in values), strict=True))
        dynamic.append({axis: torch.export.Dim(f"size{own[0]}") for axis, own in sizes if len({*own}) > 1})
    try:
        with torch.no_grad():
            shapes = tuple(dynamic) if any(dynamic) else None
            exported = torch.export.export(network, tuple(variants[0]), dynamic_shapes=shapes)
            core: ExportedProgram = exported.run_decompositions()
            return core
    except (torch._dynamo.exc.TorchDynamoException, RuntimeError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ExportError("This network can't be traced.", reason) from error


def _lower(exported: ExportedProgram, builder: Builder, examples: Sequence[Tensor], names: Sequence[str]) -> None:
    """Add the calls of a traced network to the builder, for inputs with the examples' sizes."""
    values, free = dict[Node, Any](), zip(names, examples, strict=False)
    constants = {**exported.state_dict, **exported.constants}
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs if hasattr(spec.arg, "name")}
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            spec = specs[node.name]
            is_input = spec.kind is InputKind.USER_INPUT
            values[node] = _input(*next(free)) if is_input else constants[spec.target]
        elif node.op == "output":
            if len(node.args[0]) != 1:
                raise unsupported("This network has several outputs.")
            (output,) = node.args[0]
            found = builder.view(values[output])
            builder.copy(TensorView(Buffer(found.layout.numel(), "out"), contiguous(found.shape)), found)
        else:
            arguments: Any = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = _computed(builder, node.target, *arguments)
            _check_dtype(node, values[node])


def _check_dtype(node: Node, value: Any) -> None:
    """Raise ExportError if the value's dtype differs from the dtype that torch recorded for the node."""
    if isinstance(value, TensorView) and value.layout.dtype != (wanted := node.meta["val"].dtype):
        raise unsupported(f"This network converts {value.layout.dtype} to {wanted} ({node.target}).")


def _input(name: str, example: Tensor) -> TensorView:
    return TensorView(Buffer(example.numel(), name), torch.empty(example.shape, dtype=example.dtype, device="meta"))


def _computed(builder: Builder, target: Any, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    """Add the calls for a node; return the node's value: a view, a constant tensor, a number, or a tuple."""
    name = str(target)
    if target is operator.getitem:
        return positional[0][positional[1]]
    if not any(isinstance(value, TensorView) for value in pytree.tree_leaves((positional, named))):
        return _constant(target, positional, named)
    if name in _IGNORED:
        return None
    if name in _SAME:
        return positional[0]
    if getattr(target, "is_view", False):
        return _viewed(builder, target, positional, named)
    if name not in LOWERINGS:
        raise unsupported(f"This network needs the operator {name}, which the C code does not support.")
    try:
        bound = inspect.signature(LOWERINGS[name]).bind(builder, *positional, **named)
    except TypeError:
        raise unsupported(f"This network calls {name} with arguments that the C code does not support.") from None
    return LOWERINGS[name](*bound.args, **bound.kwargs)


def _constant(target: Any, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    """Compute a node that depends on weights and sizes only."""
    if torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
        raise unsupported(f"This network uses random numbers ({target}).")
    if str(target) == _FULL:
        return torch.full((), positional[1], dtype=named.get("dtype")).expand(positional[0])  # needs no weights
    return target(*positional, **named)


def _viewed(builder: Builder, target: Any, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    """Apply a view operator (reshape, permute, ...) to the first argument, without a copy if torch can."""
    view, *rest = positional
    try:
        found = target(view.layout, *rest, **named)
    except RuntimeError:  # needs contiguous data
        view = builder.dense(view)
        found = target(view.layout, *rest, **named)
    if isinstance(found, Tensor) and found.is_neg():
        raise unsupported(f"This network needs the operator {target}, which the C code does not support.")
    return view.with_layout(found) if isinstance(found, Tensor) else tuple(map(view.with_layout, found))
