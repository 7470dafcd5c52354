"""Export a model as a self-contained web page with the WebAssembly engine, the model and the user interface."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core import paths
from studio.core.errors import ExportError
from studio.core.files import write_atomic
from studio.core.formatting import count, number
from studio.exports.base import ALL, PROBE, ExportableModel, ModelExport, check_finite
from studio.exports.c import verification
from studio.exports.c.completing import SEED_STRIDE, SetTables
from studio.exports.c.packing import pack_model
from studio.exports.c.verification import CConfig, CVerification
from studio.exports.sprites.cells import Cells
from studio.exports.web.wasm_engine import WasmEngine

_PARTS = Path(__file__).with_name("web")
_ABOUT = re.compile(r'<script id="about" type="application/json">(.*?)</script>')
_COMMENT = ("<!--", "-->")
_INSIDE = re.compile(r'<script id="(engine|model)" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>')


class WebPage(CVerification, ModelExport[CConfig]):
    name = "web"
    title = "Web page"
    suffix = ".html"
    order = 7
    help = "A web page that draws sprites or predicts in any browser, also without a network connection."
    holds = ALL
    takes_attributes = True
    opened_by = "current browsers; itch.io and other sites; games in JavaScript"

    def missing(self) -> str:
        needed = "Install wasmtime, which runs the page's engine to verify it: pip install wasmtime"
        return "" if importlib.util.find_spec("wasmtime") else needed

    def write(self, model: ExportableModel, target: Path, config: CConfig) -> list[Path]:
        check_finite(model.weights(), target)
        write_atomic(target, compose(model, pack_model(model, config.weights)).encode())
        return [target]

    def read_back(
        self, paths: Sequence[Path], model: ExportableModel, config: CConfig
    ) -> Generator[float, None, Tensor]:
        page = paths[0]
        try:
            text = page.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ExportError(f"{page.name} can't be read back.", str(error)) from error
        if not verification.checksum_matches(text, *_COMMENT):
            raise ExportError(f"{page.name} is damaged.", "Its checksum is wrong.")
        about = _ABOUT.search(text)
        if about is None or json.loads(about[1]) != about_of(model):
            raise ExportError(f"{page.name} contains another model.", "Export again.")
        inside = {name: base64.b64decode(data) for name, data in _INSIDE.findall(text)}
        engine = WasmEngine(inside["engine"], inside["model"])
        probe = verification.probe_for(config)
        parts: list[Callable[[], NDArray[np.float32]]]
        if model.makes == "sprites":
            parts = [
                partial(engine.draw, label, seed, float(probe.guidance), probe.steps, _chosen(model, values))
                for label, seed, values in verification.probe_labels_and_seeds(model, config)
            ]
        elif model.makes == "sets":
            parts = [partial(_complete, engine, config, *inputs) for inputs in verification.probe_sets(model, config)]
        else:
            parts = [partial(engine.predict, pixels) for pixels in PROBE.pixels(model.size).numpy()]
        found = []
        for done, part in enumerate(parts):
            found.append((yield from engine.run_in_thread(part, done / len(parts))))
        return torch.from_numpy(np.stack(found))

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: CConfig) -> Mapping[str, str]:
        show = (
            "const picture = new ImageData(rgba, model.size);\n"
            'document.querySelector("canvas").getContext("2d").putImageData(picture, 0, 0);\n'
        )
        draw, order = "const rgba = model.draw(0, 1);  // the first class, seed 1\n", ""
        copied, ids, about, known = "three", "engine, model and engine-code", "", ""
        if model.attributes and model.makes == "sprites":
            copied, ids, known = "four", "about, engine, model and engine-code", ", about.attributes"
            about = 'const about = JSON.parse(document.getElementById("about").textContent);\n'
            chosen = json.dumps({name: values[0] for name, values in model.attributes.items()}, ensure_ascii=False)
            draw = f"model.choose({chosen});\nconst rgba = model.draw(-1, 1);  // any class, seed 1\n"
        elif model.attributes:
            order = "// First the classes, then the values of each attribute, as in the page's script 'about'.\n"
        cells = f"{len(model.cells)} * 4 * model.size ** 2"
        use = {
            "drawing": draw + show,
            "completing": (
                f"const cells = new Uint8ClampedArray({cells});  // RGBA bytes, one cell after the other\n"
                f"const given = Array({len(model.cells)}).fill(false);  // true for the cells to keep\n"
                f"const rgba = model.complete(cells, given, 1);  // all cells, with seed 1\n{show}"
            ),
            "predicting": f"{order}const found = model.predict(rgba);  // RGBA bytes, model.size x model.size pixels\n",
        }[verification.kind_of(model)]
        lines = (
            f"// In your own page: copy {copied} <script> elements from {paths[0].name},\n"
            f"// with the ids {ids}. Then:\n{about}"
            f'const model = await openModel(bytesIn("engine"), bytesIn("model"){known});\n'
        )
        return {"JavaScript": lines + use}


def _chosen(model: ExportableModel, values: Mapping[str, str]) -> list[bool]:
    """Return True for chosen attribute values, in the model's order. values: chosen value by attribute."""
    return [value == values.get(name) for name, known in model.attributes.items() for value in known]


