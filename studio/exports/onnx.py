"""Export a model as ONNX for onnxruntime, browsers and game engines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from studio.core.config import Config, setting
from studio.core.errors import ExportError
from studio.core.files import write_atomic
from studio.exports import onnx_graph
from studio.exports.base import ALL, LARGEST_DIFFERENCE, ExportableModel, ModelExport, RecipeTraits, check_finite
from studio.exports.onnx_graph import ExportGraph, SamplerModule, SetsModule, graph_of, network_of
from studio.exports.onnx_snippets import snippets_of

if TYPE_CHECKING:
    from onnx import ModelProto

_NEEDS = ("onnx", "onnxscript", "onnxruntime")
_DOMAIN = "studio"  # operator domain of the placeholder node for the network while the sampler is traced
_PIXEL_DIFFERENCE = 2 / 255  # rounding errors add up over the steps of a sampler
_HALF_DIFFERENCE = 0.1
_SETS_OPSET = 18


@dataclass(frozen=True)
class OnnxConfig(Config):
    """Settings of the ONNX export."""

    graph: str = setting(
        "sampler",
        "Graph of a generator: sampler turns noise into sprites in one call; step is the network alone, for your own "
        "sampler.",
        choices=("sampler", "step"),
    )
    steps: int = setting(
        10, "Number of sampler steps, or of rounds that complete a set; fixed in the file.", low=1, high=100
    )
    precision: str = setting(
        "fp32",
        "fp16 halves the file size and is less exact. The export measures the difference.",
        choices=("fp32", "fp16"),
    )
    opset: int = setting(
        15,
        "ONNX operator set version. More programs read older versions. Models that complete sets need 18.",
        low=15,
        high=25,
        advanced=True,
    )


class Onnx(ModelExport[OnnxConfig]):
    name = "onnx"
    title = "ONNX"
    suffix = ".onnx"
    order = 3
    help = "One file that draws sprites or predicts classes and numbers without PyTorch."
    opened_by = "onnxruntime (Python, C, C#, Java, JavaScript), Unity's Inference Engine"
    holds = ALL
    takes_attributes = True
    Config = OnnxConfig

    def missing(self) -> str:
        absent = [name for name in _NEEDS if find_spec(name) is None]
        return f"Install {', '.join(absent)}: pip install {' '.join(absent)}." if absent else ""

    def problem(self, recipe: RecipeTraits) -> str:
        return super().problem(recipe) or onnx_graph.graph_problem(recipe)

    def unused(self, recipe: RecipeTraits) -> Collection[str]:
        return onnx_graph.unused_settings(recipe)

    def write(self, model: ExportableModel, target: Path, config: OnnxConfig) -> list[Path]:
        check_finite(model.weights(), target)
        write_atomic(target, _encoded(model, config))
        return [target]

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: OnnxConfig) -> Tensor:
        graph = _graph(model, config)
        return _mask_transparent(_run(paths[0], graph, _metadata(model, config)), graph)

    def live(self, model: ExportableModel, config: OnnxConfig) -> Tensor:
        graph = _graph(model, config)
        return _mask_transparent(graph.live(), graph)

    def largest_difference(self, model: ExportableModel, config: OnnxConfig) -> float:
        if config.precision == "fp16":
            return _HALF_DIFFERENCE
        return _PIXEL_DIFFERENCE if model.makes == "sprites" and config.graph == "sampler" else LARGEST_DIFFERENCE

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: OnnxConfig) -> Mapping[str, str]:
        return snippets_of(model, paths[0].name, _graph(model, config).output, config.steps)


def _traced(model: ExportableModel, config: OnnxConfig) -> ModelProto:
    """Convert a model to an ONNX graph of opset `WRITTEN_OPSET`.

    Traces the network of a sampler once and inserts its nodes into each step: tracing it every time takes minutes.
    """
    from studio.exports.rewriting import onnx_models

    graph = _graph(model, config)
    is_solver = isinstance(graph.module, SetsModule) or (
        isinstance(graph.module, SamplerModule) and "flow" in model.capabilities
    )
    network = translated(network_of(model, config.steps) if is_solver else graph)
    onnx_models.drop_defaults(network)  # here, because inlined nodes have no shapes
    if config.precision == "fp16":
        onnx_models.to_half(network)
    proto = network
    if is_solver:
        placeholder = _SetNetworkPlaceholder if isinstance(graph.module, SetsModule) else _NetworkPlaceholder
        around = type(graph.module)(model, config.steps, placeholder(model.network))
        proto = translated(ExportGraph(around, graph.inputs, graph.output, graph.attributes))
        onnx_models.inline(proto, network.graph, _DOMAIN)
    onnx_models.drop_defaults(proto)
    onnx_models.name_batch(proto)
    return proto


class _NetworkPlaceholder:
    """Replaces the network while a sampler is traced: each call becomes a single node of the ONNX graph."""

    def __init__(self, network: nn.Module) -> None:
        self.classes = network.classes

    def __call__(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        return _placeholder_node((x, t, label), x.shape)


class _SetNetworkPlaceholder:
    """Replaces the network of a model of sets while tracing the rounds."""

    def __init__(self, network: nn.Module) -> None:
        self.palettes, self.partners, self.mirrored = map(network.get_buffer, ("palettes", "partners", "mirrored"))

    def __call__(self, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
        batch, cells, height, width = index.shape
        return _placeholder_node((index, palette, known), (batch, cells, palette.shape[1], height, width))


def _placeholder_node(inputs: tuple[Tensor, ...], shape: Sequence[int | torch.SymInt]) -> Tensor:
    node = torch.onnx.ops.symbolic(f"{_DOMAIN}::Look", inputs, dtype=torch.float32, shape=shape, version=1)
    assert isinstance(node, Tensor)
    return node


def _encoded(model: ExportableModel, config: OnnxConfig) -> bytes:
    """Convert a model to the contents of an ONNX file. Raises ExportError if the opset can't express the graph."""
    from onnx import checker, shape_inference

    from studio.exports.rewriting import onnx_models

    if config.graph == "step" and "flow" not in model.capabilities and model.makes == "sprites":
        title = f"A model of the recipe {model.recipe} draws in one pass, without steps."
        raise ExportError(title, "Choose the sampler graph.")
    try:
        proto = onnx_models.in_opset(_traced(model, config), _opset(model, config))
        onnx_models.set_metadata(proto, _metadata(model, config), _graph(model, config).describe())
        return onnx_models.serialize(proto)
    except (checker.ValidationError, shape_inference.InferenceError, RuntimeError) as error:
        hint = f"{str(error).splitlines()[0]} Try opset {onnx_models.WRITTEN_OPSET}."
        raise ExportError(f"This model can't be written with opset {config.opset}.", hint) from error


