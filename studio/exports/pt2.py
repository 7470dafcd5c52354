"""Export a model as a PyTorch program (.pt2): operators and weights that run without the model's source code."""

from __future__ import annotations

import io
import json
import textwrap
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.core.files import write_atomic
from studio.exports import onnx_graph
from studio.exports.base import ALL, ExportableModel, ModelExport, RecipeTraits, check_finite
from studio.exports.onnx_graph import ExportGraph, graph_of
from studio.exports.source_code import fill_in

_ABOUT = "about.json"
_TENSORS = ("weight_", "tensor_")  # prefixes of files with raw numbers; other files may hold pickles
_ROUNDS = 8  # rounds for a model of sets; half the studio's number, because tracing unrolls the rounds
_STEPS = 1  # recipes without a flow draw in a single pass


class ExportedProgram(ModelExport[Config]):
    name = "pt2"
    title = "PyTorch program (.pt2)"
    suffix = ".pt2"
    order = 4
    help = "Operators and weights for PyTorch, without the model's source code. A generator is exported as one step."
    opened_by = "PyTorch (torch.export.load), Unity Sentis 2.5 and later"
    holds = ALL
    takes_attributes = True

    def problem(self, recipe: RecipeTraits) -> str:
        return super().problem(recipe) or onnx_graph.graph_problem(recipe)

    def write(self, model: ExportableModel, target: Path, config: Config) -> list[Path]:
        check_finite(model.weights(), target)
        packed = io.BytesIO()
        torch.export.save(program_of(_graph(model)), packed, extra_files={_ABOUT: json.dumps(model.about())})
        write_atomic(target, packed.getvalue())
        return [target]

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Tensor:
        graph = _graph(model)
        try:
            data = paths[0].read_bytes()
            _check(data, paths[0], model)
            program = torch.export.load(io.BytesIO(data))
            with torch.no_grad():
                return onnx_graph.as_floats(torch.as_tensor(program.module()(*graph.inputs.values())))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, AssertionError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ExportError(f"{paths[0].name} can't be loaded.", reason) from error

    def live(self, model: ExportableModel, config: Config) -> Tensor:
        return _graph(model).live()

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Mapping[str, str]:
        head = f'import torch\n\nmodule = torch.export.load("{paths[0].name}").module()\n'
        noise = ", ".join(map(str, model.noise.shape[1:])) if model.noise is not None else "<NOISE>"
        values = {"SIZE": model.size, "NOISE": noise, "CLASSES": max(1, len(model.class_names))}
        values |= {"CELLS": len(model.cells), "CELL_NAMES": json.dumps(model.cells), "ROUNDS": _ROUNDS}
        values["OF_VALUES"] = "  # of the classes, then of each attribute's values" * bool(model.attributes)
        values["ATTRIBUTES"] = "".join(", torch.full((16,), -1)" for _ in model.attributes)  # -1: any value
        return {"Python": head + textwrap.dedent(fill_in(_USES[_graph(model).output], values, "<>"))}


def program_of(graph: ExportGraph) -> torch.export.ExportedProgram:
    """Trace a graph in Core ATen operators."""
    program: torch.export.ExportedProgram = graph.traced().run_decompositions()
    program.example_inputs = None  # otherwise pickled into the file
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:  # unknown to engines
            program.graph.erase_node(node)
    program.graph_module.recompile()
    return program


def _graph(model: ExportableModel) -> ExportGraph:
    steps = _ROUNDS if model.makes == "sets" else _STEPS
    return graph_of(model, "step" if "flow" in model.capabilities else "sampler", steps)


def _check(data: bytes, path: Path, model: ExportableModel) -> None:
    """Raise ExportError for a damaged file, another model, or pickled objects, which could run code."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            damaged = archive.testzip()
            if damaged:
                raise ExportError(f"{path.name} is damaged.", f"The checksum of {damaged} in it is wrong.")
            names = [name.partition("/")[2] for name in archive.namelist()]
            root = archive.namelist()[0].partition("/")[0]
            about = json.loads(archive.read(f"{root}/extra/{_ABOUT}"))
            configs = [name for name in names if name.endswith("_config.json")]
            tensors = [json.loads(archive.read(f"{root}/{name}"))["config"] for name in configs]
            pickled = any(archive.getinfo(f"{root}/{name}").file_size for name in names if name.endswith(".pt"))
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, NotImplementedError, RuntimeError, EOFError) as error:
        raise ExportError(f"{path.name} is damaged.", str(error)) from error
    if about != model.about():
        raise ExportError(f"{path.name} contains another model.", "Export again.")
    plain = (
        tensor["use_pickle"] is False and tensor["path_name"].startswith(_TENSORS)
        for config in tensors for tensor in config.values()
    )  # fmt: skip
    if pickled or not all(plain):
        raise ExportError(f"{path.name} contains pickled objects.", "Loading them could run code. Export again.")


_LOOK = """
    # sprites: uint8 [N, <SIZE>, <SIZE>, 4], RGBA
    with torch.no_grad():
        result = module(sprites.float() / 255)<OF_VALUES>
"""
_USES = {
    "velocity": """
    x = torch.randn(16, 4, <SIZE>, <SIZE>)
    labels = torch.arange(16) % <CLASSES>  # -1: any class
    with torch.no_grad():
        for step in range(20):  # Euler's method, without guidance
            x += module(x, torch.full((16,), step / 20), labels<ATTRIBUTES>) / 20
    result = x.clamp(-1, 1)  # [16, 4, <SIZE>, <SIZE>], RGBA, colour premultiplied by alpha
""",
    "sprites": """
    labels = torch.arange(16) % <CLASSES>  # -1: any class
    with torch.no_grad():
        sprites = module(torch.randn(16, <NOISE>), labels, torch.tensor([1.5])<ATTRIBUTES>)
    result = (sprites * 255).round().byte()  # [16, <SIZE>, <SIZE>, 4], RGBA
""",
    "drawn": """
    # cells: uint8 [N, <CELLS>, <SIZE>, <SIZE>, 4], RGBA; given: bool [N, <CELLS>]; the cells are
    # <CELL_NAMES>
    chances = torch.rand(len(cells), <ROUNDS>, 2, <CELLS>, <SIZE>, <SIZE>)
    with torch.no_grad():
        result = module(cells, given, chances, torch.tensor([0.5]))  # all cells, as `cells`; 0.5: variety
""",
    "probabilities": _LOOK,
    "numbers": _LOOK,
}
