"""Exported programs: operators that engines name, batches of any size, and nothing pickled."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.engine import catalog
from studio.exports.onnx_graph import graph_of
from studio.exports.pt2 import ExportedProgram, program_of
from tests.exports import unity
from tests.exports.tools import CLASS_NAMES, small_exportable

pytestmark = pytest.mark.usefixtures("made_once")


@pytest.mark.slow
def test_the_step_takes_batches_of_any_size(tmp_path: Path) -> None:
    model, random = small_exportable("generator"), torch.Generator().manual_seed(3)
    paths = ExportedProgram().write(model, tmp_path / "model.pt2", Config())
    module = torch.export.load(paths[0]).module()
    for count in (1, 3, 256):
        x, t = torch.randn(count, 4, 8, 8, generator=random), 0.95 * torch.rand(count, generator=random)
        label = torch.arange(count) % len(CLASS_NAMES)
        live = model.network(x, t, label)
        assert (module(x, t, label) - live).abs().max() < 1e-4 * live.square().mean().sqrt()


@pytest.mark.slow
@pytest.mark.parametrize("name", catalog.recipes())
def test_a_game_engine_has_all_its_operators(name: str, tmp_path: Path) -> None:
    model = small_exportable(name)
    program = program_of(graph_of(model, "step" if "flow" in model.capabilities else "sampler", 1))
    operators = {
        str(node.target).removesuffix(".default") for node in program.graph.nodes if node.op == "call_function"
    }
    assert {name for name in operators if name.startswith("aten.")} <= unity.CORE_ATEN
    # What is left takes a result out of several, or computes lengths.
    assert {name for name in operators if not name.startswith("aten.")} <= {
        "<built-in function getitem>",
        "<built-in function mul>",
    }


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    model, form = small_exportable("vae"), ExportedProgram()
    (path,) = form.write(model, tmp_path / "model.pt2", Config())
    harmful = tmp_path / "opened"

    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (Path(harmful),)  # type: ignore[return-value]

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert not any(pickle.PROTO + b"\x02" in content for name, content in members.items() if "weight_" not in name)
    (inputs,) = (name for name in members if name.endswith(".pt"))
    members[inputs] = pickle.dumps(Harm())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(packed.getvalue())
    with pytest.raises(ExportError, match="pickled"):
        form.read_back([path], model, Config())
    assert not harmful.exists()
