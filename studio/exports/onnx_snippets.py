"""Example code that uses an exported ONNX file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping

from studio.exports.base import ExportableModel
from studio.exports.onnx_graph import input_names
from studio.exports.source_code import fill_in

_PYTHON_HEAD = """
    import numpy as np
    import onnxruntime as ort

    session = ort.InferenceSession("<FILE>", providers=["CPUExecutionProvider"])
"""
_PYTHON_LOOK = """
    pixels = np.asarray(sprites, np.float32) / 255  # sprites: uint8 [N, <SIZE>, <SIZE>, 4], RGBA
    (result,) = session.run(["<OUTPUT>"], {"sprites": pixels})
"""
_PYTHON = {
    "sprites": _PYTHON_HEAD
    + """
    inputs = {
        "noise": np.random.default_rng(0).standard_normal([16, <NOISE>], np.float32),
        "labels": np.arange(16) % <CLASSES>,  # -1: any class
<ATTRIBUTES>        "guidance": np.array([1.5], np.float32),
    }
    (sprites,) = session.run(["sprites"], inputs)
    result = (sprites * 255).round().astype(np.uint8)  # [16, <SIZE>, <SIZE>, 4], RGBA
""",
    "velocity": _PYTHON_HEAD
    + """
    x = np.random.default_rng(0).standard_normal([16, 4, <SIZE>, <SIZE>], np.float32)
    labels = np.arange(16) % <CLASSES>  # -1: any class
    for step in range(20):  # Euler's method, without guidance
        t = np.full(16, step / 20, np.float32)
        x += session.run(["velocity"], {"x": x, "t": t, "label": labels<ATTRIBUTE_ITEMS>})[0] / 20
    rgba = (x.transpose(0, 2, 3, 1).clip(-1, 1) + 1) / 2  # colour is premultiplied by alpha
    colour, alpha = rgba[..., :3] / rgba[..., 3:].clip(0.02), rgba[..., 3:] * (rgba[..., 3:] > 0.02)
    result = (np.concatenate([colour.clip(0, 1), alpha], -1) * 255).round().astype(np.uint8)  # [16, <SIZE>, <SIZE>, 4]
""",
    "probabilities": _PYTHON_HEAD + _PYTHON_LOOK.rstrip("\n") + "  # [N, <OUTPUTS>], of the classes<OF_VALUES>\n",
    "numbers": _PYTHON_HEAD + _PYTHON_LOOK,
}
_PYTHON["drawn"] = (
    _PYTHON_HEAD
    + """
    # cells: uint8 [N, <CELLS>, <SIZE>, <SIZE>, 4], RGBA; given: bool [N, <CELLS>]; the cells are
    # <CELL_NAMES>
    count = len(cells)
    inputs = {
        "cells": np.asarray(cells),
        "given": np.asarray(given),  # with no given cell, a new character is drawn
        "chances": np.random.default_rng(0).random([count, <ROUNDS>, 2, <CELLS>, <SIZE>, <SIZE>], np.float32),
        "variety": np.array([0.5], np.float32),
    }
    (result,) = session.run(["drawn"], inputs)  # all cells, as `cells`
"""
)
_JAVASCRIPT_HEAD = """
    import * as ort from "onnxruntime-web"; // in Node: onnxruntime-node

    const session = await ort.InferenceSession.create("<FILE>");
"""
_JAVASCRIPT_LOOK = """
    // data: the RGBA bytes of a picture of <SIZE> x <SIZE> pixels, as in ImageData
    const sprites = new ort.Tensor("float32", Float32Array.from(data, (byte) => byte / 255), [1, <SIZE>, <SIZE>, 4]);
    const result = (await session.run({ sprites })).<OUTPUT>.data;
"""
_JAVASCRIPT_NOISE = """
    const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
"""
_JAVASCRIPT = {
    "sprites": _JAVASCRIPT_HEAD
    + _JAVASCRIPT_NOISE.rstrip("\n")
    + """
    const shape = [1, <NOISE>];
    const noise = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, normal);
    const { sprites } = await session.run({
      noise: new ort.Tensor("float32", noise, shape),
      labels: new ort.Tensor("int64", BigInt64Array.of(0n), [1]), // -1n: any class
<TENSORS>      guidance: new ort.Tensor("float32", Float32Array.of(1.5), [1]),
    });
    const result = Uint8ClampedArray.from(sprites.data, (value) => value * 255); // RGBA, as in ImageData
