"""Compose the C file, the header and the weights file of a model."""

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

_SMALLEST = 2  # pixels per side: for fewer than 16 numbers, torch.randn uses another method, which noise.c lacks
COMMENT = ("/*", "*/")


@dataclass(frozen=True)
class CFiles:
    """The contents of an exported C file, its header and its weights file."""

    header: str
    source: str
    weights: bytes


def compose(model: ExportableModel, target: Path, precision: str) -> CFiles:
    """Create the C code of a model. target: path of the C file; functions are named after it. Raises ExportError."""
    prefix, draws = prefix_of(target), model.makes == "sprites"
    if draws and model.size < _SMALLEST:
        raise ExportError("The C file can't draw sprites of a single pixel.", "Choose another format.")
    if draws:
        kind, sources = "drawing", ["noise.c", "pixels.c", "drawing.c"]
        program, inputs = step_of(model)
        constants, lists = {"CLASSES": len(model.class_names)}, {"class_names": model.class_names}
        solver = {name.upper(): value for name, value in model.solver.items()}
        tables = [source.style_tables(source.Style.of(model.palette, model.style)), source.defines(solver)]
    else:
        names = model.class_names if model.makes == "labels" else model.target_names
        kind, sources, tables = "predicting", ["predicting.c"], []
        program, inputs = prediction_of(model)
        constants, lists = {"OUTPUTS": len(names)}, {"output_names": names}
    packed = pack(program, precision)
    about = source.comment(_about(model, target, precision))
    outputs = "a probability for each class" if model.makes == "labels" else "its numbers"
    parts = [
        about + source.includes(target.with_suffix(".h").name),
        *(source.names_table(f"{prefix}_{name}", texts) for name, texts in lists.items()),
        source.weight_table(program, packed, precision),
        source.operators(program),
        source.network(program, inputs),
        *tables,
        source.defines({"AREA": f"({prefix.upper()}_SIZE * {prefix.upper()}_SIZE)", "MOST_AREA": "AREA"}),
        *(source.read(name, prefix) for name in (*sources, "weights.c", "context.c")),
    ]
    api = source.read(f"{kind}.h", prefix, WHAT=outputs)
    header = source.header(about, prefix, {"SIZE": model.size, **constants}, lists, api)
    return CFiles(header, verification.add_checksum("\n".join(parts), *COMMENT), packed)


def prefix_of(target: Path) -> str:
    """Return the prefix of all C names: 'my model.c' -> 'my_model'."""
    stem = re.sub(r"\W", "_", target.stem, flags=re.ASCII).strip("_")
    return stem if stem[:1].isalpha() else f"model_{stem}".rstrip("_")


def step_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """Trace the network of a flow-matching model; return the program and its C parameters. Raises ExportError."""
    inputs = [torch.zeros(1, 4, model.size, model.size), torch.zeros(1), torch.zeros(1, dtype=torch.int64)]
    program = trace(model.network, inputs, ["x", "t", "label"])
    return program, ["const float *x", "const float *t", "int label"]


def prediction_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """Trace a classifier or regressor; return the program and its C parameters. Raises ExportError."""
    return trace(PredictorModule(model).eval(), [PROBE.pixels(model.size)[:1]], ["x"]), ["const float *x"]


def _about(model: ExportableModel, target: Path, precision: str) -> str:
    """Return the comment at the top of the C file and the header."""
    predicts = "Predicts the class of sprites" if model.makes == "labels" else "Predicts numbers for sprites"
    what = "Draws sprites" if model.makes == "sprites" else predicts
    ancestry = model.ancestry()
    lineage = f"Training started from the weights of {ancestry}." if ancestry else "Trained from scratch."
    compiled = command_line("cc", "-std=c99", "-O3", "-march=native", "-c", target.name)
    header, weights = (target.with_suffix(suffix).name for suffix in (".h", ".bin"))
    return f"""{what} of {model.size} x {model.size} pixels: {model.title}, after {model.step:,} steps
   with the recipe {model.recipe} of Sprite Training Studio. {lineage}

   Needs only C99 and libm. Compile with: {compiled}
   {weights} holds the {precision} weights; {header} documents the functions."""
