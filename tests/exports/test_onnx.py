"""ONNX files, run by onnxruntime: what it gives is what the studio draws and says, whatever the batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, shape_inference

from studio.core.errors import ExportError
from studio.engine import catalog
from studio.engine.models.exporting import exportable_copy
from studio.engine.steps.batches import to_input, to_rgba
from studio.exports.base import PROBE, ExportableModel
from studio.exports.onnx import Onnx, OnnxConfig
from studio.recipes.capabilities import DrawsFromNoise
from tests.exports import unity
from tests.exports.tools import CLASS_NAMES, small_exportable, small_model, thinned

pytestmark = pytest.mark.usefixtures("made_once")

RECIPES = list(catalog.recipes())
STEP = OnnxConfig(graph="step")
SAMPLER = OnnxConfig(steps=2)


def written(model: ExportableModel, folder: Path, config: OnnxConfig) -> onnx.ModelProto:
    (path,) = Onnx().write(model, folder / "model.onnx", config)
    return onnx.load(path)


def run(proto: onnx.ModelProto, **inputs: torch.Tensor) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {name: value.numpy() for name, value in inputs.items()})
    return np.asarray(found)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


@pytest.fixture
def generator() -> ExportableModel:
    model = small_exportable("generator")
    thinned(model.network)
    return model


@pytest.mark.slow
def test_the_step_gives_the_velocities_of_the_network(generator: ExportableModel, tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(3)
    x = torch.randn(256, 4, 8, 8, generator=random)
    t, label = 0.95 * torch.rand(256, generator=random), torch.randint(-1, len(CLASS_NAMES), (256,), generator=random)
    known = torch.where(label < 0, len(CLASS_NAMES), label)
    live = generator.network(x, t, known).numpy()
    found = run(written(generator, tmp_path, STEP), x=x, t=t, label=label)
    assert np.abs(found - live).max() < 1e-4 * np.sqrt(np.square(live).mean())


@pytest.mark.slow
def test_the_sampler_draws_the_sprites_of_a_seed(generator: ExportableModel, tmp_path: Path) -> None:
    proto, recipe, network = written(generator, tmp_path, SAMPLER), catalog.recipe("generator"), generator.network
    for count, guidance, seed in ((1, 1.0, 0), (5, 2.5, 11)):
        labels = torch.arange(count) % (len(CLASS_NAMES) + 1) - 1
        *_, x = recipe.draw(network, labels, guidance, SAMPLER.steps, seed)
        assert isinstance(recipe, DrawsFromNoise)
        noise = recipe.noise(network, count, seed)
        found = run(proto, noise=noise, labels=labels, guidance=torch.tensor([guidance])) * 255
        drawn = to_rgba(x).numpy()
        assert found.shape == (count, 8, 8, 4) and np.ptp(drawn) > 100
        assert np.abs(found - drawn).max() <= 2


@pytest.mark.slow
def test_sets_are_completed_whatever_their_number(tmp_path: Path) -> None:
    model = small_exportable("sets")
    model.network.get_buffer("mirrored").fill_(1.0)
    proto, count = written(model, tmp_path, SAMPLER), len(model.cells)
    rng = torch.Generator().manual_seed(3)
    for number, variety in ((1, 0.0), (7, 1.0)):
        cells = torch.randint(0, 4, (number, count, 8, 8, 4), generator=rng, dtype=torch.uint8) * 85
        given = torch.rand(number, count, generator=rng) < 0.4
        chances = torch.rand(number, SAMPLER.steps, 2, count, 8, 8, generator=rng)
        found = run(proto, cells=cells, given=given, chances=chances, variety=torch.tensor([variety]))
        live = model.draw_missing(model.network, cells, given, chances, variety).numpy()
        assert found.dtype == np.uint8 and (found == live).mean() > 0.99
        assert np.array_equal(found[given.numpy()], cells[given].numpy())


@pytest.mark.slow
def test_a_classifier_and_a_regression_look_at_pixels(tmp_path: Path) -> None:
    pixels = torch.randint(0, 256, (3, 8, 8, 4), generator=torch.Generator().manual_seed(5), dtype=torch.uint8)
    for name in ("classifier", "regression"):
        model = small_exportable(name)
        live = model.predict(model.network, to_input(pixels.permute(0, 3, 1, 2)))
        found = run(written(model, tmp_path, OnnxConfig()), sprites=pixels.float() / 255)
        np.testing.assert_allclose(found, live.numpy(), rtol=1e-4, atol=1e-5)


def _assert_operators_of_a_game_engine(proto: onnx.ModelProto, opset: int = 15) -> None:
    assert [(item.domain, item.version) for item in proto.opset_import] == [("", opset)] and proto.ir_version == 8
    assert {node.op_type for node in proto.graph.node} <= unity.ONNX
    for node in proto.graph.node:
        assert not unity.ONNX_WITHOUT.get(node.op_type, set()) & _attributes(node).keys()
    assert not proto.functions


def test_a_game_engine_has_all_operators_of_a_step(generator: ExportableModel, tmp_path: Path) -> None:
    _assert_operators_of_a_game_engine(written(generator, tmp_path, STEP))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_game_engine_has_all_its_operators(name: str, tmp_path: Path) -> None:
    model = small_exportable(name)
    for config in [SAMPLER, STEP] if "flow" in model.capabilities else [SAMPLER]:
        _assert_operators_of_a_game_engine(written(model, tmp_path, config), 18 if name == "sets" else 15)
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_a_pool_of_uneven_size_keeps_what_makes_it_right(tmp_path: Path) -> None:
    model = exportable_copy(small_model(catalog.recipe("classifier"), size=9))
    (path,) = Onnx().write(model, tmp_path / "model.onnx", OnnxConfig())
    pools = [node for node in onnx.load(path).graph.node if node.op_type == "AveragePool"]
    assert [_attributes(node).get("ceil_mode") for node in pools] == [1, 1]
    found = Onnx().read_back([path], model, OnnxConfig())
    torch.testing.assert_close(found, Onnx().live(model, OnnxConfig()))


@pytest.mark.parametrize(
    ("config", "inputs", "output"),
    [
        (STEP, {"x": ["batch", 4, 8, 8], "t": ["batch"], "label": ["batch"]}, {"velocity": ["batch", 4, 8, 8]}),
        pytest.param(
            SAMPLER,
            {"noise": ["batch", 4, 8, 8], "labels": ["batch"], "guidance": [1]},
            {"sprites": ["batch", 8, 8, 4]},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["step", "sampler"],
)
def test_onnx_metadata_describes_the_model(
    config: OnnxConfig,
    inputs: Mapping[str, list[object]],
    output: Mapping[str, list[object]],
    generator: ExportableModel,
    tmp_path: Path,
) -> None:
    proto = written(generator, tmp_path, config)
    said = {item.key: item.value for item in proto.metadata_props}
    assert said["title"] == "2026 trial" and said["recipe"] == "generator" and said["step"] == "123"
    assert json.loads(said["class_names"]) == list(CLASS_NAMES) and json.loads(said["palette"]) == ["#000000"]
    assert json.loads(said["started_from"]) == [] and json.loads(said["export"]) == {**config.to_json(), "opset": 15}
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*proto.graph.input, *proto.graph.output)
    }
    assert shapes == {**inputs, **output}
    assert str(tmp_path) not in str(proto) and "site-packages" not in str(proto) and "studio/" not in str(proto)


@pytest.mark.slow
def test_a_network_is_in_the_file_once(generator: ExportableModel, tmp_path: Path) -> None:
    weights = sum(weight.numel() for weight in generator.weights().values())
    held = sum(numpy_helper.to_array(weight).size for weight in written(generator, tmp_path, SAMPLER).graph.initializer)
    assert held < 1.05 * weights


def test_half_precision_halves_the_weights_and_leaves_times_as_they_are(
    generator: ExportableModel, tmp_path: Path
) -> None:
    form, half, full = Onnx(), STEP.replace(precision="fp16"), STEP
    differences = {}
    for config in (half, full):
        paths = form.write(generator, tmp_path / f"{config.precision}.onnx", config)
        live = form.live(generator, config)
        differences[config.precision] = float(
            (form.read_back(paths, generator, config) - live).abs().max() / live.abs().max()
        )
    assert 1e-5 < differences["fp16"] < 5e-3 and differences["fp32"] < 1e-5
    proto = shape_inference.infer_shapes(onnx.load(tmp_path / "fp16.onnx"))
    sizes = [(tmp_path / f"{precision}.onnx").stat().st_size for precision in ("fp16", "fp32")]
    assert sizes[0] < 0.65 * sizes[1]
    kinds = {value.name: value.type.tensor_type.elem_type for value in proto.graph.value_info}
    for kind, expected in (("Sin", TensorProto.FLOAT), ("Cos", TensorProto.FLOAT), ("Conv", TensorProto.FLOAT16)):
        (found,) = {kinds[node.output[0]] for node in proto.graph.node if node.op_type == kind}
        assert found == expected
    assert {value.type.tensor_type.elem_type for value in proto.graph.output} == {TensorProto.FLOAT}


@pytest.mark.slow
@pytest.mark.parametrize("opset", range(15, 26))
def test_every_opset_gives_equal_outputs(opset: int, tmp_path: Path) -> None:
    form = Onnx()
    for name in ("generator", "classifier", "regression"):
        model, config = small_exportable(name), STEP.replace(opset=opset)
        paths = form.write(model, tmp_path / f"{name}.onnx", config)
        assert onnx.load(paths[0]).opset_import[0].version == opset
        torch.testing.assert_close(form.read_back(paths, model, config), form.live(model, config), rtol=1e-4, atol=1e-4)


def test_the_step_can_be_followed_by_the_lines_that_are_shown(
    generator: ExportableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = Onnx()
    paths = form.write(generator, tmp_path / "model.onnx", STEP)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    exec(form.snippets(paths, generator, STEP)["Python"], space)
    assert space["result"].shape == (16, 8, 8, 4) and space["result"].dtype == np.uint8


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Onnx().missing() == ""
    monkeypatch.setattr("studio.exports.onnx.find_spec", lambda name: None if name == "onnxruntime" else name)
    assert Onnx().missing() == "Install onnxruntime: pip install onnxruntime."


def test_a_recipe_without_steps_has_no_step(tmp_path: Path) -> None:
    vae = catalog.recipe("vae")
    assert Onnx().problem(vae) == "" and set(Onnx().unused(vae)) == {"graph"}
    with pytest.raises(ExportError, match="without steps"):
        Onnx().write(small_exportable("vae"), tmp_path / "model.onnx", STEP)
    assert list(tmp_path.iterdir()) == []
    assert set(Onnx().unused(catalog.recipe("classifier"))) == {"graph", "steps"}


def test_recipes_without_noise_input_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(catalog.recipe("vae")), "capabilities", frozenset())
    assert "Toy VAE can't draw from given noise" in Onnx().problem(catalog.recipe("vae"))


def test_the_probe_is_what_pictures_hold() -> None:
    pixels = PROBE.pixels(8)
    assert pixels.shape == (PROBE.count, 8, 8, 4)
    assert 0 <= float(pixels.min()) < 0.1 and 0.9 < float(pixels.max()) <= 1
