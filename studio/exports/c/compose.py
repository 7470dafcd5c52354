"""Compose the C file, the header and the weights file of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from studio.core.errors import ExportError
from studio.core.shell import command_line
from studio.exports.base import PROBE, ExportableModel
from studio.exports.c import source, verification
from studio.exports.c.completing import SetTables, completion_of
from studio.exports.c.program import Program
from studio.exports.c.tracing import trace
from studio.exports.c.weights import pack
from studio.exports.onnx_graph import NetworkModule, PredictorModule

_SMALLEST = 2  # pixels per side: for fewer than 16 numbers, torch.randn uses another method, which noise.c lacks
COMMENT = ("/*", "*/")
_PROBABILITIES = ("a probability for each class", "a probability for each class and each value of an attribute")


@dataclass(frozen=True)
class CFiles:
    """The contents of an exported C file, its header and its weights file."""

    header: str
    source: str
    weights: bytes


@dataclass(frozen=True)
class _Parts:
    """The parts of a C file that differ between drawing, completing and predicting models."""

    program: Program
    network: str  # C source of the function that runs the program
    sources: tuple[str, ...]  # templates
    constants: Mapping[str, int]
    lists: Mapping[str, Sequence[str]]  # names
    tables: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()  # templates with further prototypes


def compose(model: ExportableModel, target: Path, precision: str) -> CFiles:
    """Create a model's C code. target: path of the C file; C names start with the file's name. Raises ExportError."""
    prefix = prefix_of(target)
    if model.makes == "sprites":
        own = _drawing(model)
    else:
        own = _completing(model) if model.makes == "sets" else _predicting(model)
    packed = pack(own.program, precision)
    about = source.comment(_about(model, target, precision))
    outputs = _PROBABILITIES[bool(model.attributes)] if model.makes == "labels" else "its numbers"
    parts = [
        about + source.includes(target.with_suffix(".h").name),
        *(source.names_table(f"{prefix}_{name}", texts) for name, texts in own.lists.items()),
        source.weight_table(own.program, packed, precision),
        source.operators(own.program),
        own.network,
        *own.tables,
        source.defines({"AREA": f"({prefix.upper()}_SIZE * {prefix.upper()}_SIZE)", "MOST_AREA": "AREA"}),
        *(source.read(name, prefix) for name in (*own.sources, "weights.c", "context.c")),
    ]
    interfaces = (f"{verification.kind_of(model)}.h", *own.interfaces)
    api = "".join(source.read(name, prefix, WHAT=outputs) for name in interfaces)
    header = source.header(about, prefix, {"SIZE": model.size, **own.constants}, own.lists, api)
    return CFiles(header, verification.add_checksum("\n".join(parts), *COMMENT), packed)


def _drawing(model: ExportableModel) -> _Parts:
    if model.size < _SMALLEST:
        raise ExportError("The C file can't draw sprites of a single pixel.", "Choose another format.")
    program, inputs = step_of(model)
    parts = _Parts(
        program, source.network(program, inputs), ("noise.c", "pixels.c", "drawing.c"),
        {"CLASSES": len(model.class_names)}, {"class_names": model.class_names},
        (
            source.style_tables(source.Style.of(model.palette, model.style)),
            source.defines({name.upper(): value for name, value in model.solver.items()}),
        ),
    )  # fmt: skip
    return _with_attributes(model, parts) if model.attributes else parts


def _with_attributes(model: ExportableModel, parts: _Parts) -> _Parts:
    """Add the attribute values' names and the function that chooses values to the parts of a drawing model."""
    values = model.labels[len(model.class_names) :]
    sizes = {"MOST_VALUES": len(values), "MOST_LABELS": len(model.labels)}
    return replace(
        parts,
        sources=(*parts.sources, "attributes.c"),
        interfaces=("attributes.h",),
        constants={**parts.constants, "VALUES": len(values)},
        lists={**parts.lists, "values": values},
        tables=(*parts.tables, source.defines(sizes)),
    )


def _completing(model: ExportableModel) -> _Parts:
    (program, inputs), tables = completion_of(model), SetTables.of(model)
    most = tables.entries[-1]
    return _Parts(
        program, source.network(program, inputs, tables.entries), ("noise.c", "sets.c", "completing.c"),
        {"CELLS": len(model.cells), "COLOURS": most - 1}, {"cell_names": model.cells},
        (source.defines({"CELLS": len(model.cells), "ENTRIES": most, "MOST_ENTRIES": most}), source.set_tables(tables)),
    )  # fmt: skip


def _predicting(model: ExportableModel) -> _Parts:
    program, inputs = prediction_of(model)
    names = model.labels if model.makes == "labels" else model.target_names
    return _Parts(
        program, source.network(program, inputs), ("predicting.c",), {"OUTPUTS": len(names)}, {"output_names": names}
    )


def prefix_of(target: Path) -> str:
    """Return the prefix of all C names: 'my model.c' -> 'my_model'."""
    stem = re.sub(r"\W", "_", target.stem, flags=re.ASCII).strip("_")
    return stem if stem[:1].isalpha() else f"model_{stem}".rstrip("_")


def step_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """Trace the network of a flow-matching model; return the program and its C parameters. Raises ExportError."""
    inputs = [torch.zeros(1, 4, model.size, model.size), torch.zeros(1)]
    if model.attributes:
        shares = torch.zeros(1, len(model.labels) + 1)
        program = trace(NetworkModule(model).eval(), [*inputs, shares], ["x", "t", "shares"])
        return program, ["const float *x", "const float *t", "const float *shares"]
    program = trace(model.network, [*inputs, torch.zeros(1, dtype=torch.int64)], ["x", "t", "label"])
    return program, ["const float *x", "const float *t", "int label"]


def prediction_of(model: ExportableModel) -> tuple[Program, list[str]]:
    """Trace a classifier or regressor; return the program and its C parameters. Raises ExportError."""
    return trace(PredictorModule(model).eval(), [PROBE.pixels(model.size)[:1]], ["x"]), ["const float *x"]


def _about(model: ExportableModel, target: Path, precision: str) -> str:
    """Return the text of the comment at the top of the C file and the header."""
    what = {
        "sprites": "Draws sprites",
        "sets": f"Completes sets of {len(model.cells)} cells",
        "labels": "Predicts the class of sprites",
        "numbers": "Predicts numbers for sprites",
    }[model.makes]
    ancestry = model.ancestry()
    lineage = f"Training started from the weights of {ancestry}." if ancestry else "Trained from scratch."
    compiled = command_line("cc", "-std=c99", "-O3", "-march=native", "-c", target.name)
    header, weights = (target.with_suffix(suffix).name for suffix in (".h", ".bin"))
    return f"""{what} of {model.size} x {model.size} pixels: {model.title}, after {model.step:,} steps
   with the recipe {model.recipe} of Sprite Training Studio. {lineage}

   Needs only C99 and libm. Compile with: {compiled}
   {weights} holds the {precision} weights; {header} documents the functions."""