""",
    "velocity": _JAVASCRIPT_HEAD
    + _JAVASCRIPT_NOISE.rstrip("\n")
    + """
    const shape = [1, 4, <SIZE>, <SIZE>];
    const x = Float32Array.from({ length: 4 * <SIZE> * <SIZE> }, normal);
    for (let step = 0; step < 20; step++) { // Euler's method, without guidance
      const { velocity } = await session.run({
        x: new ort.Tensor("float32", x, shape),
        t: new ort.Tensor("float32", Float32Array.of(step / 20), [1]),
        label: new ort.Tensor("int64", BigInt64Array.of(0n), [1]), // -1n: any class
<STEP_TENSORS>      });
      velocity.data.forEach((value, i) => { x[i] += value / 20; });
    }
    const result = x; // red, green, blue, alpha one after the other in [-1, 1], colour premultiplied by alpha
""",
    "drawn": _JAVASCRIPT_HEAD
    + """
    // pictures: the RGBA bytes of the given cells, as in ImageData, null for missing cells; the cells are
    // <CELL_NAMES>
    const shape = [1, <CELLS>, <SIZE>, <SIZE>, 4];
    const cells = new Uint8Array(<CELLS> * <SIZE> * <SIZE> * 4);
    pictures.forEach((data, i) => { if (data) cells.set(data, i * <SIZE> * <SIZE> * 4); });
    const { drawn } = await session.run({
      cells: new ort.Tensor("uint8", cells, shape),
      given: new ort.Tensor("bool", Uint8Array.from(pictures, (data) => (data ? 1 : 0)), [1, <CELLS>]),
      chances: new ort.Tensor(
        "float32", Float32Array.from({ length: <ROUNDS> * 2 * <CELLS> * <SIZE> * <SIZE> }, Math.random),
        [1, <ROUNDS>, 2, <CELLS>, <SIZE>, <SIZE>],
      ),
      variety: new ort.Tensor("float32", Float32Array.of(0.5), [1]),
    });
    const result = drawn.data; // all cells, RGBA, one after the other
""",
    "probabilities": _JAVASCRIPT_HEAD + _JAVASCRIPT_LOOK,
    "numbers": _JAVASCRIPT_HEAD + _JAVASCRIPT_LOOK,
}


def snippets_of(model: ExportableModel, name: str, output: str, rounds: int) -> Mapping[str, str]:
    """Return example code that runs an ONNX file, by programming language.

    name: of the file. output: of the graph. rounds: of a graph that completes sets.
    """
    noise = ", ".join(map(str, model.noise.shape[1:])) if model.noise is not None else ""
    values = {"FILE": name, "SIZE": model.size, "CLASSES": max(1, len(model.class_names)), "NOISE": noise}
    values |= {"CELLS": len(model.cells), "CELL_NAMES": json.dumps(model.cells), "ROUNDS": rounds}
    values |= {"OUTPUTS": max(1, len(model.labels)), "OF_VALUES": ", then of the values" * bool(model.attributes)}
    names = [(name, ", ".join(each)) for name, each in zip(input_names(model), model.attributes.values(), strict=True)]
    values["ATTRIBUTES"] = "".join(f'        "{name}": np.full(16, -1),  # {each}; -1: any\n' for name, each in names)
    values["ATTRIBUTE_ITEMS"] = "".join(f', "{name}": np.full(16, -1)' for name, _ in names)  # -1: any value
    tensor = 'new ort.Tensor("int64", BigInt64Array.of(-1n), [1])'
    values["TENSORS"] = "".join(f"      {name}: {tensor}, // {each}; -1n: any\n" for name, each in names)
    values["STEP_TENSORS"] = textwrap.indent(str(values["TENSORS"]), "  ")
    codes = {"Python": _PYTHON[output], "JavaScript": _JAVASCRIPT[output]}
    filled = {language: fill_in(code, {**values, "OUTPUT": output}, "<>") for language, code in codes.items()}
    return {language: textwrap.dedent(code).lstrip() for language, code in filled.items()}
