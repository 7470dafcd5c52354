"""What tests of exports make once: to trace a network, and to compile what comes of it, takes seconds."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import Tensor, nn
    from torch._ops import OperatorBase
    from torch.export import ExportedProgram

    from studio.exports.c.program import Program
    from studio.exports.onnx_graph import ExportGraph

_translations: dict[str, bytes] = {}
_exported: dict[str, ExportedProgram] = {}
_programs: dict[str, Program] = {}
_compiled: dict[bytes, bytes] = {}
_answers: dict[str, dict[str, Any]] = {}


@pytest.fixture(scope="module")
def made_once() -> Iterator[None]:
    """A graph that was traced before is not traced anew, a C file that was compiled not compiled, and a training script
    that was run not run: for this, a Python of its own imports torch.
    """
    import onnx
    from torch.export import decomp_utils, exported_program

    from studio.exports import c_file, pt2, script
    from studio.exports import onnx as onnx_export
    from studio.exports.c import completing, compose
    from studio.exports.c.tracing import trace
    from studio.exports.scripts.compose import weights_path

    translate, export, compiled, ask = onnx_export.translated, pt2.program_of, c_file.compiled, script.run_probe

    def translated_once(graph: ExportGraph) -> ModelProto:
        key, proto = _key_of_graph(graph), onnx.ModelProto()
        if key not in _translations:
            _translations[key] = translate(graph).SerializeToString()
        proto.ParseFromString(_translations[key])
        return proto

    def exported_once(graph: ExportGraph) -> ExportedProgram:
        key = _key_of_graph(graph)
        if key not in _exported:
            _exported[key] = export(graph)
        return _exported[key]

    def traced_once(
        network: nn.Module, inputs: Sequence[Tensor], names: Sequence[str], others: Sequence[Sequence[Tensor]] = ()
    ) -> Program:
        shapes = [[value.shape for value in values] for values in (inputs, *others)]
        key = _key(network, (network, shapes, names))
        if key not in _programs:
            _programs[key] = trace(network, inputs, names, others)
        return _programs[key]

    def compiled_once(folder: Path, name: str) -> Iterator[float]:
        key = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.[ch]")))
        if key not in _compiled:
            yield from compiled(folder, name)
            _compiled[key] = (folder / "check.exe").read_bytes()
        (folder / "check.exe").write_bytes(_compiled[key])
        (folder / "check.exe").chmod(0o700)

    def asked_once(path: Path, question: Mapping[str, Any]) -> Generator[float, None, dict[str, Any]]:
        _, _, code = path.read_text("utf-8").partition("\nTRAIN = ")  # what is before it names files
        key = hashlib.sha256(weights_path(path).read_bytes() + f"{code}{question}".encode()).hexdigest()
        if key not in _answers:
            _answers[key] = yield from ask(path, question)
        return _answers[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(onnx_export, "translated", translated_once)
        patched.setattr(pt2, "program_of", exported_once)
        for module in (compose, completing):
            patched.setattr(module, "trace", traced_once)
        patched.setattr(c_file, "compiled", compiled_once)
        patched.setattr(script, "run_probe", asked_once)
        for module in (decomp_utils, exported_program):
            patched.setattr(module, "_collect_all_valid_cia_ops", _composite_operators)
        yield


@functools.cache
def _composite_operators() -> set[OperatorBase]:
    """PyTorch's composite operators, which no test adds to: to list them takes as long as to trace a small network."""
    from torch._export.utils import _collect_all_valid_cia_ops

    return _collect_all_valid_cia_ops()


def _key_of_graph(graph: ExportGraph) -> str:
    module, shapes = graph.module, {name: value.shape for name, value in graph.inputs.items()}
    networks = [type(part).__qualname__ for part in module.modules()]
    return _key(module, (networks, getattr(module, "steps", 0), shapes, graph.output))


def _key(network: nn.Module, made_of: object) -> str:
    """What a graph is made of: its network, its weights, and the rest."""
    digest = hashlib.sha256(repr(made_of).encode())
    for name, weight in network.state_dict().items():
        digest.update(name.encode() + weight.contiguous().numpy().tobytes())
    return digest.hexdigest()
