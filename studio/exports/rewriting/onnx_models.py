"""Rewrite ONNX graphs: inline a subgraph, convert to fp16, change the opset, set metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, version_converter

WRITTEN_OPSET = 18  # oldest opset of torch's exporter; conversion to other opsets follows

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
# Operators without conversion below opset 18 in onnx, although their defaults have equal meaning in older opsets.
_HIDDEN_OPERATORS = ("Pad", "Resize", "Split")
_HIDING_DOMAIN = "hidden"


def inline(outer: ModelProto, inner: GraphProto, domain: str) -> None:
    """Replace each node of `domain` in `outer` by the nodes of the graph `inner`. Its weights are stored once."""
    weights = {weight.name: f"network/{weight.name}" for weight in inner.initializer}
    for weight in inner.initializer:
        outer.graph.initializer.add().CopyFrom(weight)
        outer.graph.initializer[-1].name = weights[weight.name]
    nodes: list[NodeProto] = []
    for number, node in enumerate(list(outer.graph.node)):
        if node.domain != domain:
            nodes.append(node)
            continue
        given = zip((value.name for value in inner.input), node.input, strict=True)
        names = {**weights, **dict(given), inner.output[0].name: node.output[0], "": ""}
        nodes += [_renamed(copied, names, f"{number}/") for copied in inner.node]
    _set_nodes(outer.graph, nodes)
    _keep_domains(outer, lambda name: name != domain)


def to_half(model: ModelProto) -> None:
    """Convert the nodes from the first to the last matrix product to fp16. Inputs and outputs stay fp32.

    The time features (with angles up to 1,000 radians) and the solver's steps stay exact.
    """
    graph = model.graph
    halved = _between_products(graph.node)
    floats = {weight.name for weight in graph.initializer if weight.data_type == TensorProto.FLOAT}
    weights = {weight.name: weight for weight in graph.initializer}
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)}
    floats |= {name for name, kind in kinds.items() if kind == TensorProto.FLOAT}
    are_half: dict[str, str] = {}  # fp16 copy by fp32 value (names)
    nodes: list[NodeProto] = []

    def cast(name: str, new: str, kind: int) -> None:
        nodes.append(helper.make_node("Cast", [name], [new], name=new, to=kind))

    for number, node in enumerate(graph.node):
        if number not in halved:
            nodes.append(node)
            continue
        for index, name in enumerate(node.input):
            if name not in floats or (node.op_type == "Resize" and index > 0):  # Resize needs fp32 scales
                continue
            if name not in are_half:
                are_half[name] = f"{name}/half"
                if name in weights:
                    half = numpy_helper.to_array(weights[name]).astype(np.float16)
                    graph.initializer.append(numpy_helper.from_array(half, are_half[name]))
                else:
                    cast(name, are_half[name], TensorProto.FLOAT16)
            node.input[index] = are_half[name]
        made = [name for name in node.output if name in floats]
        for index, name in enumerate(node.output):
            if name in floats:
                node.output[index] = are_half[name] = f"{name}/half"
        nodes.append(node)
        for name in made:
            cast(are_half[name], name, TensorProto.FLOAT)
    _set_nodes(graph, nodes)
    _remove_unused(graph)


def drop_defaults(model: ModelProto) -> None:
    """Remove attributes with default values. Some engines reject newer attributes even if they change nothing."""
    for node in model.graph.node:
        if not node.domain:
            defaults = onnx.defs.get_schema(node.op_type, WRITTEN_OPSET).attributes
            usual = [item.name for item in node.attribute if item == defaults[item.name].default_value]
            _drop(node, usual)
    shapes = {value.name: value.type.tensor_type.shape.dim for value in model.graph.value_info}
    for node in model.graph.node:
        if node.op_type == "AveragePool" and node.input[0] in shapes:
            sizes = [dim.dim_value for dim in shapes[node.input[0]]][2:]
            given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
            if not any(given.get("pads", ())):
                _drop(node, ("count_include_pad",))
                pairs = zip(sizes, given.get("strides", (1, 1)), strict=False)
                if all(size and size % stride == 0 for size, stride in pairs):
                    _drop(node, ("ceil_mode",))


def name_batch(model: ModelProto) -> None:
    """Rename the dynamic axis of inputs and outputs to 'batch'."""
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = "batch"


def in_opset(model: ModelProto, opset: int) -> ModelProto:
    """Convert a model to the given opset version."""
    del model.graph.value_info[:]  # outdated after the rewriting
    if opset < WRITTEN_OPSET:
        for node in model.graph.node:
            if node.op_type in _HIDDEN_OPERATORS:
                _drop(node, ("num_outputs",))  # attribute of Split; by default, parts are equal
                node.domain = _HIDING_DOMAIN
        model.opset_import.append(helper.make_opsetid(_HIDING_DOMAIN, 1))
    if opset != WRITTEN_OPSET:
        model = version_converter.convert_version(model, opset)
    for node in model.graph.node:
        if node.domain == _HIDING_DOMAIN:
            node.domain = ""
    _keep_domains(model, lambda name: name != _HIDING_DOMAIN)
    model.ir_version = max(8, helper.find_min_ir_version_for(list(model.opset_import)))
    return model


def set_metadata(model: ModelProto, metadata: Mapping[str, str], description: str) -> None:
    """Set the metadata and the description of a model; remove details about the machine that exported it."""
    model.doc_string = description
    model.producer_name = metadata["made_by"]
    del model.metadata_props[:]
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    for node in model.graph.node:
        del node.metadata_props[:]  # source lines and paths
        node.doc_string = ""
    for value in (*model.graph.initializer, *model.graph.input, *model.graph.output):
        del value.metadata_props[:]


def serialize(model: ModelProto) -> bytes:
    """Check a model and return the bytes of its file. Raises onnx.checker.ValidationError for an invalid graph."""
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def _between_products(nodes: Iterable[NodeProto]) -> set[int]:
    """Return the indices of all matrix products and of the nodes between two products."""
    listed = list(enumerate(nodes))
    after, after_names = set[int](), set[str]()
    for number, node in listed:
        if node.op_type in _PRODUCTS or after_names.intersection(node.input):
            after.add(number)
            after_names.update(node.output)
    before, before_names = set[int](), set[str]()
    for number, node in reversed(listed):
        if node.op_type in _PRODUCTS or before_names.intersection(node.output):
            before.add(number)
            before_names.update(node.input)
    return after & before


def _renamed(node: NodeProto, names: Mapping[str, str], prefix: str) -> NodeProto:
    """Copy a node and rename its inputs and outputs: by `names`, or else with `prefix` in front."""
    copied = NodeProto()
    copied.CopyFrom(node)
    copied.name = prefix + node.name
    copied.input[:] = [names.get(name, prefix + name) for name in node.input]
    copied.output[:] = [names.get(name, prefix + name) for name in node.output]
    return copied


def _drop(node: NodeProto, names: Iterable[str]) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _set_nodes(graph: GraphProto, nodes: Iterable[NodeProto]) -> None:
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]  # before deleting the originals
    del graph.node[:]
    graph.node.extend(copies)


def _remove_unused(graph: GraphProto) -> None:
    """Remove unused casts and weights."""
    wanted = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    _set_nodes(graph, [node for node in graph.node if node.op_type != "Cast" or node.output[0] in wanted])
    kept = [weight for weight in graph.initializer if weight.name in wanted]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _keep_domains(model: ModelProto, keep: Callable[[str], bool]) -> None:
    kept = [item for item in model.opset_import if keep(item.domain)]
    del model.opset_import[:]
    model.opset_import.extend(kept)
