"""Pack the program, the tables and the weights of a model into one file for the WebAssembly engine (engine.c)."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from studio.core.errors import ExportError
from studio.exports.base import ExportableModel
from studio.exports.c import source
from studio.exports.c.completing import SetTables, completion_of
from studio.exports.c.compose import prediction_of, step_of
from studio.exports.c.program import (
    MAX_AXES,
    Argument,
    Buffer,
    Call,
    Constant,
    StridedLoop,
    TensorView,
    WeightTensor,
    aligned,
)
from studio.exports.c.weights import MAGIC, int8_parts, pack

_HEADER = struct.Struct("<3d22i")  # the struct `header` in engine.c
_OPERATION = re.compile(r"^    X\((\w+), (\d+), ", re.MULTILINE)
_WEIGHTS, _MEMORY, _CONSTANTS = range(3)
# Without attributes, the engine passes the label as a number, not as a tensor.
_INPUTS = {"x": 3, "t": 4, "label": 0, "out": 5, "index": 3, "palette": 4, "known": 6, "shares": 6}
_LARGEST_OFFSET = 1 << 28  # floats
_MOST_COLOURS = 4096
_MOST_LABELS = 1 << 16
_LEVELS = 256


def pack_model(model: ExportableModel, precision: str) -> bytes:
    """Return the bytes of a packed model. precision: 'fp32' or 'int8'. Raises ExportError for unsupported models."""
    program, _ = {"sprites": step_of, "sets": completion_of}.get(model.makes, prediction_of)(model)
    names = model.target_names if model.makes == "numbers" else model.labels
    style = source.Style.of(model.palette, model.style)
    if len(style.palette) > _MOST_COLOURS:
        raise ExportError(f"The palette has {len(style.palette):,} colours; the limit is {_MOST_COLOURS:,}.")
    if len(model.labels) > _MOST_LABELS:
        raise ExportError(f"The model has {len(model.labels):,} classes and values; the limit is {_MOST_LABELS:,}.")
    (places, memory), (offsets, weights) = program.memory_offsets(), program.weight_offsets()
    words = _Words(places, offsets, [])
    code, starts_of_variants = list[int](), list[int]()
    for calls in program.variants():
        starts_of_variants.append(len(code))
        code += [*(word for call in calls for word in words.of(call)), len(operations())]
    rounded = int8_parts(program, precision)
    levels = np.zeros((len(style.alpha_levels), _LEVELS), np.uint8)
    for row, own in zip(levels, style.alpha_levels, strict=True):
        row[: len(own)] = own
    tables = [
        np.array(code, np.int64).astype("<u4").tobytes(),  # strides may be negative
        np.array(words.constants, "<f4").tobytes(),
        np.array([(*part.values.shape, part in rounded) for part in program.parts], "<i4").tobytes(),
        style.palette.tobytes(),
        np.array(style.colours, "<i4").tobytes(),
        levels.tobytes(),
        pack(program, precision)[len(MAGIC) + 4 :],
        *_tables_of_sets(model, starts_of_variants),
    ]
    starts, end = list[int](), _HEADER.size
    for table in tables:
        starts.append(aligned(end))
        end = starts[-1] + len(table)
    counts = (
        model.size, len(model.class_names), sum(model.label_counts[1:]), len(names), len(style.palette),
        len(program.parts), weights, max(1, memory), *_counts_of_sets(model),
    )  # fmt: skip
    solver = (model.solver.get(name, 0.0) for name in ("last_from", "guided_from", "guided_to"))
    data = bytearray(end)
    _HEADER.pack_into(data, 0, *solver, *counts, *starts)
    for start, table in zip(starts, tables, strict=True):
        data[start : start + len(table)] = table
    return bytes(data)


def _counts_of_sets(model: ExportableModel) -> tuple[int, int, int]:
    """Return three counts: cells, palette entries, training palettes. Zeros unless the model makes sets."""
    if model.makes != "sets":
        return 0, 0, 0
    return len(model.cells), *SetTables.of(model).palettes.shape[1::-1]


def _tables_of_sets(model: ExportableModel, starts: Sequence[int]) -> list[bytes]:
    """Return the tables for completing sets; empty tables for other models. starts: first word of each variant."""
    if model.makes != "sets":
        return [b""] * 4
    tables = SetTables.of(model)
    return [
        np.array([*zip(tables.entries, starts, strict=True)], "<i4").tobytes(),
        tables.palettes.tobytes(),
        tables.partners.astype("<i4").tobytes(),
        tables.mirrored.astype("<f4").tobytes(),
    ]


@functools.cache
def operations() -> dict[str, tuple[int, int]]:
    """Return opcode and number of argument words by name of the engine function."""
    found = _OPERATION.findall(source.read("engine.c", "model"))
    return {name: (number, int(words)) for number, (name, words) in enumerate(found)}


@dataclass(frozen=True)
class _Words:
    """Encodes function calls as 32-bit words, and collects literals in `constants`. Offsets are in floats."""

    memory_offsets: Mapping[Buffer, int]
    weight_offsets: Mapping[WeightTensor, int]
    constants: list[float]

    def of(self, call: Call) -> list[int]:
        """Encode a call: the opcode, then the arguments."""
        number, count = operations()[call.function]
        words = [word for argument in call.arguments for word in self._argument(argument)]
        assert len(words) == count, call.function
        return [number, *words]

    def _argument(self, argument: Argument) -> Iterator[int]:
        if isinstance(argument, TensorView):
            yield self._view(argument)
        elif isinstance(argument, StridedLoop):
            yield len(argument.size)
            for values in (argument.size, argument.out, argument.a, argument.b):
                yield from (*values, *(0,) * (MAX_AXES - len(values)))
        elif isinstance(argument, tuple):
            yield from argument
        elif isinstance(argument, float):
            yield int.from_bytes(struct.pack("<f", argument), "little")
        else:
            assert isinstance(argument, int)
            yield argument

    def _view(self, view: TensorView) -> int:
        lies_in, offset = view.source, int(view.layout.storage_offset())
        if isinstance(lies_in, Constant):
            self.constants.append(lies_in.value)
            kind, offset = _CONSTANTS, len(self.constants) - 1
        elif isinstance(lies_in, WeightTensor):
            kind, offset = _WEIGHTS, offset + self.weight_offsets[lies_in]
        elif lies_in.name:
            kind = _INPUTS[lies_in.name]
        else:
            kind, offset = _MEMORY, offset + self.memory_offsets[lies_in]
        if offset >= _LARGEST_OFFSET:
            raise ExportError("The model is too large for a web page.", "Choose another format.")
        return kind << 28 | offset