def _graph(model: ExportableModel, config: OnnxConfig) -> ExportGraph:
    return graph_of(model, "step" if config.graph == "step" and model.makes != "sets" else "sampler", config.steps)


def translated(graph: ExportGraph) -> ModelProto:
    """Convert a module with example inputs to ONNX, opset `WRITTEN_OPSET`."""
    from studio.exports.rewriting.onnx_models import WRITTEN_OPSET

    program = torch.onnx.export(
        graph.traced(), (), input_names=list(graph.inputs), output_names=[graph.output], opset_version=WRITTEN_OPSET,
        dynamo=True, external_data=False, verbose=False,
    )  # fmt: skip
    assert program is not None
    return program.model_proto


def _metadata(model: ExportableModel, config: OnnxConfig) -> dict[str, str]:
    return {
        **model.about(),
        "palette": json.dumps(["#{:02x}{:02x}{:02x}".format(*colour) for colour in model.palette.tolist()]),
        "export": json.dumps({**config.to_json(), "opset": _opset(model, config)}),
    }


def _opset(model: ExportableModel, config: OnnxConfig) -> int:
    """Return the operator set version of the file. Older versions can't add up scattered values, as sets need."""
    return max(config.opset, _SETS_OPSET) if model.makes == "sets" else config.opset


def _run(path: Path, graph: ExportGraph, metadata: Mapping[str, str]) -> Tensor:
    """Run an ONNX file on the graph's example inputs; return the output. Raises ExportError, also for other data."""
    import onnxruntime as ort
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    faults = (
        state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf, state.ModelLoadCanceled,
        state.NoModel, state.NotImplemented, state.RuntimeException, OSError, RuntimeError, UnicodeDecodeError,
    )  # fmt: skip
    options = ort.SessionOptions()
    options.log_severity_level = 4  # no log lines, since errors raise exceptions
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session = ort.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        if session.get_modelmeta().custom_metadata_map != dict(metadata):
            raise ExportError(f"{path.name} contains another model.", "Its metadata differ. Export again.")
        (found,) = session.run([graph.output], {name: value.numpy() for name, value in graph.inputs.items()})
    except faults as error:
        raise ExportError(f"{path.name} can't be read by onnxruntime.", str(error).splitlines()[0]) from error
    return onnx_graph.as_floats(torch.from_numpy(found))


def _mask_transparent(output: Tensor, graph: ExportGraph) -> Tensor:
    """Clear nearly transparent pixels of generated sprites, whose colours are arbitrary, before a comparison."""
    if graph.output != "sprites":
        return output
    alpha = output[..., 3:]
    return torch.cat([output[..., :3] * alpha, alpha], -1) * ((alpha - 0.02) / 0.01).clamp(0, 1)