def _complete(
    engine: WasmEngine, config: CConfig, cells: Tensor, given: Tensor, chances: Tensor, least: int
) -> NDArray[np.float32]:
    """Return the engine's outputs for a set to compare. Raises ExportError."""
    inputs = cells.numpy(), given.numpy()
    if not verification.draws_sets(config):
        return engine.odds(*inputs, chances.numpy(), least)
    drawn = engine.complete(*inputs, PROBE.variety, chances.numpy(), least)
    if drawn is None:
        raise ExportError("The page's engine has no palette for these cells.", "Export again.")
    return drawn.astype(np.float32) / np.float32(255)


def compose(model: ExportableModel, packed: bytes) -> str:
    """Return the HTML of a page. packed: the model's file from `pack_model`."""
    kind, names = verification.kind_of(model), _names(model)
    engine = (paths.assets() / "web/engine.wasm").read_bytes()
    of_attributes = count(len(model.attributes), "attribute") if model.attributes else ""
    more = {word: f", {word} {of_attributes}" if of_attributes else "" for word in ("and", "with")}
    what = {
        "sprites": f"Draws sprites of {model.size} x {model.size} pixels in "
        f"{count(len(names), 'class', 'classes')}{more['with']}.",
        "sets": f"Completes characters of {len(names)} cells, {model.size} x {model.size} pixels each.",
        "labels": f"Predicts the class of sprites, one of {len(names)}{more['and']}.",
        "numbers": f"Predicts {count(len(names), 'number')} for a sprite.",
    }
    parts = {
        "TITLE": html.escape(model.title),
        "STYLE": _read("page.css"),
        "WHAT": what[model.makes],
        "BODY": _read(f"{kind}.html"),
        "ABOUT": "\n".join(f"<p>{html.escape(line)}</p>" for line in _about(model)),
        "ABOUT_JSON": json.dumps(about_of(model)).replace("<", "\\u003c"),
        "ENGINE": base64.b64encode(engine).decode(),
        "MODEL": base64.b64encode(packed).decode(),
        "ENGINE_CODE": _read("engine.js"),
        "CODE": ("" if kind == "predicting" else _read("worker.js")) + _read(f"{kind}.js"),
    }
    filled = re.sub(r"@([A-Z_]+)@", lambda found: parts[found[1]], _read("page.html"))
    return verification.add_checksum(filled.encode("utf-8", "replace").decode().rstrip("\n"), *_COMMENT)


def about_of(model: ExportableModel) -> dict[str, Any]:
    """Return the values that the page's JavaScript reads."""
    about: dict[str, Any] = {
        "title": model.title, "size": model.size, "makes": model.makes, "step": model.step,
        "names": list(_names(model)), "attributes": {name: [*values] for name, values in model.attributes.items()},
        "placesApart": int(model.solver.get("places_apart", 0)),
    }  # fmt: skip
    if model.makes == "sets":
        rows = Cells.full(model.cells, len(model.cells)).by_row
        about |= {"rows": [[name, cells] for name, cells in rows.items()], "placesApart": SEED_STRIDE}
        about |= {"colours": SetTables.of(model).entries[-1] - 1}  # limit for given cells
    return about


def _names(model: ExportableModel) -> Sequence[str]:
    """Return the names of the model's classes, numbers or cells."""
    return {"numbers": model.target_names, "sets": model.cells}.get(model.makes, model.class_names)


def _read(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


def _about(model: ExportableModel) -> list[str]:
    """Return the lines of the page's section 'About this model'."""
    steps = number(model.step)
    lines = [f"{model.title}, trained for {steps} steps with the recipe {model.recipe} of Sprite Training Studio."]
    if model.source is not None:
        rights = ", ".join(filter(None, (model.source.licence, model.source.credits)))
        rights = f" ({rights})" if rights else ""
        lines.append(f"Training data: {count(model.source.data_count, 'sprite')}, '{model.source.data}'{rights}.")
        lines.append(f"Weights: SHA-256 {model.source.weights_sha256}")
    if model.ancestors:
        lines.append(f"Training started from the weights of {model.ancestry()}.")
    return lines
