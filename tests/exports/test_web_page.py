"""A model as a web page: the engine runs what the model is, the page says it, and a browser shows it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import io
import json
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
import wasmtime
from numpy.typing import NDArray
from PIL import Image

from studio.core import paths
from studio.core.errors import ExportError
from studio.data.colour.pixel_art import to_pixel_art
from studio.engine.models.exporting import exportable_copy
from studio.engine.models.model import TrainedModel
from studio.engine.steps.batches import to_rgba
from studio.exports import web_page
from studio.exports.base import PROBE, ExportableModel
from studio.exports.c.packing import operations, pack_model
from studio.exports.c.source import read
from studio.exports.c.verification import CConfig
from studio.exports.onnx_graph import PredictorModule
from studio.exports.web import wasm_engine
from studio.exports.web.wasm_engine import WasmEngine
from studio.exports.web_page import WebPage, compose
from tests.exports.browser import acted
from tests.exports.c.tools import SIZE, drawing_model
from tests.exports.tools import small_exportable, small_model_with_attributes, thinned

FORM, ENGINE = WebPage(), paths.assets() / "web/engine.wasm"
APART = 1_000_003

pytestmark = pytest.mark.usefixtures("made_once")


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return drawing_model()


@pytest.fixture(scope="module")
def exportable(model: TrainedModel) -> ExportableModel:
    return exportable_copy(model)


@pytest.fixture(scope="module")
def packed(exportable: ExportableModel, made_once: None) -> bytes:
    return pack_model(exportable, "fp32")


def test_the_engine_is_of_these_sources() -> None:
    maker = runpy.run_path(str(paths.assets() / "web/make_engine.py"))
    assert (paths.assets() / "web/engine.sha256").read_text() == maker["sums"](), "run assets/web/make_engine.py"


def test_the_engine_has_every_function_of_the_c_file() -> None:
    """What an operator is lowered to, it can call."""
    defined = set(
        re.findall(r"^(?:static void |BINARY\(|UNARY\()(aten_\w+)", read("operators.c", "model"), re.MULTILINE)
    )
    assert len(defined) > 25 and operations().keys() == defined


@pytest.mark.parametrize(("guidance", "steps"), [(1.0, 1), (1.5, 6)])
def test_a_seed_gives_the_studios_own_sprites(model: TrainedModel, packed: bytes, guidance: float, steps: int) -> None:
    labels, engine = (0, 1, 2, -1), WasmEngine(ENGINE.read_bytes(), packed)
    with torch.no_grad():
        *_, expected = model.recipe.draw(model.network, torch.tensor(labels), guidance, steps, seed=5)
    pixels = to_pixel_art(to_rgba(expected).numpy(), np.array(labels), model.style)
    for place, label in enumerate(labels):
        found = engine.draw(label, 5 + APART * place, guidance, steps)
        assert np.abs(found - expected[place].numpy()).max() < 2 / 255
        assert (engine.finish(label) == pixels[place]).all(-1).mean() >= 0.98
    with pytest.raises(ExportError, match="does not know this class"):
        engine.draw(3, 0, 1.0, 1)


@pytest.mark.parametrize("recipe", ["classifier", pytest.param("regression", marks=pytest.mark.slow)])
def test_predictions_equal_the_model(recipe: str) -> None:
    model = small_exportable(recipe)
    engine = WasmEngine(ENGINE.read_bytes(), pack_model(model, "fp32"))
    pixels = torch.rand(3, 8, 8, 4, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = PredictorModule(model)(pixels).numpy()
    found = np.stack([engine.predict(one) for one in pixels.numpy()])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_the_page_finds_its_numbers_where_the_engine_has_them() -> None:
    """Before a browser is at hand: its script asks for nothing that the engine does not have, and gets what is true."""
    script = (Path(web_page.__file__).parent / "web/engine.js").read_text("utf-8")
    exports = {export.name for export in wasmtime.Module(wasmtime.Engine(), ENGINE.read_bytes()).exports}
    check = Path(wasm_engine.__file__).read_text("utf-8")  # reads more numbers than a page
    asked = set(re.findall(r"engine\.(engine_\w+)", script))
    assert asked <= exports == asked | {*re.findall(r'"(engine_\w+)"', check), "memory"}
    assert "DataView" not in script  # what a file begins with, the engine alone knows
    model = small_exportable("classifier")
    engine = WasmEngine(ENGINE.read_bytes(), pack_model(model, "fp32"))
    assert (engine.size, engine.outputs) == (8, len(model.class_names))


def test_int8_is_a_third_as_large(exportable: ExportableModel, packed: bytes) -> None:
    assert len(pack_model(exportable, "int8")) < 0.45 * len(packed)


def test_names_stay_texts(exportable: ExportableModel, packed: bytes) -> None:
    wild = dataclasses.replace(
        exportable, title='</title><script>x "ü', class_names=("</script>", "<b>", "@MODEL@ & 剣")
    )
    page = compose(wild, packed)
    assert page.count("<script") == 5 and "<b>" not in page
    about = re.search(r'<script id="about" type="application/json">(.*?)</script>', page)
    assert about is not None and json.loads(about[1])["names"] == list(wild.class_names)


def test_missing_wasmtime_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FORM.missing() == ""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install wasmtime" in FORM.missing()


def test_another_engine_is_refused(packed: bytes) -> None:
    with pytest.raises(ExportError, match="engine can't be run"):
        WasmEngine(ENGINE.read_bytes()[:-9], packed)


def test_the_engine_calls_python_for_no_number_of_a_layer(exportable: ExportableModel, packed: bytes) -> None:
    """A call of Python costs 8 microseconds: 260,000 calls made each step of a usual network take two seconds."""
    engine, calls = WasmEngine(ENGINE.read_bytes(), packed), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_name == "trampoline"

    sys.setprofile(count)
    try:
        engine.draw(0, 7, 1.0, 1)
    finally:
        sys.setprofile(None)
    assert 0 < calls < 10 * SIZE**2  # for the noise of a sprite and the time of the step


@pytest.mark.parametrize("name", ["exp", "log"])
def test_functions_equal_libm(name: str) -> None:
    points = np.array([-np.inf, -110, -90, -1, -1e-8, 0, 1e-8, 0.3, 1, 88, 89, 1e6, np.inf, np.nan], np.float32)
    points = np.concatenate([points, np.linspace(-100, 88, 3001, dtype=np.float32)])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(points.astype(np.float64)).astype(np.float32)
    store = wasmtime.Store()
    functions = wasmtime.Instance(store, wasmtime.Module(store.engine, wasm_engine.FUNCTIONS.read_text("utf-8")), [])
    function: Any = functions.exports(store)[f"{name}f"]
    found = np.array([function(store, float(point)) for point in points], np.float32)
    np.testing.assert_array_equal(found, expected)


def test_a_check_tells_how_far_it_is(exportable: ExportableModel, tmp_path: Path) -> None:
    paths = FORM.write(exportable, tmp_path / "page.html", CConfig())
    shares = list(FORM.read_back(paths, exportable, CConfig()))
    assert shares == sorted(shares) and set(shares) >= {0, 0.25, 0.5, 0.75}


def test_closing_the_check_stops_the_engine(packed: bytes) -> None:
    engine = WasmEngine(ENGINE.read_bytes(), packed)
    running = engine.run_in_thread(lambda: engine.draw(0, 0, 2.0, 1_000_000), 0.0)  # which takes hours
    assert next(running) == 0
    running.close()
    with pytest.raises(wasmtime.Trap):
        engine.draw(0, 0, 1.0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["fp32", "int8"])
def test_a_browser_draws_at_a_click(exportable: ExportableModel, tmp_path: Path, weights: str) -> None:
    page = FORM.write(exportable, tmp_path / "my page.html", CConfig(weights=weights))[0]
    _, _, _, tiles, sums, _ = acted(
        page,
        [
            ("until", "ready"), ("click", "button[name=go]"), ("until", "done"),
            ("script", "document.querySelectorAll('#sprites canvas').length"),
            ("script", "drawn.map((one) => Array.from(one.rgba))"),
            ("shot", str(tmp_path / "page.png")),
        ],
    )  # fmt: skip
    assert tiles == 16
    engine = WasmEngine(ENGINE.read_bytes(), pack_model(exportable, weights))
    for place, rgba in enumerate(sums):
        engine.draw(place % 3, APART * place, 1.5, 10)
        found = np.array(rgba, np.uint8).reshape(SIZE, SIZE, 4)
        assert (found == engine.finish(place % 3)).all(-1).mean() >= 0.98  # other functions of libm
    assert len(Image.open(tmp_path / "page.png").convert("RGB").getcolors(1 << 20) or ()) > 20


@pytest.mark.slow
def test_a_browser_has_a_box_for_each_attribute(tmp_path: Path) -> None:
    model = small_model_with_attributes("generator")
    thinned(model.network)
    exportable = exportable_copy(model)
    page = FORM.write(exportable, tmp_path / "page.html", CConfig())[0]
    _, boxes, _, _, _, drawn, caption = acted(
        page,
        [
            ("until", "ready"),
            ("script", "boxes.map(([name, box]) => [name, [...box.options].map((option) => option.text)])"),
            ("script", "boxes[0][1].value = 'ice'"), ("click", "button[name=go]"), ("until", "done"),
            ("script", "drawn.map((one) => [one.label, Array.from(one.rgba)])"),
            ("script", "list.querySelector('li').innerText"),
        ],
    )  # fmt: skip
    assert boxes == [["element", ["Any", "fire", "ice"]], ["x", ["Any", "small"]]] and caption.strip() == "ice"
    engine = WasmEngine(ENGINE.read_bytes(), pack_model(exportable, "fp32"))
    for place, (label, rgba) in enumerate(drawn):
        assert label == -1  # the values decide alone
        engine.draw(-1, APART * place, 1.5, 10, (False, True, False))
        assert (np.array(rgba, np.uint8).reshape(8, 8, 4) == engine.finish(-1)).all(-1).mean() >= 0.98


@pytest.mark.slow
def test_the_snippet_draws_in_a_page_of_ones_own(exportable: ExportableModel, tmp_path: Path) -> None:
    page = FORM.write(exportable, tmp_path / "page.html", CConfig())[0]
    lines = FORM.snippets([page], exportable, CConfig())["JavaScript"]
    taken = re.findall(r'<script id="(?:engine|model|engine-code)".*?</script>', page.read_text(), re.DOTALL)
    done = 'document.body.dataset.state = "done"'
    own = tmp_path / "own.html"
    own.write_text(f'<body><canvas></canvas>{"".join(taken)}<script type="module">{lines}{done}</script>')
    read = "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 12, 12).data"
    _, rgba = acted(own, [("until", "done"), ("script", f"Array.from({read})")])
    engine = WasmEngine(ENGINE.read_bytes(), pack_model(exportable, "fp32"))
    engine.draw(0, 1, 1.5, 10)
    shown, expected = np.array(rgba, np.uint8).reshape(SIZE, SIZE, 4), engine.finish(0)
    opaque = expected[..., 3] == 255  # a canvas rounds colours that are half transparent
    assert opaque.any() and (shown == expected)[opaque].all(-1).mean() >= 0.98


@pytest.mark.slow
def test_a_page_says_when_a_browser_can_not_run_it(exportable: ExportableModel, tmp_path: Path) -> None:
    page = FORM.write(exportable, tmp_path / "page.html", CConfig())[0]
    text = page.read_text()
    page.write_text(text.replace("\nasync function openModel", "\ndelete self.WebAssembly;\nasync function openModel"))
    *_, said = acted(page, [("until", "failed"), ("script", "statusLine.textContent")])
    assert "can't run the model" in said


@pytest.mark.slow
def test_a_browser_names_a_sprite(tmp_path: Path) -> None:
    model, picture = small_exportable("classifier"), io.BytesIO()
    rgba = np.random.default_rng(0).integers(0, 256, (8, 8, 4), np.uint8)
    rgba[..., 3] = 255
    Image.fromarray(rgba).save(picture, "PNG")
    page = FORM.write(model, tmp_path / "page.html", CConfig())[0]
    bytes_of = f"Uint8Array.from({list(picture.getvalue())})"
    *_, rows = acted(
        page,
        [
            ("until", "ready"), ("script", f"openFiles([new File([{bytes_of}], 'sprite.png', {{type: 'image/png'}})])"),
            ("until", "done"),
            ("script", "Array.from(rows.rows, (row) => Array.from(row.cells, (cell) => cell.innerText))"),
        ],
    )  # fmt: skip
    with torch.no_grad():
        expected = PredictorModule(model)(torch.from_numpy(rgba[None] / np.float32(255)))[0].numpy()
    assert [name for name, _ in rows] == [model.class_names[place] for place in np.argsort(-expected)]
    for name, share in rows:
        assert abs(float(share.removesuffix(" %")) / 100 - expected[model.class_names.index(name)]) < 0.001


@pytest.mark.slow
def test_a_browser_draws_the_rest_of_a_set(tmp_path: Path) -> None:
    model = small_exportable("sets")
    cells, given = (values[0].numpy() for values in PROBE.sets(len(model.cells), 8))
    cells = cells * (cells[..., 3:] > 0)  # a canvas forgets the colours of transparent pixels
    page = FORM.write(model, tmp_path / "page.html", CConfig())[0]

    def opened(name: str, rgba: NDArray[np.uint8], cell: int = 0) -> tuple[str, str]:
        picture = io.BytesIO()
        Image.fromarray(rgba).save(picture, "PNG")
        file = f"new File([Uint8Array.from({list(picture.getvalue())})], {json.dumps(name)}, {{type: 'image/png'}})"
        return "script", f"openFiles([{file}], {cell}).then(() => statusLine.textContent)"

    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 4)).astype(np.uint8)
    noise[..., 3] = 255
    _, wide, many, empty, _, _, label, _, _, drawn, left, below, _, said, _ = acted(
        page,
        [
            ("until", "ready"), opened("wide.png", noise[:, :7]), opened("many.png", noise),
            opened("none.png", np.zeros_like(noise)), opened("front.png", cells[0]),
            ("shot", str(tmp_path / "page.png")), ("script", "form.go.textContent"),
            ("click", "button[name=go]"), ("until", "done"),
            ("script", "drawn.map((one) => [one.seed, Array.from(one.rgba)])"),
            ("script", "given.map(Boolean)"), ("script", "list.querySelectorAll('li').length"),
            opened("sheet.png", cells.reshape(-1, 8, 4)), ("script", "(form.requestSubmit(), statusLine.textContent)"),
            ("script", "clear.onclick()"),
        ],
    )  # fmt: skip
    assert wide == "wide.png has 7 x 8 pixels. A cell has 8 x 8, a sheet 8 x 32."
    assert many == "With many.png, the cells have 64 colours. The model takes 15."
    assert empty == "none.png has no visible pixel."
    assert (label, left, below) == ("Draw the rest", [True, False, False, False], 4)
    assert said == "All cells are given. Clear a cell to draw it."
    engine = WasmEngine(ENGINE.read_bytes(), pack_model(model, "fp32"))
    for place, (seed, rgba) in enumerate(drawn):
        assert seed == APART * place
        found, expected = (
            np.array(rgba, np.uint8).reshape(cells.shape),
            engine.complete(cells, given, 0.5 * (place > 0), seed),
        )
        assert (found == expected).all(-1).mean() >= 0.98 and (found[0] == cells[0]).all()


@pytest.mark.slow
def test_the_error_function_of_the_page_is_the_usual_one(exportable: ExportableModel, tmp_path: Path) -> None:
    page = FORM.write(exportable, tmp_path / "page.html", CConfig())[0]
    points = np.linspace(-7, 7, 141).tolist()
    *_, found = acted(page, [("until", "ready"), ("script", f"{points}.map(erf)")])
    np.testing.assert_allclose(found, [math.erf(x) for x in points], atol=1e-9)


@pytest.mark.slow
def test_the_engine_can_be_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another clang may write other code; it exports the same."""
    maker = runpy.run_path(str(paths.assets() / "web/make_engine.py"))
    made = tmp_path / "engine.wasm"
    subprocess.run(["clang", *maker["FLAGS"], "engine.c", "-o", str(made)], cwd=maker["SOURCES"], check=True)
    assert hashlib.sha256(made.read_bytes()).digest() and abs(made.stat().st_size / ENGINE.stat().st_size - 1) < 0.5
