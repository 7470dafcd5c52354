"""A model as a C file, its header and its weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch

from studio.core.errors import ExportError
from studio.core.shell import command_line
from studio.exports.base import PROBE, ExportableModel
from studio.exports.c import source, verification
from studio.exports.c.program import Program
from studio.exports.c.tracing import trace
from studio.exports.c.weights import pack
from studio.exports.onnx_graph import PredictorModule

_SMALLEST = 2  # pixels a side: from 16 numbers on, torch draws noise in blocks
COMMENT = ("/*", "*/")


@dataclass(frozen=True)
class CFiles:
    """What is in each."""

    header: str
    source: str
    weights: bytes


def compose(model: ExportableModel, target: Path, precision: str) -> CFiles:
    """The files of a model; `target` is the C file, after which all is named. Raises ExportError."""
    prefix, draws = prefix_of(target), model.makes == "sprites"
    if draws and model.size < _SMALLEST:
        raise ExportError("The C file draws no sprites of a single pixel.", "torch makes noise otherwise for so few.")
    if draws:
        kind, sources = "drawing", ["noise.c", "pixels.c", "drawing.c"]
        program, inputs = step_of(model)
        constants, lists = {"CLASSES": len(model.class_names)}, {"class_names": model.class_names}
    else:
        names = model.class_names if model.makes == "labels" else model.target_names
        kind, sources = "predicting", ["predicting.c"]
        program, inputs = prediction_of(model)
        constants, lists = {"OUTPUTS": len(names)}, {"output_names": names}
    packed = pack(program, precision)
    about = source.comment(_about(model, target, precision))
    said = "a probability for each class" if model.makes == "labels" else "its numbers"
    parts = [
        about + source.includes(target.with_suffix(".h").name),
        *(source.names_table(f"{prefix}_{name}", texts) for name, texts in lists.items()),
        source.weight_table(program, packed, precision),
        source.operators(program),
        source.network(program, inputs),
        *(_drawing_tables(model) if draws else ()),
        source.defines({"AREA": f"({prefix.upper()}_SIZE * {prefix.upper()}_SIZE)", "MOST_AREA": "AREA"}),
        *(source.read(name, prefix) for name in (*sources, "weights.c", "context.c")),
    ]
    api = source.read(f"{kind}.h", prefix, WHAT=said)
    header = source.header(about, prefix, {"SIZE": model.size, **constants}, lists, api)
    return CFiles(header, verification.add_checksum("\n".join(parts), *COMMENT), packed)


def prefix_of(target: Path) -> str:
    """'my model.c' -> 'my_model', with which a name in C may begin."""
    stem = re.sub(r"\W", "_", target.stem, flags=re.ASCII).strip("_")
    return stem if stem[:1].isalpha() else f"model_{stem}".rstrip("_")


def step_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """The network of a flow, and its arguments in C."""
    inputs = [torch.zeros(1, 4, model.size, model.size), torch.zeros(1), torch.zeros(1, dtype=torch.int64)]
    program = trace(model.network, inputs, ["x", "t", "label"])
    return program, ["const float *x", "const float *t", "int label"]


def prediction_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """What a model says of pixels, and its arguments in C."""
    return trace(PredictorModule(model).eval(), [PROBE.pixels(model.size)[:1]], ["x"]), ["const float *x"]


def _drawing_tables(model: ExportableModel) -> list[str]:
    constants = {name.upper(): value for name, value in model.solver.items()}
    return [source.style_tables(source.Style.of(model.palette, model.style)), source.defines(constants)]


def _about(model: ExportableModel, target: Path, precision: str) -> str:
    """What a reader of the file should know first."""
    what = {
        "sprites": "Draws sprites",
        "labels": "Names the class of sprites",
        "numbers": "Predicts the numbers of sprites",
    }
    started = ", ".join(f"{one['title']} (which learnt from {one['data_title']})" for one in model.ancestors)
    lineage = f"It started from the weights of {started}." if started else "It learnt from its own sprites alone."
    compiled = command_line("cc", "-std=c99", "-O3", "-march=native", "-c", target.name)
    header, weights = (target.with_suffix(suffix).name for suffix in (".h", ".bin"))
    return f"""{what[model.makes]} of {model.size} x {model.size} pixels: {model.title}, after {model.step:,} steps of
   the recipe {model.recipe} in Sprite Training Studio. {lineage}

   C99 and libm alone; compile it with: {compiled}
   {weights} holds the weights, {precision}; {header} says how all is used."""
